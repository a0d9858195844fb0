package dedup

import (
	"context"
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
)

// row holds the columns that dedup reads of a page of this round. They are the columns of the working
// file representatives.
type row = schema.Representative

// textRow holds the columns of a page that decide about its class.
type textRow struct {
	WordCount  int32  `parquet:"word_count"`
	TextDigest string `parquet:"text_digest"`
	SimHash    int64  `parquet:"simhash"`
}

// thisRound is the least number of a page of this round. Sealed representatives have lower numbers.
const thisRound = 1 << 62

// source is a file of pages. Its pages with text are numbered from first, in the order of the file.
type source struct {
	key    string
	sealed bool
	crawl  string
	round  int
	age    int // number of the round among all rounds; 0 is the oldest
	bucket int // bucket of the pages; unused for sealed rounds
	first  uint64
}

// number sets first for the source with the given index. Each source has 2^32 numbers for its pages.
func (s *source) number(index int) {
	if s.first = uint64(index) << 32; !s.sealed {
		s.first += thisRound
	}
}

// end returns the first number after those of the source's pages.
func (s *source) end() uint64 { return s.first + 1<<32 }

// rows yields the pages of the source that have text, in order.
func (s *source) rows(ctx context.Context, b store.Bucket) iter.Seq2[row, error] {
	return withText(table.Concat[row](ctx, b, []string{s.key}))
}

// withText omits pages without text, because they have no duplicates.
func withText(pages iter.Seq2[row, error]) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for r, err := range pages {
			if err != nil {
				yield(row{}, fmt.Errorf("read pages: %w", err))
				return
			}
			if r.TextDigest != "" && !yield(r, nil) {
				return
			}
		}
	}
}

// namesAnother reports whether a page declares the URL of another page as its canonical URL.
func namesAnother(r *row) bool { return r.CanonicalURL != "" && r.CanonicalURL != r.URL }
