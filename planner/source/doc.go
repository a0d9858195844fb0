// Package source reads the URLs that a plan starts from: text files, Parquet files, the frontier of
// earlier rounds, and external WARC files.
//
// In: files of the user, standard input, or objects of a store. Out: a stream of entries
// with their places, in the same order each time. The planner, not this package, decides
// whether an entry is a URL, in scope or known, so that all refusals are counted and
// listed in one way.
//
// It promises bounded memory for any input (endless lines, gzip bombs, damaged Parquet),
// and errors that name the file, the place and what to do. It imports formats packages only.
package source

import (
	"context"
	"errors"
	"iter"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// MaxURL is how many bytes of an entry are kept: one more than the longest text that
// package urlkey reads, so that a text that was cut is refused as too long.
const MaxURL = 64<<10 + 1

// Reasons why a source cannot be planned. The user can correct all of them.
var (
	// ErrMissing means that no file has the name or matches the pattern.
	ErrMissing = errors.New("no such source: give a file, a directory, a pattern such as 'urls-*.txt', or - for standard input")
	// ErrNoWARC means that the store has no WARC file with the name.
	ErrNoWARC = errors.New("no such WARC file: are the names those of files in this store?")
	// ErrEmpty means that the source holds no entry.
	ErrEmpty = errors.New("the source is empty: it should hold one URL per line, or Parquet rows with a column url")
	// ErrUnreadable means that the source is damaged or has an unknown format.
	ErrUnreadable = errors.New("the source cannot be read: it should be text (plain or gzip, UTF-8), or Parquet with a text column url")
)

// Entry is a URL as a source gives it.
type Entry struct {
	URL  string // text of the URL as written; at most MaxURL bytes
	File string // the file that holds it; "frontier" for URLs that the store knows
	Line int64  // line or row of the file, from 1; 0 where there is none

	// Broken says why the record of the URL cannot be read; "" if it can. If it is set, URL may be
	// any text, for display.
	Broken string

	Due      bool  // to be planned
	Spent    bool  // planned in an earlier round of this crawl, so it already counts in the budgets
	Listed   bool  // listed by a source of the user
	Priority int32 // 0 to 1000, higher is sooner
	Depth    int32 // links from the nearest listed URL

	// Spellings are the known spellings, except URL itself.
	Spellings schema.Spellings

	// Results of an earlier fetch.
	Fetches       int32
	ContentDigest string
	ETag          string
	LastModified  string
	Content       Content
}

// Content says where the content with ContentDigest is stored. Zero means unknown.
type Content struct {
	At             int64 // when it was captured, milliseconds
	Filename       string
	Offset, Length int32
}

// DefaultPriority is the priority of a URL that a source of the user lists: the middle of
// the scale.
const DefaultPriority = 500

// Source is a list of URLs. Only one goroutine may use it.
type Source interface {
	// Name is the name that the user gave.
	Name() string
	// Entries yields the entries in an order that depends only on the content. It stops after
	// a pair with an error. Standard input can be read once; every other source yields the
	// same entries each time.
	Entries(ctx context.Context) iter.Seq2[Entry, error]
}
