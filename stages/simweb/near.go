package simweb

import (
	"sync"

	"crawlbatch.io/crawlbatch/formats/simhash"
)

// NearDistance is how far apart, in bits, the fingerprints of a near copy and of
// what it was copied from are at most.
const NearDistance = 3

var hashers = sync.Pool{New: func() any { return new(simhash.Hasher) }}

func fingerprint(text []byte) uint64 {
	h := hashers.Get().(*simhash.Hasher)
	defer hashers.Put(h)
	return h.Of(string(text))
}

// lastParagraph writes the last paragraph of the main part, which near copies
// have with some words changed.
func (a *author) lastParagraph(src source, k key, n int, accents bool) {
	d := a.doc
	words := make([]key, n)
	for i := range words {
		words[i] = k.at(i)
	}
	d.main = append(d.main, '\n')
	body := len(d.main)
	var texts [2][]byte
	if src.steps > 0 {
		texts[0] = append(make([]byte, 0, body+1<<10), d.main...)
		texts[1] = append(make([]byte, 0, body+1<<10), d.main...)
	}
	for step := range src.steps {
		words = edit(texts, body, words, src.family.at(step), step, accents)
	}
	d.main = appendSentence(d.main, words, accents)
	d.html = append(d.html, "<p>"...)
	d.html = append(d.html, d.main[body:]...)
	d.html = append(d.html, "</p>\n"...)
}

func appendSentence(b []byte, words []key, accents bool) []byte {
	for i, k := range words {
		if i > 0 {
			b = append(b, ' ')
		}
		b = appendWord(b, k, accents)
	}
	return append(b, '.')
}

// edit changes a word or two near the end of a paragraph so that the fingerprint
// of the whole text moves by at least one bit and at most NearDistance. It tries
// words that k chooses, one after the other, until one fits; a change of one word
// touches a shingle or two or three among many, so that a few tries do. Where none
// fits, the words stay as they are. texts hold the text before the paragraph, up
// to body, twice; step tells which words are not to be touched again.
func edit(texts [2][]byte, body int, words []key, k key, step int, accents bool) []key {
	const tries = 600
	before := fingerprint(appendSentence(texts[0][:body], words, accents))
	changed := make([]key, len(words))
	last := len(words) - 1 - 2*step
	for try := range tries {
		copy(changed, words)
		changed[last] = k.at(2 * try)
		if try < tries/2 {
			changed[last-1] = k.at(2*try + 1)
		}
		after := fingerprint(appendSentence(texts[1][:body], changed, accents))
		if n := simhash.Distance(before, after); n >= 1 && n <= NearDistance {
			return changed
		}
	}
	return words
}
