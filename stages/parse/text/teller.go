package text

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// teller scores the words and letters of a text for the languages that have them.
type teller struct {
	languages []string
	words     map[string][]tell
	letters   map[rune][]tell
}

// maxTold is more than the languages there are.
const maxTold = 64

// tell is what a word or letter counts for a language.
type tell struct {
	language int
	points   int
}

// A word that only one language has counts wordPoints, a letter letterPoints.
const (
	wordPoints   = 60
	letterPoints = 24
)

// newTeller makes the tables; they are some 1,500 words.
func newTeller() *teller {
	t := &teller{words: make(map[string][]tell, 2048), letters: make(map[rune][]tell, 256)}
	for lang := range tellWords {
		t.languages = append(t.languages, lang)
	}
	slices.Sort(t.languages)
	add := func(at int, list string) {
		for w := range strings.FieldsSeq(list) {
			if had := t.words[w]; len(had) == 0 || had[len(had)-1].language != at {
				t.words[w] = append(had, tell{language: at})
			}
		}
	}
	for i, lang := range t.languages {
		add(i, tellWords[lang])
		if lang == "srp" {
			add(i, tellCyrillicSerbian)
		}
		for _, r := range tellLetters[lang] {
			t.letters[r] = append(t.letters[r], tell{language: i})
		}
	}
	for w, tells := range t.words {
		points := wordPoints / len(tells)
		if utf8.RuneCountInString(w) == 1 {
			points /= 2 // lists and formulas have them, too
		}
		for i := range tells {
			tells[i].points = points
		}
	}
	for _, tells := range t.letters {
		for i := range tells {
			tells[i].points = letterPoints / len(tells)
		}
	}
	return t
}

// tell gives the points of each language for the words and letters of s, and the
// languages with the most and the next.
func (t *teller) tell(s string) (score [maxTold]int, first, second int) {
	var word [64]byte
	n := 0
	end := func() {
		if n > 0 && n < len(word) {
			for _, w := range t.words[string(word[:n])] {
				score[w.language] += w.points
			}
		}
		n = 0
	}
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			if r >= 'A' && r <= 'Z' {
				r += 'a' - 'A'
			}
			if r < 'a' && r != '\'' || r > 'z' {
				end()
				continue
			}
		case r == '’':
			r = '\''
		case unicode.IsLetter(r):
			r = unicode.ToLower(r)
			for _, l := range t.letters[r] {
				score[l.language] += l.points
			}
		case unicode.IsMark(r), r == '\u200C': // within words of Devanagari and Persian
		default:
			end()
			continue
		}
		if n+utf8.UTFMax > len(word) {
			n = len(word) // longer than all words
			continue
		}
		n += utf8.EncodeRune(word[n:], r)
	}
	end()
	first, second = 0, 1
	if score[1] > score[0] {
		first, second = 1, 0
	}
	for i := 2; i < len(t.languages); i++ {
		if score[i] > score[first] {
			first, second = i, first
		} else if score[i] > score[second] {
			second = i
		}
	}
	return score, first, second
}
