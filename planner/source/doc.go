// Package source reads the URLs with which a plan starts: text, CSV, JSON lines and Parquet in
// files or buckets, and the frontier of earlier rounds.
//
// The input is files of the user, standard input, or objects of a store. The output is a stream of
// entries with their places, in the same order each time. A source does not check whether an entry
// is a URL, whether the URL is in scope, or whether earlier rounds know it. The planner does these
// checks, so refusals from all sources are counted and listed in the same way. A source only takes the
// URL out of its line or field, and refuses one that a parser of URLs would turn into another URL
// (package urltext). Open turns a name on the command line into a source.
//
// Package source promises bounded memory for any input, such as endless lines, decompression bombs
// and damaged Parquet. It takes 8 MiB for a record, 8 MiB for reading a bucket, 128 MiB for the
// window of zstd, and a page of each column that it reads. Malformed records are entries with a
// reason. Errors name the file and the place, and say what to do. Package source imports formats
// packages only.
package source

import (
	"context"
	"errors"
	"iter"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/planner/source/listed"
)

// MaxURL is the largest number of bytes of an entry that a source keeps. It exceeds the limit of
// package urlkey, so package urlkey refuses a text that was cut at MaxURL.
const MaxURL = 64<<10 + 1

// These errors say why a source cannot be planned. The user can correct the cause of each error. The
// causes of ErrUnavailable and ErrChanged may also pass by themselves.
var (
	// ErrMissing means that no file has the given name or matches the given pattern.
	ErrMissing = errors.New("no such source: give a file, a directory, a pattern such as 'urls-*.txt', or s3://bucket/key")
	// ErrNoWARC means that the store has no WARC file with a given name.
	ErrNoWARC = errors.New("no such WARC file: are the names those of files in this store?")
	// ErrEmpty means that the source holds no entry.
	ErrEmpty = errors.New("the source is empty: it should hold one URL per line, or records with a column url")
	// ErrNoMatch means that no record of the source meets its condition. A plan from other sources can
	// do without it.
	ErrNoMatch = errors.New("no record meets the condition")
	// ErrUnreadable means that the source is damaged or has an unknown format.
	ErrUnreadable = errors.New("the source cannot be read: it should be text, CSV or JSON lines (plain, gzip or zstd, UTF-8), or Parquet")
	// ErrUnavailable means that the place of the source does not answer. The same plan may succeed
	// later.
	ErrUnavailable = errors.New("the source does not answer: check its address, or plan again later")
	// ErrChanged means that somebody changed the source while it was read.
	ErrChanged = errors.New("the source changed while it was read: plan again when nobody writes to it")
)

// Entry is a URL in a source.
type Entry struct {
	URL  string // text of the URL as written, with octets escaped that are not UTF-8; at most MaxURL bytes
	File string // name of the file with the entry, or "frontier" for URLs that the store knows
	Line int64  // number of the line, row or record in the file, from 1; 0 for URLs that the store knows
	Key  string // key of the row in a database; "" for other sources

	// Broken says why the record of the URL cannot be read, or is "" for a readable record. If
	// Broken is set, URL is only for display and may not be a URL.
	Broken string

	Due      bool  // the plan should include the URL
	Spent    bool  // the URL was planned in an earlier round of this crawl, and counts in the budgets
	Planned  int32 // number of the newest known round that planned the URL, from 1 for the oldest; 0 for none
	Listed   bool  // the URL comes from the user, not from the frontier
	Priority int32 // priority from 0 to 1000; a higher priority comes first
	Depth    int32 // number of links from the nearest listed URL

	// Form is the form in which an earlier round asked for the URL, or a link named it. URL itself is the form of a listed
	// entry.
	Form schema.Form

	// History is true if the entry only adds the history of the URL from earlier rounds. The entry
	// then counts only if another entry names the URL. Its priority and depth do not count.
	History bool

	// DueReason says why a known URL is due; empty if it is due at once.
	DueReason schema.DueReason

	// Listing says which sources listed the URL in earlier rounds; nil if none did.
	Listing *schema.Listing

	// Fetches and the fields below are results of an earlier fetch.
	Fetches       int32
	FetchedAt     schema.Time // time of the last fetch; 0 if there was none
	ContentDigest string
	ETag          string
	LastModified  string
	Content       Content
}

// Content is the place in the store of the content whose digest is ContentDigest. The zero Content
// means that the place is unknown.
type Content struct {
	At             schema.Time // time of the capture
	Filename       string
	Offset, Length int32

	// PayloadFilename, PayloadOffset and PayloadLength are the place of the payload, if the capture is a revisit in an
	// external archive.
	PayloadFilename              string
	PayloadOffset, PayloadLength int32
}

// DefaultPriority is the priority of a URL that comes from the user, not from the frontier. It is
// the middle of the scale.
const DefaultPriority = 500

// Known is a source of URLs that earlier rounds know. The planner reads it after all other sources.
type Known interface {
	Source
	// Tell makes Entries also yield the history of listed URLs that are not due. These entries have
	// the mark History. Some of these entries may belong to URLs that no source lists.
	Tell(about *listed.Set)
}

// Source is a list of URLs. Only one goroutine may use a Source.
type Source interface {
	// Name returns the name of the source as the user gave it.
	Name() string
	// Entries yields the entries of the source. The order depends only on the content of the
	// source. An error ends the sequence. Standard input can be read only once. All other sources
	// yield the same entries each time.
	Entries(ctx context.Context) iter.Seq2[Entry, error]
}
