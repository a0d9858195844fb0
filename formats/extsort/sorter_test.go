package extsort

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"crawlbatch.io/crawlbatch/formats/extsort/runfiles"
)

type record struct{ key, rest string }

// someRecords returns n records in random order. Many keys begin alike, end where others go on, also with zeros, or
// occur several times. The rest of a record is its number, and sometimes a long text.
func someRecords(n int) (records []record) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		var key string
		switch random.IntN(4) {
		case 0:
			key = strings.Repeat("\x00", random.IntN(20))
		case 1:
			key = strings.Repeat("a", random.IntN(40)) + strings.Repeat("\x00", random.IntN(3))
		default:
			key = fmt.Sprintf("%c.example/%s%d", 'a'+random.IntN(26), strings.Repeat("a/", random.IntN(9)), random.IntN(99))
		}
		rest := fmt.Sprint(i)
		if i%500 == 0 {
			rest += strings.Repeat("x", random.IntN(200_000))
		}
		records = append(records, record{key, rest})
	}
	return records
}

// TestRecordsAreSorted sorts in memory, with some runs and with so many that a Sorter merges them. Equal keys keep the
// order of the Sorters, and of a Sorter's records.
func TestRecordsAreSorted(t *testing.T) {
	records := someRecords(10_000)
	for _, tc := range []struct {
		name   string
		memory int64
		files  int // at least
	}{{"in memory", 1 << 30, 0}, {"in files", 400_000, 2}, {"in many files", 1_500, runfiles.Max}} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			two, files := []*Sorter{New(dir, tc.memory), New(dir, tc.memory)}, 0
			var want []record
			for i, s := range two {
				for _, r := range records[i*len(records)/2 : (i+1)*len(records)/2] {
					if err := s.Add([]byte(r.key), []byte(r.rest)); err != nil {
						t.Fatal(err)
					}
					want, files = append(want, r), max(files, len(s.runs.All))
				}
				if n := s.Len(); n != int64(len(records)/2) {
					t.Errorf("Len is %d", n)
				}
			}
			if files < tc.files || files > runfiles.Max {
				t.Errorf("%d runs, want at least %d", files, tc.files)
			}
			slices.SortStableFunc(want, func(a, b record) int { return strings.Compare(a.key, b.key) })
			for range 2 {
				i := 0
				if err := Merge(t.Context(), two, func(key, rest []byte) error {
					if got := (record{string(key), string(rest)}); got != want[i] {
						return fmt.Errorf("record %d is %.50q, want %.50q", i, got, want[i])
					}
					i++
					return nil
				}); err != nil || i != len(want) {
					t.Fatalf("%d records of %d: %v", i, len(want), err)
				}
			}
			if err := Merge(t.Context(), two, func(_, _ []byte) error { return ErrStop }); err != nil {
				t.Error(err)
			}
			for _, s := range two {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%d scratch files remain: %v", len(left), err)
			}
		})
	}
}

// fill adds records until the Sorter has written n runs, and passes each number to of.
func fill(t *testing.T, s *Sorter, n int, of func(i int) (key, rest []byte)) {
	t.Helper()
	for i := 0; len(s.runs.All) < n; i++ {
		key, rest := of(i)
		if err := s.Add(key, rest); err != nil {
			t.Fatal(err)
		}
	}
}

// Records whose keys begin with one byte, which are in one part, take memory in few chunks, however many they are.
func TestRecordsOfOnePartTakeTheMemoryThatIsCounted(t *testing.T) {
	s := New(t.TempDir(), 8<<20)
	defer s.Close()
	fill(t, s, 1, func(i int) ([]byte, []byte) { return fmt.Append(nil, "key", i), make([]byte, 100) })
	for i := range s.parts {
		if n := len(s.parts[i].chunks); n > 8<<20/mostChunk+growingChunks {
			t.Errorf("%d chunks for 8 MiB of records", n)
		}
		if n := len(s.parts[i].chunks); n > growingChunks && cap(s.parts[i].chunks[n-1]) != mostChunk {
			t.Errorf("chunk %d has %d bytes", n-1, cap(s.parts[i].chunks[n-1]))
		}
	}
}

// Records that come in the order of the first bytes of their keys take little more memory than records in any order.
func TestRecordsInOrderTakeTheMemoryThatIsCounted(t *testing.T) {
	const memory = 8 << 20
	s := New(t.TempDir(), memory)
	defer s.Close()
	fill(t, s, 20, func(i int) ([]byte, []byte) {
		size := 100
		if i%5_000 == 0 {
			size = 150_000 // has a chunk of its own
		}
		if i%100 == 0 {
			held := mostChunk * len(s.free)
			for j := range s.parts {
				held += cap(s.parts[j].items) * int(unsafe.Sizeof(item{}))
				for _, c := range s.parts[j].chunks {
					held += cap(c)
				}
			}
			if most := memory * 3 / 2; held > most {
				t.Fatalf("after %d runs, the Sorter holds %d bytes for %d bytes of records, at most %d expected", len(s.runs.All), held, memory, most)
			}
		}
		return binary.BigEndian.AppendUint64(nil, uint64(len(s.runs.All)*10+i%10)<<56+uint64(i)), make([]byte, size)
	})
}

func TestDamageIsAnError(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file)
	for i := range 100 {
		if err := w.Write(fmt.Appendf(nil, "key%03d", i), []byte("rest")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil || w.Begin() != int64(file.Len()) {
		t.Fatalf("the next record begins at %d of %d: %v", w.Begin(), file.Len(), err)
	}
	read := func(b []byte) (n int, err error) {
		for r := NewReader(bytes.NewReader(b)); err == nil; n++ {
			err = r.Next()
		}
		return n - 1, err
	}
	if n, err := read(file.Bytes()); n != 100 || err != io.EOF {
		t.Errorf("%d records: %v", n, err)
	}
	if n, err := read(file.Bytes()[:file.Len()-1]); n != 99 || !errors.Is(err, ErrScratch) {
		t.Errorf("%d records of a file that lacks a byte: %v", n, err)
	}
	if _, err := read([]byte{200, 1, 1, 'x', 0}); !errors.Is(err, ErrScratch) {
		t.Errorf("a key that begins with bytes that the last one has not: %v", err)
	}
}

// A full disk is reported, and leaves no file.
func TestAFileThatCannotBeWrittenIsReported(t *testing.T) {
	s := New(t.TempDir()+"/missing", 1)
	defer s.Close()
	if err := s.Add([]byte("key"), nil); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "create scratch file") {
		t.Error(err)
	}
	full := errors.New("no space left on device")
	w := NewWriter(writeFunc(func([]byte) (int, error) { return 0, full }))
	if err := w.Write([]byte("key"), make([]byte, writeBytes)); !errors.Is(err, full) || !strings.Contains(err.Error(), "write scratch file") {
		t.Error(err)
	}
}

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(b []byte) (int, error) { return f(b) }

// BenchmarkSort sorts with a memory bound that makes the Sorter write about ten runs.
func BenchmarkSort(b *testing.B) {
	var keys [][]byte
	for i := range 50_000 {
		keys = append(keys, fmt.Appendf(nil, "com,example,h%d)/page-%d", i%997, i*7919%50_000))
	}
	rest := make([]byte, 150)
	b.ReportAllocs()
	for b.Loop() {
		s := New(b.TempDir(), 1<<20)
		for _, key := range keys {
			if err := s.Add(key, rest); err != nil {
				b.Fatal(err)
			}
		}
		n := 0
		if err := Merge(b.Context(), []*Sorter{s}, func(_, _ []byte) error { n++; return nil }); err != nil || n != len(keys) {
			b.Fatalf("%d records: %v", n, err)
		}
		s.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(keys)), "ns/record")
}
