// Package sitemap reads XML sitemaps and sitemap indexes (sitemaps.org 0.9), plain
// text sitemaps, and the entries of RSS and Atom feeds.
//
// In: bytes as a server sends them, gzipped or not, in any charset, well-formed or
// not. Out: entries, one at a time, in the order of the file. It promises to read
// at most Limits of decoded bytes and entries, in time and memory that are linear in
// them, and to give what can be made out of a broken file: what comes before the
// break, elements in a wrong namespace, text in place of loc.
//
// References are given as they stand, trimmed and with entities resolved; whoever
// reads them makes them absolute and canonical. It imports no other package of this
// project.
package sitemap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
)

// Limits of sitemaps.org: a sitemap has at most 50,000 entries and 50 MB (52,428,800 bytes)
// uncompressed.
const (
	MaxEntries = 50_000
	MaxBytes   = 50 << 20
	// MaxLoc is the longest reference that is kept, bytes.
	MaxLoc = 8 << 10
)

// ErrUnknown: the bytes are neither a sitemap nor a feed.
var ErrUnknown = errors.New("neither a sitemap nor a feed")

// Kind is what a file turned out to be.
type Kind string

// The kinds.
const (
	URLSet Kind = "urlset"       // a sitemap
	Index  Kind = "sitemapindex" // a list of sitemaps
	RSS    Kind = "rss"          // RSS 0.9 to 2.0, RDF included
	Atom   Kind = "feed"
	Text   Kind = "text" // a URL a line
)

// Entry is a URL that a sitemap or a feed lists. Its memory is the reader's: what is
// kept beyond the call must be copied; strings may be kept.
type Entry struct {
	Loc        string
	LastMod    int64   // milliseconds UTC; 0: not said, or not a date
	Priority   float64 // 0 to 1; -1: not said, or no number
	ChangeFreq string  // lower case: daily, weekly …; "": not said
	Title      string  // of feed entries and news
	Alternates []Alternate
	Images     []string
	Videos     []string // pages and files of videos: player_loc, content_loc
}

// Alternate is another language's version of an entry (xhtml:link).
type Alternate struct {
	Lang string
	Href string
}

// Limits bounds a read. The zero value means MaxEntries and MaxBytes.
type Limits struct {
	Entries int
	Bytes   int64
}

// Summary says what was read.
type Summary struct {
	Kind    Kind
	Entries int
	Cut     bool   // a limit ended the read
	Title   string // of a feed
	Lang    string // of a feed, as it says
	Updated int64  // of a feed, milliseconds UTC
}

// Read gives the entries of r to each, until it returns false. It returns an
// error that wraps ErrUnknown if r is something else, and r's own error if it
// fails; entries that came before have been given then.
func Read(r io.Reader, lim Limits, each func(*Entry) bool) (Summary, error) {
	if lim.Entries <= 0 {
		lim.Entries = MaxEntries
	}
	if lim.Bytes <= 0 {
		lim.Bytes = MaxBytes
	}
	br := bufio.NewReaderSize(r, 4096)
	if magic, _ := br.Peek(2); len(magic) == 2 && magic[0] == 0x1F && magic[1] == 0x8B {
		gz, err := gzip.NewReader(br)
		if err != nil {
			return Summary{}, fmt.Errorf("gzip: %w", err)
		}
		br = bufio.NewReaderSize(gz, 4096)
	}
	counted := &limited{r: br, left: lim.Bytes}
	br = bufio.NewReaderSize(counted, 4096)
	head, err := br.Peek(1024)
	if len(head) == 0 {
		if err != nil && err != io.EOF {
			return Summary{}, err
		}
		return Summary{}, fmt.Errorf("empty file: %w", ErrUnknown)
	}
	decoded := decode(br, head)
	var s Summary
	if looksLikeText(head) {
		s, err = readText(decoded, lim.Entries, each)
	} else {
		s, err = readXML(decoded, lim.Entries, each)
	}
	s.Cut = s.Cut || counted.cut
	return s, err
}

// limited is a reader that ends early, and says so.
type limited struct {
	r    io.Reader
	left int64
	cut  bool
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		l.cut = true
		return 0, io.EOF
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.r.Read(p)
	l.left -= int64(n)
	if err != nil && err != io.EOF && !isTruncation(err) {
		return n, err
	}
	if err != nil && err != io.EOF { // a gzip file cut short: what came counts
		l.cut, err = true, io.EOF
	}
	return n, err
}

func isTruncation(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader)
}

// decode turns what the byte order mark or the XML declaration names into UTF-8.
func decode(r io.Reader, head []byte) io.Reader {
	label := "utf-8"
	switch {
	case bytes.HasPrefix(head, []byte{0xFE, 0xFF}) || bytes.HasPrefix(head, []byte{0, '<'}):
		label = "utf-16be"
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}) || bytes.HasPrefix(head, []byte{'<', 0}):
		label = "utf-16le"
	default:
		if l := declared(head); l != "" && !strings.HasPrefix(strings.ToLower(l), "utf-16") {
			label = l
		}
	}
	e, name := charset.Lookup(label)
	if e == nil || name == "utf-8" {
		return r
	}
	return e.NewDecoder().Reader(r)
}

// declared is the encoding of an XML declaration, "" if there is none.
func declared(head []byte) string {
	i := bytes.Index(head, []byte("<?xml"))
	if i < 0 {
		return ""
	}
	decl := head[i:]
	if j := bytes.Index(decl, []byte("?>")); j >= 0 {
		decl = decl[:j]
	}
	_, rest, ok := bytes.Cut(decl, []byte("encoding"))
	if !ok {
		return ""
	}
	rest = bytes.TrimLeft(rest, " \t\r\n=")
	if len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return ""
	}
	label, _, ok := bytes.Cut(rest[1:], rest[:1])
	if !ok {
		return ""
	}
	return string(label)
}

var bom = []byte("\xEF\xBB\xBF")

// looksLikeText: the first line is a URL.
func looksLikeText(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, bom), " \t\r\n\x00")
	return bytes.HasPrefix(head, []byte("http://")) || bytes.HasPrefix(head, []byte("https://"))
}

// readText reads a URL a line; other lines are passed over.
func readText(r io.Reader, max int, each func(*Entry) bool) (Summary, error) {
	s := Summary{Kind: Text}
	br := bufio.NewReaderSize(r, MaxLoc+2)
	for {
		line, err := br.ReadSlice('\n')
		for long := err == bufio.ErrBufferFull; long; long = err == bufio.ErrBufferFull {
			line = nil
			_, err = br.ReadSlice('\n')
		}
		line = bytes.TrimSpace(bytes.TrimPrefix(line, bom))
		if bytes.HasPrefix(line, []byte("http://")) || bytes.HasPrefix(line, []byte("https://")) {
			if s.Entries >= max {
				s.Cut = true
				return s, nil
			}
			s.Entries++
			if !each(&Entry{Loc: clean(line), Priority: -1}) {
				return s, nil
			}
		}
		if err == io.EOF {
			return s, nil
		}
		if err != nil {
			return s, err
		}
	}
}
