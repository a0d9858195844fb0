package urlkey

import (
	"fmt"
	"strings"

	"github.com/nlnwa/whatwg-url/url"
)

// Key is a canonical URL and the keys derived from it.
type Key struct {
	URL    string // canonical URL
	SURT   string // sort key of tables, like Common Crawl's url_surtkey; several URLs may have the same SURT
	Host   string // unit of pacing: name or address, with the port unless the port is 80 or 443
	Domain string // unit of sharding (see the function Domain)
}

// Canonicalizer makes canonical URLs. It is immutable and safe for concurrent use.
type Canonicalizer struct {
	strip paramPatterns
	rules *rules         // nil if there are none
	plain *Canonicalizer // the Canonicalizer without rules; nil if this Canonicalizer has none
}

// New returns a Canonicalizer that drops query parameters whose names match one of the patterns, in
// any letter case. In a pattern, * matches any run of characters, and ? matches any single character.
// The error for a bad pattern quotes the pattern and wraps ErrPattern.
func New(stripParams []string) (*Canonicalizer, error) {
	strip, err := newPatterns(stripParams)
	if err != nil {
		return nil, err
	}
	return &Canonicalizer{strip: strip}, nil
}

// Canonical resolves the reference raw against the URL base, which may be "". It returns the canonical
// form of the result, which the package comment defines, and its keys. A malformed base is an error
// only if the reference is relative. Errors wrap ErrNotURL, ErrScheme, ErrHost, ErrTooLong or, with
// rules, ErrRewrite. The strings of the Key may share memory with raw.
func (c *Canonicalizer) Canonical(raw, base string) (Key, error) {
	l, err := c.result(raw, base)
	if err != nil {
		return Key{}, err
	}
	return l.key(), nil
}

// URL is like Canonical but returns only the canonical URL, at half the cost.
func (c *Canonicalizer) URL(raw, base string) (string, error) {
	l, err := c.result(raw, base)
	return l.url, err
}

// result returns the canonical form after rules.
func (c *Canonicalizer) result(raw, base string) (urlLayout, error) {
	l, _, err := c.canonical(raw, base)
	if err == nil && c.rules != nil {
		l, err = c.apply(l, nil)
	}
	return l, err
}

// canonical returns the canonical form before rules, and the path and query of the input.
func (c *Canonicalizer) canonical(raw, base string) (urlLayout, inputParts, error) {
	if len(raw) > maxRaw {
		return urlLayout{}, inputParts{}, fmt.Errorf("canonical form of %s: %w", quoted(raw), ErrTooLong)
	}
	raw = trim(raw)
	scheme := schemeOf(raw)
	if scheme != "" && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return urlLayout{}, inputParts{}, fmt.Errorf("canonical form of %s: %w", quoted(raw), ErrScheme)
	}
	l, g, ok, err := c.canonicalizeFast(raw, base)
	if !ok {
		l, g, err = c.canonicalizeSlow(raw, base)
	}
	if err != nil {
		return urlLayout{}, inputParts{}, fmt.Errorf("canonical form of %s: %w", quoted(raw), err)
	}
	return l, g, nil
}

// trim drops leading and trailing C0 controls and spaces, as the URL Standard's parser does.
func trim(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

// schemeOf returns the scheme of an absolute URL, or "" if there is none (RFC 3986, 3.1).
func schemeOf(s string) string {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			return s[:i]
		default:
			return ""
		}
	}
	return ""
}

// canonicalizeSlow makes the canonical form of any input with the URL Standard's parser.
func (c *Canonicalizer) canonicalizeSlow(raw, base string) (urlLayout, inputParts, error) {
	u, err := parse(raw, base)
	if err != nil && base != "" {
		u, err = parse(raw, "")
	}
	if err != nil {
		return urlLayout{}, inputParts{}, ErrNotURL
	}
	if u.Scheme() != "http" && u.Scheme() != "https" {
		return urlLayout{}, inputParts{}, ErrScheme
	}
	g := inputParts{path: u.Pathname()}
	l, err := layOut(u, normalizeEscapes(g.path))
	if err != nil {
		return urlLayout{}, inputParts{}, err
	}
	if query := u.Query(); query != "" || strings.HasSuffix(u.Href(true), "?") {
		g.query = "?" + query
	}
	l, err = c.addQuery(l, normalizeEscapes(u.Query()), false)
	return l, g, err
}

// urlLayout is a canonical URL with the offsets of its parts. It may lack the query until addQuery is
// called.
type urlLayout struct {
	url     string // the URL, at least up to the end of the path
	host    int    // offset of the start of the host
	hostEnd int    // offset of the end of the host
	portEnd int    // offset of the end of the port, where the path starts
	pathEnd int
}

// layOut makes a canonical URL from the scheme, host and port of u and a canonical path.
func layOut(u *url.Url, path string) (urlLayout, error) {
	host := strings.TrimSuffix(u.Hostname(), ".")
	if !validHost(host) || u.Port() == "0" {
		return urlLayout{}, ErrHost
	}
	var b strings.Builder
	b.WriteString(u.Scheme())
	b.WriteString("://")
	l := urlLayout{host: b.Len()}
	b.WriteString(host)
	l.hostEnd = b.Len()
	if p := u.Port(); p != "" {
		b.WriteByte(':')
		b.WriteString(p)
	}
	l.portEnd = b.Len()
	b.WriteString(path)
	l.url, l.pathEnd = b.String(), b.Len()
	return l, nil
}

// validHost reports whether a host is an IP address or a valid DNS name (see ErrHost).
func validHost(host string) bool {
	if strings.HasPrefix(host, "[") {
		return len(host) > 2 && strings.HasSuffix(host, "]")
	}
	label := 0
	for i := 0; i < len(host); i++ {
		switch {
		case class[host[i]]&inHost != 0:
			label++
		case host[i] != '.' || label == 0:
			return false
		default:
			label = 0
		}
		if label > 63 {
			return false
		}
	}
	return label > 0 && len(host) <= 253
}

// addQuery adds the canonical form of the query to l. If follows is true, "?" and the query are in
// l.url after the path, so addQuery need not copy an unchanged query.
func (c *Canonicalizer) addQuery(l urlLayout, query string, follows bool) (urlLayout, error) {
	canonical := c.canonicalQuery(query)
	switch {
	case canonical == "":
		l.url = l.url[:l.pathEnd]
	case follows && len(canonical) == len(query) && canonical == query:
		l.url = l.url[:l.pathEnd+1+len(query)]
	default:
		l.url = l.url[:l.pathEnd] + "?" + canonical
	}
	if len(l.url) > MaxLength {
		return urlLayout{}, ErrTooLong
	}
	return l, nil
}

// key returns l, a canonical URL with its query, and its keys.
func (l urlLayout) key() Key {
	k := l.unsorted(Domain)
	k.SURT = l.surt()
	return k
}

// unsorted is key without the SURT. The function domainOf is Domain, or a faster one.
func (l urlLayout) unsorted(domainOf func(host string) string) Key {
	host := l.url[l.host:l.hostEnd]
	k := Key{URL: l.url, Host: host, Domain: domainOf(host)}
	if port := l.url[l.hostEnd:l.portEnd]; port != "" && port != ":80" && port != ":443" {
		k.Host = l.url[l.host:l.portEnd]
	}
	return k
}
