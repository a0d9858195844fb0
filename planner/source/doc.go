// Package source reads the URLs that a plan starts from: text files, Parquet
// files, what earlier rounds left in the frontier, and WARC files of others.
//
// In: files of the user, standard input, or objects of a store. Out: a
// stream of entries, in the same order each time, with the place that each came
// from. What an entry says is not judged here: whether it is a URL, in scope or
// known is the planner's to find out, so that every refusal is counted and listed
// in one way.
//
// It promises memory bounded whatever the input holds (lines without end, gzip
// bombs, damaged Parquet), and errors that name the file, the place and what to
// do. It imports formats packages only.
package source

import (
	"context"
	"errors"
	"iter"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// MaxURL is how much of an entry is kept, in octets: one more than the longest text
// that package urlkey reads, so that what was cut is refused as too long.
const MaxURL = 64<<10 + 1

// Why a source cannot be planned. All of them are the user's to mend.
var (
	// ErrMissing: no file has that name, or no file matches that pattern.
	ErrMissing = errors.New("no such source: give a file, a directory, a pattern such as 'urls-*.txt', or - for standard input")
	// ErrNoWARC: the store of WARC files has none of that name.
	ErrNoWARC = errors.New("no such WARC file: are the names those of files in this store?")
	// ErrEmpty: the source holds no entry.
	ErrEmpty = errors.New("the source is empty: it should hold one URL a line, or Parquet rows with a column url")
	// ErrUnreadable: the source is damaged, or in no format that is known.
	ErrUnreadable = errors.New("the source cannot be read: it should be text (plain or gzip, UTF-8), or Parquet with a text column url")
)

// Entry is a URL as a source has it.
type Entry struct {
	URL  string // as written; at most MaxURL octets of it
	File string // the file that holds it; "frontier" for what the store knows
	Line int64  // line or row of the file, from 1; 0 where there is none

	// Broken says why there is nothing behind the URL; "": there is. Then URL may be
	// any text, for people to read.
	Broken string

	Due      bool  // to be planned
	Spent    bool  // planned in this crawl already: it has used up budget
	Listed   bool  // named by a source of the user
	Priority int32 // 0 to 1000, higher is sooner
	Depth    int32 // links from the nearest listed URL

	// Spellings are those known of it, beside that of URL.
	Spellings schema.Spellings

	// What an earlier fetch knows of it.
	Fetches       int32
	ContentDigest string
	ETag          string
	LastModified  string
	Content       Content
}

// Content is where the content lies that ContentDigest is of. Its zero value: that
// is not known.
type Content struct {
	At             int64 // when it was captured, in milliseconds
	Filename       string
	Offset, Length int32
}

// DefaultPriority is the priority of a URL that a source of the user names: the
// middle of the scale.
const DefaultPriority = 500

// Source is a list of URLs. Its methods are for one goroutine.
type Source interface {
	// Name is how the user named it.
	Name() string
	// Entries yields the entries in an order that depends on the content alone. A
	// pair with an error is the last. Standard input can be read only once; every
	// other source gives the same again.
	Entries(ctx context.Context) iter.Seq2[Entry, error]
}
