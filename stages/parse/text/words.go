package text

import "unicode/utf8"

// word describes a word in a normal form: its position, its number of letters, its class and script.
type word struct {
	start, end int
	runes      int32     // number of letters; in scripts without spaces, number of letters and marks
	class      wordClass // class of the word: letter, digit (the word has only digits), ideograph, katakana or unspaced
	last       wordClass // class of the word's last rune other than a mark
	script     scriptID
	joined     bool // whether the word contains an apostrophe or a middle dot
}

// unspacedWord is the mean length of a word in scripts without spaces, in letters and marks.
const unspacedWord = 4

// wordCount returns 1. For a run without spaces, it returns the likely number of words in the run.
func (w *word) wordCount() int32 {
	if w.class != unspaced {
		return 1
	}
	return (w.runes + unspacedWord - 1) / unspacedWord
}

// eachWord calls yield for each word of a normal form, in order. The package comment defines
// words. The word is valid until yield returns.
func eachWord(s []byte, yield func(*word)) {
	w := word{start: -1}
	for i := 0; i < len(s); {
		var p property
		n := 1
		if c := s[i]; c < utf8.RuneSelf {
			p = ascii[c]
		} else {
			var r rune
			r, n = utf8.DecodeRune(s[i:])
			p = bmp.propertiesOf(r)
		}
		switch {
		case w.start >= 0 && w.goesOn(s, i, n, p.class):
			w.addRune(p)
		case w.start >= 0:
			w.end = i
			yield(&w)
			w.start = -1
			fallthrough
		default:
			if beginsWord(p.class) {
				w = word{start: i, class: p.class}
				w.addRune(p)
			}
		}
		i += n
	}
	if w.start >= 0 {
		w.end = len(s)
		yield(&w)
	}
}

// beginsWord reports whether a rune of the class begins a word.
func beginsWord(c wordClass) bool {
	switch c {
	case letter, digit, ideograph, katakana, unspaced:
		return true
	}
	return false
}

// goesOn reports whether the open word continues with the rune of class c at s[i:i+n].
func (w *word) goesOn(s []byte, i, n int, c wordClass) bool {
	switch c {
	case letter, digit:
		return w.class == letter || w.class == digit
	case extend:
		return true
	case katakana, unspaced:
		return w.class == c
	case joiner:
		if w.last != letter || i+n == len(s) {
			return false
		}
		r, _ := utf8.DecodeRune(s[i+n:])
		return bmp.propertiesOf(r).class == letter
	case point:
		return isDigit(s[i-1]) && i+1 < len(s) && isDigit(s[i+1])
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// addRune adds a rune to the open word.
func (w *word) addRune(p property) {
	switch p.class {
	case joiner, point:
		w.last, w.joined = p.class, w.joined || p.class == joiner
		return
	case extend:
		if w.class == unspaced {
			w.runes++
		}
		return
	case letter:
		w.class = letter
		w.runes++
	case ideograph, katakana, unspaced:
		w.runes++
	}
	w.last = p.class
	if w.script <= zzzz && p.script != zyyy {
		w.script = p.script
	}
}
