package reducecheck

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"math/bits"

	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
)

// features holds the properties of a page that decide which pages are similar to it.
type features struct {
	A, B, C     uint64 // SHA-1 of the text
	Fingerprint uint64
	Long        bool // true: the page has enough words to be compared by fingerprint
}

// featuresOf returns the features of a page. It returns false if the page has no text, or if its
// text_digest is not a digest.
func featuresOf(digest string, fingerprint int64, words, minWords int) (features, bool) {
	var sum [sha1.Size + 4]byte
	if len(digest) != base32.StdEncoding.EncodedLen(sha1.Size) {
		return features{}, false
	}
	n, err := base32.StdEncoding.Decode(sum[:], []byte(digest))
	return features{
		binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:]), binary.BigEndian.Uint64(sum[16:]),
		uint64(fingerprint), words >= minWords,
	}, err == nil && n == sha1.Size
}

func (l *features) compareText(other *features) int {
	return cmp.Or(cmp.Compare(l.A, other.A), cmp.Compare(l.B, other.B), cmp.Compare(l.C, other.C))
}

// alike reports whether two pages are similar. Similar pages have equal texts, or long texts whose
// fingerprints differ in at most k bits.
func (l *features) alike(other *features, k int) bool {
	return l.compareText(other) == 0 || l.Long && other.Long && l.distance(other) <= k
}

func (l *features) distance(other *features) int {
	return bits.OnesCount64(l.Fingerprint ^ other.Fingerprint)
}

// likeness finds the connected components of similar pages. Pages are numbered in the order of
// reading, and representatives of earlier rounds come first. Pages are sorted on disk. Memory holds
// 2 bits for each page, and 8 bytes for each page that is similar to another.
type likeness struct {
	scratch string
	sealed  int64 // number of representatives of earlier rounds
	count   int64 // number of pages
	texts   *table.Sorter[text]
	pairs   *table.Sorter[pair]

	similar []uint64 // one bit for each page; set if the page is similar to another
	before  []uint64 // number of similar pages before each element of similar
	parent  []uint64 // parent of each similar page in the union-find; a root is its own parent
}

// text is a page in the sort by text or by fingerprint.
type text struct {
	features
	Page int64
}

// pair holds two similar pages.
type pair struct{ A, B int64 }

func newLikeness(scratch string) (*likeness, error) {
	texts, err1 := table.NewSorter(scratch, func(k table.Key, t *text) table.Key {
		return k.Uint(t.A).Uint(t.B).Uint(t.C).Int(t.Page)
	}, audit.SortMemory)
	pairs, err2 := table.NewSorter(scratch, func(k table.Key, _ *pair) table.Key { return k }, audit.SortMemory)
	return &likeness{scratch: scratch, texts: texts, pairs: pairs}, errors.Join(err1, err2)
}

func (l *likeness) close() error { return errors.Join(l.texts.Close(), l.pairs.Close()) }

// add adds the next page.
func (l *likeness) add(page features) error {
	l.count++
	return l.texts.Add(&text{page, l.count - 1})
}

func (l *likeness) addPair(a, b int64) error {
	l.similar[a/64] |= 1 << (a % 64)
	l.similar[b/64] |= 1 << (b % 64)
	return l.pairs.Add(&pair{a, b})
}

// connect joins pages with equal digests, and long pages with equal fingerprints. It also joins two
// long pages whose fingerprints differ in at most k bits, but only if at least one of them belongs to
// this round. It may thus join two equal representatives of earlier rounds, although neither belongs to
// this round. This changes no cluster of this round: a page resembles either both of them or neither.
func (l *likeness) connect(ctx context.Context, k int) (err error) {
	l.similar = make([]uint64, (l.count+63)/64)
	long, err := table.NewSorter(l.scratch, func(k table.Key, t *text) table.Key { // pages of this round come before representatives of earlier rounds
		return k.Uint(t.Fingerprint).Int(^t.Page)
	}, audit.SortMemory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, long.Close()) }()
	sameText := func(a, b *text) bool { return a.compareText(&b.features) == 0 }
	if err := l.group(ctx, l.texts, sameText, func(t, _ *text) error {
		if t.Long {
			return long.Add(t)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := l.texts.Close(); err != nil {
		return err
	}
	search, err := simhash.NewSearch(l.scratch, k, simhash.Part{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, search.Close()) }()
	// The search gets one page of each fingerprint. This is a page of this round if there is one, because
	// the search does not pair two representatives of earlier rounds.
	sameFingerprint := func(a, b *text) bool { return a.Fingerprint == b.Fingerprint }
	if err := l.group(ctx, long, sameFingerprint, func(t, first *text) error {
		if t.Page != first.Page {
			return nil
		}
		return search.Add(t.Fingerprint, uint64(t.Page), t.Page < l.sealed)
	}); err != nil {
		return err
	}
	if err := search.Forest(ctx, func(a, b uint64) error { return l.addPair(int64(a), int64(b)) }); err != nil {
		return err
	}
	return l.join(ctx)
}

// group sorts the pages, and calls visit with each page and the first page of its group. A group is a
// run of consecutive pages for which same is true.
func (l *likeness) group(ctx context.Context, pages *table.Sorter[text], same func(a, b *text) bool, visit func(t, first *text) error) error {
	var first text
	begun := false
	for t, err := range pages.Sorted(ctx) {
		if err != nil {
			return err
		}
		if begun && same(&first, &t) {
			err = l.addPair(first.Page, t.Page)
		} else {
			first, begun = t, true
		}
		if err := errors.Join(err, visit(&t, &first)); err != nil {
			return err
		}
	}
	return nil
}

// join joins all pairs.
func (l *likeness) join(ctx context.Context) error {
	l.before = make([]uint64, len(l.similar))
	n := uint64(0)
	for i, word := range l.similar {
		l.before[i] = n
		n += uint64(bits.OnesCount64(word))
	}
	l.parent = make([]uint64, n)
	for i := range l.parent {
		l.parent[i] = uint64(i)
	}
	for p, err := range l.pairs.Sorted(ctx) {
		if err != nil {
			return err
		}
		a, b := l.find(p.A), l.find(p.B)
		l.parent[max(a, b)] = min(a, b)
	}
	return l.pairs.Close()
}

// isClustered reports whether a page is similar to another page.
func (l *likeness) isClustered(page int64) bool {
	return page < l.count && l.similar[page/64]&(1<<(page%64)) != 0
}

// find returns the number of the component of a page for which isClustered is true.
func (l *likeness) find(page int64) uint64 {
	i := l.before[page/64] + uint64(bits.OnesCount64(l.similar[page/64]&(1<<(page%64)-1)))
	for l.parent[i] != i {
		l.parent[i] = l.parent[l.parent[i]]
		i = l.parent[i]
	}
	return i
}
