package planner

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/planner/source"
)

// Environment variables of TestScaleHistory.
const (
	scaleKnown   = "CRAWLBATCH_SCALE_KNOWN"         // number of URLs that the earlier round knows
	scaleState   = "CRAWLBATCH_SCALE"               // directory of the store and the list, kept for the next call
	scaleProcess = "CRAWLBATCH_SCALE_KNOWN_PROCESS" // set in the processes that TestScaleHistory starts: history or none
)

// urlsPerDomain is the number of known URLs of each domain of the generated history.
const urlsPerDomain = 500

func scaleURL(n int) string {
	return fmt.Sprintf("https://www.d%07d.example/articles/%06d.html", n/urlsPerDomain, n%urlsPerDomain)
}

// TestScaleHistory plans a list of which half is known to an earlier round: a fifth of the size of
// that round. It prints the CPU time and the memory of a process that plans the list with history,
// and of a process that plans it without.
func TestScaleHistory(t *testing.T) {
	size, _ := strconv.Atoi(os.Getenv(scaleKnown))
	if size < 1 {
		t.Skipf("%s is not set: `make scale` runs this", scaleKnown)
	}
	dir := filepath.Join(os.Getenv(scaleState), fmt.Sprintf("known-%d", size))
	if history := os.Getenv(scaleProcess); history != "" {
		planScale(t, dir, history == "history")
		return
	}
	if _, err := os.Stat(filepath.Join(dir, "sealed.json")); err != nil {
		generateHistory(t, dir, size)
	}
	cpu := map[string]float64{}
	for _, history := range []string{"none", "history"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestScaleHistory$", "-test.timeout=0")
		cmd.Env = append(os.Environ(), scaleProcess+"="+history, "GOMEMLIMIT=800MiB") // the limit of crawlbatch plan
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("history %s: %v\n%s", history, err, out)
		}
		cpu[history] = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
		t.Logf("%d listed URLs, history %s: %.1f s of CPU, %d MiB", size/5, history, cpu[history], peak)
		if peak > 1024 {
			t.Errorf("a plan with history %s takes %d MiB, more than 1 GiB", history, peak)
		}
	}
	ratio := cpu["history"] / cpu["none"]
	t.Logf("history takes %.2f times the CPU", ratio)
	if ratio > 2 {
		t.Error("history takes more than twice the CPU of a plan without it")
	}
}

// planScale plans the list with the generated history, or without it, and checks what it found.
func planScale(t *testing.T, dir string, history bool) {
	b, err := dirstore.Open(filepath.Join(dir, "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := source.Open(t.Context(), filepath.Join(dir, "urls.txt"), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := request(t, list)
	if history {
		data, err := os.ReadFile(filepath.Join(dir, "sealed.json"))
		s := new(manifest.Sealed)
		if err = errors.Join(err, json.Unmarshal(data, s)); err != nil {
			t.Fatal(err)
		}
		r.History = []source.Known{source.History(b, []*manifest.Sealed{s}, new(source.FilterAnswers))}
		r.Buckets = s.Buckets
	}
	p, err := Make(t.Context(), Default(), r)
	if err != nil {
		t.Fatal(err)
	}
	out, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err == nil {
		err = p.Commit(t.Context(), out)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := p.Manifest()
	refused, known := m.RefusedFile.Rows, 0
	for u, err := range table.Concat[schema.PlannedURL](t.Context(), out, []string{m.Partitions[0].File.Key}) {
		if err != nil {
			t.Fatal(err)
		}
		if u.Fetches > 0 {
			known++
		}
	}
	if history != (known > 0) {
		t.Errorf("the first partition has %d known URLs", known)
	}
	t.Logf("%d partitions, %d refused URLs", len(m.Partitions), refused)
}

// generateHistory stores what a round knows about size URLs, and a list: every tenth of them and as
// many other URLs, in an order that has nothing to do with theirs.
func generateHistory(t *testing.T, dir string, size int) {
	if err := os.MkdirAll(filepath.Join(dir, "store"), 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := dirstore.Open(filepath.Join(dir, "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &manifest.Sealed{Crawl: "2026-10", Buckets: max(1, size/2_000_000)}
	domains := make([][]int, s.Buckets)
	for d := range (size + urlsPerDomain - 1) / urlsPerDomain {
		bucket := urlkey.Bucket(fmt.Sprintf("d%07d.example", d), s.Buckets)
		domains[bucket] = append(domains[bucket], d)
	}
	for bucket := range s.Buckets {
		s.Files = append(s.Files, generateBucket(t, b, bucket, domains[bucket])...)
	}
	f, err := os.Create(filepath.Join(dir, "urls.txt"))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	listed := size / 10
	for i := range listed {
		n := i * 7_368_787 % listed * 10 // a prime step, which no listed size is a multiple of
		fmt.Fprintf(w, "%s\n%s?page=2\n", scaleURL(n), scaleURL(n))
	}
	data, err := json.Marshal(s)
	if err = errors.Join(err, w.Flush(), f.Close()); err == nil {
		err = os.WriteFile(filepath.Join(dir, "sealed.json"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// generateBucket stores the URL filter and the rows of urls of one bucket. The URLs of its domains,
// which are in order, are in the order of the table.
func generateBucket(t *testing.T, b store.Bucket, bucket int, domains []int) []manifest.File {
	w, err := table.NewWriter[schema.URLRecord](filepath.Join(t.TempDir(), "rows.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	known, err := urlfilter.NewWriter(filepath.Join(t.TempDir(), "known"))
	if err != nil {
		t.Fatal(err)
	}
	defer known.Abort()
	for _, d := range domains {
		for n := d * urlsPerDomain; n < (d+1)*urlsPerDomain; n++ {
			k, err := urlkey.KeyOf(scaleURL(n))
			r := schema.URLRecord{
				SURT: k.SURT, URL: k.URL, Host: k.Host, Domain: k.Domain, State: schema.StateFetched, FirstSeen: "2026-10.0", LastPlanned: "2026-10.0",
				Fetches: 1, ETag: fmt.Sprintf(`"%x"`, n*0x9E3779B1), ContentDigest: fmt.Sprintf("%032X", n), LastFetched: schema.Time(1_790_000_000_000+n) * 1000, NextDue: 1_800_000_000_000_000,
				WARCFilename: layout.WARC("2026-10", 0, "p-0000", n/100_000, 1, 0), WARCRecordOff: int32(n % 100_000 * 4000), WARCRecordLen: 3900, ContentAt: schema.Time(1_790_000_000_000+n) * 1000, Depth: 3, Priority: 500,
			}
			if err = errors.Join(err, w.Append(&r), known.Add(k.URL)); err != nil {
				t.Fatal(err)
			}
		}
	}
	rows, err := table.Finish(t.Context(), w, b, urlstate.Delta, layout.Table(urlstate.Delta, "2026-10", 0, bucket))
	if err != nil {
		t.Fatal(err)
	}
	filter, err := known.Finish(t.Context(), b, urlstate.Filter, layout.URLFilter("2026-10", 0, bucket))
	if err != nil {
		t.Fatal(err)
	}
	return []manifest.File{filter, rows}
}
