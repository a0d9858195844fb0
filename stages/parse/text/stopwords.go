package text

import (
	"bytes"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"
)

// stopList are the words that say nothing of what a text is about, of one language. It
// is made into a set when a text first needs it.
type stopList struct {
	words  string
	byRun  bool   // of a script without spaces: says nothing of how often they occur
	elided string // what an apostrophe leaves of articles and the like, before the word proper: l'eau
	once   sync.Once
	set    map[string]struct{}
}

// everywhere are words of English that pages in other languages hold in bulk, in commands,
// notices and quotations, and that mean nothing else in those languages.
var everywhere = map[string]struct{}{"the": {}, "and": {}, "that": {}, "this": {}, "with": {}, "from": {}, "which": {}, "were": {}, "would": {},
	"you": {}, "your": {}}

// stopWordsOf is the list of a language by its ISO-639-3 code, nil if there is none.
func stopWordsOf(language string) *stopList {
	if near, ok := nearLanguages[language]; ok {
		language = near
	}
	var l *stopList
	for _, lists := range [...]map[string]*stopList{stopListsWest, stopListsEast, stopListsWorld} {
		if l = lists[language]; l != nil {
			break
		}
	}
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

// has reports whether a word of a normal form is in the list.
func (l *stopList) has(word []byte) bool {
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

// elision is the length of what an apostrophe elides at a word's beginning, with the
// apostrophe.
func (l *stopList) elision(word []byte) int {
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

// nearLanguages have no list of their own, but share the function words of another.
var nearLanguages = map[string]string{"nno": "nor", "nob": "nor", "bos": "hrv", "hbs": "hrv", "cnr": "hrv", "mol": "ron", "sco": "eng",
	"ast": "spa", "fil": "tgl", "gsw": "deu", "bar": "deu", "ekk": "est", "zsm": "msa", "yue": "zho", "cmn": "zho", "wuu": "zho",
	"lzh": "zho", "arz": "ara", "pes": "fas", "prs": "fas", "swh": "swa", "azj": "aze", "lvs": "lav", "uzn": "uzb"}

// emptyHan reports the Han code points that stand in every sentence of Chinese or
// Japanese, whatever it is about.
func emptyHan(p []byte) bool { return bytes.Contains(emptyHanAll, p) }

var emptyHanAll = []byte(emptyChinese + emptyJapanese)

// They parted by spaces, so that no code point is found across two.
const (
	emptyChinese = `的 了 是 在 和 与 與 及 或 也 都 就 而 着 著 过 過 给 給 把 被 对 對 从 從 向 于 於 以 之 其 这 這 那 此 个 個 们 們 ` +
		`我 你 您 他 她 它 不 没 沒 有 会 會 能 可 要 说 說 为 為 因 所 将 將 并 並 但 很 更 最 还 還 又 再 等 让 讓 使 由 则 則 却 卻 ` +
		`只 才 已 吗 嗎 呢 吧 啊 哪 谁 誰 么 麼 什 `
	emptyJapanese = `様 等 方 々 `
)
