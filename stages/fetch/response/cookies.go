package response

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/http1"
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

// Cookies holds the cookies of one redirect chain (RFC 6265). Some sites set a cookie and redirect
// to a URL that needs it. Each chain starts with no cookies (the zero value), so the response to a
// URL does not depend on other fetches.
type Cookies struct {
	jar  *cookiejar.Jar
	kept int // total length of the stored Set-Cookie fields
}

// Take stores the cookies that a response to rawURL sets. It returns the Set-Cookie fields of these
// cookies.
func (c *Cookies) Take(rawURL string, h http1.Header) (lines []string) {
	for line := range h.Values("Set-Cookie") {
		if len(lines) == maxCookies {
			break
		}
		if len(line) > maxCookie {
			continue
		}
		if _, err := http.ParseSetCookie(line); err == nil && c.kept+len(line) <= MaxCookieBytes {
			c.kept += len(line)
			lines = append(lines, strings.Clone(line))
		}
	}
	c.set(rawURL, lines)
	return lines
}

// Resume restores the cookies from a recorded hop of the chain.
func (c *Cookies) Resume(h manifest.Hop) {
	for _, line := range h.Set {
		c.kept += len(line)
	}
	c.set(h.URL, h.Set)
}

// set stores the cookies from the Set-Cookie fields in lines, which belong to a response to rawURL.
func (c *Cookies) set(rawURL string, lines []string) {
	var set []*http.Cookie
	for _, line := range lines {
		if cookie, err := http.ParseSetCookie(line); err == nil {
			set = append(set, cookie)
		}
	}
	if len(set) == 0 {
		return
	}
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
		pair := cookie.String()
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
