package robots

import (
	"strconv"
	"strings"
)

// pattern is the compiled path of a rule. '*' matches any octets, and '$' at the end of the
// pattern matches the end of the URL (RFC 9309, section 2.2.3).
type pattern struct {
	text     string // normalised path; its length is the rule's priority
	anchored bool   // whether the pattern ends in '$'
	wild     bool   // whether the pattern contains '*'
}

func compile(value string) pattern { return compiled(normalise(value)) }

// compiled makes a pattern from text that is already normalised.
func compiled(text string) pattern {
	return pattern{
		text:     text,
		anchored: strings.HasSuffix(text, "$"),
		wild:     strings.IndexByte(text, '*') >= 0,
	}
}

// match reports whether the pattern matches a prefix of path. An anchored pattern must match the
// whole path. Each part between stars matches at its first occurrence, which leaves the most room
// for the parts after it. One pass is therefore enough for any number of stars.
func (p pattern) match(path string) bool {
	text := p.text
	if p.anchored {
		text = text[:len(text)-1]
	}
	if !p.wild {
		if p.anchored {
			return path == text
		}
		return strings.HasPrefix(path, text)
	}
	first, rest, _ := strings.Cut(text, "*")
	if !strings.HasPrefix(path, first) {
		return false
	}
	path = path[len(first):]
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more && p.anchored {
			return strings.HasSuffix(path, part)
		}
		i := strings.Index(path, part)
		if i < 0 {
			return false
		}
		if !more {
			return true
		}
		path, rest = path[i+len(part):], after
	}
}

// directory returns the pattern for the directory of an index page (".../index.html"), or a pattern
// without text for other paths. Google's parser lets an Allow rule for an index page also allow its
// directory; RFC 9309 does not.
func (p pattern) directory() pattern {
	slash := strings.LastIndexByte(p.text, '/')
	if slash < 0 || !strings.HasPrefix(p.text[slash:], "/index.htm") {
		return pattern{}
	}
	return compiled(p.text[:slash+1] + "$")
}

// normalise converts a rule's path to the form of URL paths: it percent-encodes octets outside
// ASCII and converts escapes to upper case (RFC 9309, section 2.2.2). It does not decode escapes,
// so %2A is not a wildcard, and %2F is not a slash.
func normalise(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == '%' || r >= 0x80 }) {
		return s
	}
	out := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); i++ {
		c, escaped := octet(s, i)
		if escaped {
			i += 2
		}
		if escaped || c >= 0x80 {
			out = appendEscape(out, c)
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

// octet returns the octet at s[i], decoded if an escape begins there.
func octet(s string, i int) (c byte, escaped bool) {
	if s[i] == '%' && i+2 < len(s) {
		if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
			return byte(n), true
		}
	}
	return s[i], false
}

func appendEscape(out []byte, c byte) []byte {
	const hex = "0123456789ABCDEF"
	return append(out, '%', hex[c>>4], hex[c&0xF])
}

// pathOf returns the part of a URL that rules match: path, parameters and query. It returns "/" if
// the URL has no path.
func pathOf(rawURL string) string {
	if i := strings.IndexByte(rawURL, 0); i >= 0 {
		rawURL = rawURL[:i]
	}
	rest := strings.TrimPrefix(rawURL, "//")
	start := 0
	if i := strings.Index(rest, "://"); i >= 0 {
		// If "/", "?" or ";" comes before "://", the text before "://" is not a scheme.
		if early := strings.IndexAny(rest, "/?;"); early < 0 || early >= i {
			start = i + len("://")
		}
	}
	i := strings.IndexAny(rest[start:], "/?;")
	if i < 0 {
		return "/"
	}
	i += start
	end := strings.IndexByte(rest, '#')
	switch {
	case end < 0:
		end = len(rest)
	case end < i:
		return "/"
	}
	if rest[i] != '/' {
		return "/" + rest[i:end]
	}
	return rest[i:end]
}
