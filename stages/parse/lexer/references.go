package lexer

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Unescape appends p to dst with its character references resolved (HTML, 13.2.5.72). In an
// attribute, a reference without a semicolon stays unresolved before "=" and inside a longer name.
func Unescape(dst, p []byte, attribute bool) []byte {
	for {
		i := bytes.IndexByte(p, '&')
		if i < 0 {
			return append(dst, p...)
		}
		dst = append(dst, p[:i]...)
		p = p[i:]
		ref, ended := reference(p)
		p = p[len(ref):]
		switch common := commonReference(ref, ended); {
		case common != 0:
			dst = utf8.AppendRune(dst, common)
		case len(ref) < 3 || attribute && ref[1] != '#' && !ended && len(p) > 0 && p[0] == '=':
			dst = append(dst, ref...)
		default:
			s := html.UnescapeString(string(ref))
			if attribute && ref[1] != '#' && partlyResolved(s, ended) {
				dst = append(dst, ref...)
			} else {
				dst = append(dst, s...)
			}
		}
	}
}

// WithoutTags returns the text of s if s has tags of HTML elements. Otherwise it returns s: a "<" alone, or a mail
// address between "<" and ">", is no markup. Commas separate the texts of paragraphs, lines and items of a list.
func WithoutTags(s string) string {
	if strings.IndexByte(s, '<') < 0 {
		return s
	}
	z := Lexer{Src: []byte(s)}
	var text []byte
	marked, apart := false, false
	for {
		hidden := z.Raw == atom.Script || z.Raw == atom.Style
		switch z.Next() {
		case EndOfFile:
			if !marked {
				return s
			}
			return string(text)
		case Text:
			if hidden || len(bytes.TrimSpace(z.Text)) == 0 && apart {
				continue
			}
			if apart && len(text) > 0 {
				text = append(text, ", "...)
			}
			text, apart = Unescape(text, z.Text, false), false
		case StartTag, EndTag:
			marked = marked || z.Name != 0
			switch z.Name {
			case atom.Br, atom.P, atom.Div, atom.Li, atom.Tr:
				apart = true
			}
		}
	}
}

// reference returns the text at the beginning of p that looks like a reference, and whether it ends
// in a semicolon.
func reference(p []byte) (ref []byte, ended bool) {
	n := 1
	if n < len(p) && p[n] == '#' {
		n++
	}
	for n < len(p) && isAlphanumeric(p[n]) {
		n++
	}
	if n < len(p) && p[n] == ';' {
		return p[:n+1], true
	}
	return p[:n], false
}

func isAlphanumeric(c byte) bool { return IsLetter(c) || c >= '0' && c <= '9' }

// commonNames holds the few named references that nearly all pages use.
var commonNames = map[string]rune{"&amp;": '&', "&lt;": '<', "&gt;": '>', "&quot;": '"', "&apos;": '\'', "&nbsp;": '\u00A0'}

// commonReference resolves the most common references without allocation. For other references,
// commonReference returns 0.
func commonReference(ref []byte, ended bool) rune {
	switch {
	case !ended:
		return 0
	case ref[1] != '#':
		return commonNames[string(ref)]
	case len(ref) > len("&#x10FFFF;"):
		return 0
	}
	digits, base := ref[2:len(ref)-1], 10
	if len(digits) > 0 && digits[0]|0x20 == 'x' {
		digits, base = digits[1:], 16
	}
	n, err := strconv.ParseUint(string(digits), base, 31)
	// Control characters have replacements (HTML, 13.2.5.80).
	if r := rune(n); err == nil && r >= ' ' && (r < 0x7F || r >= 0xA0) && utf8.ValidRune(r) {
		return r
	}
	return 0
}

// partlyResolved reports whether only the beginning of a name was resolved, so that s ends with the
// rest of the name, as in "¬it" for "&notit".
func partlyResolved(s string, ended bool) bool {
	last := s[len(s)-1]
	if ended {
		return len(s) > 1 && last == ';'
	}
	return isAlphanumeric(last)
}
