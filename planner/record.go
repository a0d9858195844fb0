package planner

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// seq is the place of an entry among all entries: the number of its source, then the place in this
// source.
type seq uint64

func newSeq(source int, n int64) seq { return seq(source)<<48 | seq(n)&(1<<48-1) }

func (s seq) source() int { return int(s >> 48) }

// maxSources is the largest number of sources that a seq can distinguish.
const maxSources = 1 << 16

// record is a canonical URL in the planner, with its row of the partition file and the fields for
// decisions. Records are sorted by domain hash, then by URL, then by place. The URLs of a domain
// are therefore adjacent, and a URL's first entry comes first.
type record struct {
	schema.PlannedURL // SURT is empty until sortFile sets it
	Hash              uint64
	Seq               seq
	Due               bool
	Renamed           bool  // earlier rounds have another form of the URL, which is due
	RenamedPlanned    int32 // newest round that planned the other form, as source.Entry.Planned
	Planned           int32
	Spent             bool
	History           bool
	NewHost           bool // no earlier round has requested the host; only known with budgets by host
	FetchedAt         int64

	// Listed reports whether a source of the user lists the URL. Line is the line of the first entry that
	// lists it. Origins holds what few records need of their Listing, as packOrigins packs it: there are
	// many records, so they are small. fileNames makes the Listing when the plan's files are written.
	Listed  bool
	Line    int64
	Origins string
}

var recordCodec = table.MustCodec[record]()

func newRecord(k urlkey.Key, e *source.Entry, spellings schema.Spellings, s seq) record {
	r := record{
		PlannedURL: schema.PlannedURL{
			URL: k.URL, Host: k.Host, Domain: k.Domain, Priority: min(max(e.Priority, 0), 1000), Depth: max(e.Depth, 0), Fetches: e.Fetches,
			ContentDigest: e.ContentDigest, ETag: e.ETag, LastModified: e.LastModified,
			ContentAt: e.Content.At, WARCFilename: e.Content.Filename, WARCRecordOff: e.Content.Offset, WARCRecordLen: e.Content.Length,
			Spellings: spellings, PlannedFor: e.DueReason,
		},
		Hash: urlkey.Hash(k.Domain), Seq: s, Due: e.Due, Spent: e.Spent,
		History: e.History, FetchedAt: e.FetchedAt, Planned: e.Planned,
	}
	o := origins{known: e.Listing}
	if e.Listed {
		r.Listed, r.Line = true, e.Line
		o.first = place{s, e.Line, excerpt(e.Key)}
		o.last = o.first
	}
	r.Origins = packOrigins(&r, o)
	return r
}

// compareRecords compares records by domain, URL and place.
func compareRecords(a, b *record) int {
	if a.Hash != b.Hash {
		return cmp.Compare(a.Hash, b.Hash)
	}
	return cmp.Or(strings.Compare(a.URL, b.URL), cmp.Compare(a.Seq, b.Seq))
}

// sorters holds one sorter per goroutine. All sorters use the same order.
type sorters[T any] struct {
	dir     string
	compare func(a, b *T) int
	all     []*table.Sorter[T]
}

// sorter adds a sorter for one goroutine. The new sorter spills to disk when its rows take about
// memory bytes.
func (s *sorters[T]) sorter(memory int64) (*table.Sorter[T], error) {
	one, err := table.NewSorter(s.dir, s.compare, memory)
	if err == nil {
		s.all = append(s.all, one)
	}
	return one, err
}

// sorted yields the rows of all sorters in order.
func (s *sorters[T]) sorted(ctx context.Context) iter.Seq2[T, error] {
	return table.MergeSorted(ctx, s.all...)
}

func (s *sorters[T]) close() (err error) {
	for _, one := range s.all {
		err = errors.Join(err, one.Close())
	}
	return err
}
