package text

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// Term is a word or a pair of neighbouring words, with the number of its occurrences in a text.
type Term struct {
	Text  string
	Count int32
}

// ScriptCount is the number of words of a text in a script. Script is the script's ISO 15924 code.
type ScriptCount struct {
	Script string
	Words  int32
}

// maxWords bounds the number of words of a text that are counted as terms.
const maxWords = 100_000

// maxTerm bounds the length of a word that may be a term, in bytes.
const maxTerm = 64

// Terms counts the words and terms of texts, one text after another, and reuses its memory. The
// zero value is ready for use. A Terms is not safe for concurrent use.
type Terms struct {
	text  []byte
	lines []int32
	stop  *stopList
	ids   []entry
	pairs []pair
	slots []int32 // hash table with open addressing; each slot holds 1 plus an index of ids, or 0
	twos  []int32 // hash table of pairs, in the same form as slots
	best  []candidate
	last  int32 // id of the preceding word; -1 if that word cannot be in a pair
	end   int   // offset at which the preceding word ends

	words    int32
	looked   int32 // number of words of letters or ideographs among the first maxWords words
	stopped  int32 // number of stop words among these words
	byScript [len(scripts)]int32
}

type entry struct {
	hash       uint64
	start, end int32
	count      int32
	class      wordClass
	stop       bool // whether the word is a stop word
	pairs      bool // whether the word may be in a pair
	alone      int8 // number of occurrences that make the word a term by itself; 0 if it never is one
}

type pair struct {
	a, b  int32
	count int32
}

type candidate struct {
	count int32
	at    int32 // position of the first occurrence of the term's first word
	id    int32 // id of the term; the id of a pair is the pair's index plus len(ids)
}

// Count reads a text in a language (ISO-639-3, or "" if unknown) and returns its number of words.
// The text must not change until the next call of Count.
func (t *Terms) Count(n *Normal, language string) int32 {
	t.text, t.lines, t.stop = n.Bytes, n.lines, stopWordsOf(language)
	t.ids, t.pairs, t.last, t.end = t.ids[:0], t.pairs[:0], -1, -1
	t.words, t.looked, t.stopped, t.byScript = 0, 0, 0, [len(scripts)]int32{}
	size := min(len(t.text)/2, maxWords) + 16 // more than the number of counted words, so the tables never fill up
	t.slots, t.twos = table(t.slots, size), table(t.twos, size)
	eachWord(t.text, t.add)
	return t.words
}

func (t *Terms) add(w *word) {
	n := w.wordCount()
	t.words += n
	t.byScript[w.script] += n
	if t.words > maxWords || w.class == digit || w.end-w.start > maxTerm {
		t.last = -1
		return
	}
	begin := w.start
	if w.joined {
		if n := t.stop.elisionLength(t.text[w.start:w.end]); n > 0 {
			w.start += n
			w.runes = int32(utf8.RuneCount(t.text[w.start:w.end]))
		}
	}
	id := t.id(w)
	e := &t.ids[id]
	if w.class != unspaced {
		t.looked++
		if e.stop {
			t.stopped++
		}
	}
	if !e.pairs {
		t.last = -1
		return
	}
	if t.last >= 0 && t.mayPair(begin, w.class, t.ids[t.last].class) {
		t.pair(t.last, id)
	}
	t.last, t.end = id, w.end
}

// mayPair reports whether the word at start may form a pair with the preceding word. The word has
// class c, and the preceding word has class b.
func (t *Terms) mayPair(start int, c, b wordClass) bool {
	if c == ideograph || b == ideograph {
		return c == b && start == t.end
	}
	if start != t.end+1 || t.text[t.end] != ' ' {
		return false
	}
	for len(t.lines) > 0 && int(t.lines[0]) < start {
		t.lines = t.lines[1:]
	}
	return len(t.lines) == 0 || int(t.lines[0]) != start
}

// table returns an empty table for n words. The size of the table is a power of two.
func table(old []int32, n int) []int32 {
	size := 64
	for size < n {
		size *= 2
	}
	if cap(old) < size {
		return make([]int32, size)
	}
	old = old[:size]
	clear(old)
	return old
}

func (t *Terms) id(w *word) int32 {
	p := t.text[w.start:w.end]
	h := xxh3.Hash(p)
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		k := t.slots[i]
		if k == 0 {
			e := entry{hash: h, start: int32(w.start), end: int32(w.end), count: 1, class: w.class}
			t.judgeWord(&e, w, p)
			t.ids = append(t.ids, e)
			t.slots[i] = int32(len(t.ids))
			return int32(len(t.ids) - 1)
		}
		if e := &t.ids[k-1]; e.hash == h && bytes.Equal(t.text[e.start:e.end], p) {
			e.count++
			return k - 1
		}
	}
}

// judgeWord decides three things about a new word: whether it is a stop word, how many occurrences
// make it a term, and whether it may be part of pairs.
func (t *Terms) judgeWord(e *entry, w *word, p []byte) {
	if e.stop = t.stop.contains(p); !e.stop {
		if _, english := everywhere[string(p)]; english {
			return
		}
	}
	switch w.class {
	case ideograph:
		e.pairs = scripts[w.script].name == "Hani" && !e.stop && !emptyHan(p)
	case unspaced:
		if w.runes >= 3 && w.runes <= 16 && !e.stop {
			e.alone = 2
		}
	default:
		least := int32(3)
		switch {
		case w.class == katakana || scripts[w.script].name == "Hang":
			least = 2
		case t.stop == nil && (w.script == latn || w.script == grek || w.script == cyrl):
			least = 4
		}
		if !e.stop && w.runes >= least {
			e.pairs, e.alone = true, 1
		}
	}
}

func pairHash(a, b int32) uint64 {
	x := (uint64(uint32(a))<<32 | uint64(uint32(b))) * 0x9E3779B97F4A7C15
	return x ^ x>>29
}

func (t *Terms) pair(a, b int32) {
	mask := uint64(len(t.twos) - 1)
	for i := pairHash(a, b) & mask; ; i = (i + 1) & mask {
		k := t.twos[i]
		if k == 0 {
			t.pairs = append(t.pairs, pair{a, b, 1})
			t.twos[i] = int32(len(t.pairs))
			return
		}
		if p := &t.pairs[k-1]; p.a == a && p.b == b {
			p.count++
			return
		}
	}
}

// Top returns the n most frequent terms, in the order that the package comment defines.
func (t *Terms) Top(n int) []Term {
	t.best = t.best[:0]
	for i := range t.ids {
		if e := &t.ids[i]; e.alone > 0 && e.count >= int32(e.alone) {
			t.addCandidate(candidate{e.count, e.start, int32(i)}, n)
		}
	}
	for i := range t.pairs {
		if p := &t.pairs[i]; p.count > 1 {
			t.addCandidate(candidate{p.count, t.ids[p.a].start, int32(len(t.ids) + i)}, n)
		}
	}
	if len(t.best) == 0 {
		return nil
	}
	return t.bestTerms()
}

// addCandidate adds a candidate to the sorted list of the n best candidates, if it is one of them.
func (t *Terms) addCandidate(c candidate, n int) {
	if len(t.best) == n && before(t.best[n-1], c) <= 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(t.best, c, before)
	if len(t.best) == n {
		t.best = t.best[:n-1]
	}
	t.best = slices.Insert(t.best, i, c)
}

func before(a, b candidate) int {
	switch {
	case a.count != b.count:
		return int(b.count) - int(a.count)
	case a.at != b.at:
		return int(a.at) - int(b.at)
	}
	return int(a.id) - int(b.id)
}

// bestTerms returns the best candidates as terms. All strings of the terms share the memory of one
// string.
func (t *Terms) bestTerms() []Term {
	var buf []byte
	ends := make([]int, 0, 64)
	for _, c := range t.best {
		buf = t.appendName(buf, c.id)
		ends = append(ends, len(buf))
	}
	all := string(buf)
	out := make([]Term, len(t.best))
	start := 0
	for i, end := range ends {
		out[i] = Term{all[start:end], t.best[i].count}
		start = end
	}
	return out
}

func (t *Terms) appendName(dst []byte, id int32) []byte {
	if int(id) < len(t.ids) {
		e := &t.ids[id]
		return append(dst, t.text[e.start:e.end]...)
	}
	p := &t.pairs[int(id)-len(t.ids)]
	a, b := &t.ids[p.a], &t.ids[p.b]
	dst = append(dst, t.text[a.start:a.end]...)
	if a.class != ideograph {
		dst = append(dst, ' ')
	}
	return append(dst, t.text[b.start:b.end]...)
}

// Words returns the number of words of the counted text.
func (t *Terms) Words() int32 { return t.words }

// StopRatio returns the share of stop words among the words of letters and ideographs. Only the
// first maxWords words count. StopRatio returns false if the language has no list or the text has
// no words of letters or ideographs.
func (t *Terms) StopRatio() (float64, bool) {
	if t.stop == nil || t.stop.byRun || t.looked == 0 {
		return 0, false
	}
	return float64(t.stopped) / float64(t.looked), true
}

// Scripts returns the number of words by script, the script with the most words first. Scripts with
// equal numbers keep the order of the table of scripts.
func (t *Terms) Scripts() []ScriptCount {
	var room [len(scripts)]ScriptCount
	out := room[:0]
	for i, n := range t.byScript {
		if n > 0 {
			out = append(out, ScriptCount{scripts[i].name, n})
		}
	}
	slices.SortStableFunc(out, func(a, b ScriptCount) int { return int(b.Words) - int(a.Words) })
	return slices.Clone(out)
}
