package text

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// Term is a word or a pair of neighbouring words, and how often a text has it.
type Term struct {
	Text  string
	Count int32
}

// maxWords is how many words of a text are looked at for terms.
const maxWords = 100_000

// Terms counts the words and terms of one text after the other; it keeps its memory
// between them. The zero value is ready; it is for one goroutine.
type Terms struct {
	text  []byte
	ids   []entry
	pairs []pair
	slots []int32 // open addressing over ids, by hash; index + 1
	twos  []int32 // the same over pairs
	best  []candidate
	last  int32 // id of the word before, -1 if it takes part in no pair
	words int32
}

type entry struct {
	hash       uint64
	start, end int32
	count      int32
	stop       bool
	class      class
}

type pair struct {
	a, b  int32
	count int32
	at    int32 // where it occurs first
}

type candidate struct {
	count, at int32
	id        int32 // of a pair: len(ids) more
}

// Count reads a text in its normal form (see Lower), whose language is known by its
// ISO-639-3 code, and returns its number of words. An ideograph counts as a word; of
// scripts without spaces the number is estimated.
func (t *Terms) Count(lowered []byte, language string) int32 {
	t.text = lowered
	t.ids, t.pairs, t.last, t.words = t.ids[:0], t.pairs[:0], -1, 0
	n := min(len(lowered)/4+16, 2*maxWords)
	t.slots, t.twos = table(t.slots, n), table(t.twos, n)
	stop := stopWords[language]
	words(lowered, func(w word) {
		t.words += w.count(lowered)
		if t.words > maxWords || w.class == digit || w.class == unspaced || w.end-w.start > 64 {
			t.last = -1
			return
		}
		id := t.id(w, stop)
		if t.ids[id].stop {
			t.last = -1
			return
		}
		if t.last >= 0 && w.next {
			t.pair(t.last, id)
		}
		t.last = id
	})
	return t.words
}

// table returns an empty table for n words, of a size that is a power of two.
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

func (t *Terms) id(w word, stop map[string]struct{}) int32 {
	p := t.text[w.start:w.end]
	h := xxh3.Hash(p)
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		k := t.slots[i]
		if k == 0 {
			if len(t.ids)*4 >= len(t.slots)*3 {
				t.grow()
				return t.id(w, stop)
			}
			_, isStop := stop[string(p)]
			short := w.class == letter && utf8.RuneCount(p) < 3
			t.ids = append(t.ids, entry{h, int32(w.start), int32(w.end), 1, isStop || short, w.class})
			t.slots[i] = int32(len(t.ids))
			return int32(len(t.ids) - 1)
		}
		if e := &t.ids[k-1]; e.hash == h && bytes.Equal(t.text[e.start:e.end], p) {
			e.count++
			return k - 1
		}
	}
}

func (t *Terms) grow() {
	t.slots = make([]int32, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for k := range t.ids {
		i := t.ids[k].hash & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = int32(k + 1)
	}
}

func pairHash(a, b int32) uint64 {
	x := (uint64(uint32(a))<<32 | uint64(uint32(b))) * 0x9E3779B97F4A7C15
	return x ^ x>>29
}

func (t *Terms) pair(a, b int32) {
	if len(t.pairs)*4 >= len(t.twos)*3 {
		t.twos = make([]int32, 2*len(t.twos))
		mask := uint64(len(t.twos) - 1)
		for k := range t.pairs {
			i := pairHash(t.pairs[k].a, t.pairs[k].b) & mask
			for t.twos[i] != 0 {
				i = (i + 1) & mask
			}
			t.twos[i] = int32(k + 1)
		}
	}
	mask := uint64(len(t.twos) - 1)
	for i := pairHash(a, b) & mask; ; i = (i + 1) & mask {
		k := t.twos[i]
		if k == 0 {
			t.pairs = append(t.pairs, pair{a, b, 1, int32(len(t.pairs))})
			t.twos[i] = int32(len(t.pairs))
			return
		}
		if p := &t.pairs[k-1]; p.a == a && p.b == b {
			p.count++
			return
		}
	}
}

// Top returns the n terms that occur most often, of equals those that occur first:
// words of three letters and more that are no stop words, and pairs of such words
// that occur twice at least. Of ideographs only pairs count, written together.
func (t *Terms) Top(n int) []Term {
	t.best = t.best[:0]
	for i := range t.ids {
		if e := &t.ids[i]; !e.stop && e.class != ideograph {
			t.offer(candidate{e.count, e.start, int32(i)}, n)
		}
	}
	for i := range t.pairs {
		if p := &t.pairs[i]; p.count > 1 {
			t.offer(candidate{p.count, t.ids[p.a].start, int32(len(t.ids) + i)}, n)
		}
	}
	if len(t.best) == 0 {
		return nil
	}
	out := make([]Term, len(t.best))
	for i, c := range t.best {
		out[i] = Term{t.name(c.id), c.count}
	}
	return out
}

// offer keeps the n best candidates in order.
func (t *Terms) offer(c candidate, n int) {
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

func (t *Terms) name(id int32) string {
	if int(id) < len(t.ids) {
		e := &t.ids[id]
		return string(t.text[e.start:e.end])
	}
	p := &t.pairs[int(id)-len(t.ids)]
	a, b := &t.ids[p.a], &t.ids[p.b]
	s := string(t.text[a.start:a.end])
	if a.class != ideograph || b.class != ideograph {
		s += " "
	}
	return s + string(t.text[b.start:b.end])
}
