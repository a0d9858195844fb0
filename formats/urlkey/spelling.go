package urlkey

import "strings"

// given are the path and the query of a URL as the parser left them: dot segments
// resolved, percent escapes and the order of parameters as in the input.
type given struct{ path, query string }

// Spelled is Canonical, and the spelling in which raw names the URL; "" where that
// is the canonical URL itself. A spelling is the canonical URL with the percent
// escapes and the order of parameters of the input: what canonicalization changed
// without changing the resource, so that robots.txt can be asked for it as well. Hex
// digits of escapes are in upper case, since matchers ignore their case.
//
// The canonical form of a spelling is the canonical URL, and the spelling of a spelling
// is itself. It may have up to three times MaxLength octets: where the URL fits, its
// spelling is no reason to refuse it, nor to leave robots.txt unasked.
func (c *Canonicalizer) Spelled(raw, base string) (Key, string, error) {
	l, s, err := c.spelled(raw, base)
	if err != nil {
		return Key{}, "", err
	}
	return l.key(), s, nil
}

// SpelledURL is Spelled for who needs no more than the URL, at half the price.
func (c *Canonicalizer) SpelledURL(raw, base string) (url, spelling string, err error) {
	l, s, err := c.spelled(raw, base)
	return l.url, s, err
}

func (c *Canonicalizer) spelled(raw, base string) (laid, string, error) {
	l, g, err := c.canonical(raw, base)
	if err != nil {
		return laid{}, "", err
	}
	return l, c.spelling(l, g), nil
}

// spelling is the URL l as it was given, "" if that is l.url.
func (c *Canonicalizer) spelling(l laid, g given) string {
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

// spelledQuery is the query as given, without the parameters that canonicalization
// drops.
func (c *Canonicalizer) spelledQuery(given, canonical string) string {
	normal := normalizeEscapes(given)
	s := c.kept(upperEscapes(given), normal)
	if c.canonicalQuery(normalizeEscapes(s)) == canonical {
		return s
	}
	// A dropped parameter parted a stray percent sign from an escape, which now would
	// be read another way: take the escapes as the canonical form has them.
	if s = c.kept(normal, normal); c.canonicalQuery(normalizeEscapes(s)) == canonical {
		return s
	}
	return canonical
}

// kept are the parameters of query that canonicalization keeps. normal is the same
// query, its escapes normalized: it has as many parameters, as "&" is never decoded.
func (c *Canonicalizer) kept(query, normal string) string {
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
