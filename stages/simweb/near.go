package simweb

import (
	"sync"

	"crawlbatch.io/crawlbatch/formats/simhash"
)

// NearDistance is how far apart, in bits, the fingerprints of a near copy and of
// what it was copied from are at most.
const NearDistance = 3

var hashers = sync.Pool{New: func() any { return new(simhash.Hasher) }}

// Fingerprint is the SimHash of a text.
func Fingerprint(text []byte) uint64 {
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
	d.Main = append(d.Main, '\n')
	body := len(d.Main)
	var texts [2][]byte
	if src.steps > 0 {
		texts[0] = append(make([]byte, 0, body+1<<10), d.Main...)
		texts[1] = append(make([]byte, 0, body+1<<10), d.Main...)
	}
	for step := range src.steps {
		words = edit(texts, body, words, src.family.at(step), step, accents)
	}
	d.Main = appendSentence(d.Main, words, accents)
	d.html = append(d.html, "<p>"...)
	d.html = append(d.html, d.Main[body:]...)
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

// editSizes are how many words an edit changes, in the order in which they are
// tried. A word touches three shingles among many, which mostly flips a bit or some
// of those where the shingles' votes are almost even; a text that has no such bit
// needs more.
var editSizes = [...]int{2, 1, 3, 5, 8, 12}

// triesPerSize is how often chance may choose the words of an edit of one size.
const triesPerSize = 150

// edit changes words near the end of a paragraph so that the fingerprint of the
// whole text moves by at least one bit and at most NearDistance. It tries words that
// k chooses, one after the other, until some fit; a few tries mostly do. Where none
// fit, the words stay as they are. texts hold the text before the paragraph, up to
// body, twice. Steps change different words, so that the ends of a chain drift apart;
// in a text so short that this moves too much, the last words, which are in fewer
// shingles, are changed again.
func edit(texts [2][]byte, body int, words []key, k key, step int, accents bool) []key {
	before := Fingerprint(appendSentence(texts[0][:body], words, accents))
	changed := make([]key, len(words))
	for _, last := range [...]int{len(words) - 1 - 2*step, len(words) - 1} {
		for size, n := range editSizes {
			for try := range triesPerSize {
				copy(changed, words)
				for i := range n {
					changed[last-i] = k.at(size).at(try).at(last - i)
				}
				after := Fingerprint(appendSentence(texts[1][:body], changed, accents))
				if d := simhash.Distance(before, after); d >= 1 && d <= NearDistance {
					return changed
				}
			}
		}
	}
	return words
}
