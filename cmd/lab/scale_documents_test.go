//go:build lab

package lab

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// scaleDocuments names the environment variable with the sizes of the generated rounds, in planned
// URLs. Only the documents of such a round exist, not the files that they list.
const scaleDocuments = "CRAWLBATCH_SCALE_DOCUMENTS"

// The sizes of generated rounds.
const (
	documentPartition = 500_000   // URLs of a partition
	documentBucket    = 2_000_000 // URLs of a bucket
	documentSegments  = 205       // segments of a partition, as half a million real pages have
	documentWARCs     = 21        // WARC files of a partition
)

// TestScaleDocuments generates the documents of rounds of a billion URLs and more. Of the files that the documents list,
// only those exist that a plan reads, without rows. TestScaleDocuments seals each round, plans the next month, and reads the
// documents with `status`, `views` and `verify`. Each command is a process of its own, which must take at most a
// GiB; the test prints its time and peak memory. A later call with the same directory does not generate the documents again.
func TestScaleDocuments(t *testing.T) {
	state, sizes := os.Getenv(scaleSwitch), strings.Fields(os.Getenv(scaleDocuments))
	if state == "" || len(sizes) == 0 {
		t.Skipf("%s or %s is not set: `make scale` runs this", scaleSwitch, scaleDocuments)
	}
	for _, size := range sizes {
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n < 1 {
			t.Fatalf("the size %q: it must be a positive number", size)
		}
		t.Run(size, func(t *testing.T) {
			d := &documentRound{t: t, dir: filepath.Join(state, "documents-"+size), month: demo.Crawl}
			if err := os.MkdirAll(d.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			d.b = crawltest.OpenDir(t, filepath.Join(d.dir, "store"))
			p := d.generate(n)
			d.command(0, "run", "--rounds", "1")
			d.command(0, "status")
			d.command(0, "views", "--dialect", "duckdb")
			d.load(p)
			d.command(4, "verify", "--sample", "0.001") // most of the listed files do not exist
			d.month = "2000-02"
			d.command(0, "plan", "--source", filepath.Join(d.dir, "urls.txt"), "--config", filepath.Join(d.dir, "c.yaml"), "--replace")
		})
	}
}

// documentRound is a store with the documents of one round.
type documentRound struct {
	t          *testing.T
	dir, month string
	b          store.Bucket
}

// command runs a command with a soft memory limit of 900 MiB, and prints what it cost.
func (d *documentRound) command(want int, name string, args ...string) {
	d.t.Helper()
	cmd := exec.Command(program, append([]string{name, "--month", d.month, "--store", filepath.Join(d.dir, "store")}, args...)...)
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=900MiB")
	var body bytes.Buffer
	cmd.Stdout, cmd.Stderr = &body, &body
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	peak := int64(0)
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-time.After(10 * time.Millisecond):
			peak = max(peak, crawltest.HighWater(cmd.Process.Pid))
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		d.t.Errorf("%s: exit %d, want %d\n%.2000s", name, code, want, body.String())
	}
	if peak > 1<<30 {
		d.t.Errorf("%s took %d MiB, at most 1024 expected", name, peak>>20)
	}
	d.t.Logf("%-7s %6.1f s, %6.1f s of CPU, %5d MiB at most, %8d bytes printed", name, time.Since(begin).Seconds(),
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), peak>>20, body.Len())
}

// load reads the seal of the round four times and prints the costs: with the files that frontier needs,
// that dedup needs, that the planner needs, and with all files.
func (d *documentRound) load(p *manifest.Plan) {
	d.t.Helper()
	for _, task := range []struct {
		stage stages.Stage
		want  roundstate.Selection
	}{
		{stages.Frontier, roundstate.Selection{Dataset: func(s string) bool { return s == stages.FileURLs }, Bucket: p.Buckets / 2, Buckets: p.Buckets}},
		{stages.Cluster, roundstate.Selection{Dataset: func(s string) bool { return s == stages.FileRepresentatives }}},
		{"plan", roundstate.Selection{Dataset: func(s string) bool { return s == stages.FileURLs || s == stages.FileHosts }}},
		{"all", roundstate.Selection{}},
	} {
		counted := store.Count(d.b)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		begin := time.Now()
		sealed, err := roundstate.History(d.t.Context(), counted, demo.Crawl)
		if err == nil {
			sealed, err = roundstate.WithFiles(d.t.Context(), counted, sealed, task.want)
		}
		if err != nil {
			d.t.Fatal(err)
		}
		took := time.Since(begin)
		runtime.GC()
		runtime.ReadMemStats(&after)
		d.t.Logf("%s of the next round gets %d files of %d manifests: %.3f s, %d requests, %.1f MiB read, %.1f MiB kept", task.stage,
			len(sealed[0].Files), len(sealed[0].Manifests), took.Seconds(), counted.Counts().Gets, float64(counted.Counts().BytesIn)/(1<<20), float64(after.HeapAlloc-before.HeapAlloc)/(1<<20))
		runtime.KeepAlive(sealed)
	}
}

// generate stores the documents of a round with the given number of URLs, including the results of
// all stages.
func (d *documentRound) generate(urls int64) *manifest.Plan {
	d.t.Helper()
	ctx := d.t.Context()
	const id = "generated"
	if p, started, err := roundstate.FindPlan(ctx, d.b, demo.Crawl, 0); err == nil && started && p.ID == id {
		return d.results(p)
	}
	seeds := filepath.Join(d.dir, "urls.txt")
	crawltest.Write(d.t, seeds, "http://a.test/\n")
	config := filepath.Join(d.dir, "c.yaml")
	crawltest.Write(d.t, config, fmt.Sprintf(scaleConfig, "::127.0.0.1:9", documentPartition, documentBucket))
	d.command(0, "plan", "--source", seeds, "--config", config)
	p := &manifest.Plan{ID: id, Crawl: demo.Crawl, Buckets: int((urls + documentBucket - 1) / documentBucket), URLs: urls, Domains: urls / 1000, Hosts: urls / 500}
	partitions := int((urls + documentPartition - 1) / documentPartition)
	for n := range partitions {
		p.Partitions = append(p.Partitions, manifest.PlanPartition{
			Partition: n, Bucket: n * p.Buckets / partitions, URLs: documentPartition, Domains: 500, Hosts: 1000, EstimatedSeconds: 70_000,
			File: generatedFile("plan", layout.PlanPart(demo.Crawl, 0, id, n), documentPartition, 40<<20),
		})
	}
	p.URLs = int64(partitions) * documentPartition
	if _, err := manifest.Create(ctx, d.b, layout.PlanManifest(demo.Crawl, 0, id), p); err != nil {
		d.t.Fatal(err)
	}
	any := func(*ledger.Ledger) ([]manifest.Entry, error) { return nil, nil }
	if err := roundstate.Choose(ctx, d.b, p, "2026-11-01T00:00:00Z", ledgers(), any); err != nil {
		d.t.Fatal(err)
	}
	if _, err := roundstate.Begin(ctx, d.b, demo.Crawl, 0, ledgers()); err != nil {
		d.t.Fatal(err)
	}
	return d.results(p)
}

// results stores the frozen inputs and the results of all stages of a round.
func (d *documentRound) results(p *manifest.Plan) *manifest.Plan {
	d.t.Helper()
	ctx := d.t.Context()
	for _, stage := range stages.Order {
		marker := filepath.Join(d.dir, string(stage)+" is generated")
		if _, err := os.Stat(marker); err == nil {
			continue
		}
		if stage != stages.Fetch {
			if _, err := roundstate.Freeze(ctx, d.b, p, stage, ledgers()); err != nil {
				d.t.Fatal(err)
			}
		}
		var group errgroup.Group
		group.SetLimit(8)
		for _, task := range roundstate.Tasks(p, stage) {
			group.Go(func() error { return d.createGenerated(ctx, p, task) })
		}
		if err := group.Wait(); err != nil {
			d.t.Fatal(err)
		}
		crawltest.Write(d.t, marker, "")
	}
	return p
}

// createGenerated stores the result of a task, with the files that such a task makes.
func (d *documentRound) createGenerated(ctx context.Context, p *manifest.Plan, task stages.Task) error {
	r := &manifest.Result{Task: task.String(), Stage: string(task.Stage), Partition: task.Partition, Plan: p.ID, Counts: []manifest.Count{{Name: "rows", N: documentPartition}}}
	n, crawl := task.Partition, p.Crawl
	add := func(dataset, key string, rows, bytes int64) {
		r.Files = append(r.Files, generatedFile(dataset, key, rows, bytes))
	}
	working := func(dataset string, n int, rows int64) {
		add(dataset, layout.Working(crawl, 0, string(task.Stage), dataset, n), rows, rows*20)
	}
	published := func(dataset string, n int, rows int64) {
		add(dataset, layout.Table(dataset, crawl, 0, n), rows, rows*40)
	}
	switch task.Stage {
	case stages.Fetch:
		for i := range documentSegments {
			for _, dataset := range []string{"fetches", "requests", "captures-warc", "pages", "text", "links", "robots"} {
				add(strings.TrimSuffix(dataset, "-warc"), layout.Segment(crawl, 0, p.ID, n, 1, i, dataset), documentPartition/documentSegments, 8<<20)
			}
		}
		for i := range documentWARCs {
			key := layout.WARC(crawl, 0, p.ID, n, 1, i)
			add(stages.FileWARC, key, 0, 1<<30)
			add(stages.FileCDXJ, layout.CDXJ(key), 0, 10<<20)
		}
	case stages.Merge:
		for _, subset := range schema.Subsets {
			f := generatedFile(stages.FileCaptures, layout.Captures(crawl, string(subset), 0, n), documentPartition, 50<<20)
			f.Subset = string(subset)
			r.Files = append(r.Files, f)
		}
		for _, dataset := range []string{stages.FileFetches, stages.FileRequests, stages.FileText, stages.FileLinks} {
			published(dataset, n, documentPartition)
		}
		for _, dataset := range []string{stages.FilePages, stages.FileTargets, stages.FileRedirects, stages.FileHostEdges, stages.FileHosts} {
			working(dataset, n, documentPartition)
		}
	case stages.Digest:
		working(stages.FileClasses, n, documentPartition)
		working(stages.FileExact, n, documentPartition/10)
	case stages.Similar:
		working(stages.FilePairs, n, documentPartition/10)
	case stages.Cluster:
		add(stages.FileVerdicts, layout.Run(crawl, 0, string(stages.Cluster), stages.FileVerdicts, n), documentPartition, documentPartition*50)
	case stages.Dedup:
		published(stages.FileDuplicates, n, documentBucket/10)
		working(stages.FileRepresentatives, n, documentBucket)
	case stages.Rank:
		working(stages.FileInlinks, n, documentBucket)
		for bucket := 0; n == 0 && bucket < p.Buckets; bucket++ {
			r.Files = append(r.Files, tabletest.Write[schema.Host](d.t, d.b, stages.FileHosts, layout.Table(stages.FileHosts, crawl, 0, bucket), nil))
		}
	case stages.Frontier:
		r.Files = append(r.Files, tabletest.Write[schema.URLRecord](d.t, d.b, stages.FileURLs, layout.Table(stages.FileURLs, crawl, 0, n), nil))
		published(stages.FileSkips, n, documentBucket/2)
		filter, err := emptyFilter(ctx, d.b, filepath.Join(d.dir, fmt.Sprint("known-", n)), layout.URLFilter(crawl, 0, n))
		if err != nil {
			return err
		}
		r.Files = append(r.Files, filter)
	case stages.Publish:
		published(stages.FilePages, n, documentPartition)
	}
	_, err := manifest.Create(ctx, d.b, roundstate.ResultKey(task), r)
	return err
}

// emptyFilter stores a URL filter that holds nothing.
func emptyFilter(ctx context.Context, b store.Bucket, scratch, key string) (manifest.File, error) {
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return manifest.File{}, err
	}
	defer os.RemoveAll(scratch)
	w, err := urlfilter.NewWriter(filepath.Join(scratch, "known"))
	if err != nil {
		return manifest.File{}, err
	}
	defer w.Abort()
	return w.Finish(ctx, b, stages.FileURLFilter, key)
}

// generatedFile describes a file that does not exist.
func generatedFile(dataset, key string, rows, bytes int64) manifest.File {
	f := manifest.File{Dataset: dataset, Key: key, Rows: rows, Bytes: bytes, SHA256: manifest.Digest([]byte(key))}
	if dataset == stages.FileRepresentatives {
		digests := make([]byte, bytes/manifest.BlockBytes*16)
		_, _ = rand.NewChaCha8([32]byte([]byte(f.SHA256)[:32])).Read(digests) // Read never fails
		f.Blocks = base64.RawStdEncoding.EncodeToString(digests)
	}
	return f
}
