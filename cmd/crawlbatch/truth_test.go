package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/truth"
)

// truthDelay is the delay of the test crawls. It is so long that the test notices a shorter gap between
// requests even on a busy machine.
const truthDelay = 60 * time.Millisecond

// truthWeb is a web of 20 hosts and about 2,000 pages. It has every fault except those that last until the
// crawler's time-outs.
func truthWeb(t *testing.T) *simweb.Web {
	t.Helper()
	w, err := simweb.New(crawltest.WebConfig())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// serve serves the web that flags describe, on loopback, until the test ends or calls stop. The server is
// a separate process without race detector, so that its log has the true times of requests. stop returns
// the log.
func serve(t *testing.T, flags ...string) (addr string, stop func() []simweb.Entry) {
	t.Helper()
	dir := t.TempDir()
	binary, logFile := filepath.Join(dir, "crawlbatch"), filepath.Join(dir, "log.jsonl")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	server := exec.Command(binary, append([]string{"simweb", "--listen", "127.0.0.1:0", "--log", logFile}, flags...)...)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := sync.OnceFunc(func() {
		server.Process.Signal(os.Interrupt)
		server.Wait()
	})
	t.Cleanup(ended)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(line, "serving %d hosts at %s", new(int), &addr); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return strings.TrimSuffix(addr, ";"), func() []simweb.Entry {
		ended()
		return crawltest.RequestLog(t, logFile)
	}
}

const truthConfig = `
politeness: {delay: %s}
fetch:
  sitemaps: robots
  pauses: {rate_limited: 100ms, server_error: 100ms, timeout: 100ms, dns: 100ms, breaker: 200ms}
plan: {partition_urls: %d, bucket_urls: %[2]d}
`

// mustRun runs a command line in this process and returns its stdout.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := execute(t.Context(), args, nil, &out, &errs); code != 0 {
		t.Fatalf("crawlbatch %s: exit %d\n%s%s", strings.Join(args, " "), code, out.String(), errs.String())
	}
	return out.String()
}

// crawl plans and runs two rounds of the web at addr into a store.
func crawl(t *testing.T, web *simweb.Web, addr, store string, partitionURLs int) {
	t.Helper()
	dir := t.TempDir()
	seeds, conf := filepath.Join(dir, "urls.txt"), filepath.Join(dir, "c.yaml")
	if err := web.WriteSeeds(t.Context(), seeds, true); err != nil {
		t.Fatal(err)
	}
	crawltest.Write(t, conf, fmt.Sprintf(truthConfig, truthDelay, partitionURLs))
	mustRun(t, "plan", "--month", "2026-11", "--source", seeds, "--config", conf, "--connect-to", "::"+addr, "--store", store)
	mustRun(t, "run", "--month", "2026-11", "--rounds", "2", "--store", store)
}

func sealedRounds(t *testing.T, dir string) (*dirstore.Store, []*manifest.Sealed) {
	t.Helper()
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := crawltest.SealedFiles(t.Context(), b, "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	return b, sealed
}

// TestACrawlEqualsTheTruth crawls two rounds. Every row of every table must equal the row of package truth,
// which computes what a correct crawler finds. All requests in the server's log must be allowed by
// robots.txt and keep the delay.
func TestACrawlEqualsTheTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	t.Parallel() // it mostly waits
	web := truthWeb(t)
	addr, stop := serve(t, "--hosts", "20", "--pages", "100", "--fault-classes", "quick,retried", "--crawl-delay", "90ms", "--retry-after", "0s")
	dir := filepath.Join(t.TempDir(), "store")
	crawl(t, web, addr, dir, 300)
	rules := truth.Default()
	rules.Sitemaps = true
	correct, err := truth.Compute(web, rules)
	if err != nil {
		t.Fatal(err)
	}
	b, sealed := sealedRounds(t, dir)
	if len(sealed) != 2 || len(correct.Rounds) != 2 {
		t.Fatalf("%d rounds sealed, %d in truth", len(sealed), len(correct.Rounds))
	}
	for n, want := range correct.Rounds {
		one := sealed[n : n+1]
		t.Run(fmt.Sprint("round", n), func(t *testing.T) {
			diff(t, "fetches", truthFetches(want), crawledFetches(crawltest.RowsOf[schema.Fetch](t, b, one, "fetches")))
			pages := crawltest.RowsOf[schema.Page](t, b, one, "pages")
			diff(t, "pages", truthPages(want), crawledPages(want, pages))
			diff(t, "links", want.Links, crawledLinks(want, crawltest.RowsOf[schema.Link](t, b, one, "links")))
			diff(t, "duplicates", truthDuplicates(want), crawledDuplicates(crawltest.RowsOf[schema.Duplicate](t, b, one, "duplicates")))
			diff(t, "duplicates in pages", truthCopies(want), crawledCopies(pages))
			diff(t, "skips", truthSkips(want), crawledSkips(crawltest.RowsOf[schema.Skip](t, b, one, "skips")))
			diff(t, "next round", truthNext(want), crawledNext(crawltest.RowsOf[schema.URLRecord](t, b, one, "urls")))
		})
	}
	entries := stop()
	for _, v := range truth.CheckLog(web, entries, truth.Pace{Delay: truthDelay, Slack: 20 * time.Millisecond}) {
		t.Errorf("the server saw: %s", v)
	}
	if len(entries) < 500 {
		t.Errorf("the server logged only %d requests", len(entries))
	}
}

// diff compares two sorted lists and reports a few rows of each kind of difference.
func diff[T any](t *testing.T, what string, want, got []T) {
	t.Helper()
	if len(want) == 0 {
		t.Errorf("%s: package truth has no rows, so nothing is compared", what)
	}
	if d := gocmp.Diff(want, got); d != "" {
		lines := strings.Split(d, "\n")
		t.Errorf("%s: %d rows in truth (-), %d in the crawl (+):\n%s", what, len(want), len(got), strings.Join(lines[:min(60, len(lines))], "\n"))
	}
}

type fetchRow struct {
	URL, Host, Domain         string
	Outcome                   schema.Outcome
	HTTPStatus                int16
	Allowed, Rule             string
	Depth, Redirects          int32
	Truncated, Target, Answer string
}

func verdict(b *bool) string {
	if b == nil {
		return "unknown"
	}
	return fmt.Sprint(*b)
}

func truthFetches(r truth.Round) []fetchRow {
	var rows []fetchRow
	for _, f := range r.Fetches {
		rows = append(rows, fetchRow{f.URL, f.Host, f.Domain, f.Outcome, f.HTTPStatus, verdict(f.RobotsAllowed), f.RobotsRule, f.Depth, f.Redirects, f.Truncated, f.RedirectTarget, f.FinalURL})
	}
	return sorted(rows, func(f fetchRow) string { return f.URL })
}

func crawledFetches(fetches []schema.Fetch) []fetchRow {
	var rows []fetchRow
	for _, f := range fetches {
		rows = append(rows, fetchRow{f.URL, f.Host, f.Domain, f.Outcome, f.HTTPStatus, verdict(f.RobotsAllowed), f.RobotsRule, f.Depth, f.Redirects, f.Truncated, f.RedirectTarget, f.FinalURL})
	}
	return sorted(rows, func(f fetchRow) string { return f.URL })
}

func sorted[T any](rows []T, key func(T) string) []T {
	slices.SortStableFunc(rows, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	return rows
}

// pageRow holds the stable columns of a page. For a broken document, the columns that depend on its text
// are left out, because a parser may repair the document in several ways.
type pageRow struct {
	URL, PlannedURL, ETag                     string
	Depth                                     int32
	Title, Description, Language, Canonical   string
	Keywords, Author, Robots, Digest, SimHash string
	Indexable                                 bool
	Words, Outlinks                           int32
}

func truthPages(r truth.Round) []pageRow {
	var rows []pageRow
	for _, p := range r.Pages {
		row := pageRow{URL: p.URL, PlannedURL: p.PlannedURL, ETag: p.ETag, Depth: p.Depth}
		if p.TextKnown {
			row.Title, row.Description, row.Language, row.Canonical = p.Title, p.Description, p.Language, p.CanonicalURL
			row.Keywords, row.Author, row.Robots, row.Digest, row.SimHash = p.Keywords, p.Author, p.Robots, p.TextDigest, fmt.Sprintf("%016x", p.SimHash)
			row.Indexable, row.Words, row.Outlinks = p.Indexable, p.WordCount, p.Outlinks
		}
		rows = append(rows, row)
	}
	return sorted(rows, func(p pageRow) string { return p.URL })
}

func crawledPages(r truth.Round, pages []schema.Page) []pageRow {
	known := textKnown(r)
	var rows []pageRow
	for _, p := range pages {
		row := pageRow{URL: p.URL, PlannedURL: p.PlannedURL, ETag: p.ETag, Depth: p.Depth}
		if known[p.URL] {
			row.Title, row.Description, row.Language, row.Canonical = p.Title, p.Description, p.Language, p.CanonicalURL
			row.Keywords, row.Author, row.Robots, row.Digest, row.SimHash = p.Keywords, p.Author, p.Robots, p.TextDigest, fmt.Sprintf("%016x", uint64(p.SimHash))
			row.Indexable, row.Words, row.Outlinks = p.Indexable, p.WordCount, p.Outlinks
		}
		rows = append(rows, row)
	}
	return sorted(rows, func(p pageRow) string { return p.URL })
}

func textKnown(r truth.Round) map[string]bool {
	known := map[string]bool{}
	for _, p := range r.Pages {
		known[p.URL] = p.TextKnown
	}
	return known
}

// crawledLinks converts links to the type that package truth uses. It leaves out redirects, and the links
// of documents whose text package truth cannot predict.
func crawledLinks(r truth.Round, links []schema.Link) []truth.Link {
	known := textKnown(r)
	var rows []truth.Link
	for _, l := range links {
		if known[l.Source] && l.Kind != schema.KindRedirect {
			rows = append(rows, truth.Link{Source: l.Source, Target: l.Target, Anchor: l.Anchor, Rel: l.Rel, Kind: l.Kind, Nofollow: l.Nofollow, Position: l.Position,
				Hreflang: l.Hreflang, Ordinal: l.Ordinal})
		}
	}
	slices.SortFunc(rows, func(a, b truth.Link) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	// The column ordinal counts the row of a redirect, too, which comes first. Without redirects, the links
	// of each page must be numbered from 0 again.
	for i := range rows {
		if i > 0 && rows[i].Source == rows[i-1].Source {
			rows[i].Ordinal = rows[i-1].Ordinal + 1
		} else {
			rows[i].Ordinal = 0
		}
	}
	return rows
}

func truthDuplicates(r truth.Round) []string {
	var rows []string
	for _, c := range r.Clusters {
		for _, m := range c.Members {
			rows = append(rows, fmt.Sprint(m.URL, " ", m.Kind, " of ", c.Representative, " ", m.Distance, " bits, round ", c.Earlier >= 0, ", ", len(c.Members)))
		}
	}
	slices.Sort(rows)
	return rows
}

func crawledDuplicates(duplicates []schema.Duplicate) []string {
	here := map[string]bool{}
	for _, d := range duplicates {
		if d.Kind == schema.DupRepresentative {
			here[d.URL] = true
		}
	}
	var rows []string
	for _, d := range duplicates {
		rows = append(rows, fmt.Sprint(d.URL, " ", d.Kind, " of ", d.Representative, " ", d.Distance, " bits, round ", !here[d.Representative], ", ", d.ClusterSize))
	}
	slices.Sort(rows)
	return rows
}

func truthCopies(r truth.Round) []string {
	var rows []string
	for _, c := range r.Clusters {
		for _, m := range c.Members {
			if m.Kind != schema.DupRepresentative {
				rows = append(rows, m.URL+" "+string(m.Kind)+" "+c.Representative)
			}
		}
	}
	slices.Sort(rows)
	return rows
}

func crawledCopies(pages []schema.Page) []string {
	var rows []string
	for _, p := range pages {
		if p.DuplicateOf != "" {
			rows = append(rows, p.URL+" "+p.DuplicateKind+" "+p.DuplicateOf)
		}
	}
	slices.Sort(rows)
	return rows
}

func truthSkips(r truth.Round) []string {
	var rows []string
	for _, s := range r.Skips {
		rows = append(rows, fmt.Sprint(s.URL, " ", s.Reason))
	}
	slices.Sort(rows)
	return rows
}

func crawledSkips(skips []schema.Skip) []string {
	var rows []string
	for _, s := range skips {
		rows = append(rows, fmt.Sprint(s.URL, " ", s.Reason))
	}
	slices.Sort(rows)
	return rows
}

func truthNext(r truth.Round) []string {
	var rows []string
	for _, p := range r.Next {
		rows = append(rows, fmt.Sprint(p.URL, " at depth ", p.Depth))
	}
	slices.Sort(rows)
	return rows
}

// crawledNext returns the URLs that a round left for later rounds to fetch. It leaves out those that were denied and are
// tried in another form, because the truth knows no forms: its rules deny all of them.
func crawledNext(urls []schema.URLRecord) []string {
	var rows []string
	for _, u := range urls {
		if u.State == schema.StateFound && u.Outcome != schema.RobotsDenied {
			rows = append(rows, fmt.Sprint(u.URL, " at depth ", u.Depth))
		}
	}
	slices.Sort(rows)
	return rows
}
