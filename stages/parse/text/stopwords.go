package text

import (
	"bytes"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"
)

// stopList holds the words of a language that do not tell what a text is about. The set of words is
// made at the first use of the list.
type stopList struct {
	words  string
	byRun  bool   // whether the language is written without spaces, so that most stop words of a text are not found
	elided string // elided articles of the language (see elisions)
	once   sync.Once
	set    map[string]struct{}
}

// everywhere holds English words that are frequent in pages of other languages, in commands,
// notices and quotations. None of them is also a word of another language.
var everywhere = map[string]struct{}{"the": {}, "and": {}, "that": {}, "this": {}, "with": {}, "from": {}, "which": {}, "were": {}, "would": {},
	"you": {}, "your": {}}

// stopWordsOf returns the list of a language by its ISO-639-3 code, or nil if the language has no
// list.
func stopWordsOf(language string) *stopList {
	if near, ok := nearLanguages[language]; ok {
		language = near
	}
	l := stopLists()[language]
	if l != nil {
		l.once.Do(func() {
			fields := strings.Fields(norm.NFC.String(l.words))
			l.set = make(map[string]struct{}, len(fields))
			for _, w := range fields {
				l.set[w] = struct{}{}
			}
		})
	}
	return l
}

// contains reports whether a word of a normal form is in the list.
func (l *stopList) contains(word []byte) bool {
	if l == nil {
		return false
	}
	if _, ok := l.set[string(word)]; ok {
		return true
	}
	if i := bytes.Index(word, curly); i > 0 && len(word) < maxTerm {
		var room [maxTerm]byte
		straight := append(append(append(room[:0], word[:i]...), '\''), word[i+len(curly):]...)
		_, ok := l.set[string(straight)]
		return ok
	}
	return false
}

var curly = []byte("’")

// elisionLength returns the length of the elided article, or similar word, at the beginning of a
// word. The length includes the apostrophe.
func (l *stopList) elisionLength(word []byte) int {
	if l == nil || l.elided == "" {
		return 0
	}
	i, n := bytes.IndexByte(word, '\''), 1
	if j := bytes.Index(word, curly); j >= 0 && (i < 0 || j < i) {
		i, n = j, len(curly)
	}
	if i <= 0 || i > 8 {
		return 0
	}
	for e := range strings.FieldsSeq(l.elided) {
		if string(word[:i]) == e {
			return i + n
		}
	}
	return 0
}

// nearLanguages maps languages without a list to a language with nearly the same function words.
var nearLanguages = map[string]string{"nno": "nor", "nob": "nor", "bos": "hrv", "hbs": "hrv", "cnr": "hrv", "mol": "ron", "sco": "eng",
	"ast": "spa", "fil": "tgl", "gsw": "deu", "bar": "deu", "ekk": "est", "zsm": "msa", "yue": "zho", "cmn": "zho", "wuu": "zho",
	"lzh": "zho", "arz": "ara", "pes": "fas", "prs": "fas", "swh": "swa", "azj": "aze", "lvs": "lav", "uzn": "uzb"}

// emptyHan reports whether a Han code point says nothing about the subject of a text, because Chinese
// or Japanese texts on every subject have it.
func emptyHan(p []byte) bool { return bytes.Contains(emptyHanAll(), p) }

// Spaces separate the code points in emptyHanAll, so that no search matches parts of two code
// points.
var emptyHanAll = sync.OnceValue(func() []byte { return []byte(stopLists()["zho"].words + " 様 等 方 々 ") })
