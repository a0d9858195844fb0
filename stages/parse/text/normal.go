package text

import (
	"crypto/sha1"
	"encoding/base32"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Normal is a text in its normal form, which the package comment defines. A Normal reuses its
// memory for the next text. The zero value is ready for use.
type Normal struct {
	Bytes []byte
	lines []int32 // offset in Bytes at which each line begins, except the first line
}

// Normalize computes the normal form of a text that has one block per line.
func (n *Normal) Normalize(s string) {
	if !isComposed(s) {
		s = norm.NFC.String(s) // NFC.String returns s itself if s is already composed
	}
	dst := slices.Grow(n.Bytes[:0], len(s))
	n.lines = n.lines[:0]
	space, line := false, false
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		switch {
		case r >= utf8.RuneSelf:
			r, size = utf8.DecodeRuneInString(s[i:])
			r = toLower(r)
		case r >= 'A' && r <= 'Z':
			r += 'a' - 'A'
		}
		i += size
		if r <= ' ' || r >= 0x85 && isSpace(r) {
			space = true
			line = line || r == '\n'
			continue
		}
		if r >= 0xAD && isInvisible(r) {
			continue
		}
		if space && len(dst) > 0 {
			dst = append(dst, ' ')
			if line {
				n.lines = append(n.lines, int32(len(dst)))
			}
		}
		space, line = false, false
		if r < utf8.RuneSelf {
			dst = append(dst, byte(r))
		} else {
			dst = utf8.AppendRune(dst, r)
		}
	}
	n.Bytes = dst
}

// isComposed reports whether NFC leaves every code point of a text unchanged, whatever its
// neighbours are.
func isComposed(s string) bool {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !neverCombines(r) {
			return false
		}
		i += n
	}
	return true
}

// neverCombines reports whether NFC keeps r and never combines r with another rune. The function
// knows only large blocks of code points, so the result is false for some runes that NFC keeps.
func neverCombines(r rune) bool {
	switch {
	case r < 0x0300, r >= 0x0400 && r < 0x0483, r >= 0x4E00 && r < 0xA000, r >= 0xAC00 && r < 0xD7A4:
		return true
	case r >= 0x0391 && r < 0x03CF, r >= 0x05D0 && r < 0x05EB, r >= 0x0620 && r < 0x064B, r >= 0x0671 && r < 0x06D4:
		return true
	case r >= 0x2010 && r < 0x2028, r >= 0x2030 && r < 0x2060, r >= 0x20A0 && r < 0x20C0, r >= 0x3001 && r < 0x3028:
		return true
	}
	return r >= 0x3041 && r < 0x3097 || r >= 0x30A1 && r < 0x30FD || r >= 0xFF01 && r < 0xFF9E
}

// toLower does the same as unicode.ToLower, but is faster for most texts.
func toLower(r rune) rune {
	switch {
	case r >= 0x0590 && r < 0x10A0, r >= 0x2000 && r < 0x2100, r >= 0x2E80 && r < 0xA640, r >= 0xAC00 && r < 0xFB00: // the letters of these scripts have no case
		return r
	case r >= 0x0430 && r <= 0x045F, r >= 0xDF && r <= 0xFF, r >= 0x03B1 && r <= 0x03CE, r >= 0x0300 && r < 0x0370:
		return r
	case r >= 0x0410 && r < 0x0430:
		return r + 0x20
	}
	return unicode.ToLower(r)
}

// isSpace reports whether r is white space outside ASCII.
func isSpace(r rune) bool {
	switch {
	case r < 0x1680:
		return r == 0x85 || r == 0xA0
	case r < 0x2000:
		return r == 0x1680
	case r <= 0x205F:
		return r <= 0x200B || r == 0x2028 || r == 0x2029 || r == 0x202F || r == 0x205F
	}
	return r == 0x3000
}

// isInvisible reports whether the normal form omits r.
func isInvisible(r rune) bool {
	switch {
	case r < 0x061C:
		return r == 0xAD
	case r < 0x200E:
		return r == 0x061C
	}
	return r <= 0x200F || r >= 0x202A && r <= 0x202E || r == 0x2060 || r >= 0x2066 && r <= 0x2069 || r == 0xFEFF
}

// Digest returns the text digest of a normal form, which is its SHA-1 in base 32. For an empty
// normal form, Digest returns "".
func Digest(normal []byte) string {
	if len(normal) == 0 {
		return ""
	}
	sum := sha1.Sum(normal)
	return base32.StdEncoding.EncodeToString(sum[:])
}
