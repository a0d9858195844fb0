package entry

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/planner/source"
)

// MaxNames bounds the memory for the names of files, in bytes.
const MaxNames = 64 << 20

// Names holds the names of the files of all sources by their first entries, so that records need
// no names. Once the names take MaxNames, the name of its source stands for a file.
type Names struct {
	Round string // crawl and round of the plan, such as 2026-11.0
	files []name
	bytes int
	last  string // file of the last entry, as the source names it
}

// name is the name of the file whose entries begin at a place.
type name struct {
	first Seq
	text  string
}

// Note notes the file of an entry. Entries come in the order of their places.
func (f *Names) Note(s Seq, e *source.Entry, from source.Source) {
	n := len(f.files)
	same := n > 0 && f.files[n-1].first.Source() == s.Source()
	if !e.Listed || same && e.File == f.last {
		return
	}
	f.last = e.File
	text := Excerpt(e.File)
	if f.bytes >= MaxNames {
		text = Excerpt(from.Name())
	}
	if same && text == f.files[n-1].text {
		return
	}
	f.bytes += len(text) + 32 // the size of an element
	f.files = append(f.files, name{s, text})
}

// of returns the name of the file of an entry.
func (f *Names) of(s Seq) string {
	i, found := slices.BinarySearchFunc(f.files, s, func(n name, s Seq) int { return cmp.Compare(n.first, s) })
	if !found {
		i--
	}
	return f.files[i].text
}

// Listing returns the listings of a URL in earlier plans and in this plan.
func (f *Names) Listing(u *Record) (l schema.Listing) {
	o := UnpackOrigins(u)
	if o.Known != nil {
		l = *o.Known
	}
	if !u.Listed {
		return l
	}
	l.ListedLastSource, l.ListedLastAt, l.ListedLastRound = f.of(o.Last.Seq), o.Last.text(), f.Round
	if l.ListedFirstRound != "" {
		return l
	}
	l.ListedFirstSource, l.ListedFirstAt, l.ListedFirstRound = l.ListedLastSource, l.ListedLastAt, f.Round
	if o.First != o.Last {
		l.ListedFirstSource, l.ListedFirstAt = f.of(o.First.Seq), o.First.text()
	}
	return l
}

// Place is the place of an entry in the sources.
type Place struct {
	Seq  Seq
	Line int64
	Key  string // key of the row in a database; "" for entries of files
}

// text returns the place of an entry in its file or table.
func (p Place) text() string {
	if p.Key != "" {
		return p.Key
	}
	return strconv.FormatInt(p.Line, 10)
}

// Origins says where sources list a URL.
type Origins struct {
	Known       *schema.Listing // listings in earlier rounds; nil if no earlier round listed the URL
	First, Last Place           // first and last entry in the sources of this plan, if the record is Listed
}

// PackOrigins returns the text that, with Seq and Line of its record, stands for Origins. The text is
// empty for most records: those of URLs that one line of a file lists, and no earlier plan.
func PackOrigins(r *Record, o Origins) string {
	simple := !r.Listed || o.First == o.Last && o.First.Seq == r.Seq && o.First.Key == ""
	if simple && o.Known == nil {
		return ""
	}
	var l schema.Listing
	if o.Known != nil {
		l = *o.Known
	}
	b := make([]byte, 0, 128)
	for _, text := range []string{
		l.ListedFirstSource, l.ListedFirstAt, l.ListedFirstRound, l.ListedLastSource, l.ListedLastAt, l.ListedLastRound,
	} {
		b = append(append(b, text...), 0)
	}
	b = append(strconv.AppendInt(b, int64(o.First.Seq), 36), 0)
	b = append(append(b, o.First.Key...), 0)
	b = append(strconv.AppendInt(b, int64(o.Last.Seq), 36), 0)
	b = append(strconv.AppendInt(b, o.Last.Line, 36), 0)
	return string(append(b, o.Last.Key...))
}

// UnpackOrigins returns the Origins of a record.
func UnpackOrigins(r *Record) (o Origins) {
	if r.Origins == "" {
		if r.Listed {
			o.First = Place{Seq: r.Seq, Line: r.Line}
			o.Last = o.First
		}
		return o
	}
	rest := r.Origins
	text := func() (field string) {
		field, rest, _ = strings.Cut(rest, "\x00")
		return field
	}
	number := func() int64 {
		n, _ := strconv.ParseInt(text(), 36, 64) // PackOrigins wrote it
		return n
	}
	known := schema.Listing{
		ListedFirstSource: text(), ListedFirstAt: text(), ListedFirstRound: text(),
		ListedLastSource: text(), ListedLastAt: text(), ListedLastRound: text(),
	}
	if known != (schema.Listing{}) {
		o.Known = &known
	}
	o.First = Place{Seq(number()), r.Line, text()}
	o.Last = Place{Seq(number()), number(), text()}
	return o
}
