package table_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/scan"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
)

func byName(k table.Key, w *wide) table.Key { return k.Text(w.Name) }

func byKey(k table.Key, w *wide) table.Key { return k.Int(w.Key) }

func TestSorterKeepsTheOrderOfEqualRowsInMemoryAndSpilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var rows []wide
	for i := range 6_000 {
		w := wideRows()[rng.IntN(3)]
		w.Key, w.Name = int64(i), string(rune('a'+rng.IntN(26)))
		rows = append(rows, w)
	}
	want := slices.Clone(rows)
	slices.SortStableFunc(want, tabletest.ByKey(byName))
	for name, memory := range map[string]int64{"memory": 1 << 30, "spilled": 1 << 17, "spilled and compacted": 1 << 13} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := table.NewSorter(dir, byName, memory)
			if err != nil {
				t.Fatal(err)
			}
			for i := range rows {
				if err := s.Add(&rows[i]); err != nil {
					t.Fatal(err)
				}
			}
			runs, err := os.ReadDir(dir)
			if err != nil || (len(runs) > 0) != (memory < 1<<30) || len(runs) > 128 {
				t.Errorf("%d runs spilled (%v)", len(runs), err)
			}
			for range 2 { // the sorted rows can be read twice
				got, err := tabletest.Collect(s.Sorted(t.Context()))
				if err != nil {
					t.Fatal(err)
				}
				sameRows(t, got, want)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("Close left %v", left)
			}
		})
	}
}

func TestSorterRefusesTypesItCannotSpill(t *testing.T) {
	type odd struct{ M map[string]int }
	if _, err := table.NewSorter(t.TempDir(), func(k table.Key, _ *odd) table.Key { return k }, 0); err == nil || !strings.Contains(err.Error(), "field M") {
		t.Errorf("got %v", err)
	}
}

// slice is a stream of rows in memory that ends with err, or io.EOF if err is nil.
type slice struct {
	rows []wide
	err  error
}

func (s *slice) Read(batch []wide) (int, error) {
	n := copy(batch, s.rows)
	s.rows = s.rows[n:]
	if n < len(batch) {
		if s.err != nil {
			return n, s.err
		}
		return n, io.EOF
	}
	return n, nil
}

func TestMergeIsSortedAndStableByStream(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 2, 3, 5, 7, 8, 65} {
		var streams []table.Stream[wide]
		var want []wide
		for i := range n {
			var rows []wide
			for j := range max(0, rng.IntN(200)-20) { // a tenth of the streams have no rows
				rows = append(rows, wide{Key: int64(i*1000 + j), Name: string(rune('a' + rng.IntN(10)))})
			}
			slices.SortStableFunc(rows, tabletest.ByKey(byName))
			want = append(want, rows...)
			streams = append(streams, &slice{rows: rows})
		}
		slices.SortStableFunc(want, tabletest.ByKey(byName))
		got, err := tabletest.Collect(table.Merge(t.Context(), byName, streams...))
		if err != nil {
			t.Fatal(err)
		}
		sameRows(t, got, want)
	}
}

func TestMergeEndsWithTheErrorOfAStreamOrOfTheContext(t *testing.T) {
	broken := errors.New("broken")
	_, err := tabletest.Collect(table.Merge(t.Context(), byName, &slice{}, &slice{err: broken}))
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tabletest.Collect(table.Merge(ctx, byName, &slice{rows: wideRows()})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestScanCountsTheRowsOfAllRowGroups(t *testing.T) {
	s := newStore(t)
	write(t, s, "c.parquet", captures(9000), table.RowGroups(2500, 0))
	if rows, err := scan.Table(t.Context(), s, "c.parquet"); rows != 9000 || err != nil {
		t.Errorf("%d rows, %v; want 9000", rows, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := scan.Table(ctx, s, "c.parquet"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

func TestConcatReadsObjectsInTurn(t *testing.T) {
	s := newStore(t)
	write(t, s, "1.parquet", wideRows()[:1])
	write(t, s, "2.parquet", wideRows()[1:])
	got, err := tabletest.Collect(table.Concat[wide](t.Context(), s, []string{"1.parquet", "2.parquet"}))
	if err != nil {
		t.Fatal(err)
	}
	sameRows(t, got, wideRows())
	_, err = tabletest.Collect(table.Concat[schema.Fetch](t.Context(), s, []string{"absent.parquet"}))
	if err == nil || !strings.Contains(err.Error(), `"absent.parquet"`) {
		t.Errorf("got %v", err)
	}
}

// TestSortersOfSeveralGoroutinesMerge fills sorters from several goroutines. The rows stay in
// memory, fill a few runs, or fill so many runs that sorters merge runs early.
func TestSortersOfSeveralGoroutinesMerge(t *testing.T) {
	const goroutines, each = 3, 4000
	for name, memory := range map[string]int64{"memory": 1 << 30, "spilled": 1 << 17, "spilled and compacted": 1 << 12} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var sorters []*table.Sorter[wide]
			var wg sync.WaitGroup
			for g := range goroutines {
				s, err := table.NewSorter(dir, byKey, memory)
				if err != nil {
					t.Fatal(err)
				}
				sorters = append(sorters, s)
				wg.Go(func() {
					for i := range each {
						n := int64(i*7919%each*goroutines + g)
						if err := s.Add(&wide{Key: n, Name: fmt.Sprint(n)}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if runs, _ := os.ReadDir(dir); (len(runs) > 0) != (memory < 1<<30) || len(runs) > 128*goroutines {
				t.Errorf("%d runs", len(runs))
			}
			for range 2 { // the sorted rows can be read twice
				rows, err := tabletest.Collect(table.MergeSorted(t.Context(), sorters...))
				if err != nil || len(rows) != goroutines*each {
					t.Fatalf("%d rows, %v", len(rows), err)
				}
				for i, row := range rows {
					if row.Key != int64(i) || row.Name != fmt.Sprint(i) {
						t.Fatalf("row %d is %+v", i, row)
					}
				}
			}
			for _, s := range sorters {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("scratch space holds %v, %v", left, err)
			}
		})
	}
}
