package partition

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

func TestPlannedRowsSurviveScratch(t *testing.T) {
	want := schema.PlannedURL{URL: "u", SURT: "s", Host: "h", Domain: "d", Priority: -7, Depth: 3, ContentDigest: "c", ETag: `"é"`, LastModified: "", Fetches: 9,
		ContentAt: -1, WARCFilename: "w", WARCRecordOff: 1 << 30, WARCRecordLen: 2, Spellings: []string{"é", ""}}
	b := spellingCodec.Append(nil, &want)
	var got schema.PlannedURL
	if err := spellingCodec.Decode(string(b), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i := range b {
		if err := spellingCodec.Decode(string(b[:i]), &got); err == nil {
			t.Errorf("the first %d of %d bytes were decoded without an error", i, len(b))
		}
	}
}

// knownRows returns rows of URLs on two hosts. One URL has five known spellings; every other URL
// has one.
func knownRows(count int) []schema.PlannedURL {
	rows := []schema.PlannedURL{
		{Host: "a.com", URL: "http://a.com/five", Spellings: []string{"1", "2", "3", "4", "5"}},
		{Host: "www.a.com", URL: "http://www.a.com/q?a=2&z=1", Spellings: []string{"http://www.a.com/q?z=1&a=2"}},
	}
	for i := range count {
		rows = append(rows, schema.PlannedURL{
			Host: "a.com", URL: fmt.Sprintf("http://a.com/q?a=%03d&z=1", i), Spellings: []string{fmt.Sprintf("http://a.com/q?z=1&a=%03d", i)},
		})
	}
	slices.SortFunc(rows, func(a, b schema.PlannedURL) int { return compareSpellings(&a, b.Host, b.URL) })
	return rows
}

// storeSpellings writes rows as the file of spellings of a plan.
func storeSpellings(t *testing.T, bucket store.Bucket, key string, rows []schema.PlannedURL) *manifest.File {
	t.Helper()
	w, err := table.NewWriter[schema.PlannedURL](filepath.Join(t.TempDir(), "spellings.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	f, err := table.Finish(t.Context(), w, bucket, "spellings", key)
	if err != nil {
		t.Fatal(err)
	}
	return &f
}

func TestSpellingsOfKnownURLsAreFound(t *testing.T) {
	for _, count := range []int{0, 1, spellingsBlock - 2, spellingsBlock - 1, 5*spellingsBlock + 3} {
		bucket, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rows := knownRows(count)
		s, err := loadSpellings(t.Context(), bucket, storeSpellings(t, bucket, "sorted", rows), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range rows {
			key := urlkey.Key{Host: r.Host, URL: r.URL}
			if got, err := s.lookUp(key); err != nil || !slices.Equal(got, r.Spellings) {
				t.Errorf("%d rows: row %d has %q, %v; want %q", len(rows), i, got, err, r.Spellings)
			}
			for _, other := range []string{r.URL + "0", r.URL[:len(r.URL)-1]} {
				key.URL = other
				if got, err := s.lookUp(key); err != nil || got != nil {
					t.Errorf("%d rows: %s has %q, %v", len(rows), other, got, err)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		slices.Reverse(rows)
		if _, err := loadSpellings(t.Context(), bucket, storeSpellings(t, bucket, "reversed", rows), t.TempDir()); !errors.Is(err, table.ErrCorrupt) {
			t.Errorf("rows that are not sorted: %v", err)
		}
	}
}
