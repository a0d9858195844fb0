package urlkey

import "strings"

// given holds the path and the query of a URL after parsing. Dot segments are resolved. Percent
// escapes and the order of parameters are those of the input.
type given struct{ path, query string }

// Spelled returns what Canonical returns, and the spelling of the URL in raw. The spelling is "" if
// it equals the canonical URL. A spelling is the canonical URL with the percent escapes and the
// order of parameters of the input. The crawler also matches robots.txt against the spelling. Hex
// digits of escapes are in upper case, because matchers ignore their case.
//
// The canonical form of a spelling is the canonical URL, and the spelling of a spelling is itself.
// A spelling may have up to three times MaxLength octets, so that a long spelling is no reason to
// refuse a URL or to skip matching it.
func (c *Canonicalizer) Spelled(raw, base string) (Key, string, error) {
	l, s, err := c.spelled(raw, base)
	if err != nil {
		return Key{}, "", err
	}
	return l.key(), s, nil
}

// SpelledURL does the same as Spelled but returns only the URL and its spelling, at half the cost.
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

// spelling returns the URL l as it was given, or "" if that equals l.url.
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

// spelledQuery returns the given query without the parameters that canonicalization drops.
func (c *Canonicalizer) spelledQuery(given, canonical string) string {
	normal := normalizeEscapes(given)
	s := c.kept(upperEscapes(given), normal)
	if c.canonicalQuery(normalizeEscapes(s)) == canonical {
		return s
	}
	// A dropped parameter separated a stray percent sign from an escape. Without it, the escape
	// would read differently, so use the escapes of the canonical form.
	if s = c.kept(normal, normal); c.canonicalQuery(normalizeEscapes(s)) == canonical {
		return s
	}
	return canonical
}

// kept returns the parameters of query that canonicalization keeps. normal is the same query with
// normalized escapes. It has as many parameters as query, because "&" is never decoded.
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
