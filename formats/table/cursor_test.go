package table_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
)

// numbers yields 0, 2, 4 … and then err unless err is nil.
func numbers(n int, err error) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(2*i, nil) {
				return
			}
		}
		if err != nil {
			yield(0, err)
		}
	}
}

func TestCursorPeeksFindsAndEnds(t *testing.T) {
	c := table.Pull(numbers(10, nil))
	defer c.Close()
	find := func(want int) *int {
		t.Helper()
		row, err := c.Find(func(n *int) int { return *n - want })
		if err != nil {
			t.Fatal(err)
		}
		return row
	}
	if row, err := c.Peek(); row == nil || *row != 0 || err != nil {
		t.Fatalf("Peek: %v, %v", row, err)
	}
	for key, there := range []bool{true, false, true, false, true} {
		for range 2 { // a second Find must return the same row
			if row := find(key); (row != nil) != there {
				t.Errorf("found %d: %t", key, row != nil)
			}
		}
	}
	rest, err := tabletest.Collect(table.All(t.Context(), c))
	if err != nil || len(rest) != 8 || rest[0] != 4 {
		t.Errorf("the rest is %v, %v", rest, err)
	}
	if row, err := c.Next(); row != nil || err != nil || find(100) != nil {
		t.Errorf("after the end: %v, %v", row, err)
	}
}

func TestCursorRepeatsItsError(t *testing.T) {
	broken := errors.New("broken")
	c := table.Pull(numbers(1, broken))
	defer c.Close()
	if n, err := c.Read(make([]int, 4)); n != 1 || !errors.Is(err, broken) {
		t.Errorf("Read: %d, %v", n, err)
	}
	for range 2 {
		if row, err := c.Next(); row != nil || !errors.Is(err, broken) {
			t.Errorf("Next: %v, %v", row, err)
		}
	}
}

func TestConvertLeavesRowsOutAndMayPointIntoThem(t *testing.T) {
	c := table.Pull(numbers(100, nil))
	defer c.Close()
	fours := table.Convert(c, func(n *int) (*int, bool) { return n, *n%4 == 0 })
	rows, err := tabletest.Collect(table.All(t.Context(), fours))
	if err != nil || len(rows) != 50 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, n := range rows {
		if *n != 4*i {
			t.Errorf("row %d is %d", i, *n)
		}
	}
}

func TestMergeFilesMergesObjectsAndNamesTheOneThatIsAbsent(t *testing.T) {
	s := newStore(t)
	write(t, s, "1.parquet", []wide{{Key: 1}, {Key: 4}})
	write(t, s, "2.parquet", []wide{{Key: 2}, {Key: 3}, {Key: 5}})
	rows, err := tabletest.Collect(table.MergeFiles(t.Context(), s, t.TempDir(), []string{"1.parquet", "2.parquet"}, byKey))
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, row := range rows {
		if row.Key != int64(i+1) {
			t.Errorf("row %d has key %d", i, row.Key)
		}
	}
	for range table.MergeFiles(t.Context(), s, t.TempDir(), []string{"1.parquet", "2.parquet"}, byKey) {
		break // a caller may stop the sequence early
	}
	if _, err := tabletest.Collect(table.MergeFiles(t.Context(), s, t.TempDir(), []string{"1.parquet", "absent.parquet"}, byKey)); err == nil {
		t.Error("an absent object gave no error")
	}
}

// TestMergeFilesMergesManyObjectsInPasses merges more objects than may be open, and more groups of
// objects than a sorter merges at a time. Equal rows keep the order of their objects. Of few objects too many, only
// those go through a scratch file that one file replaces: the others stay open from the first to the last row.
func TestMergeFilesMergesManyObjectsInPasses(t *testing.T) {
	s := &opens{Bucket: newStore(t)}
	write(t, s, "first.parquet", []wide{{Key: 7, Name: "first"}})
	write(t, s, "middle.parquet", []wide{{Key: 1, Name: "middle"}, {Key: 7, Name: "middle"}, {Key: 8, Name: "middle"}})
	write(t, s, "last.parquet", []wide{{Key: 7, Name: "last"}})
	for _, n := range []int{62, 63, 64, 70, 9000} {
		s.most.Store(0)
		keys := slices.Concat([]string{"first.parquet"}, slices.Repeat([]string{"middle.parquet"}, n), []string{"last.parquet"})
		var at int
		for row, err := range table.MergeFiles(t.Context(), s, t.TempDir(), keys, byKey) {
			if err != nil {
				t.Fatal(err)
			}
			want := wide{Key: 7, Name: "middle"}
			switch {
			case at < n:
				want.Key = 1
			case at == n:
				want.Name = "first"
			case at == 2*n+1:
				want.Name = "last"
			case at > 2*n+1:
				want.Key = 8
			}
			if row.Key != want.Key || row.Name != want.Name {
				t.Fatalf("%d objects: row %d is %+v, want %+v", n, at, row, want)
			}
			if at++; at > 1 || n > 70 {
				continue
			}
			left := int32(63) // the others are in one scratch file
			if n+2 <= 64 {
				left = int32(n + 2)
			}
			if open := s.open.Load(); open != left { // the last merge has begun
				t.Errorf("%d objects: %d are open, want %d", n+2, open, left)
			}
		}
		if open, most := s.open.Load(), s.most.Load(); at != 3*n+2 || open != 0 || most > 64 {
			t.Errorf("%d objects: %d rows, want %d; %d objects are open in the end, at most %d were at the same time", n, at, 3*n+2, open, most)
		}
	}
}

// opens counts open objects.
type opens struct {
	store.Bucket
	open, most atomic.Int32
}

func (o *opens) Open(ctx context.Context, key string) (store.Object, error) {
	obj, err := o.Bucket.Open(ctx, key)
	if err == nil {
		n := o.open.Add(1)
		for most := o.most.Load(); n > most && !o.most.CompareAndSwap(most, n); most = o.most.Load() {
		}
		obj = &closes{obj, o}
	}
	return obj, err
}

type closes struct {
	store.Object
	of *opens
}

func (c *closes) Close() error {
	c.of.open.Add(-1)
	return c.Object.Close()
}
