package topics

import (
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

// entryBytes is the estimated memory of an entry of a map, besides its text.
const entryBytes = 72

// Counter counts the pages of a partition by term, language and level.
type Counter struct {
	counts  bool // whether the plan's rounds have terms
	buckets int
	sample  sample
	memory  int64
	held    int64             // estimated memory of pages, in bytes
	pages   map[string]*int64 // pointers, so that counting a known term copies no key
	total   map[group]int64
	spilled *table.Sorter[schema.TermPages]
	spills  bool // whether spilled has rows
	key     []byte
}

// group is the pages of a language and level.
type group struct {
	language string
	level    int32
}

// NewCounter returns a counter for a partition of a plan. The counter spills to the directory dir, and
// uses at most sortMemory bytes to sort. The caller closes it.
func NewCounter(p *manifest.Plan, dir string, sortMemory int64) (*Counter, error) {
	spilled, err := table.NewSorter(dir, schema.CompareTermPages, sortMemory)
	if err != nil {
		return nil, err
	}
	return &Counter{
		counts: In(p), buckets: max(p.Buckets, 1), sample: sampleOf(p.URLs, maxSampled), memory: memory,
		pages: map[string]*int64{}, total: map[group]int64{}, spilled: spilled,
	}, nil
}

// Close removes the counter's files.
func (c *Counter) Close() error { return c.spilled.Close() }

// Add counts a page, if the plan's rounds have terms. A URL must not be added twice.
func (c *Counter) Add(p *schema.WorkingPage) error {
	level, ok := c.sample.level(p.URL)
	if !ok || !c.counts {
		return nil
	}
	language := schema.TermLanguage(p.Language)
	g := group{language, level}
	if _, ok := c.total[g]; !ok {
		g.language = strings.Clone(language)
	}
	c.total[g]++
	c.key = append(append(c.key[:0], language...), 0, byte(level))
	prefix := len(c.key)
	for _, term := range p.Terms {
		c.key = append(c.key[:prefix], term...)
		n := c.pages[string(c.key)]
		if n == nil {
			n = new(int64)
			c.pages[string(c.key)] = n
			c.held += int64(len(c.key)) + entryBytes
		}
		*n++
	}
	if c.held < c.memory {
		return nil
	}
	return c.spill(c.rows)
}

// rows yields the rows of the counts in memory, in any order.
func (c *Counter) rows(yield func(schema.TermPages) bool) {
	for key, n := range c.pages {
		language, rest, _ := strings.Cut(key, "\x00")
		row := schema.TermPages{Language: language, Level: int32(rest[0]), Term: rest[1:], Pages: *n}
		row.Bucket = int32(urlkey.Bucket(row.Term, c.buckets))
		if !yield(row) {
			return
		}
	}
}

// totals yields the rows with the numbers of all pages.
func (c *Counter) totals(yield func(schema.TermPages) bool) {
	for g, n := range c.total {
		for bucket := range c.buckets {
			if !yield(schema.TermPages{Bucket: int32(bucket), Language: g.language, Level: g.level, Pages: n}) {
				return
			}
		}
	}
}

// spill moves the counts of terms to the sorter. The order of equal rows does not matter, because they
// are added up.
func (c *Counter) spill(rows ...iter.Seq[schema.TermPages]) error {
	for _, rows := range rows {
		for row := range rows {
			if err := c.spilled.Add(&row); err != nil {
				return err
			}
		}
	}
	clear(c.pages)
	c.held, c.spills = 0, true
	return nil
}

// Rows returns the rows of the partition's run. The section of each bucket has the numbers of all pages.
// Nothing may be added afterwards.
func (c *Counter) Rows(ctx context.Context) iter.Seq2[schema.TermPages, error] {
	if !c.spills { // the counts of most partitions fit in memory, so the sorter would only copy them
		rows := slices.AppendSeq(slices.Collect(c.rows), c.totals)
		slices.SortFunc(rows, func(a, b schema.TermPages) int { return schema.CompareTermPages(&a, &b) })
		return func(yield func(schema.TermPages, error) bool) {
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
	if err := c.spill(c.rows, c.totals); err != nil {
		return func(yield func(schema.TermPages, error) bool) { yield(schema.TermPages{}, err) }
	}
	return summed(c.spilled.Sorted(ctx))
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
			if sum.Pages > 0 && schema.CompareTermPages(&sum, &row) == 0 {
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
