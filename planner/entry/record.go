// Package entry holds the entries of a plan's sources, as the planner sorts and stores them.
//
// The input is entries of package source. The output is records and refusals in scratch files, and lists of
// records by domain. A record is small and needs no names of files: Names keeps them once, by the places of the
// entries. The order of records and refusals does not depend on the order in which they were added.
//
// Package entry imports formats packages, and the packages pack, slowest, source and spool.
package entry

import (
	"cmp"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// Seq is the place of an entry among all entries: the number of its source, then the place in this
// source.
type Seq uint64

// NewSeq returns the place with number n in a source.
func NewSeq(source int, n int64) Seq { return Seq(source)<<48 | Seq(n)&(1<<48-1) }

// Source returns the number of the source.
func (s Seq) Source() int { return int(s >> 48) }

// MaxSources is the largest number of sources that a Seq can distinguish.
const MaxSources = 1 << 16

// Record is a canonical URL in the planner, with its row of the partition file and the fields for
// decisions. Records are sorted by domain hash, then by URL, then by place. The URLs of a domain
// are therefore adjacent, and a URL's first entry comes first.
type Record struct {
	schema.PlannedURL // SURT is empty until the record is written to a file
	Hash              uint64
	Seq               Seq
	Due               bool
	Renamed           bool  // earlier rounds have another form of the URL, which is due
	RenamedPlanned    int32 // newest round that planned the other form, as source.Entry.Planned
	Planned           int32
	Spent             bool
	History           bool
	NewHost           bool // no earlier round has requested the host; only known with budgets by host
	FetchedAt         int64

	// Listed reports whether a source of the user lists the URL. Line is the line of the first entry that
	// lists it. Origins holds what few records need of their Listing, as PackOrigins packs it: there are
	// many records, so they are small. Names makes the Listing when the plan's files are written.
	Listed  bool
	Line    int64
	Origins string
}

// Records encodes records in scratch files.
var Records = table.MustCodec[Record]()

// New returns the record of an entry with the canonical URL k.
func New(k urlkey.Key, e *source.Entry, spellings schema.Spellings, s Seq) Record {
	r := Record{
		PlannedURL: schema.PlannedURL{
			URL: k.URL, Host: k.Host, Domain: k.Domain, Priority: min(max(e.Priority, 0), 1000), Depth: max(e.Depth, 0), Fetches: e.Fetches,
			ContentDigest: e.ContentDigest, ETag: e.ETag, LastModified: e.LastModified,
			ContentAt: e.Content.At, WARCFilename: e.Content.Filename, WARCRecordOff: e.Content.Offset, WARCRecordLen: e.Content.Length,
			Spellings: spellings, PlannedFor: e.DueReason,
		},
		Hash: urlkey.Hash(k.Domain), Seq: s, Due: e.Due, Spent: e.Spent,
		History: e.History, FetchedAt: e.FetchedAt, Planned: e.Planned,
	}
	o := Origins{Known: e.Listing}
	if e.Listed {
		r.Listed, r.Line = true, e.Line
		o.First = Place{s, e.Line, Excerpt(e.Key)}
		o.Last = o.First
	}
	r.Origins = PackOrigins(&r, o)
	return r
}

// Compare compares records by domain, URL and place.
func Compare(a, b *Record) int {
	if a.Hash != b.Hash {
		return cmp.Compare(a.Hash, b.Hash)
	}
	return cmp.Or(strings.Compare(a.URL, b.URL), cmp.Compare(a.Seq, b.Seq))
}
