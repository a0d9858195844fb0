package dedup

import (
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// putMany writes n pages in partitions of a million. A tenth of the pages are copies of earlier
// pages, and one in a hundred resembles an earlier page.
func putMany(b *testing.B, bucket store.Bucket, n int) (parts []*manifest.Result) {
	const partition = 1_000_000
	env := &stages.Env{Bucket: bucket, Scratch: b.TempDir()}
	r := rand.New(rand.NewPCG(1, uint64(n)))
	fingerprints := make([]uint64, 1<<16) // recent pages to copy
	for begin := 0; begin < n; begin += partition {
		key := layout.Working("2026-11", 0, "merge", stages.FilePages, begin/partition)
		f, err := stages.Write(b.Context(), env, stages.FilePages, key, stages.ByURL, func(w *table.Writer[schema.Representative]) error {
			for i := begin; i < min(n, begin+partition); i++ {
				fp := r.Uint64()
				if old := fingerprints[r.IntN(len(fingerprints))]; old != 0 && i%10 == 1 {
					fp = old
				} else if old != 0 && i%100 == 2 {
					fp = old ^ 1<<r.IntN(64) ^ 1<<r.IntN(64)
				}
				fingerprints[i%len(fingerprints)] = fp
				var sum [20]byte
				binary.BigEndian.PutUint64(sum[:], fp*0x9e3779b97f4a7c15)
				if err := w.Append(&schema.Representative{
					SURT: fmt.Sprintf("test,host%06d)/a/page/%09d", i/1000, i), URL: fmt.Sprintf("http://host%06d.test/a/page/%09d", i/1000, i),
					WordCount: 300, TextDigest: base32.StdEncoding.EncodeToString(sum[:]), SimHash: int64(fp),
				}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		parts = append(parts, &manifest.Result{Files: []manifest.File{f}})
	}
	return parts
}

// BenchmarkShards measures the CPU of the four stages that divide a round of 8 buckets, for each page of
// the round. CRAWLBATCH_BENCH_PAGES sets another number of pages.
func BenchmarkShards(b *testing.B) {
	n, buckets := 1_000_000, 8
	if asked := os.Getenv("CRAWLBATCH_BENCH_PAGES"); asked != "" {
		if _, err := fmt.Sscan(asked, &n); err != nil {
			b.Fatal(err)
		}
	}
	bucket, err := dirstore.Open(b.TempDir(), dirstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	in := &stages.Input{
		Task: stages.Task{Crawl: "2026-11"}, Plan: &manifest.Plan{Buckets: buckets},
		Results: map[stages.Stage][]*manifest.Result{stages.Merge: putMany(b, bucket, n)},
	}
	for i := range in.Results[stages.Merge] {
		in.Plan.Partitions = append(in.Plan.Partitions, manifest.PlanPartition{Partition: i, Bucket: i % buckets})
	}
	for _, stage := range []stages.Stage{stages.Digest, stages.Similar, stages.Cluster, stages.Dedup} {
		b.Run(string(stage), func(b *testing.B) {
			var before, after syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
			for b.Loop() {
				in.Results[stage] = nil
				for in.Task.Stage, in.Task.Partition = stage, 0; in.Task.Partition < stage.Tasks(in.Plan); in.Task.Partition++ {
					env := &stages.Env{Bucket: bucket, Scratch: b.TempDir(), Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler), Progress: stages.NoProgress{}}
					r, err := Run(b.Context(), env, in, defaults)
					if err != nil {
						b.Fatal(err)
					}
					in.Results[stage] = append(in.Results[stage], r)
				}
			}
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
			used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
			b.ReportMetric(float64(used)/float64(b.N)/float64(n), "cpu-ns/page")
		})
	}
}

// BenchmarkDedup measures whole tasks. CRAWLBATCH_BENCH_PAGES sets another number of pages.
func BenchmarkDedup(b *testing.B) {
	sizes := []int{100_000, 1_000_000}
	if asked := os.Getenv("CRAWLBATCH_BENCH_PAGES"); asked != "" {
		var n int
		if _, err := fmt.Sscan(asked, &n); err != nil {
			b.Fatal(err)
		}
		sizes = []int{n}
	}
	for _, n := range sizes {
		b.Run(fmt.Sprintf("pages=%d", n), func(b *testing.B) {
			bucket, err := dirstore.Open(b.TempDir(), dirstore.Options{})
			if err != nil {
				b.Fatal(err)
			}
			in := &stages.Input{
				Task: stages.Task{Stage: stages.Dedup, Crawl: "2026-11"}, Plan: &manifest.Plan{Buckets: 1},
				Results: map[stages.Stage][]*manifest.Result{stages.Merge: putMany(b, bucket, n)},
			}
			for i := range in.Results[stages.Merge] {
				in.Plan.Partitions = append(in.Plan.Partitions, manifest.PlanPartition{Partition: i})
			}
			b.ReportAllocs()
			for b.Loop() {
				env := &stages.Env{Bucket: bucket, Scratch: b.TempDir(), Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler), Progress: stages.NoProgress{}}
				if _, err := Run(b.Context(), env, in, defaults); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/page")
		})
	}
}
