package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// TestAReparseEqualsItsCrawlOnEveryStableColumn reparses two months. The second month has revisits
// of the first. The parser has not changed, so the rows must be the same.
func TestAReparseEqualsItsCrawlOnEveryStableColumn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	dir := crawltest.CrawlTwice(t, mustRun)
	b := crawltest.OpenDir(t, dir)
	has := kinds(t, b, "2026-10", "2026-11")
	for _, want := range []string{"ok", "redirected", "robots_denied", "http_4xx", "http_5xx", "not_modified", "withheld", "identical_payload", "kept elsewhere", "hop", "a long sitemap, cut: ", "a long sitemap, cut: length"} {
		if !has[want] {
			t.Errorf("the crawl has no row of the kind %q, so the test does not compare it", want)
		}
	}
	for _, month := range []string{"2026-10", "2026-11"} {
		t.Run(month, func(t *testing.T) {
			as := month + "r1"
			mustRun(t, "reparse", "--month", month, "--as", as, "--store", dir)
			equalsItsCrawl(t, b, month, as)
			mustRun(t, "verify", "--month", as, "--store", dir)
			if out := mustRun(t, "status", "--month", as, "--store", dir); !strings.Contains(out, "round 1: sealed") {
				t.Errorf("status:\n%s", out)
			}
		})
	}
	crawls, err := roundstate.Crawls(t.Context(), b)
	if diff := gocmp.Diff([]string{"2026-10", "2026-10r1", "2026-11", "2026-11r1"}, crawls); err != nil || diff != "" {
		t.Errorf("crawls of the store: %v %s", err, diff)
	}
	if out := mustRun(t, "inspect", "url", "--month", "2026-11r1", "--store", dir, "http://a.test/etag"); !strings.Contains(out, "2026-11r1") {
		t.Errorf("inspect url:\n%s", out)
	}
	crawltest.PlanLater(t, dir, "2026-12")
	if m, _, err := roundstate.OpenCrawl(t.Context(), b, "2026-12", os.LookupEnv); err != nil || m.Continues != "2026-11" {
		t.Errorf("the next month continues from %q: %v", m.Continues, err)
	}
	t.Run("with other settings", func(t *testing.T) { reparseWithFewerLinks(t, dir) })
	t.Run("lost parts are made again", func(t *testing.T) { rebuildReparse(t, dir) })
}

// equalsItsCrawl compares the stable columns of all datasets.
func equalsItsCrawl(t *testing.T, b store.Bucket, month, as string) {
	t.Helper()
	for _, d := range catalog.Datasets() {
		if !crawltest.HasStable(d) {
			continue
		}
		want, got := crawltest.StableRows(t, b, d, month), crawltest.StableRows(t, b, d, as)
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], as, month)
		}
		slices.Sort(got)
		if len(want) == 0 && !(d.Name == "skips" && month == "2026-11") {
			t.Errorf("%s has no rows: nothing is compared", d.Name)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			lines := strings.Split(diff, "\n")
			t.Errorf("%s: %d and %d rows differ:\n%s", d.Name, len(want), len(got), strings.Join(lines[:min(30, len(lines))], "\n"))
		}
	}
}

// TestAReparseOfAMisbehavingWebEqualsItsCrawl reparses a web of faults, such as bodies that break
// off, have damaged codings or exceed the limit.
func TestAReparseOfAMisbehavingWebEqualsItsCrawl(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	c := simweb.Default()
	c.Hosts, c.PagesPerHost, c.FaultShare = 12, 60, 0.6
	c.Faults, c.CrawlDelay, c.RetryAfter = faults.Quick, time.Millisecond, 0
	web, err := simweb.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ln := crawltest.Listen(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- simweb.NewServer(web, nil).Serve(ctx, ln) }()
	defer func() {
		stop()
		<-served
	}()
	dir := t.TempDir()
	seeds, conf, in := filepath.Join(dir, "urls.txt"), filepath.Join(dir, "c.yaml"), filepath.Join(dir, "store")
	if err := web.WriteSeeds(t.Context(), seeds, true); err != nil {
		t.Fatal(err)
	}
	crawltest.Write(t, conf, strings.Replace(strings.Replace(crawltest.Config, "max_body: 20KiB", "max_body: 6KiB", 1), "partition_urls: 10", "partition_urls: 200", 1))
	mustRun(t, "plan", "--month", "2026-10", "--source", seeds, "--config", conf, "--connect-to", "::"+ln.Addr().String(), "--store", in)
	mustRun(t, "run", "--month", "2026-10", "--rounds", "2", "--store", in)
	mustRun(t, "reparse", "--month", "2026-10", "--as", "2026-10r1", "--store", in)
	b := crawltest.OpenDir(t, in)
	equalsItsCrawl(t, b, "2026-10", "2026-10r1")
	mustRun(t, "verify", "--month", "2026-10r1", "--store", in)
	sealed, err := crawltest.SealedFiles(t.Context(), b, "2026-10r1")
	if err != nil {
		t.Fatal(err)
	}
	cut := map[string]int{}
	for _, p := range crawltest.RowsOf[schema.Page](t, b, sealed, "pages") {
		cut[p.Truncated]++
	}
	if cut[schema.TruncatedLength] == 0 || cut[schema.TruncatedDisconnect] == 0 || cut[""] == 0 {
		t.Errorf("number of pages, by the reason why they were cut: %v", cut)
	}
}

// kinds returns the kinds of rows that the crawls contain.
func kinds(t *testing.T, b store.Bucket, crawls ...string) map[string]bool {
	t.Helper()
	has := map[string]bool{}
	for _, crawl := range crawls {
		sealed, err := crawltest.SealedFiles(t.Context(), b, crawl)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range crawltest.RowsOf[schema.Fetch](t, b, sealed, "fetches") {
			has[string(f.Outcome)] = true
			has["hop"] = has["hop"] || f.Redirects > 1
		}
		for _, p := range crawltest.RowsOf[schema.Page](t, b, sealed, "pages") {
			has["a long sitemap, cut: "+p.Truncated] = has["a long sitemap, cut: "+p.Truncated] || p.DocumentKind == "sitemap" && p.ContentBytes > 20<<10
			has["withheld"] = has["withheld"] || p.Truncated == schema.TruncatedUnspecified
			has["kept elsewhere"] = has["kept elsewhere"] || !strings.Contains(p.WARCFilename, "crawl="+crawl)
			if p.ParserVersion != worker.ParserVersion {
				t.Errorf("%s: parser version %d", p.URL, p.ParserVersion)
			}
		}
		for _, c := range crawltest.RowsOf[schema.Capture](t, b, sealed, "captures") {
			has[string(c.Revisit)] = true
		}
	}
	return has
}

// reparseWithFewerLinks configures the parser to keep two links per page. Rows of pages and links
// must change, fetches must stay the same, and every invariant must hold.
func reparseWithFewerLinks(t *testing.T, dir string) {
	conf := filepath.Join(t.TempDir(), "few.yaml")
	crawltest.Write(t, conf, "parse: {max_links: 2}\n")
	mustRun(t, "reparse", "--month", "2026-11", "--as", "2026-11r2", "--config", conf, "--store", dir)
	mustRun(t, "verify", "--month", "2026-11r2", "--store", dir)
	b := crawltest.OpenDir(t, dir)
	links := func(crawl string) int {
		sealed, err := crawltest.SealedFiles(t.Context(), b, crawl)
		if err != nil {
			t.Fatal(err)
		}
		return len(crawltest.RowsOf[schema.Link](t, b, sealed, "links"))
	}
	if was, is := links("2026-11"), links("2026-11r2"); is == 0 || is >= was {
		t.Errorf("%d links, %d before", is, was)
	}
	for _, c := range []struct{ name, want string }{
		{"2026-11r2", "parse.max_links differs"}, // the crawl exists with another config
		{"2026-11r1", ""},
	} {
		code, out := exitOf(t, "reparse", "--month", "2026-11", "--as", c.name, "--store", dir)
		if (code != 0) != (c.want != "") || !strings.Contains(out, c.want) {
			t.Errorf("reparse --as %s again: exit %d, %s", c.name, code, out)
		}
	}
}

func rebuildReparse(t *testing.T, dir string) {
	var lost []string
	for _, key := range crawltest.KeysBelow(t, dir) {
		if strings.HasPrefix(key, "crawl=2026-11r1/round=0/fetch/part-00000/segments/") || strings.HasPrefix(key, "tables/pages/crawl=2026-11r1/") {
			lost = append(lost, key)
		}
	}
	was := map[string]string{}
	for _, key := range lost {
		body, err := os.ReadFile(filepath.Join(dir, key))
		if err != nil {
			t.Fatal(err)
		}
		was[key] = string(body)
		if err := os.Remove(filepath.Join(dir, key)); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, "retry", "--month", "2026-11r1", "--rebuild", "--store", dir)
	for _, key := range lost {
		if body, err := os.ReadFile(filepath.Join(dir, key)); err != nil || string(body) != was[key] {
			t.Errorf("%s has other bytes than before its loss: %v", key, err)
		}
	}
	if len(lost) < 5 {
		t.Errorf("only %d parts were lost: %v", len(lost), lost)
	}
}

// exitOf runs a command line and returns its exit code and stderr.
func exitOf(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, errs strings.Builder
	code := execute(t.Context(), args, nil, &out, &errs)
	return code, errs.String()
}

// TestAReparseIsTheSameBytesHoweverItRuns compares a reparse on all CPUs, one on a single CPU, and one
// that is killed repeatedly.
func TestAReparseIsTheSameBytesHoweverItRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	dir := crawltest.CrawlTwice(t, mustRun)
	copied := func() string {
		to := filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		return to
	}
	args := func(store string) []string {
		return []string{"reparse", "--month", "2026-11", "--as", "2026-11r1", "--store", store}
	}
	want := copied()
	mustRun(t, args(want)...)
	same := func(t *testing.T, got string) {
		t.Helper()
		keys := func(dir string) []string {
			return slices.DeleteFunc(crawltest.KeysBelow(t, dir), func(key string) bool {
				return !strings.Contains(key, "2026-11r1") || strings.HasSuffix(key, "/crawl.json") || crawltest.HasCosts(key)
			})
		}
		if diff := gocmp.Diff(crawltest.SealsOf(t, want, "2026-11r1"), crawltest.SealsOf(t, got, "2026-11r1")); diff != "" {
			t.Errorf("other seals:\n%s", diff)
		}
		if diff := gocmp.Diff(keys(want), keys(got)); diff != "" {
			t.Errorf("other objects:\n%s", diff)
		}
		for _, key := range keys(want) {
			a, err1 := os.ReadFile(filepath.Join(want, key))
			b, err2 := os.ReadFile(filepath.Join(got, key))
			if err1 != nil || err2 != nil || string(a) != string(b) {
				t.Errorf("%s: other bytes (%v, %v)", key, err1, err2)
			}
		}
	}
	t.Run("on one CPU", func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		got := copied()
		mustRun(t, args(got)...)
		same(t, got)
	})
	t.Run("killed again and again", func(t *testing.T) {
		binary := filepath.Join(t.TempDir(), "crawlbatch")
		if out, err := exec.Command("go", "build", "-ldflags", "-X main.version="+version, "-o", binary, ".").CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		got, kills := copied(), 0
		for wait := 20 * time.Millisecond; ; wait += wait / 2 {
			c := exec.Command(binary, args(got)...)
			out := new(strings.Builder)
			c.Stderr = out
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			killer := time.AfterFunc(wait, func() { _ = c.Process.Kill() })
			err := c.Wait()
			if killer.Stop() {
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				break
			}
			kills++
		}
		t.Logf("killed %d times", kills)
		if kills == 0 {
			t.Error("the reparse was never killed")
		}
		same(t, got)
		mustRun(t, "verify", "--month", "2026-11r1", "--store", got)
	})
}

// TestARecordThatIsRestoredAfterAReparseIsToldOf damages a record, reparses the crawl and restores
// the record. The reparse must stay valid, and verify must say that a new reparse would have more
// rows.
func TestARecordThatIsRestoredAfterAReparseIsToldOf(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	dir := crawltest.CrawlTwice(t, mustRun)
	b := crawltest.OpenDir(t, dir)
	sealed, err := crawltest.SealedFiles(t.Context(), b, "2026-10")
	if err != nil {
		t.Fatal(err)
	}
	at := crawltest.RowsOf[schema.Page](t, b, sealed, "pages")[0]
	file := filepath.Join(dir, at.WARCFilename)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(whole)
	damaged[int(at.WARCRecordOffset)+int(at.WARCRecordLength)/2] ^= 0x10
	replace := func(body []byte) {
		t.Helper()
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		crawltest.Write(t, file, string(body))
	}
	replace(damaged)
	mustRun(t, "reparse", "--month", "2026-10", "--as", "2026-10r1", "--store", dir)
	if code, _ := exitOf(t, "verify", "--month", "2026-10r1", "--store", dir); code != exitViolation {
		t.Errorf("verify while the record is damaged: exit %d", code)
	}
	replace(whole)
	out := mustRun(t, "verify", "--month", "2026-10r1", "--store", dir)
	if !strings.Contains(out, "readable now were damaged when 2026-10r1 was made") || !strings.Contains(out, "reparse under another name") {
		t.Errorf("verify of the restored file says\n%s", out)
	}
	mustRun(t, "reparse", "--month", "2026-10", "--as", "2026-10r2", "--store", dir)
	if out := mustRun(t, "verify", "--month", "2026-10r2", "--store", dir); strings.Contains(out, "another name") {
		t.Errorf("verify of the reparse under another name says\n%s", out)
	}
}
