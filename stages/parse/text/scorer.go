package text

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scorer gives each language points for the words and letters of a text.
type scorer struct {
	languages []string // ISO-639-3 codes, sorted
	words     map[string][]vote
	letters   map[rune][]vote
}

// maxLanguages exceeds the number of languages.
const maxLanguages = 64

// vote is a language with the points that a word or letter gives it.
type vote struct {
	language int
	points   int
}

// A word that occurs in only one language gives wordPoints. A letter that occurs in only one
// language gives letterPoints.
const (
	wordPoints   = 60
	letterPoints = 24
)

// newScorer makes the scorer's tables, which have about 1,500 words.
func newScorer() *scorer {
	words, letters := readLists("languages.txt"), readLists("letters.txt")
	t := &scorer{languages: slices.Sorted(maps.Keys(words)), words: make(map[string][]vote, 2048), letters: make(map[rune][]vote, 256)}
	for i, lang := range t.languages {
		for w := range strings.FieldsSeq(words[lang]) {
			if had := t.words[w]; len(had) == 0 || had[len(had)-1].language != i {
				t.words[w] = append(had, vote{language: i})
			}
		}
		for _, r := range letters[lang] {
			t.letters[r] = append(t.letters[r], vote{language: i})
		}
	}
	for w, votes := range t.words {
		points := wordPoints / len(votes)
		if utf8.RuneCountInString(w) == 1 {
			points /= 2 // texts of every language have single letters, in lists and formulas
		}
		for i := range votes {
			votes[i].points = points
		}
	}
	for _, votes := range t.letters {
		for i := range votes {
			votes[i].points = letterPoints / len(votes)
		}
	}
	return t
}

// scoreLanguages returns the points of each language for the words and letters of s. It also
// returns the numbers of the languages with the most and the second most points.
func (t *scorer) scoreLanguages(s string) (score [maxLanguages]int, first, second int) {
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
		case unicode.IsMark(r), r == '\u200C': // a mark, or a zero width non-joiner, occurs within words of Devanagari and Persian
		default:
			end()
			continue
		}
		if n+utf8.UTFMax > len(word) {
			n = len(word) // the word is longer than every word in the tables
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
