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
	// maxCookies bounds the Set-Cookie fields of an answer that are read, and
	// maxCookie and maxCookies each one and all that are sent back, in bytes
	// (RFC 6265, 6.1 has servers count on 50 of 4,096 bytes).
	maxCookies     = 50
	maxCookie      = 4 << 10
	maxCookieField = 8 << 10
	// MaxCookieBytes bounds the Set-Cookie fields that a chain keeps, in bytes: they lie in
	// memory and in checkpoints while the chain is followed.
	MaxCookieBytes = 8 << 10
)

// Cookies are those of one chain of redirects (RFC 6265): sites set one and ask
// for the same or another URL with it. The chain begins without any and they are
// forgotten at its end, so no URL is fetched as somebody who was elsewhere before.
// The zero value has none.
type Cookies struct {
	jar  *cookiejar.Jar
	kept int // bytes of fields
}

// Take keeps what an answer to rawURL sets, and returns the fields that do.
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

// Resume takes over what a hop that was recorded set.
func (c *Cookies) Resume(h manifest.Hop) {
	for _, line := range h.Set {
		c.kept += len(line)
	}
	c.set(h.URL, h.Set)
}

// set keeps what Set-Cookie fields of an answer to rawURL say.
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
			return // it never is
		}
		c.jar = jar
	}
	c.jar.SetCookies(cookieURL(rawURL), set)
}

// Field is the Cookie field of a request for rawURL, "" for none.
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

// cookieURL is what cookies look at of a canonical URL: scheme, host, and the path
// as it stands there, which package url may not take.
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
