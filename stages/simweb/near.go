package simweb

import (
	"sync"

	"crawlbatch.io/crawlbatch/formats/simhash"
)

// NearDistance is the largest distance between the fingerprints of a near copy and its original, in
// bits.
const NearDistance = 3

var hashers = sync.Pool{New: func() any { return new(simhash.Hasher) }}

// Fingerprint returns the SimHash of a text.
func Fingerprint(text []byte) uint64 {
	h := hashers.Get().(*simhash.Hasher)
	defer hashers.Put(h)
	return h.Fingerprint(string(text))
}

// lastParagraph writes the last paragraph of the main part. Near copies differ in some of its
// words.
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
		words = editWords(texts, body, words, src.family.at(step), step, accents)
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

// editSizes are the numbers of words that an edit tries to change, in this order. Each bit of a
// fingerprint is the majority of the votes of all shingles. A word is in few shingles, so changing it
// flips only bits with a small majority. A text without such bits needs a larger edit.
var editSizes = [...]int{2, 1, 3, 5, 8, 12}

// triesPerSize is how often an edit of each size is tried, with random words.
const triesPerSize = 150

// editWords changes words near the end of a paragraph so that the fingerprint of the whole text
// changes in at least one bit and at most NearDistance bits. It tries random words until some fit,
// usually after a few tries. If none fit, it returns the words unchanged.
//
// texts holds two copies of the text before the paragraph. body is the size of each copy in bytes.
// Different steps change different words, so that the ends of a chain drift apart. If such changes
// move the fingerprint of a short text too far, editWords changes the last words instead, which are
// in fewer shingles.
func editWords(texts [2][]byte, body int, words []key, k key, step int, accents bool) []key {
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
