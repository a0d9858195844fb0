package topics

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
)

// MaxTopics is the largest number of topics of a page.
const MaxTopics = 15

// pageRow holds the columns of merge's pages that count.
type pageRow struct {
	URL      string   `parquet:"url"`
	Language string   `parquet:"language,optional"`
	Terms    []string `parquet:"terms,list"`
	Counts   []int32  `parquet:"term_counts,list"`
}

// A Scorer chooses the topics of a partition's pages, in the order of merge's pages. It reads ahead:
// it collects the terms of as many pages as its memory allows, reads terms once, and scores these pages.
type Scorer struct {
	terms  iter.Seq2[schema.Term, error] // reads terms from the beginning
	rows   *table.Cursor[pageRow]
	memory int64
	ready  []scored
}

// scored is a page with its topics.
type scored struct {
	url    string
	topics []string
}

// NewScorer returns a scorer for the pages in merge's files with the given keys. terms lists the keys of all
// parts of terms. The caller closes the scorer.
func NewScorer(ctx context.Context, b store.Bucket, pages, terms []string) *Scorer {
	return &Scorer{
		terms:  table.Concat[schema.Term](ctx, b, terms),
		rows:   table.Pull(table.Concat[pageRow](ctx, b, pages)),
		memory: 2 * memory,
	}
}

// Close ends the reading.
func (s *Scorer) Close() error { return s.rows.Close() }

// Topics returns the topics of the next page. ok is false if url is not the URL of this page.
func (s *Scorer) Topics(url string) (topics []string, ok bool, err error) {
	if len(s.ready) == 0 {
		if err := s.fill(); err != nil {
			return nil, false, err
		}
	}
	if len(s.ready) == 0 || s.ready[0].url != url {
		return nil, false, nil
	}
	next := s.ready[0]
	s.ready = s.ready[1:]
	return next.topics, true, nil
}

// batch is the pages that are scored together.
type batch struct {
	terms dictionary // the terms of the pages, each after its language and a zero byte
	idf   []int64    // idf of each term in millionths; 0 if the term does not count
	pages []batchPage
	key   []byte
}

type batchPage struct {
	url      string
	language int     // length of the language in the texts of terms
	terms    []int32 // numbers of the page's terms
	counts   []int32
}

// fill scores the next pages.
func (s *Scorer) fill() error {
	var b batch
	for held := int64(0); held < s.memory; {
		row, err := s.rows.Next()
		if err != nil {
			return fmt.Errorf("read pages: %w", err)
		}
		if row == nil {
			break
		}
		held += b.add(row)
	}
	if err := b.weigh(s.terms); err != nil {
		return err
	}
	s.ready = s.ready[:0]
	for i := range b.pages {
		s.ready = append(s.ready, scored{b.pages[i].url, b.topics(&b.pages[i])})
	}
	return nil
}

// add adds a page and returns its estimated memory in bytes.
func (b *batch) add(row *pageRow) (held int64) {
	language := schema.TermLanguage(row.Language)
	n := min(len(row.Terms), len(row.Counts))
	page := batchPage{url: strings.Clone(row.URL), language: len(language), terms: make([]int32, n), counts: slices.Clone(row.Counts[:n])}
	for i, term := range row.Terms[:n] {
		number, added := b.terms.number(b.keyOf(language, term))
		if added {
			held += int64(len(b.key)) + entryBytes
		}
		page.terms[i] = number
	}
	b.pages = append(b.pages, page)
	return held + int64(len(page.url)) + 8*int64(n) + 100 + MaxTopics*16
}

// keyOf returns the text of a term in b.terms.
func (b *batch) keyOf(language, term string) []byte {
	b.key = append(append(append(b.key[:0], language...), 0), term...)
	return b.key
}

// weigh reads the frequencies of the batch's terms.
func (b *batch) weigh(rows iter.Seq2[schema.Term, error]) error {
	b.idf = make([]int64, len(b.terms.ends))
	for row, err := range rows {
		if err != nil {
			return fmt.Errorf("read terms: %w", err)
		}
		if number := b.terms.known(b.keyOf(row.Language, row.Term)); number >= 0 {
			b.idf[number] = microIDF(row.Sampled, row.Pages)
		}
	}
	return nil
}

// topics returns the terms of a page with the highest scores.
func (b *batch) topics(p *batchPage) []string {
	type candidate struct {
		score int64
		at    int
	}
	var best []candidate
	for i, number := range p.terms {
		if idf := b.idf[number]; idf > 0 {
			best = append(best, candidate{idf * int64(p.counts[i]), i})
		}
	}
	slices.SortFunc(best, func(x, y candidate) int { return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.at, y.at)) })
	best = best[:min(len(best), MaxTopics)]
	topics := make([]string, len(best))
	for i, c := range best {
		topics[i] = string(b.terms.text(p.terms[c.at])[p.language+1:])
	}
	return topics
}
