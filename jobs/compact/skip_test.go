package compact

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/stages"
)

// The synthetic month: each round plans skipURLs URLs of each of skipDomains domains.
const (
	skipRounds     = 12
	skipPartitions = 100
	skipDomains    = 4000
	skipURLs       = 12
)

// readersOf is the variable in which `make test-readers` names the Python interpreter of each reader.
const readersOf = "CRAWLBATCH_READERS"

func skipDomain(n int) string { return fmt.Sprintf("site%04d.example", n) }

// skipMonth makes a month of 3,600 parts. Half of the URLs of a domain are the same in each round.
func skipMonth(t *testing.T, b store.Bucket) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2)) // always the same month
	put(t, b, layout.CrawlManifest(crawl), &manifest.Crawl{Crawl: crawl})
	for round := range skipRounds {
		put(t, b, layout.PlanManifest(crawl, round, "p"), &manifest.Plan{ID: "p", Crawl: crawl, Round: round, Buckets: 1, Partitions: []manifest.PlanPartition{{}}})
		for _, stage := range []stages.Stage{stages.Merge, stages.Dedup, stages.Rank, stages.Frontier, stages.Publish} {
			put(t, b, layout.Inputs(crawl, round, string(stage)), &manifest.Inputs{Stage: string(stage), Plan: "p"})
		}
		var files []manifest.File
		for p := range skipPartitions {
			var fetches []schema.Fetch
			var requests []schema.Request
			var links []schema.Link
			for n := p; n < skipDomains; n += skipPartitions { // as a hash would divide them
				domain, host := skipDomain(n), fmt.Sprintf("h%d.%s", n%3, skipDomain(n))
				for i := range skipURLs {
					page := i
					if i%2 == 1 {
						page += (round + 1) * skipURLs
					}
					path := fmt.Sprintf("%016x/page-%d", rand.New(rand.NewPCG(uint64(n), uint64(page))).Uint64(), page)
					var f schema.Fetch
					f.SURT, f.URL, f.Host, f.Domain, f.Outcome = fmt.Sprintf("example,site%04d,h%d)/%s", n, n%3, path), "http://"+host+"/"+path, host, domain, schema.OK
					f.Error = fmt.Sprintf("%016x", random.Uint64())
					fetches = append(fetches, f)
					start := int64(round)*86_400_000 + random.Int64N(86_400_000)
					requests = append(requests, schema.Request{Purpose: schema.ForPage, URL: f.URL, Host: host, Start: start, ErrorDetail: fmt.Sprintf("%016x", random.Uint64())})
					to := random.IntN(skipDomains)
					links = append(links, schema.Link{
						SourceSURT: f.SURT, Source: f.URL, Kind: "a", Anchor: fmt.Sprintf("%016x", random.Uint64()),
						Target: fmt.Sprintf("http://h%d.%s/%016x", to%3, skipDomain(to), random.Uint64N(50)),
					})
				}
			}
			slices.SortFunc(fetches, func(a, b schema.Fetch) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) })
			slices.SortFunc(links, func(a, b schema.Link) int { return schema.CompareURLs(a.SourceSURT, a.Source, b.SourceSURT, b.Source) })
			slices.SortFunc(requests, func(a, b schema.Request) int {
				if c := strings.Compare(a.Host, b.Host); c != 0 {
					return c
				}
				return int(a.Start - b.Start)
			})
			files = append(files,
				publish(t, b, stages.FileFetches, "", layout.Table(stages.FileFetches, crawl, round, p), schema.FormatVersion, []string{"url_surtkey", "url"}, fetches),
				publish(t, b, stages.FileLinks, "", layout.Table(stages.FileLinks, crawl, round, p), schema.FormatVersion, []string{"source_surtkey", "source", "ordinal"}, links),
				publish(t, b, stages.FileRequests, "", layout.Table(stages.FileRequests, crawl, round, p), schema.FormatVersion, []string{"host", "start"}, requests))
		}
		slices.SortFunc(files, func(a, b manifest.File) int { return strings.Compare(a.Key, b.Key) })
		put(t, b, layout.Sealed(crawl, round), &manifest.Sealed{Crawl: crawl, Round: round, Plan: "p", Buckets: 1, Files: files})
	}
	ledgertest.Make(t, b, crawl)
}

// skipQuestion is a question for testdata/readers/skipping.py.
type skipQuestion struct {
	Name   string              `json:"name"`
	Column string              `json:"column"`
	Value  string              `json:"value"`
	Files  map[string][]string `json:"files"`
	most   int                 // number of row groups of the copy that may be read
	bloom  bool                // Bloom filters must exclude row groups that statistics leave
}

// Questions about one URL, host or domain read one row group of a copy where the rows stand together, and those that
// Bloom filters leave elsewhere. It prints the table of formats/README.md.
func TestReadersSkipRowGroupsOfACopy(t *testing.T) {
	python := ""
	for reader := range strings.SplitSeq(os.Getenv(readersOf), ",") {
		if name, at, _ := strings.Cut(reader, "="); name == "duckdb" {
			python = at
		}
	}
	if python == "" {
		t.Skipf("%s names no DuckDB; `make test-readers` does", readersOf)
	}
	dir := t.TempDir()
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	skipMonth(t, b)
	sealed, _ := opened(t, b)
	published := map[string][]string{}
	for _, s := range sealed {
		for _, f := range s.Files {
			published[f.Dataset] = append(published[f.Dataset], filepath.Join(dir, f.Key))
		}
	}
	if _, err := Run(t.Context(), request(t, b)); err != nil {
		t.Fatal(err)
	}
	copied := map[string][]string{}
	sealed, _ = opened(t, b)
	for _, s := range sealed {
		for _, f := range s.Files {
			copied[f.Dataset] = append(copied[f.Dataset], filepath.Join(dir, f.Key))
		}
	}
	fetch := slices.Collect(succeed(t, table.Concat[schema.Fetch](t.Context(), b, []string{layout.Table(stages.FileFetches, crawl, 3, 34)})))[7]
	link := slices.Collect(succeed(t, table.Concat[schema.Link](t.Context(), b, []string{layout.Table(stages.FileLinks, crawl, 3, 34)})))[7]
	var questions []*skipQuestion
	for _, q := range []struct {
		dataset, column, value string
		most                   int
	}{
		{stages.FileFetches, "url", fetch.URL, 1}, {stages.FileFetches, "host", fetch.Host, 2}, {stages.FileFetches, "domain", fetch.Domain, 2},
		{stages.FileFetches, "url", "http://h1.site2000.example/none", 1}, {stages.FileRequests, "host", fetch.Host, 2}, {stages.FileRequests, "url", fetch.URL, 2},
		{stages.FileLinks, "source", fetch.URL, 2}, {stages.FileLinks, "target", link.Target, 4}, {stages.FileLinks, "target", "http://h1.site2000.example/none", 1},
	} {
		name := fmt.Sprintf("`%s` by `%s`", q.dataset, q.column)
		if strings.Contains(q.value, "none") {
			name += ", unknown"
		}
		questions = append(questions, &skipQuestion{
			Name: name, Column: q.column, Value: q.value, most: q.most, bloom: q.dataset == stages.FileLinks || q.dataset == stages.FileFetches && q.column != "domain",
			Files: map[string][]string{"copy": copied[q.dataset], "published": published[q.dataset]},
		})
	}
	job, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "job.json")
	if err := os.WriteFile(name, job, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "../../testdata/readers/skipping.py", name)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("skipping.py: %v\n%s", err, said.String())
	}
	type answer struct {
		Question, Set                              string
		Rows, Groups, Statistics, Of, Reads, Bytes int
	}
	got := map[string]map[string]answer{}
	for line := range strings.Lines(string(out)) {
		var a answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if got[a.Question] == nil {
			got[a.Question] = map[string]answer{}
		}
		got[a.Question][a.Set] = a
	}
	said.Reset()
	for _, q := range questions {
		before, after := got[q.Name]["published"], got[q.Name]["copy"]
		unknown := strings.HasSuffix(q.Name, "unknown")
		if before.Rows != after.Rows || (before.Rows == 0) != unknown {
			t.Errorf("%s: %d rows from the published parts, %d from the copy", q.Name, before.Rows, after.Rows)
		}
		if after.Of < 5 || after.Groups > min(q.most, after.Of/2) || after.Reads >= before.Reads/20 || after.Bytes >= before.Bytes {
			t.Errorf("%s reads too much of the copy: %+v, of the published parts %+v", q.Name, after, before)
		}
		if q.bloom && (after.Groups >= after.Statistics || after.Statistics < 3) {
			t.Errorf("%s: Bloom filters exclude no row group: %+v", q.Name, after)
		}
		cell := func(a answer) string { return fmt.Sprintf("%d reads, %.1f MB", a.Reads, float64(a.Bytes)/1e6) }
		fmt.Fprintf(&said, "| %s | %d | %s | %s | %d, %d, %d |\n", q.Name, after.Rows, cell(before), cell(after), after.Of, after.Statistics, after.Groups)
	}
	t.Logf("\n| question | rows | published | copy | row groups of the copy: all, left by statistics, read |\n|---|---|---|---|---|\n%s", said.String())
}
