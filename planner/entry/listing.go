package entry

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/s2"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/source/secret"
)

// MaxNames bounds the memory for the names of files, in bytes.
const MaxNames = 64 << 20

// Names holds the names of the files of all sources by their first entries, so that records need
// no names. Once the names take MaxNames, the name of its source stands for a file.
type Names struct {
	Round string // crawl and round of the plan, such as 2026-11.0
	Hide  bool   // hide the secrets that plans before format 10 stored in the names of sources
	Files []Name
	bytes int
	last  string // file of the last entry, as the source names it
}

// Name is the name of the file whose entries begin at a place.
type Name struct {
	First Seq
	Text  string
}

// Note notes the file of an entry. Entries come in the order of their places.
func (f *Names) Note(s Seq, e *source.Entry, from source.Source) {
	n := len(f.Files)
	same := n > 0 && f.Files[n-1].First.Source() == s.Source()
	if !e.Listed || same && e.File == f.last {
		return
	}
	f.last = e.File
	f.Append(s, Excerpt(e.File), from.Name())
}

// Append adds the name of the file of an entry, unless it is the last one.
func (f *Names) Append(s Seq, name, source string) {
	if f.bytes >= MaxNames {
		name = Excerpt(source)
	}
	if n := len(f.Files); n > 0 && f.Files[n-1].First.Source() == s.Source() && name == f.Files[n-1].Text {
		return
	}
	f.bytes += len(name) + 32 // the size of an element
	f.Files = append(f.Files, Name{s, name})
}

// of returns the name of the file of an entry.
func (f *Names) of(s Seq) string {
	i, found := slices.BinarySearchFunc(f.Files, s, func(n Name, s Seq) int { return cmp.Compare(n.First, s) })
	if !found {
		i--
	}
	return f.Files[i].Text
}

// Listing returns the listings of a URL in earlier plans and in this plan.
func (f *Names) Listing(u *Record) (l schema.Listing) {
	o := UnpackOrigins(u)
	if o.Known != nil {
		l = *o.Known
	}
	if f.Hide {
		l.ListedFirstSource, l.ListedLastSource = secret.HideInName(l.ListedFirstSource), secret.HideInName(l.ListedLastSource)
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
	number := func(n int64) string { return strconv.FormatInt(n, 36) }
	return strings.Join([]string{
		l.ListedFirstSource, l.ListedFirstAt, l.ListedFirstRound, l.ListedLastSource, l.ListedLastAt, l.ListedLastRound,
		number(int64(o.First.Seq)), o.First.Key, number(int64(o.Last.Seq)), number(o.Last.Line), o.Last.Key,
	}, "\x00")
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

// Pack returns the names, compressed: for each, the place of its first entry, its length, and itself.
func (f *Names) Pack() []byte {
	var b []byte
	for _, n := range f.Files {
		b = binary.AppendUvarint(b, uint64(n.First))
		b = binary.AppendUvarint(b, uint64(len(n.Text)))
		b = append(b, n.Text...)
	}
	return s2.Encode(nil, b)
}

// Unpack sets the names from what Pack returned.
func (f *Names) Unpack(packed []byte) error {
	b, err := s2.Decode(nil, packed)
	for err == nil && len(b) > 0 {
		first, n := binary.Uvarint(b)
		size, k := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || k <= 0 || size > uint64(len(b)-n-k) {
			return fmt.Errorf("names of files: %w", table.ErrScratch)
		}
		f.Files = append(f.Files, Name{Seq(first), string(b[n+k:][:size])})
		b = b[n+k+int(size):]
	}
	return err
}
