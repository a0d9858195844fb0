package entry

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/extsort"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/pack"
	"crawlbatch.io/crawlbatch/planner/source"
)

// someRecords returns n records of 600 domains in random order. Many of their URLs begin alike, and some occur twice.
func someRecords(t *testing.T, n int) (records []Record) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		host := fmt.Sprintf("h%d.d%d.example", random.IntN(3), random.IntN(600))
		if random.IntN(9) == 0 {
			host = "[::1]:81"
		}
		k, err := urlkey.KeyOf(fmt.Sprintf("http%s://%s/%s%d", strings.Repeat("s", random.IntN(2)), host, strings.Repeat("a/", random.IntN(9)), random.IntN(99)))
		if err != nil {
			t.Fatal(err)
		}
		e := source.Entry{Due: true, Listed: true, Line: int64(i), Priority: int32(random.IntN(4)) * 300, Depth: int32(i % 3)}
		if i%500 == 0 {
			e.ETag = strings.Repeat("x", random.IntN(200_000))
		}
		records = append(records, New(k, &e, schema.Form{}, NewSeq(0, int64(i))))
	}
	return records
}

// TestRecordsAreSorted sorts in memory and with scratch files.
func TestRecordsAreSorted(t *testing.T) {
	records := someRecords(t, 20_000)
	byHost := func(a, b *Record) int {
		return cmp.Or(strings.Compare(a.Host, b.Host), cmp.Compare(b.Priority, a.Priority), strings.Compare(a.URL, b.URL), cmp.Compare(a.Seq, b.Seq))
	}
	for _, tc := range []struct {
		name    string
		order   Order
		compare func(a, b *Record) int
		memory  int64
	}{
		{"by domain", ByDomain, Compare, 1 << 30}, {"by domain in files", ByDomain, Compare, 1_500_000},
		{"by host", ByHost, byHost, 1 << 30}, {"by host in files", ByHost, byHost, 1_500_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sorters := Sorters{Dir: t.TempDir(), Order: tc.order}
			two := []*Sorter{sorters.Sorter(tc.memory), sorters.Sorter(tc.memory)}
			for i := range records {
				if err := two[i%2].Add(&records[i]); err != nil {
					t.Fatal(err)
				}
			}
			want := slices.Clone(records)
			slices.SortFunc(want, func(a, b Record) int { return tc.compare(&a, &b) })
			for range 2 {
				i := 0
				for got, err := range sorters.Sorted(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					if !reflect.DeepEqual(want[i], got) {
						t.Fatalf("record %d (-want +got):\n%s", i, gocmp.Diff(want[i], got))
					}
					i++
				}
				if i != len(want) {
					t.Fatalf("%d records of %d", i, len(want))
				}
			}
			if err := sorters.Close(); err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(sorters.Dir); err != nil || len(left) > 0 {
				t.Errorf("%d scratch files remain: %v", len(left), err)
			}
		})
	}
}

// TestGroupsOfAListAreSortedByHost adds every second group of a list to a Sorter, as a partition does.
func TestGroupsOfAListAreSortedByHost(t *testing.T) {
	records := someRecords(t, 3000)
	slices.SortFunc(records, func(a, b Record) int { return Compare(&a, &b) })
	f, err := os.CreateTemp(t.TempDir(), "list")
	if err != nil {
		t.Fatal(err)
	}
	l, w := &List{File: f}, NewListWriter(f)
	var chosen []int32
	var want []string
	for i := range records {
		r := &records[i]
		if i == 0 || r.Hash != records[i-1].Hash {
			if len(l.Groups)%2 == 0 {
				chosen = append(chosen, int32(len(l.Groups)))
			}
			l.Groups = append(l.Groups, pack.Group{Hash: r.Hash, Off: w.Begin()})
		}
		l.Groups[len(l.Groups)-1].URLs++
		if len(l.Groups)%2 == 1 {
			want = append(want, fmt.Sprintf("%s %04d %s %09d", r.Host, 1000-r.Priority, r.URL, r.Line))
		}
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	slices.Sort(want)
	sorters := Sorters{Dir: t.TempDir(), Order: ByHost}
	if err := sorters.Sorter(1<<30).AddGroups(t.Context(), l, slices.Values(chosen)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r, err := range sorters.Sorted(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %04d %s %09d", r.Host, 1000-r.Priority, r.URL, r.Line))
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for i := range l.Groups {
		if err := l.Read(t.Context(), slices.Values([]int32{int32(i)}), func(*Record) error { return nil }); err != nil {
			t.Errorf("group %d alone: %v", i, err)
		}
	}
	if err := f.Truncate(l.Groups[len(l.Groups)/2].Off); err != nil {
		t.Fatal(err)
	}
	if err := l.Read(t.Context(), l.All(), func(*Record) error { return nil }); !errors.Is(err, extsort.ErrScratch) {
		t.Errorf("a list of which half is lost: %v", err)
	}
}
