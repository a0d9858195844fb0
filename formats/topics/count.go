package topics

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// memory bounds the counts of a Counter and the terms of a Scorer, in bytes.
const memory = 64 << 20

// entryBytes is the estimated memory of a text in a dictionary and of a number about it, besides its bytes.
const entryBytes = 32

// Counter counts the pages of a partition by term, language and level.
type Counter struct {
	buckets int
	sample  sample
	memory  int64
	held    int64 // estimated memory of terms and pages, in bytes

	// Each text of terms is a language, a term and a level, with zero bytes between, so that the texts of a bucket have
	// the order of rows. Languages and terms have no zero bytes. An empty term stands for all pages.
	terms   dictionary
	pages   []int64 // number of pages for each text
	spilled *table.Sorter[schema.TermPages]
	spills  bool // whether spilled has rows
	key     []byte
}

// NewCounter returns a counter for a partition of a plan. The counter spills to the directory dir, and
// uses at most sortMemory bytes to sort. The caller closes it.
func NewCounter(p *manifest.Plan, dir string, sortMemory int64) (*Counter, error) {
	spilled, err := table.NewSorter(dir, schema.TermPagesKey, sortMemory)
	if err != nil {
		return nil, err
	}
	return &Counter{buckets: max(p.Buckets, 1), sample: sampleOf(p.URLs, maxSampled), memory: memory, spilled: spilled}, nil
}

// Close removes the counter's files.
func (c *Counter) Close() error { return c.spilled.Close() }

// Add counts a page. A URL must not be added twice.
func (c *Counter) Add(p *schema.WorkingPage) error {
	level, ok := c.sample.level(p.URL)
	if !ok {
		return nil
	}
	c.key = append(append(c.key[:0], schema.TermLanguage(p.Language)...), 0)
	language := len(c.key)
	c.count("", language, level)
	for _, term := range p.Terms {
		c.count(term, language, level)
	}
	if c.held < c.memory {
		return nil
	}
	return c.spill()
}

// count counts a page with a term. The language is in the first bytes of c.key.
func (c *Counter) count(term string, language int, level int32) {
	c.key = append(append(c.key[:language], term...), 0, byte(level)) // a level is at most 64
	n, added := c.terms.number(c.key)
	if added {
		c.pages = append(c.pages, 0)
		c.held += int64(len(c.key)) + entryBytes
	}
	c.pages[n]++
}

// place is the place of a text among the rows.
type place struct{ bucket, number int32 }

// places returns the places of all rows, in any order. The numbers of all pages are in each bucket.
func (c *Counter) places() []place {
	places := make([]place, 0, len(c.pages))
	for n := range int32(len(c.pages)) {
		if term := c.row(place{0, n}).Term; term != "" {
			places = append(places, place{int32(urlkey.Bucket(term, c.buckets)), n})
			continue
		}
		for bucket := range int32(c.buckets) {
			places = append(places, place{bucket, n})
		}
	}
	return places
}

// row returns the row at a place.
func (c *Counter) row(p place) schema.TermPages {
	text := string(c.terms.text(p.number))
	end := len(text) - 2
	language, term, _ := strings.Cut(text[:end], "\x00")
	return schema.TermPages{Bucket: p.bucket, Language: language, Term: term, Level: int32(text[end+1]), Pages: c.pages[p.number]}
}

// spill moves the counts to the sorter. The order of equal rows does not matter, because they are added up.
func (c *Counter) spill() error {
	for _, p := range c.places() {
		row := c.row(p)
		if err := c.spilled.Add(&row); err != nil {
			return err
		}
	}
	c.terms.clear()
	c.pages, c.held, c.spills = c.pages[:0], 0, true
	return nil
}

// Rows returns the rows of the partition's run. The section of each bucket has the numbers of all pages.
// Nothing may be added afterwards.
func (c *Counter) Rows(ctx context.Context) iter.Seq2[schema.TermPages, error] {
	if c.spills {
		if err := c.spill(); err != nil {
			return func(yield func(schema.TermPages, error) bool) { yield(schema.TermPages{}, err) }
		}
		return summed(c.spilled.Sorted(ctx))
	}
	places := c.places() // the counts of most partitions fit in memory, so the sorter would only copy them
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), bytes.Compare(c.terms.text(a.number), c.terms.text(b.number)))
	})
	return func(yield func(schema.TermPages, error) bool) {
		for _, p := range places {
			if !yield(c.row(p), nil) {
				return
			}
		}
	}
}

// summed adds up equal rows that follow each other.
func summed(rows iter.Seq2[schema.TermPages, error]) iter.Seq2[schema.TermPages, error] {
	return func(yield func(schema.TermPages, error) bool) {
		var sum schema.TermPages
		for row, err := range rows {
			if err != nil {
				yield(row, err)
				return
			}
			if sum.Pages > 0 && sum.Bucket == row.Bucket && sum.Language == row.Language && sum.Term == row.Term && sum.Level == row.Level {
				sum.Pages += row.Pages
				continue
			}
			if sum.Pages > 0 && !yield(sum, nil) {
				return
			}
			sum = row
		}
		if sum.Pages > 0 {
			yield(sum, nil)
		}
	}
}
