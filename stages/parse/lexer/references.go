package lexer

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// Unescape appends p to dst with its character references resolved (13.2.5.72): in
// an attribute, one without its semicolon is none before "=", and there are no
// references that end within a name.
func Unescape(dst, p []byte, attribute bool) []byte {
	for {
		i := bytes.IndexByte(p, '&')
		if i < 0 {
			return append(dst, p...)
		}
		dst = append(dst, p[:i]...)
		p = p[i:]
		n := 1
		if n < len(p) && p[n] == '#' {
			n++
		}
		for n < len(p) && (IsLetter(p[n]) || p[n] >= '0' && p[n] <= '9') {
			n++
		}
		ended := n < len(p) && p[n] == ';'
		if ended {
			n++
		}
		ref := p[:n]
		common := rune(0)
		if ended {
			common = commonReference(ref)
		}
		switch {
		case common != 0:
			dst = utf8.AppendRune(dst, common)
		case len(ref) < 3 || attribute && ref[1] != '#' && !ended && n < len(p) && p[n] == '=':
			dst = append(dst, ref...)
		default:
			s := html.UnescapeString(string(ref))
			if attribute && ref[1] != '#' && partial(s, ended) {
				dst = append(dst, ref...)
			} else {
				dst = append(dst, s...)
			}
		}
		p = p[n:]
	}
}

// commonReference resolves the references that nearly all are, without allocation;
// 0 if it is another.
func commonReference(ref []byte) rune {
	switch string(ref) {
	case "&amp;":
		return '&'
	case "&lt;":
		return '<'
	case "&gt;":
		return '>'
	case "&quot;":
		return '"'
	case "&apos;":
		return '\''
	case "&nbsp;":
		return '\u00A0'
	}
	if ref[1] != '#' || len(ref) > len("&#x10FFFF;") {
		return 0
	}
	digits, base := ref[2:len(ref)-1], rune(10)
	if len(digits) > 0 && digits[0]|0x20 == 'x' {
		digits, base = digits[1:], 16
	}
	n := rune(0)
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case base == 16 && c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0
		}
		n = n*base + rune(c)
	}
	if n < ' ' || n >= 0x7F && n < 0xA0 || !utf8.ValidRune(n) {
		return 0 // see the table of HTML, 13.2.5.80
	}
	return n
}

// partial reports whether only the beginning of a name was resolved: then its end
// is still there.
func partial(s string, ended bool) bool {
	last := s[len(s)-1]
	if ended {
		return len(s) > 1 && last == ';'
	}
	return IsLetter(last) || last >= '0' && last <= '9'
}
