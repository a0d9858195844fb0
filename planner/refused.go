package planner

import (
	"errors"
	"iter"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/source"
)

// reasonOf returns the skip reason for an error of package urlkey.
func reasonOf(err error) schema.SkipReason {
	switch {
	case errors.Is(err, urlkey.ErrScheme):
		return schema.SkipScheme
	case errors.Is(err, urlkey.ErrTooLong):
		return schema.SkipTooLong
	case errors.Is(err, urlkey.ErrRewrite):
		return schema.SkipFiltered
	}
	return schema.SkipNotURL
}

// detailOf returns the detail of a refusal. This is the part of the error's text that the skip
// reason does not tell.
func detailOf(err error) string {
	for _, known := range []error{urlkey.ErrHost, urlkey.ErrRewrite} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return ""
}

// refusals collects and counts the refusals of one goroutine.
type refusals struct {
	rows    *table.Sorter[entry.Refusal]
	counts  map[schema.SkipReason]int64
	sources map[int]int64 // number of refusals by the index of the source

	takenDown int64 // number of entries that were taken down, of which no row says anything
}

func newRefusals(s *sorters[entry.Refusal], memory int64) (*refusals, error) {
	rows, err := s.sorter(memory)
	return &refusals{rows: rows, counts: map[schema.SkipReason]int64{}, sources: map[int]int64{}}, err
}

// addText adds the refusal of an entry that is not a URL.
func (r *refusals) addText(e *source.Entry, s entry.Seq, reason schema.SkipReason, detail string) error {
	return r.add(entry.Refusal{Refused: schema.Refused{URL: entry.Excerpt(e.URL), Reason: reason, Detail: detail, Source: entry.Excerpt(e.File), Line: e.Line, Depth: e.Depth}, Seq: s})
}

// addURL adds the refusal of a URL and sets the URL's keys in the row. It needs no SURT.
func (r *refusals) addURL(k urlkey.Key, s entry.Seq, row schema.Refused) (err error) {
	if row.SURT, err = urlkey.SURT(k.URL); err != nil {
		return err
	}
	row.URL, row.Domain = k.URL, k.Domain
	return r.add(entry.Refusal{Refused: row, Hash: urlkey.Hash(k.Domain), Seq: s})
}

func (r *refusals) add(row entry.Refusal) error {
	r.counts[row.Reason]++
	r.sources[row.Seq.Source()]++
	return r.rows.Add(&row)
}

// refusedRows yields the rows of refused.parquet in the order of buckets, so that a task of a bucket
// reads few row groups.
func refusedRows(refused iter.Seq2[entry.Refusal, error], buckets int) iter.Seq2[schema.Refused, error] {
	return func(yield func(schema.Refused, error) bool) {
		for r, err := range refused {
			r.Bucket = int32(urlkey.BucketOf(r.Hash, buckets))
			if !yield(r.Refused, err) {
				return
			}
		}
	}
}
