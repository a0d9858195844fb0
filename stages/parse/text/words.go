package text

import (
	"crypto/sha1"
	"encoding/base32"
	"unicode"
	"unicode/utf8"
)

// Lower appends the normal form of s to dst: lower case by Unicode's simple
// mapping, every run of white space as one space, none at its ends.
func Lower(dst []byte, s string) []byte {
	start := len(dst)
	space := false
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case c <= ' ':
				space = len(dst) > start
				continue
			case c >= 'A' && c <= 'Z':
				c += 'a' - 'A'
			}
			if space {
				dst, space = append(dst, ' '), false
			}
			dst = append(dst, c)
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if unicode.IsSpace(r) {
			space = len(dst) > start
			continue
		}
		if space {
			dst, space = append(dst, ' '), false
		}
		dst = utf8.AppendRune(dst, unicode.ToLower(r))
	}
	return dst
}

// Digest is the text digest: the SHA-1, in base 32, of a text in its normal form;
// "" of no text.
func Digest(lowered []byte) string {
	if len(lowered) == 0 {
		return ""
	}
	sum := sha1.Sum(lowered)
	return base32.StdEncoding.EncodeToString(sum[:])
}

// class is what a rune does in a word.
type class uint8

const (
	separator class = iota
	letter          // L, M, N: goes on with the word
	digit           // the same, but not enough for a term
	joiner          // an apostrophe, between letters
	ideograph       // Han, Hiragana, Katakana: a word of its own
	unspaced        // Thai, Lao, Khmer, Myanmar: letters of words that nothing separates
)

func classOf(r rune) class {
	if r < utf8.RuneSelf {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			return letter
		case r >= '0' && r <= '9':
			return digit
		case r == '\'':
			return joiner
		}
		return separator
	}
	switch {
	case r < 0x0E00: // Latin, Greek, Cyrillic, Hebrew, Arabic, the Indic scripts
	case r <= 0x0EFF, r >= 0x1000 && r <= 0x109F, r >= 0x1780 && r <= 0x17FF:
		if unicode.IsLetter(r) || unicode.IsMark(r) {
			return unspaced
		}
	case r == 0x2019:
		return joiner
	case r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
		return ideograph
	}
	switch {
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return letter
	case unicode.IsNumber(r):
		return digit
	}
	return separator
}

// word is a word of a lowered text.
type word struct {
	start, end int
	class      class // letter, digit (of digits alone), ideograph or unspaced
	next       bool  // nothing but a space separates it from the word before
}

// words calls yield for each word of a lowered text: runs of letters, marks and
// numbers, apostrophes between letters included; each ideograph is one, and so is a
// run of a script that is written without spaces.
func words(s []byte, yield func(word)) {
	w := word{start: -1}
	last := -1 // end of the word before
	flush := func(end int) {
		if w.start < 0 {
			return
		}
		w.end = end
		w.next = last >= 0 && (w.start == last || w.start == last+1 && s[last] == ' ')
		yield(w)
		last, w.start = end, -1
	}
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(s[i:])
		}
		c := classOf(r)
		switch {
		case c == separator:
			flush(i)
		case c == joiner:
			if w.start < 0 || i+n >= len(s) {
				flush(i)
				break
			}
			if after, _ := utf8.DecodeRune(s[i+n:]); classOf(after) != letter || w.class != letter {
				flush(i)
			}
		case c == ideograph:
			flush(i)
			w.start, w.class = i, ideograph
			flush(i + n)
		case w.start >= 0 && (w.class == unspaced) != (c == unspaced):
			flush(i)
			w.start, w.class = i, c
		case w.start < 0:
			w.start, w.class = i, c
		case c == letter:
			w.class = letter
		}
		i += n
	}
	flush(len(s))
}

// unspacedWord is the mean length of a word in the scripts without spaces, letters and marks.
const unspacedWord = 4

// count is how many words a word counts for: of a run without spaces, as many as it
// is likely to hold.
func (w word) count(s []byte) int32 {
	if w.class != unspaced {
		return 1
	}
	return int32((utf8.RuneCount(s[w.start:w.end]) + unspacedWord - 1) / unspacedWord)
}
