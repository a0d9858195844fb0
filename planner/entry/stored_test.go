package entry

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/pack"
)

// openLog is a store that logs the keys of opened objects.
type openLog struct {
	store.Bucket
	keys []string
}

func (o *openLog) Open(ctx context.Context, key string) (store.Object, error) {
	o.keys = append(o.keys, key)
	return o.Bucket.Open(ctx, key)
}

type depot struct{ b store.Bucket }

func (d depot) Bucket() store.Bucket { return d.b }

func (d depot) Commit(ctx context.Context, l table.Local, name string) (manifest.File, error) {
	return table.Commit(ctx, d.b, l, "work", "work/"+name)
}

// TestFetchReadsOnlyListsInItsCells stores a list for each part of the cells and fetches ranges of cells. Each range
// must have the records of its cells, and the groups of lists without such records must not be read.
func TestFetchReadsOnlyListsInItsCells(t *testing.T) {
	const parts, cells = 4, 16
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log, dir := &openLog{Bucket: b}, t.TempDir()
	records := someRecords(t, 3000)
	records = slices.DeleteFunc(records, func(r Record) bool { return urlkey.BucketOf(r.Hash, cells) == 5 }) // an empty cell
	slices.SortFunc(records, func(a, b Record) int { return Compare(&a, &b) })
	var lists []Stored
	for part := range parts {
		f, err := os.Create(filepath.Join(dir, "list"))
		if err != nil {
			t.Fatal(err)
		}
		l, w := &List{File: f}, NewListWriter(f)
		for i := range records {
			r := &records[i]
			if urlkey.BucketOf(r.Hash, parts) != part {
				continue
			}
			if n := len(l.Groups); n == 0 || l.Groups[n-1].Hash != r.Hash {
				l.Groups = append(l.Groups, pack.Group{Hash: r.Hash, Off: w.Begin()})
			}
			l.Groups[len(l.Groups)-1].URLs++
			if err := w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		if l.Size, err = w.Close(); err != nil {
			t.Fatal(err)
		}
		s, err := l.Store(t.Context(), depot{log}, filepath.Join(dir, "rows"), "list-"+strconv.Itoa(part), cells)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		lists = append(lists, s)
	}
	for _, tc := range []struct {
		first, end int
		read       string // parts whose groups are read
	}{{0, cells, "0 1 2 3"}, {4, 8, "1"}, {3, 5, "0 1"}, {3, 6, "0 1"}, {5, 6, ""}, {5, 9, "1 2"}, {15, 16, "3"}} {
		log.keys = nil
		l, err := Fetch(t.Context(), log, filepath.Join(dir, "fetched"), lists, tc.first, tc.end, cells)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []Record
		if err := l.Read(t.Context(), l.All(), func(r *Record) error {
			got = append(got, *r)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if cell := urlkey.BucketOf(r.Hash, cells); cell >= tc.first && cell < tc.end {
				want = append(want, r)
			}
		}
		if d := gocmp.Diff(want, got); d != "" {
			t.Errorf("cells %d to %d (-want +got):\n%s", tc.first, tc.end, d)
		}
		var read []string
		for _, key := range log.keys {
			if rest, ok := strings.CutPrefix(key, "work/list-"); ok && strings.HasSuffix(rest, "-groups") {
				read = append(read, strings.TrimSuffix(rest, "-groups"))
			}
		}
		if got := strings.Join(slices.Compact(read), " "); got != tc.read {
			t.Errorf("cells %d to %d: the groups of parts %q are read, want %q", tc.first, tc.end, got, tc.read)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
