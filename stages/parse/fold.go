package parse

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a page may say of itself, in bytes; what is longer is cut.
const (
	maxTitle       = 1 << 10
	maxDescription = 4 << 10
	maxShort       = 512
	maxAnchor      = 512
	maxRel         = 128
)

// fold returns p with its white space folded and trimmed, at most max bytes of it,
// cut between runes.
func fold(p []byte, max int) string {
	if len(p) > 4*max {
		p = p[:4*max] // white space beyond that is not worth reading
	}
	return cut(string(bytes.Join(bytes.FieldsFunc(p, isSpace), space)), max)
}

// foldString is fold for a string; it does not copy what is folded already.
func foldString(s string, max int) string {
	if len(s) > 4*max {
		s = s[:4*max]
	}
	s = strings.TrimFunc(s, isSpace)
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == ' ' && i+1 < len(s) && s[i+1] == ' ' || c >= utf8.RuneSelf && strings.IndexFunc(s[i:], isOddSpace) >= 0 {
			return cut(strings.Join(strings.FieldsFunc(s, isSpace), " "), max)
		} else if c >= utf8.RuneSelf {
			break
		}
	}
	return cut(s, max)
}

var space = []byte{' '}

func isSpace(r rune) bool { return r <= ' ' || unicode.IsSpace(r) || r == 0xFEFF || r == 0x200B }

func isOddSpace(r rune) bool { return r < ' ' || r > ' ' && isSpace(r) }

// cut shortens s to at most max bytes without splitting a rune.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return strings.TrimRightFunc(s[:max], isSpace)
}

// lower returns p with its ASCII letters in lower case: p itself if they are.
func lower(p []byte) []byte {
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
