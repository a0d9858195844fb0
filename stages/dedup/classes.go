package dedup

import (
	"context"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// sortMemory is the memory of each sorter, in bytes. Tests lower it. At most four sorters hold rows
// at a time.
var sortMemory int64 = 48 << 20

// digest is the SHA-1 of a normalised text.
type digest struct{ A, B, C uint64 }

// digestText is the length of a digest in base 32, in characters.
const digestText = 32

// digestOf decodes the digest of a text.
func digestOf(s string) (d digest, err error) {
	var sum [sha1.Size + 4]byte
	n, err := base32.StdEncoding.Decode(sum[:], []byte(s[:min(len(s), digestText)]))
	if err != nil || n != sha1.Size || len(s) != digestText {
		return d, fmt.Errorf("text digest %q is not a SHA-1 in base 32: %w", s, stages.ErrPermanent)
	}
	return digest{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:]), binary.BigEndian.Uint64(sum[16:])}, nil
}

// text is what the first sort knows about the text of a page.
type text struct {
	digest
	Fingerprint uint64
	Page        uint64
	Long        bool // the text has enough words to be compared by fingerprint
}

// textKey sorts pages by digest. Equal digests mean equal texts and thus equal fingerprints. A
// damaged file may break this rule; the fingerprint is compared too, so that the order is still fixed.
func textKey(k table.Key, t *text) table.Key {
	return k.Uint(t.A).Uint(t.B).Uint(t.C).Uint(t.Fingerprint).Uint(t.Page)
}

// longText is a page with a long text.
type longText struct {
	Fingerprint uint64
	Page        uint64
}

// longKey sorts pages by fingerprint. Among equal fingerprints, higher page numbers come first, so
// pages of this round come before sealed representatives.
func longKey(k table.Key, t *longText) table.Key { return k.Uint(t.Fingerprint).Uint(^t.Page) }

// grouping groups the pages of all sources by text.
type grouping struct {
	texts *table.Sorter[text]
	long  *table.Sorter[longText]

	pages  int64 // number of pages with text, sealed representatives included
	sealed int64 // number of sealed representatives
}

// newGrouping prepares the sorters. It opens no scratch files, so there is nothing to close after an
// error.
func newGrouping(scratch string) (g *grouping, err error) {
	g = &grouping{}
	if g.texts, err = table.NewSorter(scratch, textKey, sortMemory); err != nil {
		return nil, err
	}
	g.long, err = table.NewSorter(scratch, longKey, sortMemory)
	return g, err
}

// close removes the scratch files. Later calls do nothing.
func (g *grouping) close() {
	closeSorter(&g.texts)
	closeSorter(&g.long)
}

// closeSorter closes a sorter, if there is one, and frees its memory. It ignores errors, because the
// scratch directory is removed later.
func closeSorter[T any](s **table.Sorter[T]) {
	if *s != nil {
		_ = (*s).Close()
		*s = nil
	}
}

// load reads digest, fingerprint and length of the texts of all sources, and keeps those texts whose
// digests are in the shard own.
func (g *grouping) load(ctx context.Context, b store.Bucket, sources []source, minWords int, own shard) error {
	for i := range sources {
		s := &sources[i]
		page := s.first
		for r, err := range table.Concat[textRow](ctx, b, []string{s.key}) {
			if err != nil {
				return fmt.Errorf("read pages: %w", err)
			}
			if r.TextDigest == "" {
				continue
			}
			t := text{Fingerprint: uint64(r.SimHash), Page: page, Long: int(r.WordCount) >= minWords}
			if t.digest, err = digestOf(r.TextDigest); err != nil {
				return fmt.Errorf("row %d with text of %q: %w", page-s.first, s.key, err)
			}
			if page++; page == s.end() {
				return fmt.Errorf("%q has more than 2^32 rows: %w", s.key, stages.ErrPermanent)
			}
			if !own.has(t.digest) {
				continue
			}
			if err := g.texts.Add(&t); err != nil {
				return err
			}
			if g.pages++; s.sealed {
				g.sealed++
			}
		}
	}
	return nil
}

// split divides the pages into long and short ones. It keeps the long pages in g.long. If several short
// pages have the same digest, they form a class, and split calls exact with each of these pages, in
// order. Class numbers count the distinct digests from 1, so the numbers of such classes have gaps.
// All pages with the same digest get the fingerprint and the length of the first of them.
func (g *grouping) split(ctx context.Context, exact func(class uint64, t *text) error) error {
	var first text
	class, size := uint64(0), 0 // number of the current class, and number of its pages so far
	for t, err := range g.texts.Sorted(ctx) {
		if err != nil {
			return err
		}
		if size == 0 || t.digest != first.digest {
			first, size = t, 0
			class++
		}
		size++
		switch {
		case first.Long:
			err = g.long.Add(&longText{first.Fingerprint, t.Page})
		case size > 1:
			if size == 2 {
				err = exact(class, &first)
			}
			t.Fingerprint = first.Fingerprint
			err = errors.Join(err, exact(class, &t))
		}
		if err != nil {
			return err
		}
	}
	closeSorter(&g.texts)
	return nil
}

// addFingerprints gives the distinct fingerprints of long pages, which come sorted, to a search. It
// returns their number. A fingerprint that only sealed representatives have is marked as old, because
// the search reports no pair of two old fingerprints.
func addFingerprints(long iter.Seq2[longText, error], search *simhash.Search) (count uint64, err error) {
	var last uint64
	for t, err := range long {
		if err != nil {
			return 0, err
		}
		if count > 0 && t.Fingerprint == last {
			continue
		}
		if err := search.Add(t.Fingerprint, count, t.Page < thisRound); err != nil {
			return 0, err
		}
		last = t.Fingerprint
		count++
	}
	return count, nil
}
