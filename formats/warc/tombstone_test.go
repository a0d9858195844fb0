package warc_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	stdgzip "compress/gzip"

	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/formats/warc/warciotest"
)

const tombstoneID = "urn:uuid:8f2c1f80-9d4e-4b57-a7d0-0f5b7d0c1a2b"

// shortest is the length of the shortest tombstone, in bytes.
const shortest = 203

func tombstone(t testing.TB, length int64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := warc.WriteTombstone(&b, tombstoneID, testDate, length); err != nil {
		t.Fatalf("%d bytes: %v", length, err)
	}
	return b.Bytes()
}

// checkTombstone reads a tombstone with our reader and with the standard library's gzip.
func checkTombstone(t testing.TB, member []byte, length int64) {
	t.Helper()
	if int64(len(member)) != length {
		t.Fatalf("the tombstone for %d bytes has %d", length, len(member))
	}
	e, err := warc.ReadAt(bytes.NewReader(member), warc.Extent{Length: length}, warc.ReaderOptions{Check: true})
	if err != nil {
		t.Fatalf("%d bytes: %v", length, err)
	}
	s, err := e.Finish()
	if err != nil || s.Length != length || len(s.Problems) > 0 {
		t.Fatalf("%d bytes: %v, extent %v, problems %q", length, err, s.Extent, s.Problems)
	}
	if date, err := e.Date(); !e.Tombstone() || e.Type != warc.Metadata || e.ID() != tombstoneID || e.TargetURI() != "" || err != nil || !date.Equal(testDate.Truncate(time.Millisecond)) {
		t.Fatalf("%d bytes: the record is a %s with header %v", length, e.Type, e.Header)
	}
	in := bytes.NewReader(member)
	z, err := stdgzip.NewReader(in)
	if err != nil {
		t.Fatalf("%d bytes: %v", length, err)
	}
	z.Multistream(false)
	if _, err := io.Copy(io.Discard, z); err != nil || in.Len() > 0 {
		t.Fatalf("%d bytes: compress/gzip: %v, %d bytes left", length, err, in.Len())
	}
}

func TestATombstoneHasEveryLength(t *testing.T) {
	for length := int64(shortest); length < 3000; length++ {
		checkTombstone(t, tombstone(t, length), length)
	}
	for _, around := range []int64{10_200, 65_535, 65_540, 65_558, 100_200, 131_088, 1_000_300, 10 << 20} {
		for length := around - 40; length < around+40; length += 1 + around>>18 {
			checkTombstone(t, tombstone(t, length), length)
		}
	}
	for _, length := range []int64{-1, 0, 1, 17, 22, 23, shortest - 1} {
		var b bytes.Buffer
		if err := warc.WriteTombstone(&b, tombstoneID, testDate, length); !errors.Is(err, warc.ErrLength) || b.Len() > 0 {
			t.Errorf("%d bytes: %v, and %d bytes are written", length, err, b.Len())
		}
	}
	if !bytes.Equal(tombstone(t, 70_000), tombstone(t, 70_000)) {
		t.Error("two tombstones of the same record differ")
	}
}

// TestTheShortestRecordHasRoomForATombstone compares the shortest records that a Writer makes with the
// shortest tombstone.
func TestTheShortestRecordHasRoomForATombstone(t *testing.T) {
	for _, kind := range []warc.Type{warc.Request, warc.Response, warc.Metadata, warc.Revisit, warc.Resource, warc.Warcinfo} {
		rec := warc.Record{Type: kind, Date: testDate, TargetURI: "http://a.b/", ID: tombstoneID}
		if kind == warc.Revisit {
			rec.Profile = "a"
		}
		var b bytes.Buffer
		if _, err := warc.NewWriter(&b).Write(&rec); err != nil {
			t.Fatal(err)
		}
		checkTombstone(t, tombstone(t, int64(b.Len())), int64(b.Len()))
	}
}

func TestATombstoneReportsAFailedWrite(t *testing.T) {
	if err := warc.WriteTombstone(noSpace{}, tombstoneID, testDate, 1000); !errors.Is(err, errNoSpace) {
		t.Errorf("got %v, want %v", err, errNoSpace)
	}
}

var errNoSpace = errors.New("no space left")

type noSpace struct{}

func (noSpace) Write([]byte) (int, error) { return 0, errNoSpace }

// revisits returns revisits of several sizes that refer to a payload elsewhere.
func revisits(t testing.TB) [][]byte {
	t.Helper()
	var members [][]byte
	for i, refers := range []string{
		"http://gone.example/", "http://kept.example/" + strings.Repeat("x", 40), "http://gone.example/" + strings.Repeat("abc/def?", 100), "http://gone.example/" + longPath(60_000),
	} {
		for _, id := range []string{"", tombstoneID} {
			var b bytes.Buffer
			rec := &warc.Record{
				Type: warc.Revisit, Date: testDate, TargetURI: "http://kept.example/" + strings.Repeat("x", 40), Profile: warc.ProfileIdenticalPayload,
				Block:    [][]byte{[]byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX: " + strings.Repeat("y", i*100) + "\r\n\r\n")},
				RefersTo: id, RefersToURI: refers, RefersToDate: testDate.Add(-time.Hour), Truncated: warc.TruncatedLength, PayloadDigest: "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
			}
			if _, err := warc.NewWriter(&b).Write(rec); err != nil {
				t.Fatal(err)
			}
			members = append(members, b.Bytes())
		}
	}
	return members
}

// longPath returns a path that compresses badly.
func longPath(n int) string {
	var b strings.Builder
	for i := uint32(1); b.Len() < n; i++ {
		fmt.Fprintf(&b, "%08x", i*2654435761)
	}
	return b.String()
}

func TestARevisitKeepsItsLengthWithoutItsReference(t *testing.T) {
	for i, member := range revisits(t) {
		checkRewritten(t, fmt.Sprintf("revisit %d of %d bytes", i, len(member)), member)
	}
}

// checkRewritten rewrites a revisit, and compares the records before and after.
func checkRewritten(t testing.TB, name string, member []byte) {
	t.Helper()
	read := func(member []byte) (*warc.Entry, []byte, warc.Summary) {
		e, err := warc.ReadAt(bytes.NewReader(member), warc.Extent{Length: int64(len(member))}, warc.ReaderOptions{Check: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		block, err := io.ReadAll(e)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s, err := e.Finish()
		if err != nil || s.Length != int64(len(member)) || len(s.Problems) > 0 || s.Block == warc.Differs {
			t.Fatalf("%s: %v, extent %v, block %s, problems %q", name, err, s.Extent, s.Block, s.Problems)
		}
		return e, block, s
	}
	got, err := warc.RewriteRevisit(member)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(got) != len(member) {
		t.Fatalf("%s: it has %d bytes afterwards", name, len(got))
	}
	before, block, _ := read(member)
	after, same, _ := read(got)
	if !bytes.Equal(block, same) || !after.Header.PayloadRemoved() || after.Tombstone() {
		t.Errorf("%s: header %v, block %q", name, after.Header, same)
	}
	for _, f := range []string{warc.FieldRefersTo, warc.FieldRefersToURI, warc.FieldRefersToDate} {
		if v := after.Header.Get(f); v != "" {
			t.Errorf("%s: it keeps %s: %s", name, f, v)
		}
	}
	for _, f := range []string{warc.FieldRecordID, warc.FieldTargetURI, warc.FieldDate, warc.FieldPayloadDigest, warc.FieldProfile} {
		if after.Header.Get(f) != before.Header.Get(f) {
			t.Errorf("%s: %s was %q and is %q", name, f, before.Header.Get(f), after.Header.Get(f))
		}
	}
	if again, err := warc.RewriteRevisit(got); err != nil || !bytes.Equal(again, got) {
		t.Errorf("%s: rewritten again, it changes: %v", name, err)
	}
	if z, err := stdgzip.NewReader(bytes.NewReader(got)); err != nil {
		t.Errorf("%s: compress/gzip: %v", name, err)
	} else if _, err := io.Copy(io.Discard, z); err != nil {
		t.Errorf("%s: compress/gzip: %v", name, err)
	}
}

func TestOnlyARevisitIsRewritten(t *testing.T) {
	var b bytes.Buffer
	if _, err := warc.NewWriter(&b).Write(&warc.Record{Type: warc.Request, Date: testDate, TargetURI: "http://a.example/"}); err != nil {
		t.Fatal(err)
	}
	whole := revisits(t)[0]
	for name, member := range map[string][]byte{
		"nothing": nil, "noise": []byte("noise"), "a request": b.Bytes(), "two members": append(bytes.Clone(whole), whole...), "half a member": whole[:len(whole)/2],
	} {
		if _, err := warc.RewriteRevisit(member); err == nil {
			t.Errorf("%s is rewritten", name)
		}
	}
}

func FuzzTombstone(f *testing.F) {
	f.Add(int64(shortest), int64(0))
	f.Add(int64(70_000), int64(1e12))
	f.Fuzz(func(t *testing.T, length, at int64) {
		date := time.UnixMilli(at % 1e14)
		if year := date.UTC().Year(); length > 1<<20 || year < 1 || year > 9999 {
			return
		}
		var b bytes.Buffer
		err := warc.WriteTombstone(&b, tombstoneID, date, length)
		if length < shortest {
			if !errors.Is(err, warc.ErrLength) {
				t.Fatalf("%d bytes: %v", length, err)
			}
			return
		}
		e, err2 := warc.ReadAt(bytes.NewReader(b.Bytes()), warc.Extent{Length: length}, warc.ReaderOptions{Check: true})
		if err != nil || err2 != nil {
			t.Fatalf("%d bytes: %v, %v", length, err, err2)
		}
		if s, err := e.Finish(); err != nil || s.Length != length || len(s.Problems) > 0 || !e.Tombstone() {
			t.Fatalf("%d bytes: %v, %+v", length, err, s)
		}
	})
}

// FuzzRewriteRevisit rewrites arbitrary members. What is rewritten keeps its length and is readable.
func FuzzRewriteRevisit(f *testing.F) {
	for _, member := range revisits(f) {
		f.Add(member)
	}
	f.Fuzz(func(t *testing.T, member []byte) {
		got, err := warc.RewriteRevisit(member)
		if err != nil {
			return
		}
		if len(got) != len(member) {
			t.Fatalf("%d bytes became %d", len(member), len(got))
		}
		e, err := warc.ReadAt(bytes.NewReader(got), warc.Extent{Length: int64(len(got))}, warc.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := e.Finish(); err != nil || s.Length != int64(len(got)) || !e.Header.PayloadRemoved() || e.Header.Get(warc.FieldRefersToURI) != "" {
			t.Fatalf("%v, %+v, %v", err, s, e.Header)
		}
	})
}

// TestWarcioReadsTombstones reads a file of which a takedown removed every third record with warcio.
func TestWarcioReadsTombstones(t *testing.T) {
	warciotest.Need(t)
	var file bytes.Buffer
	w := warc.NewWriter(&file)
	var extents []warc.Extent
	removed := map[int]bool{}
	for i := range 60 {
		body := []byte(longPath(1 << uint(i%20)))
		rec := &warc.Record{Type: warc.Response, Date: testDate, TargetURI: fmt.Sprintf("http://a.example/%d", i),
			Block: [][]byte{[]byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"), body}, PayloadDigest: warc.DigestOf(body)}
		e, err := w.Write(rec)
		if err != nil {
			t.Fatal(err)
		}
		extents = append(extents, e)
		removed[i] = i%3 == 0
	}
	content := file.Bytes()
	for i, e := range extents {
		if removed[i] {
			copy(content[e.Offset:], tombstone(t, e.Length))
		}
	}
	for _, member := range revisits(t) {
		rewritten, err := warc.RewriteRevisit(member)
		if err != nil {
			t.Fatal(err)
		}
		extents = append(extents, warc.Extent{Offset: int64(len(content)), Length: int64(len(rewritten))})
		content = append(content, rewritten...)
	}
	path := filepath.Join(t.TempDir(), "removed.warc.gz")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	wholes, alones := warciotest.Read(t, warciotest.File{File: path, Extents: extents})
	whole, alone := wholes[path], alones[path]
	if len(whole) != len(extents) || len(alone) != len(extents) {
		t.Fatalf("warcio read %d records from the whole file and %d by their extents, want %d", len(whole), len(alone), len(extents))
	}
	for i, r := range alone {
		switch want := fmt.Sprintf("http://a.example/%d", i); {
		case removed[i]:
			if r.Type != "metadata" || r.URI != "" || r.ID != "<"+tombstoneID+">" {
				t.Errorf("record %d is %+v, want a tombstone", i, r)
			}
		case i < 60 && (r.URI != want || r.Block != "ok" || r.Payload != "ok"):
			t.Errorf("record %d is %+v, want that of %s", i, r, want)
		case i >= 60 && (r.Type != "revisit" || r.Block != "ok"):
			t.Errorf("record %d is %+v, want a revisit", i, r)
		}
		if whole[i].ID != r.ID || whole[i].Offset != r.Offset {
			t.Errorf("record %d is %+v in the whole file and %+v alone", i, whole[i], r)
		}
	}
}
