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

	"crawlbatch.io/crawlbatch/formats/catalog"
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
					start := (schema.Time(round)*86_400_000 + schema.Time(random.Int64N(86_400_000))) * 1000
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
				publish(t, b, stages.FileFetches, "", layout.Table(stages.FileFetches, crawl, round, p), []string{"url_surtkey", "url"}, fetches),
				publish(t, b, stages.FileLinks, "", layout.Table(stages.FileLinks, crawl, round, p), []string{"source_surtkey", "source", "ordinal"}, links),
				publish(t, b, stages.FileRequests, "", layout.Table(stages.FileRequests, crawl, round, p), []string{"host", "start"}, requests))
		}
		slices.SortFunc(files, func(a, b manifest.File) int { return strings.Compare(a.Key, b.Key) })
		put(t, b, layout.Sealed(crawl, round), &manifest.Sealed{Crawl: crawl, Round: round, Plan: "p", Buckets: 1, Files: files})
	}
	ledgertest.Make(t, b, crawl)
}

// skipQuestion asks for the rows of a dataset with one value in a column.
type skipQuestion struct {
	dataset, column, value string
	most                   int  // number of row groups of the copy that may be read
	bloom                  bool // Bloom filters must exclude row groups that statistics leave
}

func (q skipQuestion) name() string {
	name := fmt.Sprintf("`%s` by `%s`", q.dataset, q.column)
	if q.unknown() {
		name += ", unknown"
	}
	return name
}

func (q skipQuestion) unknown() bool { return strings.HasSuffix(q.value, "/none") }

// Questions about one URL, host or domain read one row group of a copy where the rows stand together, and those that
// Bloom filters leave elsewhere. It prints the tables of formats/README.md.
func TestReadersSkipRowGroupsOfACopy(t *testing.T) {
	pythons := map[string]string{}
	for reader := range strings.SplitSeq(os.Getenv(readersOf), ",") {
		name, at, _ := strings.Cut(reader, "=")
		pythons[name] = at
	}
	if pythons["duckdb"] == "" && pythons["trino"] == "" {
		t.Skipf("%s names neither DuckDB nor Trino; `make test-readers` does", readersOf)
	}
	dir := t.TempDir()
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	skipMonth(t, b)
	sets := map[string][]*manifest.Sealed{}
	sets["published"], _ = opened(t, b)
	if _, err := Run(t.Context(), request(t, b)); err != nil {
		t.Fatal(err)
	}
	sets["copy"], _ = opened(t, b)
	fetch := slices.Collect(succeed(t, table.Concat[schema.Fetch](t.Context(), b, []string{layout.Table(stages.FileFetches, crawl, 3, 34)})))[7]
	link := slices.Collect(succeed(t, table.Concat[schema.Link](t.Context(), b, []string{layout.Table(stages.FileLinks, crawl, 3, 34)})))[7]
	questions := []skipQuestion{
		{stages.FileFetches, "url", fetch.URL, 1, true}, {stages.FileFetches, "url", "http://h1.site2000.example/none", 1, true},
		{stages.FileFetches, "host", fetch.Host, 2, true}, {stages.FileFetches, "domain", fetch.Domain, 2, false},
		{stages.FileRequests, "host", fetch.Host, 2, false}, {stages.FileRequests, "url", fetch.URL, 2, false},
		{stages.FileLinks, "source", fetch.URL, 2, true}, {stages.FileLinks, "target", link.Target, 4, true}, {stages.FileLinks, "target", "http://h1.site2000.example/none", 1, true},
	}
	t.Run("duckdb", func(t *testing.T) { duckDBSkips(t, pythons["duckdb"], dir, sets, questions) })
	t.Run("trino", func(t *testing.T) { trinoSkips(t, pythons["trino"], dir, sets, questions) })
}

// skipAnswer is what a reader read to answer a question.
type skipAnswer struct {
	Question   string
	Set        string // "published" or "copy"
	Rows       int    // of the answer
	Bytes      int    // read from files
	Reads      int    // DuckDB only
	Groups     int    // DuckDB: row groups that it read
	Statistics int    // DuckDB: row groups that statistics leave
	Of         int    // DuckDB: all row groups
	Scanned    int    // Trino: rows that it decoded
}

// askSkipping runs a script with a job. It returns what was read of each set to answer each question.
func askSkipping(t *testing.T, python, script string, job any, questions []skipQuestion) map[string]map[string]skipAnswer {
	t.Helper()
	if python == "" {
		t.Skip("this reader is not installed")
	}
	body, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "job.json")
	if err := os.WriteFile(name, body, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "../../testdata/readers/"+script, name)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, said.String())
	}
	got := map[string]map[string]skipAnswer{}
	for line := range strings.Lines(string(out)) {
		var a skipAnswer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if got[a.Question] == nil {
			got[a.Question] = map[string]skipAnswer{}
		}
		got[a.Question][a.Set] = a
	}
	for _, q := range questions {
		before, after := got[q.name()]["published"], got[q.name()]["copy"]
		if before.Rows != after.Rows || (before.Rows == 0) != q.unknown() {
			t.Errorf("%s: %d rows from the published parts, %d from the copy", q.name(), before.Rows, after.Rows)
		}
	}
	return got
}

func duckDBSkips(t *testing.T, python, dir string, sets map[string][]*manifest.Sealed, questions []skipQuestion) {
	type question struct {
		Name   string              `json:"name"`
		Column string              `json:"column"`
		Value  string              `json:"value"`
		Files  map[string][]string `json:"files"` // by set
	}
	var job []question
	for _, q := range questions {
		files := map[string][]string{}
		for set, sealed := range sets {
			for _, s := range sealed {
				for _, f := range s.FilesOf(q.dataset) {
					files[set] = append(files[set], filepath.Join(dir, f.Key))
				}
			}
		}
		job = append(job, question{q.name(), q.column, q.value, files})
	}
	got := askSkipping(t, python, "skipping.py", job, questions)
	var said strings.Builder
	for _, q := range questions {
		before, after := got[q.name()]["published"], got[q.name()]["copy"]
		if after.Of < 5 || after.Groups > min(q.most, after.Of/2) || after.Reads >= before.Reads/20 || after.Bytes >= before.Bytes {
			t.Errorf("%s reads too much of the copy: %+v, of the published parts %+v", q.name(), after, before)
		}
		if q.bloom && (after.Groups >= after.Statistics || after.Statistics < 3) {
			t.Errorf("%s: Bloom filters exclude no row group: %+v", q.name(), after)
		}
		cell := func(a skipAnswer) string { return fmt.Sprintf("%d reads, %.1f MB", a.Reads, float64(a.Bytes)/1e6) }
		fmt.Fprintf(&said, "| %s | %d | %s | %s | %d, %d, %d |\n", q.name(), after.Rows, cell(before), cell(after), after.Of, after.Statistics, after.Groups)
	}
	t.Logf("\n| question | rows | published | copy | row groups of the copy: all, left by statistics, read |\n|---|---|---|---|---|\n%s", said.String())
}

func trinoSkips(t *testing.T, python, dir string, sets map[string][]*manifest.Sealed, questions []skipQuestion) {
	type question struct {
		Name  string `json:"name"`
		Set   string `json:"set"`
		Query string `json:"query"`
	}
	var job struct {
		Statements []string   `json:"statements"`
		Questions  []question `json:"questions"`
	}
	for set, sealed := range sets {
		script, err := catalog.Trino("local://"+dir, "skip_"+set, sealed)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range script.Statements {
			job.Statements = append(job.Statements, s.SQL)
		}
		for _, q := range questions {
			job.Questions = append(job.Questions, question{q.name(), set, fmt.Sprintf("SELECT * FROM skip_%s.%s WHERE %s = '%s'", set, q.dataset, q.column, q.value)})
		}
	}
	got := askSkipping(t, python, "skipping_trino.py", job, questions)
	var said strings.Builder
	for _, q := range questions {
		before, after := got[q.name()]["published"], got[q.name()]["copy"]
		if most := skipRounds * skipDomains * skipURLs / 4; after.Scanned > most || q.unknown() && after.Scanned > 0 { // a row group has a fifth or less
			t.Errorf("%s decodes too much of the copy: %+v", q.name(), after)
		}
		fmt.Fprintf(&said, "| %s | %d | %.1f MB, %d rows | %.1f MB, %d rows |\n", q.name(), after.Rows, float64(before.Bytes)/1e6, before.Scanned, float64(after.Bytes)/1e6, after.Scanned)
	}
	t.Logf("\n| question | rows | published | copy |\n|---|---|---|---|\n%s", said.String())
}
