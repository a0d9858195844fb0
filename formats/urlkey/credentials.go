package urlkey

import "strings"

// WithoutCredentials returns s without user name and password if s is a URL. Call it before a text
// that may be a URL is stored or logged. Canonical URLs have no credentials.
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

// authorityAt returns the offset of a URL's authority, or -1 if there is none. The authority (user,
// host and port) follows two slashes, at the start or after a scheme. After a special scheme, such
// as http, the slashes may be missing (URL Standard, 4.4 "special authority ignore slashes state").
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
