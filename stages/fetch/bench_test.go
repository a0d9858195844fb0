package fetch

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
	"crawlbatch.io/crawlbatch/stages/fetch/partition"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// bench is a partition of many URLs in a directory store.
type bench struct {
	env  *stages.Env
	in   *Input
	cfg  Config
	rows int
}

const benchHostRows = 200

func newBench(b *testing.B, rows int) *bench {
	b.Helper()
	bucket, err := dirstore.Open(filepath.Join(b.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	x := &bench{
		env: &stages.Env{
			Bucket: bucket, Scratch: b.TempDir(), Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler), Progress: stages.NoProgress{}, Version: "bench",
		},
		in: &Input{Task: stages.Task{Stage: stages.Fetch, Crawl: "2026-11"}}, cfg: Default(), rows: rows,
	}
	x.cfg.UserAgent = "benchbot/1.0 (+https://example.org/)"
	f := benchFile(b, bucket, "planned", layout.PlanPart("2026-11", 0, "p", 0), rows, func(n int) schema.PlannedURL {
		host := fmt.Sprintf("h%07d.example", n/benchHostRows)
		return schema.PlannedURL{URL: benchURL(n), SURT: "example,h)/" + fmt.Sprint(n), Host: host, Domain: host, Priority: 500}
	})
	x.in.Plan = &manifest.Plan{ID: "p", Crawl: "2026-11", Buckets: 1, Partitions: []manifest.PlanPartition{{URLs: int64(rows), File: f}}}
	return x
}

func benchURL(n int) string {
	return fmt.Sprintf("http://h%07d.example/section/%d/a-page-of-some-length", n/benchHostRows, n)
}

func benchFile[T any](b *testing.B, bucket store.Bucket, dataset, key string, rows int, row func(int) T) manifest.File {
	b.Helper()
	w, err := table.NewWriter[T](filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	for n := range rows {
		r := row(n)
		if err := w.Append(&r); err != nil {
			b.Fatal(err)
		}
	}
	f, err := table.Finish(b.Context(), w, bucket, dataset, key)
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// crashed writes the checkpoint of an attempt that died half-way.
func (x *bench) crashed(b *testing.B) {
	b.Helper()
	const segments = 10
	cp := &manifest.Checkpoint{Plan: "p", Epoch: 1, Counter: 7, Holder: "dead", LeaseMS: 180_000}
	recorded := roaring.New()
	part := x.rows / 2 / segments
	for s := range segments {
		key := layout.Segment("2026-11", 0, "p", 0, 1, s, "fetches")
		cp.Files = append(cp.Files, benchFile(b, x.env.Bucket, stages.FileFetches, key, part, func(n int) schema.Fetch {
			row := 2 * (s*part + n)
			recorded.Add(uint32(row))
			f := schema.Fetch{URL: benchURL(row), Outcome: schema.OK, FinalURL: benchURL(row), PlannedRow: int32(row)}
			if n%10 == 0 {
				f.Redirects, f.FinalURL = 1, f.URL+"/"
			}
			return f
		}))
	}
	key := layout.Segment("2026-11", 0, "p", 0, 1, 0, "robots")
	cp.Files = append(cp.Files, benchFile(b, x.env.Bucket, stages.FileRobots, key, x.rows/benchHostRows, func(n int) schema.RobotsFile {
		return schema.RobotsFile{
			Origin: fmt.Sprintf("http://h%07d.example", n), Host: fmt.Sprintf("h%07d.example", n), Rules: true, Digest: "D",
			Body: []byte("User-agent: *\n" + strings.Repeat("Disallow: /some/path/*/that/nobody/should/see\n", 40)), Until: schema.TimeOf(time.Now().Add(time.Hour)),
		}
	}))
	n := int64(part * segments)
	cp.Counts = []manifest.Count{{Name: stages.CountOutcomes + string(schema.OK), N: n}, {Name: "urls", N: n}}
	var err error
	if cp.Recorded, err = recorded.ToBytes(); err != nil {
		b.Fatal(err)
	}
	if _, err := manifest.Swap(b.Context(), x.env.Bucket, layout.Checkpoint("2026-11", 0, 0), cp, ""); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkResume measures the time from the start of an attempt to its first request, after the
// previous attempt died half-way. The goal is 2 s for 50,000 URLs and 10 s for a million.
func BenchmarkResume(b *testing.B) {
	for _, rows := range []int{50_000, 1_000_000} {
		b.Run(fmt.Sprint(rows, " URLs"), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				x := newBench(b, rows)
				x.crashed(b)
				b.StartTimer()
				a, end, err := x.attempt(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if left := a.fetcher.sched.Remaining(); left != rows/2 {
					b.Fatalf("%d URLs are left, want %d", left, rows/2)
				}
				end()
				b.StartTimer()
			}
		})
	}
}

// attempt takes over the partition as a real task does, and stops before the first request.
func (x *bench) attempt(ctx context.Context) (*attempt, func(), error) {
	l, before, err := lease.Acquire(ctx, x.env, leaseOptions(x.in, &x.cfg))
	if err != nil {
		return nil, nil, err
	}
	p, err := partition.Load(ctx, x.env.Bucket, &x.in.Plan.Partitions[0], x.env.Scratch)
	if err != nil {
		return nil, nil, err
	}
	a, err := newAttempt(x.env, x.in, x.cfg, l, p, plainParser{}, hooks{})
	if err != nil {
		return nil, nil, err
	}
	return a, func() { a.close(); l.Close(); _ = p.Close() }, a.resume(ctx, before)
}

// BenchmarkCheckpoint makes a checkpoint of one minute's work: 100 pages a second with typical text
// and links. It reports the share of one CPU that a checkpoint per minute takes; the goal is 3 %.
func BenchmarkCheckpoint(b *testing.B) {
	const pages = 6000
	x := newBench(b, 2*pages*1000)
	a, end, err := x.attempt(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer end()
	words := strings.Repeat("some words that a page of the web may hold and others may not ", 50)
	row := 0
	for b.Loop() {
		b.StopTimer()
		for range pages {
			url := benchURL(row)
			record := &segments.Record{
				Row: int64(row), Fetch: &schema.Fetch{URL: url, Outcome: schema.OK, PlannedRow: int32(row)},
				Requests: []schema.Request{{URL: url, Purpose: schema.ForPage}},
				Captures: []segments.Capture{{Subset: schema.SubsetWARC}},
				Page:     &schema.Page{PageColumns: schema.PageColumns{Title: "a title", PlannedURL: url}}, Text: &schema.Text{URL: url, Main: words[row%50:], Full: words},
			}
			record.Captures[0].URL = url
			for n := range 60 {
				record.Links = append(record.Links, schema.Link{Source: url, Target: benchURL(row + n), Anchor: "read more", Kind: schema.KindA, Ordinal: int32(n)})
			}
			if err := a.log.Emit(record); err != nil {
				b.Fatal(err)
			}
			row++
		}
		b.StartTimer()
		if err := a.checkpoint(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*b.Elapsed().Seconds()/float64(b.N)/60, "%-of-a-minute")
	if err := os.RemoveAll(x.env.Scratch); err != nil {
		b.Fatal(err)
	}
}
