package entry

import (
	"context"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/planner/source"
)

// named is a source without entries.
type named string

func (n named) Name() string                                         { return string(n) }
func (named) Entries(context.Context) iter.Seq2[source.Entry, error] { return nil }

func TestNamesOfManyFilesTakeBoundedMemory(t *testing.T) {
	names := &Names{bytes: MaxNames - 40}
	from := named("s3://b/lists/")
	for i, file := range []string{"s3://b/lists/1", "s3://b/lists/1", "s3://b/lists/2", "s3://b/lists/3", "s3://b/lists/4"} {
		names.Note(NewSeq(0, int64(i)), &source.Entry{File: file, Listed: true}, from)
	}
	names.Note(NewSeq(1, 0), &source.Entry{File: "other", Listed: true}, named("others"))
	var got []string
	for i := range 5 {
		got = append(got, names.of(NewSeq(0, int64(i))))
	}
	got = append(got, names.of(NewSeq(1, 5)))
	want := []string{"s3://b/lists/1", "s3://b/lists/1", "s3://b/lists/", "s3://b/lists/", "s3://b/lists/", "others"}
	if d := cmp.Diff(want, got); d != "" || len(names.files) != 3 {
		t.Errorf("%d names (-want +got):\n%s", len(names.files), d)
	}
}

// Records hold the origins of a URL as one text, which is empty for a URL that one line lists.
func TestOriginsArePackedAndUnpacked(t *testing.T) {
	once, later, row := Place{NewSeq(1, 7), 9, ""}, Place{NewSeq(3, 1<<47), 1 << 40, ""}, Place{NewSeq(2, 0), 0, "17,é"}
	for _, c := range []struct {
		o      Origins
		listed bool
		short  bool
	}{
		{Origins{}, false, true},
		{Origins{First: once, Last: once}, true, true},
		{Origins{First: once, Last: later}, true, false},
		{Origins{First: row, Last: row}, true, false},
		{Origins{First: later, Last: row}, true, false}, // an entry for another form of the URL came first
		{Origins{Known: &schema.Listing{ListedFirstSource: "a", ListedFirstAt: "1", ListedFirstRound: "2026-11.0"}}, false, false},
		{Origins{Known: &schema.Listing{ListedFirstRound: "r", ListedLastSource: "b", ListedLastAt: "k,é", ListedLastRound: "s"}, First: once, Last: once}, true, false},
	} {
		r := Record{Seq: once.Seq, Listed: c.listed, Line: c.o.First.Line}
		r.Origins = PackOrigins(&r, c.o)
		if got := UnpackOrigins(&r); !cmp.Equal(c.o, got, cmp.AllowUnexported(Origins{}, Place{})) || c.short != (r.Origins == "") {
			t.Errorf("%+v: packed as %q, unpacked as %+v", c.o, r.Origins, got)
		}
	}
}
