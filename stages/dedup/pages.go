package dedup

import (
	"context"
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"iter"
	"math"
	"sort"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// row holds the columns that dedup reads of a page of this round. The file representatives has the
// same columns.
type row = schema.Representative

// source is a file of pages. Pages with text are numbered in the order of the file, from first to
// end - 1.
type source struct {
	key    string
	sealed bool
	crawl  string
	round  int
	age    int // number of the round among all rounds; 0 is the oldest
	bucket int // bucket of the pages; unused for sealed rounds
	first  uint32
	end    uint32
}

// rows yields the pages of the source that have text, in order.
func (s *source) rows(ctx context.Context, b store.Bucket) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for r, err := range table.Concat[row](ctx, b, []string{s.key}) {
			if err != nil {
				yield(row{}, fmt.Errorf("read pages: %w", err))
				return
			}
			if r.TextDigest == "" { // pages without text have no duplicates
				continue
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// digest is the SHA-1 of a normalised text.
type digest [sha1.Size]byte

// digestText is the length of a digest in base 32, in characters.
const digestText = 32

// Flags of a page.
const (
	long      = 1 << iota // the page's text has enough words to be compared by fingerprint
	elsewhere             // the page's canonical_url names another page
)

// pages holds the fixed-width columns of every page with text. Sealed representatives
// have the lowest numbers, the oldest first.
type pages struct {
	sources     []source
	fingerprint []uint64
	digest      []digest
	urlLength   []uint32 // length of the URL in bytes
	flags       []uint8
	sealed      uint32 // pages below this number are sealed representatives
}

// maxPages bounds the number of pages.
const maxPages = math.MaxInt32

// load reads the pages of all sources. Pages of sealed rounds come first.
func load(ctx context.Context, b store.Bucket, sources []source, cfg Config) (*pages, error) {
	p := &pages{sources: sources}
	for i := range sources {
		s := &sources[i]
		s.first = p.count()
		for r, err := range s.rows(ctx, b) {
			if err != nil {
				return nil, err
			}
			if err := p.add(&r, cfg); err != nil {
				return nil, err
			}
		}
		s.end = p.count()
		if s.sealed {
			p.sealed = s.end
		}
	}
	return p, nil
}

func (p *pages) count() uint32 { return uint32(len(p.fingerprint)) }

func (p *pages) add(r *row, cfg Config) error {
	if len(p.fingerprint) == maxPages {
		return fmt.Errorf("more than %d pages and sealed representatives: %w", maxPages, stages.ErrPermanent)
	}
	var d digest
	if n, err := base32.StdEncoding.Decode(d[:], []byte(r.TextDigest[:min(len(r.TextDigest), digestText)])); err != nil ||
		n != len(d) || len(r.TextDigest) != digestText {
		return fmt.Errorf("page %q: text digest %q is no SHA-1 in base 32: %w", r.URL, r.TextDigest, stages.ErrPermanent)
	}
	var flags uint8
	if int(r.WordCount) >= cfg.MinWords {
		flags |= long
	}
	if r.CanonicalURL != "" && r.CanonicalURL != r.URL {
		flags |= elsewhere
	}
	p.fingerprint = append(p.fingerprint, uint64(r.SimHash))
	p.digest = append(p.digest, d)
	p.urlLength = append(p.urlLength, uint32(len(r.URL)))
	p.flags = append(p.flags, flags)
	return nil
}

// source returns the source that contains page i.
func (p *pages) source(i uint32) *source {
	return &p.sources[sort.Search(len(p.sources), func(s int) bool { return p.sources[s].end > i })]
}
