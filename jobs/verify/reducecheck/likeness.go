package reducecheck

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/base32"
	"math/bits"
	"slices"

	"crawlbatch.io/crawlbatch/formats/simhash"
)

// likeness holds the fingerprints and digests of all pages that have a text, and the connected
// components of similar pages. Pages are numbered in the order of reading, and representatives of
// earlier rounds come first.
type likeness struct {
	sealed      int // the number of representatives of earlier rounds
	fingerprint []uint64
	digest      [][sha1.Size]byte
	long        []bool  // true: the page has enough words to be compared by fingerprint
	parent      []int32 // parent of each page in the union-find; a root is its own parent
	total       []int32 // number of the component's pages, at the index of the component's root
	current     []int32 // number of the component's pages of this round, at the index of the component's root
}

// textDigest decodes a value of text_digest. textDigest returns false if the value is not a digest.
func textDigest(s string) (d [sha1.Size]byte, ok bool) {
	if len(s) != base32.StdEncoding.EncodedLen(sha1.Size) {
		return d, false
	}
	n, err := base32.StdEncoding.Decode(d[:], []byte(s))
	return d, err == nil && n == len(d)
}

func (l *likeness) add(digest [sha1.Size]byte, fingerprint int64, long bool) {
	l.digest = append(l.digest, digest)
	l.fingerprint = append(l.fingerprint, uint64(fingerprint))
	l.long = append(l.long, long)
	l.parent = append(l.parent, int32(len(l.parent)))
}

func (l *likeness) count() int { return len(l.parent) }

// find returns the root of a page's component.
func (l *likeness) find(page int32) int32 {
	for l.parent[page] != page {
		l.parent[page] = l.parent[l.parent[page]]
		page = l.parent[page]
	}
	return page
}

func (l *likeness) union(a, b int32) {
	ra, rb := l.find(a), l.find(b)
	l.parent[max(ra, rb)] = min(ra, rb)
}

// connect joins pages with equal digests, and long pages with equal fingerprints. connect also
// joins two long pages whose fingerprints differ in at most k bits, but only if at least one of the
// pages is of this round. connect may join two equal representatives of earlier rounds, because
// this changes no cluster: a page that resembles one of them also resembles the other.
func (l *likeness) connect(ctx context.Context, scratch string, k int) error {
	order := make([]int32, l.count())
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(l.digest[a][:], l.digest[b][:]) })
	for i := 1; i < len(order); i++ {
		if l.digest[order[i-1]] == l.digest[order[i]] {
			l.union(order[i-1], order[i])
		}
	}
	order = slices.DeleteFunc(order, func(i int32) bool { return !l.long[i] })
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(l.fingerprint[a], l.fingerprint[b]), cmp.Compare(b, a)) // pages of this round come before representatives of earlier rounds
	})
	// One page represents all pages with the same fingerprint. If possible, this is a page of this
	// round.
	distinct := order[:0]
	for _, i := range order {
		if n := len(distinct); n > 0 && l.fingerprint[distinct[n-1]] == l.fingerprint[i] {
			l.union(distinct[n-1], i)
			continue
		}
		distinct = append(distinct, i)
	}
	search, err := simhash.NewSearch(scratch, k)
	if err != nil {
		return err
	}
	defer search.Close()
	for _, i := range distinct {
		if err := search.Add(l.fingerprint[i], uint64(i), int(i) < l.sealed); err != nil {
			return err
		}
	}
	if err := search.Forest(ctx, func(a, b uint64) error {
		l.union(int32(a), int32(b))
		return nil
	}); err != nil {
		return err
	}
	l.total, l.current = make([]int32, l.count()), make([]int32, l.count())
	for i := range int32(l.count()) {
		root := l.find(i)
		l.total[root]++
		if int(i) >= l.sealed {
			l.current[root]++
		}
	}
	return nil
}

// isClustered reports whether a page's component has a page of this round and at least one other
// page.
func (l *likeness) isClustered(page int) bool {
	root := l.find(int32(page))
	return l.current[root] > 0 && l.total[root] > 1
}

// areAlike reports whether two pages are similar. Similar pages have equal digests, or
// fingerprints that differ in at most k bits.
func (l *likeness) areAlike(a, b int32, k int) bool {
	return l.digest[a] == l.digest[b] || l.long[a] && l.long[b] && l.distance(a, b) <= k
}

func (l *likeness) distance(a, b int32) int {
	return bits.OnesCount64(l.fingerprint[a] ^ l.fingerprint[b])
}
