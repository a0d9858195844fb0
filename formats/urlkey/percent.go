package urlkey

import "strings"

// The classes of octets in a canonical URL.
const (
	unreserved = 1 << iota // octet that RFC 3986, 2.3 calls unreserved
	inPath                 // octet that stays unescaped in the path of an http URL
	inQuery                // octet that stays unescaped in the query of an http URL
	inHost                 // octet that may occur in a DNS name
)

// class holds the classes of each octet according to the URL Standard.
var class = func() (t [256]uint8) {
	for c := 0x21; c < 0x7f; c++ {
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_':
			t[c] = unreserved | inPath | inQuery | inHost
		case 'A' <= c && c <= 'Z' || c == '.' || c == '~':
			t[c] = unreserved | inPath | inQuery
		case c == '"' || c == '#' || c == '<' || c == '>' || c == '%':
			// In a canonical URL these octets are escaped, and a percent sign begins an escape.
		case c == '\'':
			t[c] = inPath
		case c == '?' || c == '^' || c == '`' || c == '{' || c == '}' || c == '\\':
			t[c] = inQuery
		default:
			t[c] = inPath | inQuery
		}
	}
	return t
}()

// unhex returns the value of a hexadecimal digit, or 0xff for another octet.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

// triplet decodes the percent-encoded octet at s[i]. ok is false if there is none.
func triplet(s string, i int) (octet byte, ok bool) {
	if i+2 >= len(s) || s[i] != '%' {
		return 0, false
	}
	hi, lo := unhex(s[i+1]), unhex(s[i+2])
	return hi<<4 | lo, hi != 0xff && lo != 0xff
}

// unescape decodes the percent-encoded octets of s in one pass. The result may contain escapes, which
// decoded octets have formed.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c, ok := triplet(s, i); ok {
			out = append(out, c)
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

// normalizeEscapes decodes percent-encoded unreserved octets, and writes the hex digits of all other
// escapes in upper case (RFC 3986, 6.2.2.1 and 6.2.2.2). An octet stays encoded if it is one of the
// two octets after a stray percent sign, with which it could form an escape.
func normalizeEscapes(s string) string {
	first := strings.IndexByte(s, '%')
	if first < 0 {
		return s
	}
	const hex = "0123456789ABCDEF"
	out := append(make([]byte, 0, len(s)), s[:first]...)
	stray := -3 // index of the last stray percent sign in out
	for i := first; i < len(s); i++ {
		c, ok := triplet(s, i)
		switch {
		case !ok:
			if s[i] == '%' {
				stray = len(out)
			}
			out = append(out, s[i])
			continue
		case class[c]&unreserved != 0 && len(out)-stray > 2:
			out = append(out, c)
		default:
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
		i += 2
	}
	if string(out) == s {
		return s
	}
	return string(out)
}
