// Package sitemap reads sitemaps, sitemap indexes and feeds, however malformed they are. The
// formats are sitemaps.org 0.9 with Google's extensions (news, image, video, hreflang, PageMap),
// plain text sitemaps, RSS 0.9 to 2.0, RSS 1.0 (RDF), Atom 0.3 and 1.0 (RFC 4287), and JSON Feed
// 1.1.
//
// The input is a file as a server sends it, perhaps gzipped (even twice), in any charset. The
// output is entries, one at a time, in the order of the file. Read reads no more decoded bytes and
// entries than Limits allows, in linear time and bounded memory. It tolerates these faults:
//
//   - a file that ends early, and junk before the XML, such as a warning of PHP;
//   - elements in a wrong namespace or none, under any prefix, in any letter case; entries of a
//     sitemap in an index, and entries of an index in a sitemap;
//   - an & that begins no entity, and the entities of HTML. Entities that the document defines are
//     not resolved, so they cannot expand;
//   - a URL directly in the element url, without loc;
//   - octets of a wrong charset. They are percent-encoded in references, and read as windows-1252 in
//     texts;
//   - in a text file, notes after a URL (see package urltext), and lines that end with CR alone.
//
// References are trimmed and their entities resolved. A reference with a line end, a tab or another
// character inside that a parser of URLs would remove is not kept, because it may be two URLs or a part of
// one. The caller makes references absolute and canonical, and decides which hosts they may name. Of this
// project, the package imports package urltext only.
package sitemap

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"crawlbatch.io/crawlbatch/formats/urltext"
)

// MaxEntries and MaxBytes are the limits of sitemaps.org: 50,000 entries and 50 MB (52,428,800
// bytes) uncompressed.
const (
	MaxEntries = 50_000
	MaxBytes   = 50 << 20
	// MaxLoc is the length of the longest reference that is kept, in bytes.
	MaxLoc = 8 << 10
	// MaxSummary is the length of the longest summary of a feed entry, in bytes. The reader cuts
	// longer summaries.
	MaxSummary = 4 << 10
)

// ErrUnknown means that the bytes are neither a sitemap nor a feed.
var ErrUnknown = errors.New("neither a sitemap nor a feed")

// Kind is the kind of a sitemap or feed.
type Kind string

// The kinds of sitemaps and feeds.
const (
	URLSet Kind = "urlset"       // sitemap
	Index  Kind = "sitemapindex" // list of sitemaps
	RSS    Kind = "rss"          // RSS 0.9 to 2.0, RDF included
	Atom   Kind = "feed"
	JSON   Kind = "json" // JSON Feed
	Text   Kind = "text" // text file with one URL per line
)

// Entry is a URL that a sitemap or a feed lists. The caller of Read may keep the strings of an Entry
// but not the slices.
type Entry struct {
	Loc        string
	Sitemap    bool      // the entry is in a sitemap index, and Loc is another sitemap
	LastMod    time.Time // modification date, or else publication date; zero if unknown
	Priority   float64   // priority from 0 to 1; -1 if it is missing or malformed
	ChangeFreq string    // frequency of changes, such as daily; "" if missing or unknown
	Title      string    // title of a feed entry or a news entry
	Summary    string    // summary of a feed entry, or else its content, as plain text of at most MaxSummary bytes
	Base       string    // base URL of a feed entry's references (xml:base), relative to the file's URL; at most MaxLoc bytes
	Comments   string    // URL of the page with the comments on a feed entry
	Alternates []Alternate
	Images     []Ref
	Videos     []Ref // pages (player_loc) and files (content_loc) of videos
	Enclosures []Ref // files attached to a feed entry
}

// Ref is a reference with the title or caption of its target.
type Ref struct{ Loc, Text string }

// Alternate is a version of an entry's page in another language (xhtml:link).
type Alternate struct {
	Lang string
	Href string
}

// FeedLink is a link of the feed itself: to the site (alternate), to the feed (self), to its next page
// (next, RFC 5005) or to its hub (hub).
type FeedLink struct {
	Rel  string // relation of the link, in lower case
	Href string
	Base string // base URL of Href, as in Entry.Base
}

// Limits bounds a read. A zero field means MaxEntries or MaxBytes.
type Limits struct {
	Entries int
	Bytes   int64
	// Charset is the charset from the Content-Type. A byte order mark or an XML declaration
	// overrides Charset.
	Charset string
}

// Summary describes the file that was read.
type Summary struct {
	Kind        Kind
	Entries     int
	Skipped     int    // entries and lines that are not in Entries: without a reference, or with one that is malformed or longer than MaxLoc
	Cut         bool   // a part of the file was not read, because of a limit or a fault
	Charset     string // name of the charset in the Encoding Standard
	Title       string // title of a feed; only feeds have a Title and the fields below
	Description string
	Author      string
	Lang        string    // language as the feed names it
	Updated     time.Time // time of the feed's last update; zero if unknown
	Links       []FeedLink
}

// headLen is the number of bytes in which Read detects the kind of a file.
const headLen = 4096

// Read calls each with one entry of r after the other, until a call returns false. The error wraps
// ErrUnknown if r is neither a sitemap nor a feed. If r returns an error, Read returns this error
// after the entries before it.
func Read(r io.Reader, lim Limits, each func(*Entry) bool) (Summary, error) {
	lim.Entries, lim.Bytes = cmp.Or(lim.Entries, MaxEntries), cmp.Or(lim.Bytes, MaxBytes)
	in, err := open(r, lim)
	if err != nil {
		return Summary{}, err
	}
	head, err := in.Peek(headLen)
	if len(head) == 0 {
		if err != nil && err != io.EOF {
			return Summary{}, err
		}
		return Summary{}, fmt.Errorf("empty file: %w", ErrUnknown)
	}
	var s Summary
	switch {
	case looksLikeText(head):
		s, err = readText(in.Reader, lim.Entries, each)
	case looksLikeJSON(head):
		s, err = readJSON(in.Reader, lim.Entries, each)
	default:
		s, err = readXML(in.Reader, lim.Entries, each)
	}
	s.Cut, s.Charset = s.Cut || in.cut(), in.charset
	return s, err
}

// looksLikeText reports whether the first line that is not a comment begins with a URL.
func looksLikeText(head []byte) bool {
	for {
		head = bytes.TrimLeft(head, " \t\r\n\x00")
		if len(head) == 0 || head[0] != '#' {
			return isHTTP(head)
		}
		if _, head, _ = bytes.Cut(head, []byte("\n")); head == nil {
			return false
		}
	}
}

func isHTTP(p []byte) bool {
	return bytes.HasPrefix(p, []byte("http://")) || bytes.HasPrefix(p, []byte("https://"))
}

// lineEnds reads CR as LF, because some files end their lines with CR alone.
type lineEnds struct{ io.Reader }

// Read implements io.Reader.
func (l lineEnds) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	for i, c := range p[:n] {
		if c == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// readText reads one URL per line and skips other lines.
func readText(in io.Reader, max int, each func(*Entry) bool) (Summary, error) {
	s := Summary{Kind: Text}
	br := bufio.NewReaderSize(lineEnds{in}, MaxLoc+2)
	for {
		line, err := br.ReadSlice('\n')
		long := err == bufio.ErrBufferFull
		for err == bufio.ErrBufferFull {
			line = nil
			_, err = br.ReadSlice('\n')
		}
		line = bytes.TrimSpace(line)
		if loc, why := urltext.Line(line); why == "" && isHTTP([]byte(loc)) && len(loc) <= MaxLoc {
			if s.Entries >= max {
				s.Cut = true
				return s, nil
			}
			s.Entries++
			if !each(&Entry{Loc: reference([]byte(loc)), Priority: -1}) {
				return s, nil
			}
		} else if long || len(line) > 0 && line[0] != '#' {
			s.Skipped++
		}
		if err == io.EOF {
			return s, nil
		}
		if err != nil {
			return s, err
		}
	}
}
