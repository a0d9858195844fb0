package urlkey

// inputParts holds the path and the query of a parsed URL as the input writes them. The path has no dot segments, and
// octets that a URL cannot hold are escaped. The query has its question mark.
type inputParts struct{ path, query string }

// maxSent is the length of the longest URL to send, in octets. Escapes may be three times as long as in the canonical
// form; parameters that this form lacks may have any length.
const maxSent = 3 * MaxLength

// Sent is like Canonical but also returns the URL to send to the server: scheme, host and port of the canonical URL, path
// and query as in raw. The canonical URL says which resource is meant, but servers may know it only as it was linked: the
// order of parameters, an empty one or one for tracking, and escapes may matter, and a signature covers them all. Sent is
// "" if it equals the canonical URL, is too long, or if rules changed path or query and so the resource.
//
// Canonical returns the same URL for sent as for raw, and Sent returns sent again.
func (c *Canonicalizer) Sent(raw, base string) (k Key, sent string, err error) {
	l, s, err := c.sent(raw, base)
	if err != nil {
		return Key{}, "", err
	}
	k = l.unsorted(Domain)
	k.SURT, err = SURT(k.URL)
	return k, s, err
}

// SentUnsorted is like Sent but leaves out the SURT, which takes a third of the time, and remembers the domains of hosts
// in known.
func (c *Canonicalizer) SentUnsorted(raw, base string, known *Domains) (k Key, sent string, err error) {
	l, s, err := c.sent(raw, base)
	if err != nil {
		return Key{}, "", err
	}
	return l.unsorted(known.of), s, nil
}

// SentURL is like Sent but returns only the two URLs, at half the cost.
func (c *Canonicalizer) SentURL(raw, base string) (url, sent string, err error) {
	l, s, err := c.sent(raw, base)
	return l.url, s, err
}

func (c *Canonicalizer) sent(raw, base string) (to urlLayout, sent string, err error) {
	l, g, err := c.canonical(raw, base)
	if err != nil {
		return urlLayout{}, "", err
	}
	if to = l; c.rules != nil {
		if to, err = c.apply(l, nil); err != nil {
			return urlLayout{}, "", err
		}
		if to.url != l.url && to.url[to.portEnd:] != l.url[l.portEnd:] {
			return to, "", nil
		}
	}
	n := to.portEnd + len(g.path) + len(g.query)
	if n > maxSent || n == len(to.url) && to.url[to.portEnd:to.pathEnd] == g.path && to.url[to.pathEnd:] == g.query {
		return to, "", nil
	}
	sent = to.url[:to.portEnd] + g.path + g.query
	if c.rules != nil {
		// A rewrite may treat what the canonical form lacks, so what it makes of sent decides.
		if again, err := c.result(sent, ""); err != nil || again.url != to.url {
			return to, "", nil
		}
	}
	return to, sent, nil
}
