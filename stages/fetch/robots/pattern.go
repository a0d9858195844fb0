package robots

import "strings"

// pattern is the path of a rule, compiled: octets, with '*' for any run of them
// and a '$' at the very end for the end of the URL (RFC 9309, section 2.2.3).
type pattern struct {
	text     string // normalised; its length is the rule's priority
	anchored bool   // ends in '$'
	wild     bool   // contains '*'
}

func compile(value string) pattern { return compiled(normalise(value)) }

// compiled is compile of what is normalised.
func compiled(text string) pattern {
	return pattern{
		text:     text,
		anchored: strings.HasSuffix(text, "$"),
		wild:     strings.IndexByte(text, '*') >= 0,
	}
}

// match reports whether the pattern matches the beginning of path, or all of it
// when anchored. Each part between stars is taken where it first occurs, which
// is enough: whatever a later occurrence leaves to the rest, an earlier one
// leaves too. So it takes one pass, whatever the number of stars.
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

// directory gives the pattern that an Allow rule for ".../index.html" implies:
// who allows a directory's index page means the directory as well. It is a
// kindness of Google's parser, not in the RFC, and only widens what is allowed.
func (p pattern) directory() (pattern, bool) {
	slash := strings.LastIndexByte(p.text, '/')
	if slash < 0 || !strings.HasPrefix(p.text[slash:], "/index.htm") {
		return pattern{}, false
	}
	text := p.text[:slash+1] + "$"
	return pattern{text: text, anchored: true, wild: strings.IndexByte(text, '*') >= 0}, true
}

// normalise brings a rule's path to the form of a URL's: octets outside ASCII
// are percent-encoded, escapes are in upper case (RFC 9309, section 2.2.2).
// Escapes are not decoded: %2A is no wildcard, %2F no slash.
func normalise(s string) string {
	i := 0
	for i < len(s) && !mustChange(s, i) {
		i++
	}
	if i == len(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:i])
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case isEscape(s, i):
			b.WriteByte('%')
			b.WriteByte(upper(s[i+1]))
			b.WriteByte(upper(s[i+2]))
			i += 2
		case c >= 0x80:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&0xF])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func mustChange(s string, i int) bool {
	return s[i] >= 0x80 || isEscape(s, i) && (upper(s[i+1]) != s[i+1] || upper(s[i+2]) != s[i+2])
}

func isEscape(s string, i int) bool {
	return s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2])
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// pathOf is what rules are matched against: path, parameters and query of a URL
// as they stand in it, without scheme, authority and fragment; "/" when the URL
// has no path.
func pathOf(rawURL string) string {
	if i := strings.IndexByte(rawURL, 0); i >= 0 {
		rawURL = rawURL[:i]
	}
	rest := strings.TrimPrefix(rawURL, "//")
	start := 0
	if i := strings.Index(rest, "://"); i >= 0 {
		// A path that begins before "://" means it is not the scheme's.
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
