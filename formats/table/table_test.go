package table_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/scan"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
)

// wide is a row with every kind of column that row types use.
type wide struct {
	Key    int64    `parquet:"key"`
	Name   string   `parquet:"name,optional,dict"`
	Kind   kind     `parquet:"kind,dict"`
	Small  int16    `parquet:"small"`
	Medium int32    `parquet:"medium,optional"`
	At     int64    `parquet:"at,optional,timestamp(microsecond)"`
	Yes    bool     `parquet:"yes"`
	Maybe  *bool    `parquet:"maybe,optional"`
	Gap    *int64   `parquet:"gap,optional"`
	Rank   float64  `parquet:"rank"`
	Topics []string `parquet:"topics,list"`
	Counts []int32  `parquet:"counts,list"`
	Share  *float64 `parquet:"share,optional"`
}

type kind string

func wideRows() []wide {
	no, yes, zero, one, none, third := false, true, int64(0), int64(-1), 0.0, 1.0/3
	return []wide{
		{Key: 1, Name: "a", Kind: "x", Small: -3, Medium: 9, At: 1794000000000, Yes: true, Maybe: &yes, Gap: &one, Rank: 0.25, Topics: []string{"t", ""}, Counts: []int32{7, 0, -1}, Share: &third},
		{Key: 2, Maybe: &no, Gap: &zero, Topics: []string{}, Counts: []int32{}, Share: &none},
		{Key: 3, Name: "\x00\xff not UTF-8", Kind: "y"},
	}
}

// sameRows compares rows. An empty list equals nil, because list columns are not optional in
// Parquet.
func sameRows(t *testing.T, got, want []wide) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("rows differ (-want +got):\n%s", d)
	}
}

func write[T any](t testing.TB, s store.Bucket, key string, rows []T, opts ...table.WriterOption) {
	t.Helper()
	f := tabletest.Write(t, s, "test", key, rows, opts...)
	if f.Rows != int64(len(rows)) || f.Dataset != "test" || f.Key != key || len(f.SHA256) != 64 {
		t.Fatalf("Finish: %+v", f)
	}
}

func read[T any](t testing.TB, s store.Bucket, key string, opts ...table.ReaderOption) []T {
	t.Helper()
	r, err := table.Open[T](t.Context(), s, key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tabletest.Collect(r.All(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestEveryColumnTypeComesBackAsItWasWritten(t *testing.T) {
	s := newStore(t)
	write(t, s, "wide.parquet", wideRows())
	sameRows(t, read[wide](t, s, "wide.parquet"), wideRows())
}

func TestManyRowsAcrossRowGroupsComeBackInOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	s := newStore(t)
	want := captures(4_000)
	for name, opts := range map[string][]table.WriterOption{
		"default": nil, "fast": {table.Fast()}, "small groups": {table.RowGroups(777, 0)}, "by bytes": {table.RowGroups(0, 1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			key := strings.ReplaceAll(name, " ", "-") + ".parquet"
			write(t, s, key, want, opts...)
			if d := cmp.Diff(want, read[schema.Capture](t, s, key)); d != "" {
				t.Error(d[:min(len(d), 2000)])
			}
		})
	}
}

func TestSameRowsGiveSameBytesHoweverTheyAreHandedOver(t *testing.T) {
	rows := captures(5000)
	var files [][]byte
	for _, chunk := range []int{1, 17, 5000} {
		var buf bytes.Buffer
		w, err := table.NewWriterTo[schema.Capture](&buf, table.RowGroups(1000, 0), table.SortedBy("url_surtkey", "url"))
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(rows); at += chunk {
			if err := w.Write(rows[at:min(at+chunk, len(rows))]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		files = append(files, buf.Bytes())
	}
	for i := range files {
		if !bytes.Equal(files[0], files[i]) {
			t.Errorf("file %d differs", i)
		}
	}
}

func TestCapturesTakeAtMost100BytesARow(t *testing.T) {
	w, err := table.NewWriterTo[schema.Capture](io.Discard, table.SortedBy("url_surtkey", "url"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(captures(20_000)); err != nil {
		t.Fatal(err)
	}
	l, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if per := float64(l.Bytes) / float64(l.Rows); per > 100 {
		t.Errorf("%.1f bytes a row", per)
	}
}

func TestNothingShowsBeforeCommitAndNothingIsLeftAfterAbort(t *testing.T) {
	s, dir := newStore(t), t.TempDir()
	w, err := table.NewWriter[wide](filepath.Join(dir, "part"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(wideRows()); err != nil {
		t.Fatal(err)
	}
	for range s.List(t.Context(), "") {
		t.Error("an object exists before Commit")
	}
	w.Abort()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("Abort left %v", left)
	}
	if err := w.Write(wideRows()); err == nil {
		t.Error("Write after Abort succeeded")
	}
}

func TestCommitIsRepeatableAndRefusesOtherBytes(t *testing.T) {
	s := newStore(t)
	write(t, s, "k.parquet", wideRows())
	write(t, s, "k.parquet", wideRows())
	w, err := table.NewWriter[wide](filepath.Join(t.TempDir(), "part"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(wideRows()[:1]); err != nil {
		t.Fatal(err)
	}
	_, err = table.Finish(t.Context(), w, s, "test", "k.parquet")
	if !errors.Is(err, table.ErrDiffers) || !strings.Contains(err.Error(), `"k.parquet"`) {
		t.Errorf("Commit of other bytes: %v", err)
	}
}

func TestFileWithoutRowsOpens(t *testing.T) {
	s := newStore(t)
	write[wide](t, s, "empty.parquet", nil)
	if got := read[wide](t, s, "empty.parquet"); len(got) != 0 {
		t.Errorf("got %d rows", len(got))
	}
	if got := read[wide](t, s, "empty.parquet", table.IntRange("key", 1, 2)); len(got) != 0 {
		t.Errorf("got %d rows", len(got))
	}
}

func TestColumnsThatTheFileLacksAreNullAndThoseOfTheTypeAloneAreRead(t *testing.T) {
	type older struct {
		Key  int64  `parquet:"key"`
		Name string `parquet:"name,optional,dict"`
		Gone string `parquet:"gone"`
	}
	s := newStore(t)
	write(t, s, "old.parquet", []older{{1, "a", "x"}, {2, "", "y"}})
	got := read[wide](t, s, "old.parquet")
	sameRows(t, got, []wide{{Key: 1, Name: "a"}, {Key: 2}})
}

func TestRangeReadsOnlyTheRowGroupsThatMeetIt(t *testing.T) {
	s := newStore(t)
	type edge struct {
		TargetBucket int32  `parquet:"target_bucket,delta"`
		TargetSURT   string `parquet:"target_surtkey,delta"`
		Ordinal      int32  `parquet:"ordinal"`
	}
	w, err := table.NewWriter[edge](filepath.Join(t.TempDir(), "part"))
	if err != nil {
		t.Fatal(err)
	}
	for bucket := range int32(8) {
		for i := range int32(100) {
			e := edge{TargetBucket: bucket, TargetSURT: string(rune('a' + bucket)), Ordinal: i}
			if err := w.Append(&e); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.EndRowGroup(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := table.Finish(t.Context(), w, s, "edges", "e.parquet"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		opt  table.ReaderOption
		want int
	}{
		{"one bucket", table.IntRange("target_bucket", 3, 3), 100},
		{"two buckets", table.IntRange("target_bucket", 6, 7), 200},
		{"none", table.IntRange("target_bucket", 8, 99), 0},
		{"text", table.StringRange("target_surtkey", "b", "c"), 200},
		{"a column that the file lacks", table.IntRange("newer", 3, 3), 800},
	} {
		if got := read[edge](t, s, "e.parquet", c.opt); len(got) != c.want {
			t.Errorf("%s: %d rows, want %d", c.name, len(got), c.want)
		}
	}
}

// damaged is a bucket that returns body as the bytes of every object. If fail is set, every read
// returns fail.
type damaged struct {
	store.Bucket
	body []byte
	fail error
}

type object struct {
	*bytes.Reader
	fail error
}

func (o object) ReadAt(p []byte, off int64) (int, error) {
	if o.fail != nil {
		return 0, o.fail
	}
	return o.Reader.ReadAt(p, off)
}
func (object) Close() error                    { return nil }
func (object) Version() (store.Version, error) { return "", nil }

func (d damaged) Open(context.Context, string) (store.Object, error) {
	return object{bytes.NewReader(d.body), d.fail}, nil
}

func fileOf(t testing.TB, n int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := table.NewWriterTo[schema.Capture](&buf, table.RowGroups(500, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(captures(n)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// readDamaged reads all rows with Reader and with Scan, and returns the first error of each.
func readDamaged(t testing.TB, b store.Bucket) (rows, columns error) {
	r, err := table.Open[schema.Capture](t.Context(), b, "tables/x.parquet")
	if err == nil {
		_, err = tabletest.Collect(r.All(t.Context()))
		r.Close()
	}
	_, columns = scan.Table(t.Context(), b, "tables/x.parquet")
	return err, columns
}

func TestDamagedObjectIsAnErrorThatNamesIt(t *testing.T) {
	body := fileOf(t, 2000)
	longFooter := bytes.Clone(body)
	copy(longFooter[len(body)-8:], "\xff\xff\xff\xff")
	for name, b := range map[string][]byte{
		"empty": nil, "text": []byte("this is no Parquet file"), "half": body[:len(body)/2],
		"only the end": body[len(body)/2:], "long footer": longFooter, "footer lost": append(bytes.Clone(body[:len(body)-2000]), body[len(body)-8:]...),
	} {
		t.Run(name, func(t *testing.T) {
			rows, columns := readDamaged(t, damaged{body: b})
			for _, err := range []error{rows, columns} {
				if !errors.Is(err, table.ErrCorrupt) || !strings.Contains(err.Error(), `"tables/x.parquet"`) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

func TestStoreThatFailsIsNotTakenForDamage(t *testing.T) {
	rows, columns := readDamaged(t, damaged{body: fileOf(t, 10), fail: store.ErrUnavailable})
	for _, err := range []error{rows, columns} {
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, table.ErrCorrupt) {
			t.Errorf("got %v", err)
		}
	}
}

// FuzzDamage changes bytes of a valid file. Reading the changed file may fail but must not panic.
func FuzzDamage(f *testing.F) {
	body := fileOf(f, 600)
	f.Add(100, byte(1), 7, byte(255))
	f.Add(len(body)-20, byte(200), len(body)-100, byte(3))
	f.Fuzz(func(t *testing.T, at int, x byte, at2 int, y byte) {
		b := bytes.Clone(body)
		for i, c := range map[int]byte{at: x, at2: y} {
			if i >= 0 && i < len(b) {
				b[i] ^= c
			}
		}
		readDamaged(t, damaged{body: b})
	})
}

// TestANewScratchFileLeavesAStoredFileAlone commits a file to a store that links it, which then fails, so
// the scratch file stays. A writer with the same path must not overwrite the object.
func TestANewScratchFileLeavesAStoredFileAlone(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rows.parquet")
	create := func(rows []wide) table.Local {
		w, err := table.NewWriter[wide](path)
		if err == nil {
			err = w.Write(rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		l, err := w.Close()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	one := create(wideRows())
	failing := afterCreate{b, errors.New("the reply is lost")}
	if _, err := table.Commit(t.Context(), failing, one, "d", "k"); !errors.Is(err, failing.err) {
		t.Fatalf("Commit: %v, want %v", err, failing.err)
	}
	before, _, err := b.Get(t.Context(), "k", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	create(wideRows()[:1])
	if after, _, err := b.Get(t.Context(), "k", 1<<20); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the object changed from %d to %d bytes, %v", len(before), len(after), err)
	}
}

// afterCreate is a bucket whose Create fails after it has stored the object.
type afterCreate struct {
	store.Bucket
	err error
}

func (b afterCreate) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	if _, err := b.Bucket.Create(ctx, key, body, size); err != nil {
		return "", err
	}
	return "", b.err
}
