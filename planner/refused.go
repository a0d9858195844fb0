package planner

import (
	"cmp"
	"errors"
	"iter"
	"strings"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// If a line is not a URL, the planner keeps at most maxText bytes of the line.
const maxText = 1024

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

// excerpt returns the beginning of a text in a form for storage: valid UTF-8 of bounded length,
// without NULs and without the credentials of a URL.
func excerpt(s string) string {
	s = urlkey.WithoutCredentials(s)
	if len(s) > maxText {
		cut := maxText
		for cut > maxText-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	return strings.ReplaceAll(s, "\x00", "\ufffd")
}

// refusal is a row of refused.parquet and the place of its entry.
type refusal struct {
	schema.Refused
	Hash uint64 // hash of the domain
	Seq  seq
}

// compareRefusals compares refusals by domain hash, then by SURT, URL and place. The order of
// hashes is also the order of buckets.
func compareRefusals(a, b *refusal) int {
	return cmp.Or(cmp.Compare(a.Hash, b.Hash), strings.Compare(a.SURT, b.SURT), strings.Compare(a.URL, b.URL), cmp.Compare(a.Seq, b.Seq))
}

// refusals collects and counts the refusals of one goroutine.
type refusals struct {
	rows    *table.Sorter[refusal]
	counts  map[schema.SkipReason]int64
	sources map[int]int64 // number of refusals by the index of the source

	takenDown int64 // number of entries that were taken down, of which no row says anything
}

func newRefusals(s *sorters[refusal], memory int64) (*refusals, error) {
	rows, err := s.sorter(memory)
	return &refusals{rows: rows, counts: map[schema.SkipReason]int64{}, sources: map[int]int64{}}, err
}

// addText adds the refusal of an entry that is not a URL.
func (r *refusals) addText(e *source.Entry, s seq, reason schema.SkipReason, detail string) error {
	return r.add(refusal{schema.Refused{URL: excerpt(e.URL), Reason: reason, Detail: detail, Source: excerpt(e.File), Line: e.Line, Depth: e.Depth}, 0, s})
}

// addURL adds the refusal of a URL and sets the URL's keys in the row.
func (r *refusals) addURL(k urlkey.Key, s seq, row schema.Refused) error {
	row.URL, row.SURT, row.Domain = k.URL, k.SURT, k.Domain
	return r.add(refusal{row, urlkey.Hash(k.Domain), s})
}

func (r *refusals) add(row refusal) error {
	r.counts[row.Reason]++
	r.sources[row.Seq.source()]++
	return r.rows.Add(&row)
}

// refusedRows yields the rows of refused.parquet in the order of buckets, so that a task of a bucket
// reads few row groups.
func refusedRows(refused iter.Seq2[refusal, error], buckets int) iter.Seq2[schema.Refused, error] {
	return func(yield func(schema.Refused, error) bool) {
		for r, err := range refused {
			r.Bucket = int32(urlkey.BucketOf(r.Hash, buckets))
			if !yield(r.Refused, err) {
				return
			}
		}
	}
}
