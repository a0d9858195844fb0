package planner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// list is a source in memory.
type list struct {
	name    string
	entries []source.Entry
}

func (l list) Name() string { return l.name }

func (l list) Entries(context.Context) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		for _, e := range l.entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// lines is a source of lines as a file of the user has them.
func lines(texts ...string) list {
	l := list{name: "urls.txt"}
	for i, text := range texts {
		l.entries = append(l.entries, source.Entry{
			URL: text, File: "urls.txt", Line: int64(i + 1), Due: true, Listed: true, Priority: source.DefaultPriority,
		})
	}
	return l
}

func known(entries ...source.Entry) list {
	for i := range entries {
		entries[i].File = source.FrontierName
	}
	return list{source.FrontierName, entries}
}

func request(t *testing.T, sources ...source.Source) Request {
	t.Helper()
	return Request{Crawl: "2026-11", Sources: sources, Scratch: t.TempDir(), Version: "test"}
}

func bucket(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func plan(t *testing.T, cfg Config, sources ...source.Source) *Plan {
	t.Helper()
	p, err := Make(context.Background(), cfg, request(t, sources...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// stored commits a plan and reads back all that it holds.
func stored(t *testing.T, b store.Bucket, p *Plan) (m *manifest.Plan, urls [][]schema.PlannedURL, refused []schema.Refused) {
	t.Helper()
	ctx := context.Background()
	if err := p.Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
	m, err := Load(ctx, b, "2026-11", 0, p.Manifest().ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range m.Partitions {
		rows, err := table.Collect(table.Concat[schema.PlannedURL](ctx, b, []string{part.File.Key}))
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, rows)
	}
	refused, err = table.Collect(table.Concat[schema.Refused](ctx, b, []string{m.RefusedFile.Key}))
	if err != nil {
		t.Fatal(err)
	}
	return m, urls, refused
}

// planned is the URLs of all partitions.
func planned(parts [][]schema.PlannedURL) []string {
	var out []string
	for _, rows := range parts {
		for _, r := range rows {
			out = append(out, r.URL)
		}
	}
	slices.Sort(out)
	return out
}

// reasons is "line reason url" of each refusal, by line.
func reasons(rows []schema.Refused) []string {
	slices.SortStableFunc(rows, func(a, b schema.Refused) int { return int(a.Line - b.Line) })
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%d %s %s", r.Line, r.Reason, r.URL))
	}
	return out
}

func TestEveryLineIsPlannedOrRefused(t *testing.T) {
	cfg := Default()
	cfg.StripParams = []string{"utm_*"}
	cfg.Exclude = []string{"*/private/*", "ads.example"}
	cfg.Stopped = map[string]string{"stopped.example": "ticket 17"}
	p := plan(t, cfg, lines(
		"http://b.example/2", "# a comment", "http://a.example", "mailto:a@b.example", "http://A.example/#top",
		"http://b.example/1?utm_source=x", "http://b.example/private/x", "http://x.ads.example/", "www.example.com/no-scheme",
		"http://www.stopped.example/", "http://a.example/"+strings.Repeat("x", 70_000), "nul\x00nul\xff", "http://a..b/",
	))
	m, urls, refused := stored(t, bucket(t), p)
	if d := cmp.Diff([]string{"http://a.example/", "http://b.example/1", "http://b.example/2"}, planned(urls)); d != "" {
		t.Error(d)
	}
	want := []string{
		"2 not_url # a comment", "4 bad_scheme mailto:a@b.example", "7 out_of_scope http://b.example/private/x",
		"8 out_of_scope http://x.ads.example/", "9 not_url www.example.com/no-scheme", "10 stopped http://www.stopped.example/",
		"11 too_long http://a.example/" + strings.Repeat("x", maxText-len("http://a.example/")), "12 not_url nul\ufffdnul\ufffd", "13 not_url http://a..b/",
	}
	if d := cmp.Diff(want, reasons(refused)); d != "" {
		t.Error(d)
	}
	counts := []manifest.Count{
		{Name: "bad_scheme", N: 1}, {Name: "duplicate", N: 1}, {Name: "not_url", N: 4}, {Name: "out_of_scope", N: 2},
		{Name: "stopped", N: 1}, {Name: "too_long", N: 1},
	}
	if d := cmp.Diff(counts, m.Refused); d != "" {
		t.Error(d)
	}
	if m.SourceLines != 13 || m.URLs != 3 || m.Domains != 2 || m.Hosts != 2 || m.Buckets != 1 || len(m.Partitions) != 1 || m.EstimatedBytes != 300_000 {
		t.Errorf("manifest %+v", m)
	}
	if got := m.Partitions[0].EstimatedSeconds; got != 4 || m.EstimatedSeconds != 4 {
		t.Errorf("two URLs of a host at a delay of 2 s: %v s", got)
	}
	for _, r := range refused {
		if r.Reason == schema.SkipOutOfScope && (r.SURT == "" || r.Domain == "" || r.Detail == "" || r.Source != "urls.txt") {
			t.Errorf("refused %+v", r)
		}
	}
}

// web is a list of URLs of many domains, the i-th with about n/i of them.
func web(domains, n int) []string {
	var out []string
	for d := 1; d <= domains; d++ {
		for i := range max(1, n/d) {
			out = append(out, fmt.Sprintf("https://h%d.d%d.example/page/%d", i%3, d, i))
		}
	}
	return out
}

func shuffled(in []string) []string {
	out := slices.Clone(in)
	for i := range out { // a fixed permutation
		j := int(urlkey.Hash(fmt.Sprint(i)) % uint64(i+1))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func TestSameInputSameBytes(t *testing.T) {
	urls := web(300, 200)
	cfg := Default()
	cfg.PartitionURLs, cfg.BucketURLs, cfg.Budget = 200, 500, 100
	var first *manifest.Plan
	for _, v := range []struct {
		name    string
		workers int
		memory  int64
	}{{"one worker", 1, 64 << 20}, {"eight workers", 8, 64 << 20}, {"spilling", 3, 1 << 20}} {
		cfg.Workers, cfg.Memory = v.workers, v.memory
		m := plan(t, cfg, lines(urls...)).Manifest()
		if first == nil {
			first = m
		}
		if d := cmp.Diff(first, m, cmp.AllowUnexported(manifest.Plan{})); d != "" {
			t.Errorf("%s:\n%s", v.name, d)
		}
	}
	// Of a domain over its budget the first lines are kept; else order does not matter.
	cfg.Budget = 0
	a, b := plan(t, cfg, lines(urls...)).Manifest(), plan(t, cfg, lines(shuffled(urls)...)).Manifest()
	if a.ID != b.ID || a.ID == first.ID {
		t.Errorf("plan IDs %q, shuffled %q, with a budget %q", a.ID, b.ID, first.ID)
	}
}

func TestPartitions(t *testing.T) {
	cfg := Default()
	cfg.PartitionURLs, cfg.BucketURLs, cfg.Budget = 400, 1500, 300
	m, parts, _ := stored(t, bucket(t), plan(t, cfg, lines(web(800, 1000)...)))
	if want := int((m.URLs + 1499) / 1500); m.Buckets != want {
		t.Errorf("%d buckets for %d URLs, want %d", m.Buckets, m.URLs, want)
	}
	partitionOf := map[string]int{}
	total := int64(0)
	for i, rows := range parts {
		part := m.Partitions[i]
		total += part.URLs
		hosts, domains, longest := map[string]int{}, map[string]int{}, 0.0
		for _, r := range rows {
			hosts[r.Host]++
			domains[r.Domain]++
			longest = max(longest, float64(hosts[r.Host])*2)
			if q, ok := partitionOf[r.Domain]; ok && q != i {
				t.Errorf("domain %s is in partitions %d and %d", r.Domain, q, i)
			}
			partitionOf[r.Domain] = i
			if b := urlkey.Bucket(r.Domain, m.Buckets); b != part.Bucket {
				t.Errorf("domain %s of bucket %d is in partition %d of bucket %d", r.Domain, b, i, part.Bucket)
			}
			if k, err := urlkey.KeyOf(r.URL); err != nil || k.SURT != r.SURT || k.Host != r.Host || k.Domain != r.Domain {
				t.Errorf("row %+v, keys %+v, %v", r, k, err)
			}
		}
		if part.Partition != i || part.URLs != int64(len(rows)) || part.Hosts != int64(len(hosts)) || part.Domains != int64(len(domains)) {
			t.Errorf("partition %d: %+v of %d rows, %d hosts, %d domains", i, part, len(rows), len(hosts), len(domains))
		}
		if want := max(longest, float64(len(rows))*1.5/200); part.EstimatedSeconds != want {
			t.Errorf("partition %d: %v s estimated, %v s by its rows", i, part.EstimatedSeconds, want)
		}
		if part.URLs > 400*2 || part.URLs < 400/4 {
			t.Errorf("partition %d has %d URLs, %d are asked for", i, part.URLs, 400)
		}
		if !slices.IsSortedFunc(rows, func(a, b schema.PlannedURL) int { return comparePlanned(&a, &b) }) {
			t.Errorf("partition %d is not sorted", i)
		}
		if i > 0 && part.Bucket < m.Partitions[i-1].Bucket {
			t.Errorf("partition %d of bucket %d comes after one of bucket %d", i, part.Bucket, m.Partitions[i-1].Bucket)
		}
	}
	if total != m.URLs {
		t.Errorf("%d URLs in partitions, %d in all", total, m.URLs)
	}
}

// Longest processing time first: with 20 slow and many quick domains in 4
// partitions, none takes much longer than another.
func TestPartitionsAreBalancedByTime(t *testing.T) {
	var urls []string
	for d := range 20 {
		for i := range 100 {
			urls = append(urls, fmt.Sprintf("http://slow%d.example/%d", d, i))
		}
	}
	for d := range 2000 {
		urls = append(urls, fmt.Sprintf("http://quick%d.example/", d))
	}
	cfg := Default()
	cfg.PartitionURLs, cfg.Slots, cfg.Service, cfg.DomainDelays = 1000, 1, time.Second, map[string]time.Duration{}
	for d := range 20 {
		cfg.DomainDelays[fmt.Sprintf("slow%d.example", d)] = time.Duration(d) * time.Second
	}
	m := plan(t, cfg, lines(urls...)).Manifest()
	if len(m.Partitions) != 4 {
		t.Fatalf("%d partitions, want 4", len(m.Partitions))
	}
	least, most := m.Partitions[0].EstimatedSeconds, 0.0
	for _, p := range m.Partitions {
		least, most = min(least, p.EstimatedSeconds), max(most, p.EstimatedSeconds)
	}
	if most != 1900 || least < 1500 {
		t.Errorf("partitions take %v to %v s; the slowest domain takes 1900 s", least, most)
	}
}

func TestBudgets(t *testing.T) {
	entry := func(url string, priority int32) source.Entry {
		return source.Entry{URL: url, Due: true, Priority: priority, Depth: 1}
	}
	spent := func(url string, due bool) source.Entry {
		return source.Entry{URL: url, Spent: true, Due: due, Fetches: 1, ETag: "e"}
	}
	a := []source.Entry{
		entry("http://a.example/low", 1), entry("http://a.example/high", 900), entry("http://a.example/mid", 500), entry("http://b.example/", 1),
	}
	for _, tc := range []struct {
		name    string
		change  func(*Config)
		entries []source.Entry
		want    string
		refused string
	}{
		{"the best of a domain", func(c *Config) { c.Budget = 2 }, a, "a/high a/mid b/", "a/low"},
		{"one domain's own", func(c *Config) { c.Budget, c.DomainBudgets = 1, map[string]int{"a.example": 0} }, a, "a/high a/low a/mid b/", ""},
		{"earlier rounds count", func(c *Config) { c.Budget = 2 }, append([]source.Entry{spent("http://a.example/old", false)}, a...), "a/high b/", "a/low a/mid"},
		{"what was planned before is free", func(c *Config) { c.Budget = 2 },
			append([]source.Entry{spent("http://a.example/old", true), spent("http://a.example/old2", false)}, a...), "a/old b/", "a/high a/low a/mid"},
		{"of the round", func(c *Config) { c.RoundURLs = 2 }, a, "a/high a/mid", "a/low b/"},
		{"of the crawl", func(c *Config) { c.CrawlURLs = 3 }, append([]source.Entry{spent("http://c.example/old", true)}, a...), "a/high a/mid c/old", "a/low b/"},
		{"of the crawl, used up", func(c *Config) { c.CrawlURLs = 1 }, append([]source.Entry{spent("http://c.example/old", true)}, a...), "c/old", "a/high a/low a/mid b/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := Default()
			cfg.Budget = 0
			tc.change(&cfg)
			_, urls, refused := stored(t, bucket(t), plan(t, cfg, known(slices.Clone(tc.entries)...)))
			var gone []string
			for _, r := range refused {
				if r.Reason != schema.SkipBudget || r.Source != source.FrontierName || r.Depth != 1 || r.Detail == "" {
					t.Errorf("refused %+v", r)
				}
				gone = append(gone, r.URL)
			}
			slices.Sort(gone)
			short := func(in []string) string {
				return strings.NewReplacer("http://", "", ".example", "").Replace(strings.Join(in, " "))
			}
			got := short(planned(urls))
			if got != tc.want || short(gone) != tc.refused {
				t.Errorf("planned %q, refused %q; want %q, %q", got, short(gone), tc.want, tc.refused)
			}
		})
	}
}

func TestListedURLKeepsWhatIsKnownOfIt(t *testing.T) {
	old := source.Entry{URL: "http://a.example/", Spent: true, Priority: 700, Depth: 3, Fetches: 2, ETag: `"e"`, LastModified: "then", ContentDigest: "D"}
	_, urls, _ := stored(t, bucket(t), plan(t, Default(), lines("http://a.example/"), known(old)))
	want := []schema.PlannedURL{{
		URL: "http://a.example/", SURT: "example,a)/", Host: "a.example", Domain: "a.example", Priority: 700,
		ContentDigest: "D", ETag: `"e"`, LastModified: "then", Fetches: 2,
	}}
	if d := cmp.Diff(want, urls[0]); d != "" {
		t.Error(d)
	}
}

func TestPriorityOrdersAHost(t *testing.T) {
	_, urls, _ := stored(t, bucket(t), plan(t, Default(), known(
		source.Entry{URL: "http://b.example/1", Due: true, Priority: 999}, source.Entry{URL: "http://a.example/1", Due: true, Priority: 1},
		source.Entry{URL: "http://a.example/3", Due: true, Priority: 5000}, source.Entry{URL: "http://a.example/2", Due: true, Priority: 1},
	)))
	var got []string
	for _, rows := range urls {
		for _, r := range rows {
			got = append(got, fmt.Sprintf("%s %d", r.URL, r.Priority))
		}
	}
	want := []string{"http://a.example/3 1000", "http://a.example/1 1", "http://a.example/2 1", "http://b.example/1 999"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestNothingToPlanIsAnErrorThatSaysWhy(t *testing.T) {
	_, err := Make(context.Background(), Default(), request(t, lines("# nothing", "ftp://a/")))
	if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "urls.txt") || !strings.Contains(err.Error(), "1 bad_scheme, 1 not_url") {
		t.Error(err)
	}
	_, err = Make(context.Background(), Default(), request(t, known(source.Entry{URL: "http://a.example/", Spent: true})))
	if !errors.Is(err, ErrNothing) {
		t.Error(err)
	}
}

func TestFailuresLeaveNothing(t *testing.T) {
	broken := errors.New("broken")
	failing := failingSource{broken}
	for name, tc := range map[string]struct {
		cfg  func(*Config)
		src  source.Source
		want error
	}{
		"source fails": {func(*Config) {}, failing, broken},
		"bad pattern":  {func(c *Config) { c.StripParams = []string{"a b"} }, lines("http://a/"), ErrConfig},
		"bad scope":    {func(c *Config) { c.Exclude = []string{""} }, lines("http://a/"), ErrConfig},
		"bad number":   {func(c *Config) { c.PartitionURLs = 0 }, lines("http://a/"), ErrConfig},
	} {
		cfg := Default()
		cfg.Memory = 1 << 20 // spills before it fails
		tc.cfg(&cfg)
		req := request(t, tc.src)
		if _, err := Make(context.Background(), cfg, req); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		left, err := os.ReadDir(req.Scratch)
		if err != nil || len(left) > 0 {
			t.Errorf("%s: scratch space holds %v, %v", name, left, err)
		}
	}
}

// failingSource fails after enough entries to spill.
type failingSource struct{ err error }

func (failingSource) Name() string { return "failing" }
func (f failingSource) Entries(context.Context) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		for i := range 30_000 {
			if !yield(source.Entry{URL: fmt.Sprintf("http://h%d.example/", i), Due: true}, nil) {
				return
			}
		}
		yield(source.Entry{}, f.err)
	}
}

func TestDryRunPredictsTheSameAndWritesNothing(t *testing.T) {
	urls := lines(web(50, 50)...)
	req := request(t, urls)
	req.DryRun = true
	dry, err := Make(context.Background(), Default(), req)
	if err != nil {
		t.Fatal(err)
	}
	wet := plan(t, Default(), urls).Manifest()
	m := dry.Manifest()
	if m.ID != "" || m.URLs != wet.URLs || m.EstimatedSeconds != wet.EstimatedSeconds || m.EstimatedBytes != wet.EstimatedBytes || len(m.Partitions) != len(wet.Partitions) {
		t.Errorf("dry run %+v\nplan    %+v", m, wet)
	}
	if err := dry.Commit(context.Background(), bucket(t)); err == nil {
		t.Error("a dry run was committed")
	}
	if left, err := os.ReadDir(req.Scratch); err != nil || len(left) > 0 {
		t.Errorf("scratch space holds %v, %v", left, err)
	}
}

// creator is a store that takes so many objects and is full then.
type creator struct {
	store.Bucket
	room int
}

func (c *creator) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	if c.room--; c.room < 0 {
		return "", store.ErrFull
	}
	return c.Bucket.Create(ctx, key, body, size)
}

func TestPlanExistsOnceItsManifestDoes(t *testing.T) {
	ctx := context.Background()
	cfg := Default()
	cfg.PartitionURLs = 10
	b := bucket(t)
	p := plan(t, cfg, lines(web(20, 10)...))
	parts := len(p.Manifest().Partitions)
	for room := range parts + 2 {
		ids, err := Stored(ctx, b, "2026-11", 0)
		if err != nil || len(ids) > 0 {
			t.Fatalf("with room for %d objects: plans %v, %v", room-1, ids, err)
		}
		err = p.Commit(ctx, &creator{Bucket: b, room: 1})
		if last := room == parts+1; (err == nil) != last {
			t.Fatalf("commit %d of %d: %v", room+1, parts+2, err)
		}
	}
	// The same plan again, by another version of the program, is no conflict.
	again := plan(t, cfg, lines(web(20, 10)...))
	again.Manifest().Version = "another"
	if err := again.Commit(ctx, b); err != nil {
		t.Error(err)
	}
	ids, err := Stored(ctx, b, "2026-11", 0)
	if d := cmp.Diff([]string{p.Manifest().ID}, ids); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
}

func TestScope(t *testing.T) {
	for _, tc := range []struct {
		pattern, url string
		want         bool
	}{
		{"example.org", "https://example.org/a", true}, {"example.org", "https://www.example.org:8080/", true},
		{"example.org", "https://badexample.org/", false}, {"example.org", "https://example.org.evil.example/", false},
		{"example.org:8080", "http://example.org:8080/", true}, {"example.org:8080", "http://example.org/", false},
		{"example.org/docs/*", "https://example.org/docs/a/b", true}, {"example.org/docs/*", "https://example.org/blog", false},
		{"example.org/docs", "https://example.org/docs", true}, {"example.org/docs", "https://example.org/docs/", false},
		{"*.pdf", "https://example.org/a.pdf", true}, {"*.pdf", "https://example.org/a.pdf?x", false},
		{"https://*", "http://example.org/", false}, {"https://*", "https://example.org/", true},
		{"*/a*b/*c", "http://example.org/aXb/c", true}, {"*/a*b/*c", "http://example.org/aXb", false}, {"a*a", "http://a", false},
	} {
		s, err := NewScope([]string{tc.pattern}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, why := s.Allows(tc.url); got != tc.want || got != (why == "") {
			t.Errorf("include %q, URL %q: %v, %q", tc.pattern, tc.url, got, why)
		}
	}
	s, err := NewScope([]string{"example.org"}, []string{"*secret*"})
	if err != nil {
		t.Fatal(err)
	}
	if ok, why := s.Allows("http://example.org/secret"); ok || why != "*secret*" {
		t.Errorf("excluded: %v, %q", ok, why)
	}
}

func TestJudge(t *testing.T) {
	cfg := Default()
	cfg.Exclude = []string{"a.example"}
	for text, want := range map[string]schema.SkipReason{"/x": "", "http://a.example": schema.SkipOutOfScope, "mailto:x": schema.SkipScheme, "http://[": schema.SkipNotURL} {
		k, reason, _, err := Judge(cfg, text, "http://b.example/")
		if err != nil || reason != want || (reason == "" && k.URL != "http://b.example/x") {
			t.Errorf("Judge(%q) = %q, %q, %v; want %q", text, k.URL, reason, err, want)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	urls := shuffled(web(5000, 20_000))
	cfg := Default()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Make(context.Background(), cfg, Request{Crawl: "2026-11", Sources: []source.Source{lines(urls...)}, Scratch: b.TempDir()}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(urls)), "ns/URL")
}
