// Package fold folds white space and cuts texts to the bounds of the columns that they
// are stored in.
package fold

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a page may say of itself, in bytes; what is longer is cut.
const (
	MaxTitle       = 1 << 10
	MaxDescription = 4 << 10
	MaxShort       = 512
	MaxAnchor      = 512
	MaxRel         = 128
)

// Bytes returns p with its white space folded and trimmed, at most max bytes of it,
// cut between runes. Control characters count as white space; what is no UTF-8
// becomes U+FFFD.
func Bytes(p []byte, max int) string {
	if len(p) > 4*max {
		p = p[:runeStart(p, 4*max)] // white space beyond that is not worth reading
	}
	s := string(bytes.Join(bytes.FieldsFunc(p, IsSpace), space))
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return Cut(s, max)
}

// runeStart is where the rune that holds byte n of p starts; n is less than p's length.
func runeStart(p []byte, n int) int {
	for i := n; i > n-utf8.UTFMax && i > 0; i-- {
		if utf8.RuneStart(p[i]) {
			return i
		}
	}
	return n
}

// Prefix is p, or the runes of its first max bytes.
func Prefix(p []byte, max int) []byte {
	if len(p) <= max {
		return p
	}
	return p[:runeStart(p, max)]
}

// String is fold for a string; it does not copy what is folded already.
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

// IsSpace knows white space, what passes for it, and control characters.
func IsSpace(r rune) bool {
	return r <= ' ' || r >= 0x7F && (unicode.IsSpace(r) || r <= 0x9F || r == 0xFEFF || r == 0x200B)
}

func isOddSpace(r rune) bool { return r < ' ' || r > ' ' && IsSpace(r) }

// Cut shortens s to at most max bytes without splitting a rune.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return strings.TrimRightFunc(s[:max], IsSpace)
}

// Lower returns p with its ASCII letters in lower case: p itself if they are.
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

// utf8BOM is the byte order mark that documents in UTF-8 may begin with.
var BOM = []byte("\xEF\xBB\xBF")
