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
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/budget"
	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/scope"
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

// lines returns a source with one entry per line, as in a user's file.
func lines(texts ...string) list {
	l := list{name: "urls.txt"}
	for i, text := range texts {
		l.entries = append(l.entries, source.Entry{
			URL: text, File: "urls.txt", Line: int64(i + 1), Due: true, Listed: true, Priority: source.DefaultPriority,
		})
	}
	return l
}

// unnumbered is like lines without the numbers of the lines, which the plan has as listings.
func unnumbered(texts ...string) list {
	l := lines(texts...)
	for i := range l.entries {
		l.entries[i].Line = 0
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

// commitAndRead commits a plan and reads the plan back.
func commitAndRead(t *testing.T, b store.Bucket, p *Plan) (m *manifest.Plan, urls [][]schema.PlannedURL, refused []schema.Refused) {
	t.Helper()
	ctx := context.Background()
	if err := p.Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
	m = new(manifest.Plan)
	if _, _, err := manifest.Load(ctx, b, layout.PlanManifest("2026-11", 0, p.Manifest().ID), m); err != nil {
		t.Fatal(err)
	}
	for _, part := range m.Partitions {
		urls = append(urls, tabletest.Read[schema.PlannedURL](t, b, part.File.Key))
	}
	return m, urls, tabletest.Read[schema.Refused](t, b, m.RefusedFile.Key)
}

// planned returns the URLs of all partitions.
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

// refusalLines returns "line reason url" for each refusal, sorted by line.
func refusalLines(rows []schema.Refused) []string {
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
	cfg.Stopped = map[string]string{"stopped.example": "ticket 17", "one.b.example": "ticket 18"}
	cfg.Stops = &manifest.Stops{}
	cfg.Stops.Stop("www.host.example", "", "ticket 19")
	cfg.Stops.Stop("", "domain.example", "ticket 20")
	p := plan(t, cfg, lines(
		"http://b.example/2", "# a comment", "http://a.example", "mailto:a@b.example", "http://A.example/#top",
		"http://b.example/1?utm_source=x", "http://b.example/private/x", "http://x.ads.example/", "www.example.com/no-scheme",
		"http://www.stopped.example/", "http://a.example/"+strings.Repeat("x", 70_000), "nul\x00nul\xff", "http://a..b/",
		"http://one.b.example:8080/", "https://www.host.example/x", "http://host.example/", "http://a.domain.example:81/",
	))
	m, urls, refused := commitAndRead(t, bucket(t), p)
	if d := cmp.Diff([]string{"http://a.example/", "http://b.example/1", "http://b.example/2", "http://host.example/"}, planned(urls)); d != "" {
		t.Error(d)
	}
	want := []string{
		"2 not_url # a comment", "4 bad_scheme mailto:a@b.example", "7 out_of_scope http://b.example/private/x",
		"8 out_of_scope http://x.ads.example/", "9 not_url www.example.com/no-scheme", "10 stopped http://www.stopped.example/",
		"11 too_long http://a.example/" + strings.Repeat("x", entry.MaxText-len("http://a.example/")), "12 not_url nul\ufffdnul\ufffd", "13 not_url http://a..b/", "14 stopped http://one.b.example:8080/",
		"15 stopped https://www.host.example/x", "17 stopped http://a.domain.example:81/",
	}
	if d := cmp.Diff(want, refusalLines(refused)); d != "" {
		t.Error(d)
	}
	counts := []manifest.Count{
		{Name: "bad_scheme", N: 1}, {Name: "duplicate", N: 1}, {Name: "not_url", N: 4}, {Name: "out_of_scope", N: 2},
		{Name: "stopped", N: 4}, {Name: "too_long", N: 1},
	}
	if d := cmp.Diff(counts, m.Refused); d != "" {
		t.Error(d)
	}
	if m.SourceLines != 17 || m.URLs != 4 || m.Domains != 3 || m.Hosts != 3 || m.Buckets != 1 || len(m.Partitions) != 1 || m.EstimatedBytes != 400_000 {
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

// The colons of an IPv6 address are no port.
func TestStopsAndScopeKnowIPv6(t *testing.T) {
	cfg := Default()
	cfg.Exclude = []string{"[2001:db8::2]"}
	cfg.Stopped = map[string]string{"[2001:db8::1]": "ticket 17"}
	_, urls, refused := commitAndRead(t, bucket(t), plan(t, cfg, lines(
		"http://[2001:db8::1]/", "http://[2001:db8::1]:8080/", "http://[2001:db8::2]/", "http://[2001:db8::2]:8080/", "http://[2001:db8::3]:8080/",
	)))
	if d := cmp.Diff([]string{"http://[2001:db8::3]:8080/"}, planned(urls)); d != "" {
		t.Error(d)
	}
	want := []string{
		"1 stopped http://[2001:db8::1]/", "2 stopped http://[2001:db8::1]:8080/",
		"3 out_of_scope http://[2001:db8::2]/", "4 out_of_scope http://[2001:db8::2]:8080/",
	}
	if d := cmp.Diff(want, refusalLines(refused)); d != "" {
		t.Error(d)
	}
}

func TestMakeAndCommitSayWhatTheyDo(t *testing.T) {
	urls := web(300, 200) // some batches
	cfg := Default()
	cfg.PartitionURLs, cfg.BucketURLs = 200, 500
	var mu sync.Mutex
	most := map[string]int64{}
	req := request(t, lines(urls...))
	req.Note = func(verb string, n int64, of string) {
		mu.Lock()
		defer mu.Unlock()
		most[verb+" … "+of] = max(most[verb+" … "+of], n)
	}
	p, err := Make(t.Context(), cfg, req)
	if err != nil {
		t.Fatal(err)
	}
	partitions, files := int64(len(p.Manifest().Partitions)), int64(len(p.files))
	if err := p.Commit(t.Context(), bucket(t)); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{
		"read … entries of urls.txt":                           int64(len(urls)),
		"compared … entries with the budgets":                  int64(len(urls)) / batchEntries * batchEntries,
		fmt.Sprintf("wrote … of %d partitions", partitions):    partitions,
		fmt.Sprintf("stored … of %d files of the plan", files): files,
	}
	if d := cmp.Diff(want, most); d != "" || partitions < 2 {
		t.Errorf("%d partitions:\n%s", partitions, d)
	}
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
	// With a budget, the plan has a domain's first lines. Without a budget, the order of lines does
	// not matter.
	cfg.Budget = 0
	a, b := plan(t, cfg, unnumbered(urls...)).Manifest(), plan(t, cfg, unnumbered(shuffled(urls)...)).Manifest()
	if a.ID != b.ID || a.ID == first.ID {
		t.Errorf("plan IDs %q, shuffled %q, with a budget %q", a.ID, b.ID, first.ID)
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
			_, urls, refused := commitAndRead(t, bucket(t), plan(t, cfg, known(slices.Clone(tc.entries)...)))
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

// A URL that an earlier round of the crawl planned counts in each budget also if it is due again and the
// plan refuses it now.
func TestBudgetsCountURLsThatAreRefusedNow(t *testing.T) {
	for _, tc := range []struct {
		name, host string // host of the refused URLs
		change     func(*Config)
		want       int64 // number of new URLs of a.example, of 3
	}{
		{"of the domain", "a.example", func(c *Config) { c.Budget = 3 }, 1},
		{"of the crawl", "a.example", func(c *Config) { c.CrawlURLs = 4 }, 1}, // the spent URL of other.test counts too
		{"of a host", "a.example", func(c *Config) { c.Limits.Host = 3 }, 1},
		{"of a pattern", "a.example", func(c *Config) { c.Limits.Patterns = []budget.Pattern{{Name: "a", Match: "a[.]example", URLs: 3}} }, 1},
		{"of hosts", "www.a.example", func(c *Config) { c.Limits.HostsPerDomain = 1 }, 0},
	} {
		cfg := Default()
		cfg.Budget, cfg.Exclude = 0, []string{"*/old/*"}
		tc.change(&cfg)
		p := plan(t, cfg, known(
			source.Entry{URL: "http://" + tc.host + "/old/1", Due: true, Spent: true, Fetches: 1, ETag: "e"},
			source.Entry{URL: "http://" + tc.host + "/old/2", Due: true, Spent: true, Fetches: 1, Form: schema.Linked("http://"+tc.host+"/old/%32", true)},
			source.Entry{URL: "http://a.example/1", Due: true}, source.Entry{URL: "http://a.example/2", Due: true}, source.Entry{URL: "http://a.example/3", Due: true},
			source.Entry{URL: "http://other.test/", Due: true, Spent: true},
		))
		m := p.Manifest()
		if m.URLs-1 != tc.want {
			t.Errorf("%s: %d new URLs, want %d", tc.name, m.URLs-1, tc.want)
		}
		if refused := m.Refused[len(m.Refused)-1]; refused != (manifest.Count{Name: "out_of_scope", N: 2}) {
			t.Errorf("%s: refused %+v", tc.name, m.Refused)
		}
	}
}

func TestListedURLKeepsWhatIsKnownOfIt(t *testing.T) {
	old := source.Entry{URL: "http://a.example/", Spent: true, Priority: 700, Depth: 3, Fetches: 2, ETag: `"e"`, LastModified: "then", ContentDigest: "D",
		Content: source.Content{At: 1, Filename: "w", Offset: 2, Length: 3}}
	_, urls, _ := commitAndRead(t, bucket(t), plan(t, Default(), lines("http://a.example/"), known(old)))
	want := []schema.PlannedURL{{
		URL: "http://a.example/", SURT: "example,a)/", Host: "a.example", Domain: "a.example", Priority: 700,
		ContentDigest: "D", ETag: `"e"`, LastModified: "then", Fetches: 2,
		ContentAt: 1, WARCFilename: "w", WARCRecordOff: 2, WARCRecordLen: 3, Form: schema.Form{SentFrom: schema.SentBySource},
	}}
	if d := cmp.Diff(want, urls[0], cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}

func TestPriorityOrdersAHost(t *testing.T) {
	_, urls, _ := commitAndRead(t, bucket(t), plan(t, Default(), known(
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

func TestNothingToPlanNamesTheRemedyForMostRefusals(t *testing.T) {
	entries := lines("ftp://x/", "http://a.example/1", "http://a.example/2", "http://a.example/2", "http://a.example/2", "http://a.example/2", "http://a.example/2")
	for want, change := range map[string]func(*Config){
		"raise plan.budgets; if the month has a plan already, plan another month": func(c *Config) { c.Limits.Patterns = []budget.Pattern{{Match: "/"}} },
		"or widen plan.scope; if":                              func(c *Config) { c.Include = []string{"b.example"} },
		"give URLs that plan.filter and plan.rewrite let pass": func(c *Config) { c.Filters = []scope.Filter{{Match: "/"}} },
		"end the stops, with `crawlbatch host HOST --resume`":  func(c *Config) { c.Stopped = map[string]string{"a.example": "asked"} },
		"give URLs that the list of plan.opt_out does not name": func(c *Config) {
			c.OptOut, _ = readOptOut(t, "a.example", urlkey.Rules{})
		},
	} {
		c := Default()
		change(&c)
		if _, err := Make(t.Context(), c, request(t, entries)); !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "absolute") {
			t.Errorf("%v, want %s", err, want)
		}
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
	_, err = Make(context.Background(), Default(), request(t, known(source.Entry{URL: "{\"é\"\x1b]0;x\a\n\u202e" + strings.Repeat("y", 900), Broken: "no JSON", Line: 1, Due: true})))
	if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), `frontier, record 1 ({"é"\u001b]0;x\u0007\u000a\u202eyy`) || len(err.Error()) > 500 || !strings.HasSuffix(err.Error(), "y): no JSON") {
		t.Errorf("a record with control characters: %q", err)
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
		cfg.Memory = 1 << 20 // makes the sorter spill before the failure
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

// failingSource is a source that fails after enough entries to make the sorter spill.
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
	if m.ID != "" || m.URLs != wet.URLs || m.EstimatedSeconds != wet.EstimatedSeconds || m.PodHours() != wet.PodHours() || m.PodHours() == 0 || m.EstimatedBytes != wet.EstimatedBytes || len(m.Partitions) != len(wet.Partitions) {
		t.Errorf("dry run %+v\nplan    %+v", m, wet)
	}
	if err := dry.Commit(context.Background(), bucket(t)); err == nil {
		t.Error("a dry run was committed")
	}
	if left, err := os.ReadDir(req.Scratch); err != nil || len(left) > 0 {
		t.Errorf("scratch space holds %v, %v", left, err)
	}
}

// limitedStore is a store that has room for a given number of new objects.
type limitedStore struct {
	store.Bucket
	room int
}

func (c *limitedStore) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
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
	name := layout.PlanManifest("2026-11", 0, p.Manifest().ID)
	for room := range parts + 2 {
		if there, err := manifest.Exists(ctx, b, name); err != nil || there {
			t.Fatalf("after %d objects: a plan %v, %v", room, there, err)
		}
		err := p.Commit(ctx, &limitedStore{Bucket: b, room: 1})
		if last := room == parts+1; (err == nil) != last {
			t.Fatalf("commit %d of %d: %v", room+1, parts+2, err)
		}
	}
	// The same plan from another version of crawlbatch is no conflict.
	again := plan(t, cfg, lines(web(20, 10)...))
	again.Manifest().Version = "another"
	if err := again.Commit(ctx, b); err != nil {
		t.Error(err)
	}
	if there, err := manifest.Exists(ctx, b, name); err != nil || !there || again.Manifest().ID != p.Manifest().ID {
		t.Errorf("plan %s, again %s: stored %v, %v", p.Manifest().ID, again.Manifest().ID, there, err)
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
