package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// keyedRow has a sorted key beside columns of every shape, whose pages end at other rows than the key's.
type keyedRow struct {
	Key     string   `parquet:"key"`
	Text    string   `parquet:"text,optional"`
	Number  int32    `parquet:"number"`
	Time    int64    `parquet:"time,optional,timestamp(microsecond)"`
	Score   *float64 `parquet:"score"`
	Kept    bool     `parquet:"kept"`
	Names   []string `parquet:"names,list"`
	Offsets []int32  `parquet:"offsets,list"`
}

func keyedRows(random *rand.Rand, n int) []keyedRow {
	rows := make([]keyedRow, n)
	for i := range rows {
		// Four rows have the same key, and the first 16 bytes of all keys are the same in most pages.
		r := keyedRow{Key: fmt.Sprintf("example,host%03d)/a/page/%07d", i/2000, i/4), Number: int32(i), Kept: random.IntN(2) == 0}
		if random.IntN(3) > 0 {
			r.Text = strings.Repeat(fmt.Sprint(random.Uint64()), random.IntN(6))
		}
		if random.IntN(2) == 0 {
			r.Time, r.Score = 1+random.Int64N(1e12), new(random.Float64())
		}
		for range random.IntN(4) {
			r.Names = append(r.Names, fmt.Sprint(random.Uint64()))
		}
		for range random.IntN(5) {
			r.Offsets = append(r.Offsets, random.Int32())
		}
		rows[i] = r
	}
	return rows
}

// selected reads the rows of an object that have one of the keys, and counts the rows that the reader
// returns.
func selected(t *testing.T, open func(...ReaderOption) (*Reader[keyedRow], error), keys []string, opts ...ReaderOption) (out []keyedRow, read int) {
	t.Helper()
	r, err := open(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for row, err := range r.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		read++
		if _, ok := slices.BinarySearch(keys, row.Key); ok {
			out = append(out, row)
		}
	}
	return out, read
}

func TestSelectedPagesHaveTheSameRows(t *testing.T) {
	rounds := 15
	if testing.Short() {
		rounds = 8
	}
	random := rand.New(rand.NewPCG(11, 26))
	for kind, layout := range map[string][]WriterOption{"published": nil, "working": {Fast()}} {
		rows := keyedRows(random, 30_000)
		b := bucketOf(t)
		w, err := NewWriter[keyedRow](t.TempDir()+"/rows", append(layout, SortedBy("key"))...)
		for len(rows) > 0 && err == nil { // row groups of different sizes
			n := min(len(rows), 1+random.IntN(20_000))
			if err = w.Write(rows[:n]); err == nil {
				err = w.EndRowGroup()
			}
			rows = rows[n:]
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Finish(t.Context(), w, b, "", "rows"); err != nil {
			t.Fatal(err)
		}
		open := func(opts ...ReaderOption) (*Reader[keyedRow], error) {
			return Open[keyedRow](t.Context(), b, "rows", opts...)
		}
		fewest := 30_000
		for round := range rounds {
			var keys []string
			for range random.IntN(30) / (1 + round%2*8) {
				keys = append(keys, fmt.Sprintf("example,host%03d)/a/page/%07d", random.IntN(18), random.IntN(8000)))
				at := random.IntN(30_000)
				keys = append(keys, fmt.Sprintf("example,host%03d)/a/page/%07d", at/2000, at/4))
			}
			slices.Sort(keys)
			wanted := func(key string) bool {
				_, ok := slices.BinarySearch(keys, key)
				return ok
			}
			want, all := selected(t, open, keys)
			for i, opts := range [][]ReaderOption{
				{StringsIn("key", keys)}, {FirstIs(wanted)}, {StringsIn("key", keys), FirstIs(wanted)}, {StringsIn("key", keys), StringRange("key", "", "z"), IntRange("number", 0, 1e9)},
			} {
				got, read := selected(t, open, keys, opts...)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s, %d keys: %d rows, want %d", kind, len(keys), len(got), len(want))
				}
				if i > 0 && i < 3 && read != len(want) {
					t.Fatalf("%s: a reader of %d rows returned %d", kind, len(want), read)
				}
				if i == 0 && len(keys) > 0 {
					fewest = min(fewest, read)
				}
			}
			if all != 30_000 {
				t.Fatalf("%d rows in all", all)
			}
		}
		if fewest > 16_000 {
			t.Errorf("%s: at least %d of 30000 rows were read", kind, fewest)
		}
	}
}

// A damaged page index may lead to an error or to other rows, because only the digests of the store show
// damage. It must not lead to a panic or to endless reading.
func TestADamagedPageIndexDoesNotPanic(t *testing.T) {
	random := rand.New(rand.NewPCG(12, 26))
	var file bytes.Buffer
	w, err := NewWriterTo[keyedRow](&file, SortedBy("key"))
	if err == nil {
		err = w.Write(keyedRows(random, 40_000))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	end := file.Len() - 8 - int(binary.LittleEndian.Uint32(file.Bytes()[file.Len()-8:]))
	var keys []string
	for i := range 5 {
		keys = append(keys, fmt.Sprintf("example,host%03d)/a/page/%07d", 4*i, 2000*i))
	}
	files, failed := 200, 0
	if testing.Short() {
		files = 50
	}
	for range files {
		body := bytes.Clone(file.Bytes())
		for range 8 {
			body[end-1-random.IntN(2200)] = byte(random.Uint32()) // the page index lies before the footer
		}
		b := bucketOf(t)
		if _, err := b.Create(t.Context(), "rows", bytes.NewReader(body), int64(len(body))); err != nil {
			t.Fatal(err)
		}
		r, err := Open[keyedRow](t.Context(), b, "rows", StringsIn("key", keys), FirstIs(func(key string) bool { return slices.Contains(keys, key) }))
		if err == nil {
			n := 0
			for _, err = range r.All(t.Context()) {
				n++
			}
			if err == nil && n > 40_000 {
				t.Fatalf("%d rows", n)
			}
			r.Close()
		}
		if err != nil {
			failed++
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d of %d files could not be read", failed, files)
}
