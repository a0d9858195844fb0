package urlkey

import "strings"

// inputParts holds the path and the query of a parsed URL, with the percent escapes and the order of
// parameters of the input. The path has no dot segments.
type inputParts struct{ path, query string }

// Spelled is like Canonical but also returns the spelling of the URL in raw: the canonical URL with
// the percent escapes and the order of parameters of the input. The spelling is "" if it equals the
// canonical URL. robots.txt must allow the spelling too. The hex digits of its escapes are in upper
// case, because robots.txt matching ignores their case.
//
// Canonical returns the same URL for the spelling as for raw. If raw is itself a spelling, Spelled
// returns it. A spelling may have up to three times MaxLength octets, so that no URL is refused
// because of a long spelling.
func (c *Canonicalizer) Spelled(raw, base string) (Key, string, error) {
	l, s, err := c.spelled(raw, base)
	if err != nil {
		return Key{}, "", err
	}
	k := l.unsorted(Domain)
	k.SURT, err = SURT(k.URL)
	return k, s, err
}

// SpelledUnsorted is like Spelled but leaves out the SURT, which takes a third of the time, and remembers the domains of
// hosts in known.
func (c *Canonicalizer) SpelledUnsorted(raw, base string, known *Domains) (Key, string, error) {
	l, s, err := c.spelled(raw, base)
	if err != nil {
		return Key{}, "", err
	}
	return l.unsorted(known.of), s, nil
}

// SpelledURL is like Spelled but returns only the URL and the spelling, at half the cost.
func (c *Canonicalizer) SpelledURL(raw, base string) (url, spelling string, err error) {
	l, s, err := c.spelled(raw, base)
	return l.url, s, err
}

func (c *Canonicalizer) spelled(raw, base string) (urlLayout, string, error) {
	l, g, err := c.canonical(raw, base)
	if err != nil {
		return urlLayout{}, "", err
	}
	s := c.spelling(l, g)
	if c.rules != nil {
		return c.ruled(l, s)
	}
	return l, s, nil
}

// spelling returns the spelling of the canonical URL l whose input has the path and query g, or "" if
// it equals l.url.
func (c *Canonicalizer) spelling(l urlLayout, g inputParts) string {
	canonical := strings.TrimPrefix(l.url[l.pathEnd:], "?")
	path, query := upperEscapes(g.path), g.query
	if query != canonical {
		query = c.spelledQuery(query, canonical)
	}
	if query == canonical && path == l.url[l.portEnd:l.pathEnd] {
		return ""
	}
	s := l.url[:l.portEnd] + path
	if query != "" {
		s += "?" + query
	}
	return s
}

// spelledQuery returns the given query without the parameters that canonicalQuery drops.
func (c *Canonicalizer) spelledQuery(given, canonical string) string {
	normal := normalizeEscapes(given)
	s := c.keptParams(upperEscapes(given), normal)
	if c.canonicalQuery(normalizeEscapes(s)) == canonical {
		return s
	}
	// A dropped parameter may have separated a stray percent sign from an escape. Without the
	// parameter, the escape has another meaning. Normalized escapes may keep it.
	if s = c.keptParams(normal, normal); c.canonicalQuery(normalizeEscapes(s)) == canonical {
		return s
	}
	return canonical
}

// keptParams returns the parameters of a query that canonicalQuery keeps. normal is the query with
// normalized escapes, which decide. Both have the same number of parameters, because
// normalizeEscapes never decodes "&".
func (c *Canonicalizer) keptParams(query, normal string) string {
	var out strings.Builder
	out.Grow(len(query))
	for more := query != ""; more; {
		var name, whole, spelled string
		name, whole, normal, more = param(normal)
		_, spelled, query, _ = param(query)
		if whole == "" || c.strip.match(name) {
			continue
		}
		if out.Len() > 0 {
			out.WriteByte('&')
		}
		out.WriteString(spelled)
	}
	return out.String()
}

// upperEscapes writes the hex digits of percent escapes in upper case.
func upperEscapes(s string) string {
	var out []byte
	for i := strings.IndexByte(s, '%'); i >= 0 && i < len(s); i++ {
		if _, ok := triplet(s, i); !ok {
			continue
		}
		if s[i+1] >= 'a' || s[i+2] >= 'a' {
			if out == nil {
				out = []byte(s)
			}
			for j := i + 1; j <= i+2; j++ {
				if s[j] >= 'a' {
					out[j] -= 'a' - 'A'
				}
			}
		}
		i += 2
	}
	if out == nil {
		return s
	}
	return string(out)
}
