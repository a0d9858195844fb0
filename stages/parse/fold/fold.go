// Package fold folds white space, and cuts texts to the bounds of their columns.
package fold

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// These are the bounds of the texts of a page, in bytes. Longer texts are cut.
const (
	MaxTitle       = 1 << 10
	MaxDescription = 4 << 10
	MaxShort       = 512
	MaxAnchor      = 512
	MaxRel         = 128
)

// Bytes returns p with its white space folded and trimmed, cut between runes to at most max bytes.
// Control characters count as white space. Malformed UTF-8 becomes U+FFFD.
func Bytes(p []byte, max int) string {
	if len(p) > 4*max {
		p = p[:runeStart(p, 4*max)] // 4*max bytes are enough for max bytes of text, unless most bytes are white space
	}
	s := string(bytes.Join(bytes.FieldsFunc(p, IsSpace), space))
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return Cut(s, max)
}

// runeStart returns the start of the rune to which byte n of p belongs. The index n must be less
// than the length of p.
func runeStart(p []byte, n int) int {
	for i := n; i > n-utf8.UTFMax && i > 0; i-- {
		if utf8.RuneStart(p[i]) {
			return i
		}
	}
	return n
}

// Prefix returns the whole runes within the first max bytes of p.
func Prefix(p []byte, max int) []byte {
	if len(p) <= max {
		return p
	}
	return p[:runeStart(p, max)]
}

// String is like Bytes, but takes a string. A string that is already folded is not copied.
func String(s string, max int) string {
	if len(s) > 4*max {
		s = Cut(s, 4*max)
	}
	s = strings.TrimFunc(s, IsSpace)
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == 0x7F || c == ' ' && i+1 < len(s) && s[i+1] == ' ' || c >= utf8.RuneSelf && strings.IndexFunc(s[i:], isOddSpace) >= 0 {
			return Cut(strings.Join(strings.FieldsFunc(s, IsSpace), " "), max)
		} else if c >= utf8.RuneSelf {
			break
		}
	}
	return Cut(s, max)
}

var space = []byte{' '}

// IsSpace reports whether r is white space, a zero width space or a control character.
func IsSpace(r rune) bool {
	return r <= ' ' || r >= 0x7F && (unicode.IsSpace(r) || r <= 0x9F || r == 0xFEFF || r == 0x200B)
}

func isOddSpace(r rune) bool { return r < ' ' || r > ' ' && IsSpace(r) }

// Cut shortens s to at most max bytes, between runes.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return strings.TrimRightFunc(s[:max], IsSpace)
}

// Lower returns p with its ASCII letters in lower case. If p has no upper-case letters, Lower
// returns p itself.
func Lower(p []byte) []byte {
	for i, c := range p {
		if c >= 'A' && c <= 'Z' {
			out := bytes.Clone(p)
			for ; i < len(out); i++ {
				if c := out[i]; c >= 'A' && c <= 'Z' {
					out[i] = c + 'a' - 'A'
				}
			}
			return out
		}
	}
	return p
}

// BOM is the byte order mark of UTF-8.
var BOM = []byte("\xEF\xBB\xBF")
