package planner

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/source/secret"
)

// maxFileNames bounds the memory for the names of files, in bytes.
const maxFileNames = 64 << 20

// fileNames holds the names of the files of all sources by their first entries, so that records need
// no names. Once the names take maxFileNames, the name of its source stands for a file.
type fileNames struct {
	round string // crawl and round of the plan, such as 2026-11.0
	hide  bool   // hide the secrets that plans before format 10 stored in the names of sources
	files []fileName
	bytes int
	last  string // file of the last entry, as the source names it
}

// fileName is the name of the file whose entries begin at a place.
type fileName struct {
	first seq
	name  string
}

// note notes the file of an entry. Entries come in the order of their places.
func (f *fileNames) note(s seq, e *source.Entry, from source.Source) {
	n := len(f.files)
	same := n > 0 && f.files[n-1].first.source() == s.source()
	if !e.Listed || same && e.File == f.last {
		return
	}
	f.last = e.File
	f.append(s, excerpt(e.File), from.Name())
}

// append adds the name of the file of an entry, unless it is the last one.
func (f *fileNames) append(s seq, name, source string) {
	if f.bytes >= maxFileNames {
		name = excerpt(source)
	}
	if n := len(f.files); n > 0 && f.files[n-1].first.source() == s.source() && name == f.files[n-1].name {
		return
	}
	f.bytes += len(name) + 32 // the size of an element
	f.files = append(f.files, fileName{s, name})
}

// of returns the name of the file of an entry.
func (f *fileNames) of(s seq) string {
	i, found := slices.BinarySearchFunc(f.files, s, func(n fileName, s seq) int { return cmp.Compare(n.first, s) })
	if !found {
		i--
	}
	return f.files[i].name
}

// listing returns the listings of a URL in earlier plans and in this plan.
func (f *fileNames) listing(u *record) (l schema.Listing) {
	o := unpackOrigins(u)
	if o.known != nil {
		l = *o.known
	}
	if f.hide {
		l.ListedFirstSource, l.ListedLastSource = secret.HideInName(l.ListedFirstSource), secret.HideInName(l.ListedLastSource)
	}
	if !u.Listed {
		return l
	}
	l.ListedLastSource, l.ListedLastAt, l.ListedLastRound = f.of(o.last.seq), o.last.text(), f.round
	if l.ListedFirstRound != "" {
		return l
	}
	l.ListedFirstSource, l.ListedFirstAt, l.ListedFirstRound = l.ListedLastSource, l.ListedLastAt, f.round
	if o.first != o.last {
		l.ListedFirstSource, l.ListedFirstAt = f.of(o.first.seq), o.first.text()
	}
	return l
}

// place is the place of an entry in the sources.
type place struct {
	seq  seq
	line int64
	key  string // key of the row in a database; "" for entries of files
}

// text returns the place of an entry in its file or table.
func (p place) text() string {
	if p.key != "" {
		return p.key
	}
	return strconv.FormatInt(p.line, 10)
}

// origins says where sources list a URL.
type origins struct {
	known       *schema.Listing // listings in earlier rounds; nil if no earlier round listed the URL
	first, last place           // first and last entry in the sources of this plan, if the record is Listed
}

// packOrigins returns the text that, with Seq and Line of its record, stands for origins. The text is
// empty for most records: those of URLs that one line of a file lists, and no earlier plan.
func packOrigins(r *record, o origins) string {
	simple := !r.Listed || o.first == o.last && o.first.seq == r.Seq && o.first.key == ""
	if simple && o.known == nil {
		return ""
	}
	var l schema.Listing
	if o.known != nil {
		l = *o.known
	}
	number := func(n int64) string { return strconv.FormatInt(n, 36) }
	return strings.Join([]string{
		l.ListedFirstSource, l.ListedFirstAt, l.ListedFirstRound, l.ListedLastSource, l.ListedLastAt, l.ListedLastRound,
		number(int64(o.first.seq)), o.first.key, number(int64(o.last.seq)), number(o.last.line), o.last.key,
	}, "\x00")
}

func unpackOrigins(r *record) (o origins) {
	if r.Origins == "" {
		if r.Listed {
			o.first = place{seq: r.Seq, line: r.Line}
			o.last = o.first
		}
		return o
	}
	rest := r.Origins
	text := func() (field string) {
		field, rest, _ = strings.Cut(rest, "\x00")
		return field
	}
	number := func() int64 {
		n, _ := strconv.ParseInt(text(), 36, 64) // packOrigins wrote it
		return n
	}
	known := schema.Listing{
		ListedFirstSource: text(), ListedFirstAt: text(), ListedFirstRound: text(),
		ListedLastSource: text(), ListedLastAt: text(), ListedLastRound: text(),
	}
	if known != (schema.Listing{}) {
		o.known = &known
	}
	o.first = place{seq(number()), r.Line, text()}
	o.last = place{seq(number()), number(), text()}
	return o
}
