package urlkey

import "strings"

// WithoutCredentials is a text that may be a URL without the user name and password
// in it, for what is stored or told of texts that are no URL to crawl. Canonical URLs
// have none.
func WithoutCredentials(s string) string {
	start := authorityAt(s)
	if start < 0 {
		return s
	}
	end := len(s)
	if i := strings.IndexAny(s[start:], `/?#\`); i >= 0 {
		end = start + i
	}
	at := strings.LastIndexByte(s[start:end], '@')
	if at < 0 {
		return s
	}
	return s[:start] + s[start+at+1:]
}

// authorityAt is where the authority of a URL begins, -1 if it has none: behind two
// slashes at the start or after a scheme, of which http and its like need none (URL
// Standard, 4.4 "special authority ignore slashes state").
func authorityAt(s string) int {
	slashes := func(i int) int {
		for i < len(s) && (s[i] == '/' || s[i] == '\\') {
			i++
		}
		return i
	}
	start := len(s) - len(strings.TrimLeft(s, "\t\n\f\r "))
	if end := slashes(start); end-start >= 2 {
		return end
	}
	colon := strings.IndexByte(s, ':')
	if colon < start {
		return -1
	}
	end := slashes(colon + 1)
	switch strings.ToLower(s[start:colon]) {
	case "http", "https", "ftp", "ws", "wss":
		return end
	}
	if end-colon > 2 {
		return end
	}
	return -1
}
