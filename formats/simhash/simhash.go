// Package simhash makes 64-bit fingerprints of texts and finds near fingerprints (Charikar, STOC
// 2002; Manku, Jain and Das Sarma, WWW 2007). Texts that share most words have near fingerprints.
//
// For a text, the output is the fingerprint. For a sorted list of fingerprints, the output is a
// spanning forest of the pairs within a given Hamming distance. The search sorts in bounded memory
// and in scratch files. The package imports no other package of this project.
//
// # The fingerprint, version 1
//
// These steps make the fingerprint of a text:
//
//  1. Decode the text as UTF-8. Bytes that are not UTF-8 separate words.
//  2. Take its words: maximal runs of letters (general category L),
//     marks (M) and numbers (N), each code point mapped to lower case by
//     Unicode's simple case mapping. A letter of a script that is written
//     without spaces (Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar) is a
//     word of its own, with the marks that follow it.
//  3. Take the shingles: each three consecutive words, joined by one space. A
//     text of one or two words is one shingle of all its words. A text without
//     words has the fingerprint 0.
//  4. Hash each shingle's UTF-8 by XXH3-64 with seed 0. A shingle counts as
//     often as it occurs.
//  5. Set bit i of the fingerprint if more than half of the hashes have bit i
//     set.
//
// Categories, scripts and case are those of the Unicode version of Go's package
// unicode.
package simhash

import (
	"math/bits"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// Version is the version of the definition of the fingerprint. Fingerprints of different versions
// are not comparable.
const Version = 1

// shingleWords is the number of words in a shingle.
const shingleWords = 3

// Distance returns the Hamming distance of two fingerprints, 0 to 64.
func Distance(a, b uint64) int { return bits.OnesCount64(a ^ b) }

// Hasher makes fingerprints and reuses its buffer. The zero value is ready for use. Only one
// goroutine may use a Hasher.
type Hasher struct {
	buf    []byte            // words of the text, with a space after each word; endWord drops old words
	begins [shingleWords]int // offsets in buf of the last words: word i begins at begins[i%shingleWords]
	words  int               // number of words so far
	votes  counter

	inWord bool
	alone  bool // the current word is one letter of an unspaced script, with its marks
}

// keepBuffer is the size of the largest buffer that a Hasher keeps for the next text, in bytes.
// endWord drops old words from the buffer when they take more than half of this size.
const keepBuffer = 64 << 10

// Fingerprint returns the fingerprint of text.
func (h *Hasher) Fingerprint(text string) uint64 {
	h.buf, h.words, h.inWord, h.alone = h.buf[:0], 0, false, false
	h.votes = counter{}
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			i++
			switch folded := asciiFold[c]; {
			case folded == 0:
				h.step(separator)
				continue
			case !h.inWord || h.alone: // within a word, step would change nothing
				h.step(spaced)
			}
			h.buf = append(h.buf, asciiFold[c])
			for i < len(text) && text[i] < utf8.RuneSelf && asciiFold[text[i]] != 0 { // the rest of the letters and digits
				h.buf = append(h.buf, asciiFold[text[i]])
				i++
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		k := roleOf(r)
		if r == utf8.RuneError && size == 1 {
			k = separator
		}
		if h.step(k) {
			h.buf = utf8.AppendRune(h.buf, unicode.ToLower(r))
		}
	}
	h.step(separator)
	if h.words > 0 && h.words < shingleWords {
		h.votes.add(xxh3.Hash(h.buf[:len(h.buf)-1]))
	}
	if cap(h.buf) > keepBuffer {
		h.buf = nil
	}
	return h.votes.majority()
}

// step begins and ends words as a code point with the role k requires. It reports whether the code
// point is part of a word.
func (h *Hasher) step(k runeRole) bool {
	switch {
	case k == separator:
		if h.inWord {
			h.endWord()
			h.inWord = false
		}
		return false
	case !h.inWord:
		h.beginWord()
	case k == unspaced || h.alone && k == spaced:
		h.endWord()
		h.beginWord()
	}
	if k != mark || !h.inWord {
		h.alone = k == unspaced
	}
	h.inWord = true
	return true
}

// beginWord records the beginning of a word.
func (h *Hasher) beginWord() {
	h.begins[h.words%shingleWords] = len(h.buf)
}

// endWord ends a word, and adds the shingle that ends with this word.
func (h *Hasher) endWord() {
	end := len(h.buf)
	h.buf = append(h.buf, ' ')
	h.words++
	if h.words < shingleWords {
		return
	}
	h.votes.add(xxh3.Hash(h.buf[h.begins[h.words%shingleWords]:end]))
	// No later shingle has the first word of this one.
	if second := h.begins[(h.words+1)%shingleWords]; second > keepBuffer/2 {
		h.buf = h.buf[:copy(h.buf, h.buf[second:])]
		for i := range h.begins {
			h.begins[i] -= second // the entry of the first word may become negative; beginWord overwrites it
		}
	}
}

// runeRole is the role of a code point in a text.
type runeRole uint8

const (
	separator runeRole = iota
	spaced             // letter or number of a script with spaces between words
	unspaced           // letter that is a word by itself
	mark               // mark, which belongs to the word before it
)

// asciiFold maps ASCII letters and digits to lower case, and everything else to 0.
var asciiFold = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		switch {
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
			t[c] = byte(c)
		case c >= 'A' && c <= 'Z':
			t[c] = byte(c) + 'a' - 'A'
		}
	}
	return t
}()

// unspacedScripts lists the scripts that are written without spaces between words.
var unspacedScripts = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

func roleOf(r rune) runeRole {
	switch {
	case r >= 0x4e00 && r <= 0x9fff && unicode.Is(unicode.Han, r):
		return unspaced
	case unicode.IsLetter(r):
		if r >= 0x0e00 && unicode.In(r, unspacedScripts...) { // Thai has the lowest code points of the unspaced scripts
			return unspaced
		}
		return spaced
	case unicode.IsMark(r):
		return mark
	case unicode.IsNumber(r):
		return spaced
	}
	return separator
}
