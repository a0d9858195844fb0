package response

import (
	"encoding/hex"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/manifest"
)

const (
	// A chain keeps at most maxCookies Set-Cookie fields of a response, each of at most maxCookie
	// bytes. A Cookie field has at most maxCookieField bytes. RFC 6265, 6.1, expects room for 50
	// cookies of 4,096 bytes.
	maxCookies     = 50
	maxCookie      = 4 << 10
	maxCookieField = 8 << 10
	// MaxCookieBytes limits the total length of the Set-Cookie fields that a redirect chain keeps.
	// They take memory and room in checkpoints until the chain ends.
	MaxCookieBytes = 8 << 10
)

// Cookies holds the cookies of one redirect chain (RFC 6265bis). Some sites set a cookie and redirect
// to a URL that needs it. Each chain starts with no cookies (the zero value), so the response to a
// URL does not depend on other fetches.
type Cookies struct {
	jar  *cookiejar.Jar
	kept int // total length of the stored Set-Cookie fields
	// private tells whether a server with a valid certificate set one of them.
	private bool
}

// Private reports whether the cookies must not go to a server whose certificate is not valid, because a server with a
// valid one set some of them.
func (c *Cookies) Private() bool { return c.private }

// Take stores the cookies that a response to rawURL sets. It returns the Set-Cookie fields of these
// cookies. certificate says what is wrong with that of the server.
func (c *Cookies) Take(rawURL, certificate string, h http1.Header) (lines []string) {
	for line := range h.Values("Set-Cookie") {
		if len(lines) == maxCookies {
			break
		}
		if _, ok := parseCookie(line); ok && c.kept+len(line) <= MaxCookieBytes {
			c.kept += len(line)
			lines = append(lines, strings.Clone(line))
		}
	}
	c.set(rawURL, certificate, lines)
	return lines
}

// Resume restores the cookies from a recorded hop of the chain.
func (c *Cookies) Resume(h manifest.Hop) {
	for _, line := range h.Set {
		c.kept += len(line)
	}
	c.set(h.Asked(), h.Certificate, h.Set)
}

// set stores the cookies from the Set-Cookie fields in lines, which belong to a response to rawURL.
func (c *Cookies) set(rawURL, certificate string, lines []string) {
	var set []*http.Cookie
	for _, line := range lines {
		if cookie, ok := parseCookie(line); ok {
			set = append(set, cookie)
		}
	}
	if len(set) == 0 {
		return
	}
	c.private = c.private || certificate == "" && strings.HasPrefix(rawURL, "https:")
	if c.jar == nil {
		jar, err := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List})
		if err != nil {
			return // cookiejar.New never fails
		}
		c.jar = jar
	}
	c.jar.SetCookies(cookieURL(rawURL), set)
}

// Field returns the Cookie field of a request for rawURL, or "" without cookies.
func (c *Cookies) Field(rawURL string) string {
	if c.jar == nil {
		return ""
	}
	var b strings.Builder
	for _, cookie := range c.jar.Cookies(cookieURL(rawURL)) {
		pair := pairOf(cookie)
		if b.Len()+len("; ")+len(pair) > maxCookieField {
			break
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(pair)
	}
	return b.String()
}

// parseCookie parses a Set-Cookie field as browsers do (RFC 6265bis, 5.6): name and value may have any octets but
// control characters, and either may be empty. net/http refuses many of them, or would send them in quotes. So the
// cookie that it parses, and that the jar keeps, has name and value in hex; see pairOf.
func parseCookie(line string) (*http.Cookie, bool) {
	pair, attributes, _ := strings.Cut(line, ";")
	name, value, named := strings.Cut(pair, "=")
	if !named {
		name, value = "", pair
	}
	name, value = strings.Trim(name, " \t"), strings.Trim(value, " \t")
	if len(line) > maxCookie || name == "" && value == "" || strings.ContainsFunc(pair, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return nil, false
	}
	cookie, err := http.ParseSetCookie(hexName + hex.EncodeToString([]byte(name)) + "=" + hex.EncodeToString([]byte(value)) + ";" + attributes)
	return cookie, err == nil
}

// hexName begins the name of a cookie in the jar, because a name in hex may be empty.
const hexName = "x"

// pairOf returns name and value of a cookie in the jar, as the server sent them.
func pairOf(cookie *http.Cookie) string {
	name, err := hex.DecodeString(strings.TrimPrefix(cookie.Name, hexName))
	value, err2 := hex.DecodeString(cookie.Value)
	switch {
	case err != nil || err2 != nil:
		return "" // never, because parseCookie made them
	case len(name) == 0:
		return string(value)
	}
	return string(name) + "=" + string(value)
}

// cookieURL returns the parts of a canonical URL that matter for cookies: scheme, host and
// unchanged path. It avoids url.Parse, which rejects some canonical URLs.
func cookieURL(raw string) *url.URL {
	scheme, rest, _ := strings.Cut(raw, "://")
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	return &url.URL{Scheme: scheme, Host: host, Path: path}
}
