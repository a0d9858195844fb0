package table_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
)

func bucketOfRow(r *schema.TargetLinks) int32 { return r.Bucket }

// randomTargets returns sorted rows of some of the buckets.
func randomTargets(seed uint64, buckets, n int) []schema.TargetLinks {
	random := rand.New(rand.NewPCG(seed, 1))
	var rows []schema.TargetLinks
	for range n {
		url := fmt.Sprintf("http://h%d.test/%d", random.IntN(1000), random.IntN(1_000_000))
		row := schema.TargetLinks{Bucket: int32(random.IntN(buckets)), Inlink: schema.Inlink{SURT: url, URL: url, Inlinks: random.Int64N(9), Followed: true}}
		for range random.IntN(3) {
			row.Anchors, row.AnchorCounts = append(row.Anchors, fmt.Sprint("anchor ", random.IntN(50))), append(row.AnchorCounts, 1)
		}
		if row.Bucket%7 != 3 { // some buckets have no rows
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, tabletest.ByKey(schema.TargetKey))
	return rows
}

// sectionsOf returns the sections of a run.
func sectionsOf(t testing.TB, f manifest.File) []manifest.Section {
	t.Helper()
	sections, err := f.Sections()
	if err != nil {
		t.Fatal(err)
	}
	return sections
}

// readSection reads a section with a reader that checks the section's digests.
func readSection(t testing.TB, b store.Bucket, s manifest.Section) ([]schema.TargetLinks, error) {
	t.Helper()
	r, err := table.OpenSection[schema.TargetLinks](t.Context(), b, s)
	if err != nil {
		return nil, err
	}
	rows, err := tabletest.Collect(r.All(t.Context()))
	return rows, errors.Join(err, r.Close())
}

// ranged writes rows as one Parquet file with row groups for each bucket.
func ranged(t testing.TB, b store.Bucket, key string, rows []schema.TargetLinks) manifest.File {
	t.Helper()
	w, err := table.NewWriter[schema.TargetLinks](t.TempDir()+"/rows", table.Fast())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for i := range rows {
		if i > 0 && rows[i].Bucket != rows[i-1].Bucket {
			err = w.EndRowGroup()
		}
		if err = errors.Join(err, w.Append(&rows[i])); err != nil {
			t.Fatal(err)
		}
	}
	f, err := table.Finish(t.Context(), w, b, "targets", key)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestASectionHasTheRowsOfItsBucket(t *testing.T) {
	for buckets, n := range map[int]int{1: 2000, 3: 3000, 100: 1000} {
		b := newStore(t)
		rows := randomTargets(uint64(buckets), buckets, n)
		run := tabletest.WriteRun(t, b, "targets", "new", rows, bucketOfRow)
		old := ranged(t, b, "old", rows)
		if sections := sectionsOf(t, run); buckets == 1 && (len(sections) != 1 || run.SHA256 != old.SHA256) {
			t.Errorf("a run of one bucket has %d sections and other bytes than a table", len(sections))
		}
		checked := manifest.NewChecked(b)
		checked.Add("", run)
		at := map[int]manifest.Section{}
		for _, s := range sectionsOf(t, run) {
			at[s.Bucket] = s
		}
		for bucket := range buckets {
			var want []schema.TargetLinks
			for _, row := range tabletest.Read[schema.TargetLinks](t, b, "old", table.IntRange("target_bucket", int64(bucket), int64(bucket))) {
				if int(row.Bucket) == bucket {
					want = append(want, row)
				}
			}
			s, ok := at[bucket]
			if ok != (len(want) > 0) || s.Rows != int64(len(want)) {
				t.Fatalf("bucket %d of %d: %d rows, its section %+v", bucket, buckets, len(want), s)
			}
			if !ok {
				continue
			}
			for _, from := range []store.Bucket{b, checked} {
				got, err := readSection(t, from, s)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
					t.Errorf("bucket %d of %d: %s", bucket, buckets, d)
				}
			}
		}
	}
}

// Each section has the same bytes as a run that consists only of this section.
func TestSectionsHaveTheBytesOfSeparateFiles(t *testing.T) {
	b := newStore(t)
	rows := randomTargets(4, 9, 3000)
	run := tabletest.WriteRun(t, b, "targets", "run", rows, bucketOfRow)
	body, _, err := b.Get(t.Context(), "run", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sectionsOf(t, run) {
		own := slices.DeleteFunc(slices.Clone(rows), func(r schema.TargetLinks) bool { return int(r.Bucket) != s.Bucket })
		tabletest.WriteRun(t, b, "targets", fmt.Sprint(s.Bucket), own, bucketOfRow)
		want, _, err := b.Get(t.Context(), fmt.Sprint(s.Bucket), 1<<30)
		if err != nil || !bytes.Equal(body[s.Offset:s.Offset+s.Bytes], want) {
			t.Errorf("the section of bucket %d has other bytes than a file of its rows (%v)", s.Bucket, err)
		}
	}
}

func TestARunWithoutRowsHasAnEmptySection(t *testing.T) {
	b := newStore(t)
	run := tabletest.WriteRun(t, b, "targets", "run", nil, bucketOfRow)
	sections := sectionsOf(t, run)
	if len(sections) != 1 || sections[0].Bucket != 0 || sections[0].Rows != 0 || run.Bytes != sections[0].Bytes {
		t.Fatalf("%+v of %+v", sections, run)
	}
	if rows, err := readSection(t, b, sections[0]); len(rows) != 0 || err != nil {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func TestARunRefusesRowsOutOfOrder(t *testing.T) {
	rows := func(yield func(schema.TargetLinks, error) bool) {
		_ = yield(schema.TargetLinks{Bucket: 2}, nil) && yield(schema.TargetLinks{Bucket: 1}, nil)
	}
	dir := t.TempDir()
	if _, err := table.WriteRun(dir+"/rows", rows, bucketOfRow); err == nil || !strings.Contains(err.Error(), "bucket 1 comes after bucket 2") {
		t.Errorf("got %v", err)
	}
}

func TestDamageOfASectionIsNamedAndHarmsNoOther(t *testing.T) {
	b := newStore(t)
	run := tabletest.WriteRun(t, b, "targets", "run", randomTargets(1, 20, 4000), bucketOfRow)
	sections := sectionsOf(t, run)
	body, _, err := b.Get(t.Context(), "run", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	harmed := sections[3]
	for _, at := range []int64{harmed.Offset, harmed.Offset + harmed.Bytes/2, harmed.Offset + harmed.Bytes - 1} {
		other := newStore(t)
		bad := bytes.Clone(body)
		bad[at] ^= 1
		if _, err := store.CreateBytes(t.Context(), other, "run", bad); err != nil {
			t.Fatal(err)
		}
		checked := manifest.NewChecked(other)
		checked.Add("put it back", run)
		for _, s := range sections {
			_, err := readSection(t, checked, s)
			switch {
			case s.Bucket != harmed.Bucket && err != nil:
				t.Errorf("bucket %d, harmed is %d: %v", s.Bucket, harmed.Bucket, err)
			case s.Bucket == harmed.Bucket && (!errors.Is(err, manifest.ErrChanged) ||
				!strings.Contains(err.Error(), fmt.Sprintf(`"run": its bytes %d to %d`, s.Offset, s.Offset+s.Bytes)) || !strings.Contains(err.Error(), "put it back")):
				t.Errorf("byte %d of a section at %d: %v", at, s.Offset, err)
			}
		}
	}
	short := newStore(t)
	if _, err := store.CreateBytes(t.Context(), short, "run", body[:harmed.Offset+9]); err != nil {
		t.Fatal(err)
	}
	if _, err := readSection(t, short, harmed); !errors.Is(err, manifest.ErrChanged) || !strings.Contains(err.Error(), `"run"`) {
		t.Errorf("a run that was cut short: %v", err)
	}
}

// The costs of a section depend on its own size, not on the run's number of buckets.
func TestASectionCostsTwoRequestsAndNoByteOfAnother(t *testing.T) {
	for _, buckets := range []int{1, 500} {
		counter := store.Count(newStore(t))
		run := tabletest.WriteRun(t, counter, "targets", "run", randomTargets(2, buckets, 20_000), bucketOfRow)
		checked := manifest.NewChecked(counter)
		checked.Add("", run)
		sections := sectionsOf(t, run)
		s := sections[len(sections)/2]
		before := counter.Counts()
		if _, err := readSection(t, checked, s); err != nil {
			t.Fatal(err)
		}
		after := counter.Counts()
		if gets, read := after.Gets-before.Gets, after.BytesIn-before.BytesIn; gets != 2 || read != s.Bytes {
			t.Errorf("%d buckets: %d calls and %d bytes for a section of %d", buckets, gets, read, s.Bytes)
		}
	}
}

// A section of more than 4 MiB consists of row groups, and one request reads each of them.
func TestALargeSectionIsReadByRowGroups(t *testing.T) {
	counter := store.Count(newStore(t))
	random := rand.NewChaCha8([32]byte{})
	var rows []schema.TargetLinks
	text := make([]byte, 1000)
	for i := range 12_000 {
		random.Read(text) //nolint:errcheck // never fails
		rows = append(rows, schema.TargetLinks{Bucket: int32(i / 11_000), Inlink: schema.Inlink{SURT: fmt.Sprintf("%06d", i), URL: fmt.Sprintf("%x", text)}})
	}
	run := tabletest.WriteRun(t, counter, "targets", "run", rows, bucketOfRow)
	checked := manifest.NewChecked(counter)
	checked.Add("", run)
	s := sectionsOf(t, run)[0]
	before := counter.Counts()
	got, err := readSection(t, checked, s)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(rows[:11_000], got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	after := counter.Counts()
	if gets, read := after.Gets-before.Gets, after.BytesIn-before.BytesIn; s.Bytes < 8<<20 || gets > 2+s.Bytes/(1<<20) || read > s.Bytes+s.Bytes/2 {
		t.Errorf("%d calls and %d bytes for a section of %d", gets, read, s.Bytes)
	}
}

func TestSectionsMergeInPasses(t *testing.T) {
	b := newStore(t)
	var sections []manifest.Section
	var want []schema.TargetLinks
	for i := range 70 {
		rows := randomTargets(uint64(i), 5, 200)
		run := tabletest.WriteRun(t, b, "targets", fmt.Sprint("run", i), rows, bucketOfRow)
		for _, s := range sectionsOf(t, run) {
			if s.Bucket == 2 {
				sections = append(sections, s)
			}
		}
		want = append(want, slices.DeleteFunc(rows, func(r schema.TargetLinks) bool { return r.Bucket != 2 })...)
	}
	slices.SortStableFunc(want, tabletest.ByKey(schema.TargetKey))
	got, err := tabletest.Collect(table.MergeSections(t.Context(), b, t.TempDir(), sections, schema.TargetKey))
	if err != nil || len(sections) <= 64 {
		t.Fatalf("%d sections: %v", len(sections), err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}

// BenchmarkOpenRuns opens one bucket of 64 runs of 500 buckets, and the same rows as tables whose row
// groups end with buckets.
func BenchmarkOpenRuns(b *testing.B) {
	const runs, buckets = 64, 500
	bucket := newStore(b)
	rows := randomTargets(1, buckets, 50_000)
	old := ranged(b, bucket, "old", rows)
	run := tabletest.WriteRun(b, bucket, "targets", "new", rows, bucketOfRow)
	sections := sectionsOf(b, run)
	checked := manifest.NewChecked(bucket)
	checked.Add("", old, run)
	open := map[string]func() (io.Closer, error){
		"tables": func() (io.Closer, error) {
			return table.Open[schema.TargetLinks](context.Background(), checked, "old", table.IntRange("target_bucket", 250, 250))
		},
		"sections": func() (io.Closer, error) {
			return table.OpenSection[schema.TargetLinks](context.Background(), checked, sections[len(sections)/2])
		},
	}
	for _, name := range []string{"tables", "sections"} {
		b.Run(name, func(b *testing.B) {
			var heap uint64
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				var opened []io.Closer
				for range runs {
					r, err := open[name]()
					if err != nil {
						b.Fatal(err)
					}
					opened = append(opened, r)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				heap = after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
				for _, r := range opened {
					_ = r.Close()
				}
			}
			b.ReportMetric(float64(heap)/runs/1024, "KiB/run")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/runs, "µs/run")
		})
	}
	b.Logf("table %d bytes, run %d bytes, index %d bytes", old.Bytes, run.Bytes, len(run.SectionIndex))
}
