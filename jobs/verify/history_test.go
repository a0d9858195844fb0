package verify

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/jobstest"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// monthsLab crawls a web that does not change, month by month.
type monthsLab struct {
	t   *testing.T
	b   store.Bucket
	cfg *config.Config
	web *simweb.Web
	dir string // holds the lists
}

func newMonthsLab(t *testing.T, b store.Bucket) *monthsLab {
	t.Helper()
	return newMonthsLabOf(t, b, 8, 25)
}

// newMonthsLabOf is like newMonthsLab, with a web of another size.
func newMonthsLabOf(t *testing.T, b store.Bucket, hosts, pages int) *monthsLab {
	t.Helper()
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.FaultShare, w.CrawlDelay, w.RetryAfter = hosts, pages, 0, 0, 0
	web, err := simweb.New(w)
	if err != nil {
		t.Fatal(err)
	}
	addr, stop, err := serveWeb(web)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	cfg := testConfig(addr)
	cfg.Politeness.Delay = 0
	return &monthsLab{t, b, cfg, web, t.TempDir()}
}

func directory(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// monthAhead is a clock that is 31 days ahead. URLs that were fetched one time are then due again,
// because their interval is 30 days. URLs that were fetched twice without a change are not.
type monthAhead struct{ stages.SystemClock }

func (monthAhead) Now() time.Time { return time.Now().AddDate(0, 0, 31) }

// plan plans a month from a list.
func (m *monthsLab) plan(month string, clock stages.Clock, urls []string, change func(*jobs.PlanRequest)) (*manifest.Plan, error) {
	m.t.Helper()
	list := filepath.Join(m.dir, "urls.txt")
	if err := os.WriteFile(list, []byte(strings.Join(urls, "\n")+"\n"), 0o644); err != nil {
		m.t.Fatal(err)
	}
	from, err := source.Files(list, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	r := jobs.PlanRequest{Bucket: m.b, Crawl: month, Sources: []source.Source{from}, Config: m.cfg.Clone(), Clock: clock, Version: "test", Scratch: m.t.TempDir(), Lookup: os.LookupEnv}
	if change != nil {
		change(&r)
	}
	p, _, err := jobs.Plan(m.t.Context(), r)
	return p, err
}

// crawl plans a month, runs rounds of it, and audits it.
func (m *monthsLab) crawl(month string, clock stages.Clock, rounds int, urls []string, change func(*jobs.PlanRequest)) {
	m.t.Helper()
	if _, err := m.plan(month, clock, urls, change); err != nil {
		m.t.Fatal(err)
	}
	m.run(month, clock, rounds)
}

func (m *monthsLab) run(month string, clock stages.Clock, rounds int) {
	m.t.Helper()
	_, cfg, err := roundstate.OpenCrawl(m.t.Context(), m.b, month, os.LookupEnv)
	if err != nil {
		m.t.Fatal(err)
	}
	log, scratch := slog.New(slog.DiscardHandler), m.t.TempDir()
	try := worker.Runner{Bucket: m.b, Config: cfg, Version: "test", Scratch: scratch, Clock: stages.SystemClock{}, Log: log, Progress: stages.NoProgress{}}
	d := &jobs.Driver{
		Bucket: m.b, Observer: jobstest.NoObserver{}, Config: cfg, Clock: clock, Log: log, Version: "test", Scratch: scratch, Lookup: os.LookupEnv,
		Executor: &local.Executor{Try: try.Run, FetchTasks: 4, Tasks: 2, Attempts: 1, Clock: stages.SystemClock{}, Log: log},
	}
	if err := d.Run(m.t.Context(), month, rounds); err != nil {
		m.t.Fatal(err)
	}
	m.verify(month, cfg)
}

func (m *monthsLab) verify(month string, cfg *config.Config) {
	m.t.Helper()
	r, err := Run(m.t.Context(), Options{Bucket: m.b, Crawl: month, Round: -1, Config: cfg, Scratch: m.t.TempDir(), Sample: 1, OneClock: true})
	if err != nil {
		m.t.Fatal(err)
	}
	for _, v := range r.Violations {
		m.t.Errorf("verify %s: %+v", month, v)
	}
}

// rowsOfMonth reads a dataset of all sealed rounds of a month.
func rowsOfMonth[T any](m *monthsLab, month, dataset string) (rows []T) {
	m.t.Helper()
	sealed, err := roundstate.Sealed(m.t.Context(), m.b, month)
	if err == nil {
		sealed, err = roundstate.WithFiles(m.t.Context(), m.b, sealed, roundstate.Selection{})
	}
	if err != nil {
		m.t.Fatal(err)
	}
	for _, s := range sealed {
		for _, f := range s.FilesOf(dataset) {
			rows = append(rows, tabletest.Read[T](m.t, m.b, f.Key)...)
		}
	}
	return rows
}

// summary counts the rows of a month: fetches by outcome and kind of revisit, pages by the value of
// their column changed, and URL states by the month in which the URL was first seen.
func (m *monthsLab) summary(month string) map[string]int {
	counts := map[string]int{}
	for _, f := range rowsOfMonth[schema.Fetch](m, month, stages.FileFetches) {
		counts[strings.TrimSpace(fmt.Sprintf("%s %s", f.Outcome, f.Revisit))]++
	}
	for _, p := range rowsOfMonth[schema.Page](m, month, stages.FilePages) {
		changed := "unknown"
		if p.Changed != nil {
			changed = fmt.Sprint(*p.Changed)
		}
		counts["changed "+changed]++
	}
	newest := map[string]schema.URLRecord{}
	for _, u := range rowsOfMonth[schema.URLRecord](m, month, stages.FileURLs) {
		newest[u.URL] = u
	}
	for _, u := range newest {
		if u.Fetches > 0 {
			crawl, _, _ := strings.Cut(u.FirstSeen, ".")
			counts["first seen in "+crawl]++
		}
	}
	return counts
}

// fetched lists the URLs that a month requested successfully, sorted.
func (m *monthsLab) fetched(month string) []string {
	urls := map[string]bool{}
	for _, f := range rowsOfMonth[schema.Fetch](m, month, stages.FileFetches) {
		if f.Outcome == schema.OK || f.Outcome == schema.NotModified {
			urls[f.URL] = true
		}
	}
	return slices.Sorted(maps.Keys(urls))
}

// links counts the links of a month by source, target and kind, of all rounds or of some.
func (m *monthsLab) links(month string, rounds ...int) map[string]int {
	counts := map[string]int{}
	sealed, err := roundstate.Sealed(m.t.Context(), m.b, month)
	if err == nil {
		sealed, err = roundstate.WithFiles(m.t.Context(), m.b, sealed, roundstate.Selection{})
	}
	if err != nil {
		m.t.Fatal(err)
	}
	for _, s := range sealed {
		if len(rounds) > 0 && !slices.Contains(rounds, s.Round) {
			continue
		}
		for _, f := range s.FilesOf(stages.FileLinks) {
			for _, l := range tabletest.Read[schema.Link](m.t, m.b, f.Key) {
				counts[fmt.Sprint(l.Source, l.Kind, l.Target, l.Anchor, l.Nofollow, l.Ordinal)]++
			}
		}
	}
	return counts
}

// repeats checks that a month fetched the same URLs as an earlier month, and found all unchanged.
func (m *monthsLab) repeats(month, before string) {
	m.t.Helper()
	first, second := m.fetched(before), m.fetched(month)
	if d := cmp.Diff(first, second); d != "" {
		m.t.Errorf("%s fetched other URLs than %s (-want +got):\n%s", month, before, d)
	}
	counts := m.summary(month)
	if counts["ok"] > 0 || counts["changed true"] > 0 || counts["changed unknown"] > 0 || counts["first seen in "+month] > 0 {
		m.t.Errorf("%s: %v", month, counts)
	}
	if counts["not_modified not_modified"] == 0 || counts["not_modified not_modified"]+counts["ok identical_payload"] != len(first) || counts["changed false"] == 0 || counts["first seen in "+before] < len(first) {
		m.t.Errorf("%s: %v, of %d URLs", month, counts, len(first))
	}
}

// listed checks the listings of URLs after two months from two lists. The second list has no URL that
// the first lacks.
func (m *monthsLab) listed(first, second []string) {
	m.t.Helper()
	check := func(table, url string, got schema.Listing) {
		at := func(list []string) string { return fmt.Sprint(slices.Index(list, url) + 1) }
		var want schema.Listing
		if slices.Contains(second, url) {
			want = schema.Listing{
				ListedFirstSource: "urls.txt", ListedFirstAt: at(first), ListedFirstRound: firstMonth + ".0",
				ListedLastSource: "urls.txt", ListedLastAt: at(second), ListedLastRound: secondMonth + ".0",
			}
		}
		for _, source := range []*string{&got.ListedFirstSource, &got.ListedLastSource} {
			*source = (*source)[strings.LastIndex(*source, "/")+1:]
		}
		if d := cmp.Diff(want, got); d != "" {
			m.t.Errorf("%s of %s, %s (-want +got):\n%s", table, secondMonth, url, d)
		}
	}
	rows := 0
	for _, f := range rowsOfMonth[schema.Fetch](m, secondMonth, stages.FileFetches) {
		check("fetches", f.URL, f.Listing)
		if f.ListedFirstRound != "" {
			rows++
		}
	}
	if rows != len(second) {
		m.t.Errorf("%d rows of fetches in %s have listings, %d URLs were listed", rows, secondMonth, len(second))
	}
	for _, u := range rowsOfMonth[schema.URLRecord](m, secondMonth, stages.FileURLs) {
		check("urls", u.URL, u.Listing)
	}
}

const (
	firstMonth  = "2026-11"
	secondMonth = "2026-12"
	thirdMonth  = "2027-01"
)

// testSecondMonth plans two months from almost the same list. The second must find all pages unchanged,
// and must not plan a URL that only the first month's list names.
func testSecondMonth(t *testing.T, b store.Bucket, change func(*config.Config)) {
	m := newMonthsLab(t, b)
	change(m.cfg)
	seeds := slices.Collect(m.web.Seeds())
	m.crawl(firstMonth, stages.SystemClock{}, 2, seeds, nil)
	first := seeds
	alone := "" // a URL that only the first list names, and to which no followed link leads
	if m.cfg.Frontier.Follow == "none" {
		alone, seeds = seeds[0], seeds[1:]
	}
	m.crawl(secondMonth, monthAhead{}, 2, seeds, nil)
	m.listed(first, seeds)
	if slices.Contains(m.fetched(secondMonth), alone) {
		t.Errorf("%s was planned, although no source names it", alone)
	}
	before := slices.DeleteFunc(m.fetched(firstMonth), func(url string) bool { return url == alone })
	if d := cmp.Diff(before, m.fetched(secondMonth)); d != "" {
		t.Errorf("the second month fetched other URLs (-want +got):\n%s", d)
	}
	counts := m.summary(secondMonth)
	t.Logf("first month %v, second month %v", m.summary(firstMonth), counts)
	if counts["ok"] > 0 || counts["changed true"] > 0 || counts["changed unknown"] > 0 || counts["first seen in "+secondMonth] > 0 {
		t.Errorf("fetched anew: %v", counts)
	}
	if counts["not_modified not_modified"] == 0 {
		t.Errorf("answers 304: %v", counts)
	}
	if n := counts["not_modified not_modified"] + counts["ok identical_payload"]; n != len(before) || counts["changed false"] == 0 || counts["first seen in "+firstMonth] < len(before) {
		t.Errorf("%v, of %d URLs", counts, len(before))
	}
}

func TestASecondMonthFromTheSameListFetchesNothingAnew(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for name, change := range map[string]func(*config.Config){
		"one bucket":        func(*config.Config) {},
		"several buckets":   func(c *config.Config) { c.Plan.BucketURLs = 30 },
		"of the list alone": func(c *config.Config) { c.Frontier.Follow = "none" },
	} {
		t.Run(name, func(t *testing.T) { testSecondMonth(t, directory(t), change) })
	}
}

func TestS3ASecondMonthFromTheSameListFetchesNothingAnew(t *testing.T) {
	server := versitygw.Start(t)
	for _, pair := range server.Env(server.Endpoint) {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	b, err := s3store.Open(t.Context(), "s3://"+server.NewBucket(t)+"/crawls", s3store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testSecondMonth(t, b, func(c *config.Config) { c.Plan.BucketURLs = 60 })
}

// A month whose list has one page follows links to the other pages again, although they are unchanged.
// This also works if the earlier month's states are in a base.
func TestASecondMonthReachesThePagesBehindItsSeed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	m := newMonthsLab(t, directory(t))
	m.cfg.Frontier.Follow = "any"
	seed := slices.Collect(m.web.Seeds())[:1]
	m.crawl(firstMonth, stages.SystemClock{}, 4, seed, nil)
	if len(rowsOfMonth[schema.URLRecord](m, firstMonth, stages.FileURLsBase)) == 0 {
		t.Error("no round wrote a base")
	}
	m.crawl(secondMonth, monthAhead{}, 4, seed, nil)
	m.repeats(secondMonth, firstMonth)
	if d := cmp.Diff(m.links(firstMonth), m.links(secondMonth)); d != "" {
		t.Errorf("%s has other links than %s (-want +got):\n%s", secondMonth, firstMonth, d)
	}
	m.crawl(thirdMonth, monthAhead{}, 2, seed, nil)
	if counts := m.summary(thirdMonth); counts["ok"] > 0 || counts["changed unknown"] > 0 {
		t.Errorf("the third month: %v", counts)
	}
}

// If links of the first month were deleted, the second month requests their pages without validators, so
// that it gets the links again.
func TestAMonthWithoutTheLinksOfTheMonthBeforeDownloadsItsPages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	m := newMonthsLab(t, directory(t))
	seeds := slices.Collect(m.web.Seeds())
	m.crawl(firstMonth, stages.SystemClock{}, 2, seeds, nil)
	m.deleteLinks(firstMonth, 0)
	m.crawl(secondMonth, monthAhead{}, 2, seeds, nil)
	if d := cmp.Diff(m.fetched(firstMonth), m.fetched(secondMonth)); d != "" {
		t.Errorf("the second month fetched other URLs (-want +got):\n%s", d)
	}
	for _, f := range rowsOfMonth[schema.Fetch](m, secondMonth, stages.FileFetches) {
		if f.Outcome == schema.NotModified && slices.Contains(seeds, f.URL) {
			t.Errorf("%s was requested with validators, although its links are lost", f.URL)
		}
	}
	if d := cmp.Diff(m.links(firstMonth, 1), m.links(secondMonth, 1)); d != "" {
		t.Error(d)
	}
	if counts := m.summary(secondMonth); counts["ok identical_payload"] < len(seeds) || counts["not_modified not_modified"] == 0 || counts["ok"] > 0 {
		t.Errorf("%v", counts)
	}
}

// deleteLinks deletes the links of a round.
func (m *monthsLab) deleteLinks(month string, round int) {
	m.t.Helper()
	for o, err := range m.b.List(m.t.Context(), path.Dir(layout.Table(stages.FileLinks, month, round, 0))+"/") {
		if err == nil {
			err = m.b.Delete(m.t.Context(), o.Key)
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
}

// A month that follows no links does not need the links of the earlier month.
func TestAMonthThatFollowsNoLinksGoesOnWithoutThem(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for name, change := range map[string]func(*config.Config){
		"follow none": func(c *config.Config) { c.Frontier.Follow = "none" },
		"max_depth 0": func(c *config.Config) { c.Plan.MaxDepth = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMonthsLab(t, directory(t))
			change(m.cfg)
			seeds := slices.Collect(m.web.Seeds())
			m.crawl(firstMonth, stages.SystemClock{}, 1, seeds, nil)
			m.deleteLinks(firstMonth, 0)
			m.crawl(secondMonth, monthAhead{}, 1, seeds, nil)
			if counts := m.summary(secondMonth); counts["ok identical_payload"] == 0 || counts["not_modified not_modified"] > 0 {
				t.Errorf("%v", counts)
			}
		})
	}
}

// For a page that answered 304, a reparse takes the links that it has itself parsed from the page's
// earlier content.
func TestAReparseHasTheLinksOfUnchangedPages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	m := newMonthsLab(t, directory(t))
	m.cfg.Frontier.Follow = "any"
	seeds := slices.Collect(m.web.Seeds())
	m.crawl(firstMonth, stages.SystemClock{}, 1, seeds[:1], nil)
	m.crawl(secondMonth, monthAhead{}, 3, seeds, nil)
	_, cfg, err := roundstate.OpenCrawl(t.Context(), m.b, secondMonth, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	const again = secondMonth + "r1"
	if _, err := jobs.Reparse(t.Context(), jobs.ReparseRequest{
		Bucket: m.b, As: again, Of: secondMonth, Config: cfg, Clock: monthAhead{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
	}); err != nil {
		t.Fatal(err)
	}
	m.run(again, monthAhead{}, 3)
	for round := range 3 {
		want := m.links(secondMonth, round)
		if d := cmp.Diff(want, m.links(again, round)); d != "" || len(want) == 0 {
			t.Errorf("round %d of the reparse has other links (-want +got):\n%s", round, d)
		}
	}
}

// A plan says which months it continues and which it skips. If the earlier month is damaged, the error
// says how to plan nevertheless.
func TestAPlanSaysWhatItContinues(t *testing.T) {
	m := newMonthsLab(t, directory(t))
	seeds := slices.Collect(m.web.Seeds())[:2]
	var got jobs.Continuation
	say := func(r *jobs.PlanRequest) { r.Continues, r.DryRun = &got, true }
	if _, err := m.plan(firstMonth, stages.SystemClock{}, seeds, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := m.plan(secondMonth, monthAhead{}, seeds, say); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(jobs.Continuation{Skipped: []string{firstMonth}}, got); d != "" {
		t.Error(d)
	}
	m.crawl(firstMonth, stages.SystemClock{}, 1, seeds, nil)
	if _, err := m.plan(secondMonth, monthAhead{}, seeds, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := m.plan(thirdMonth, monthAhead{}, seeds, say); err != nil {
		t.Fatal(err)
	}
	want := jobs.Continuation{Crawls: []manifest.ContinuedCrawl{{Crawl: firstMonth, Rounds: 1}}, Skipped: []string{secondMonth}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, key := range []string{layout.Sealed(firstMonth, 0), layout.Ledger(firstMonth)} {
		if err := m.b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		_, err := m.plan(thirdMonth, monthAhead{}, seeds, say)
		if err == nil || !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "plan.history: false") {
			t.Errorf("without %s: %v", key, err)
		}
		m.cfg.Plan.History = false
		if _, err := m.plan(thirdMonth, monthAhead{}, seeds, say); err != nil {
			t.Errorf("without %s and history: %v", key, err)
		}
		m.cfg.Plan.History = true
	}
}

// If a month has other rules for URLs, the stored links of earlier months are of no use, so it downloads
// the pages again.
func TestAMonthWithOtherRulesForURLsDownloadsItsPages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for name, change := range map[string]func(*config.Config){
		"strip_params": func(c *config.Config) { c.Plan.StripParams = append(slices.Clone(c.Plan.StripParams), "ref") },
		"canonical":    func(c *config.Config) { c.Plan.Canonical.TrailingSlash = !c.Plan.Canonical.TrailingSlash },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMonthsLab(t, directory(t))
			seeds := slices.Collect(m.web.Seeds())
			m.crawl(firstMonth, stages.SystemClock{}, 1, seeds, nil)
			change(m.cfg)
			m.crawl(secondMonth, monthAhead{}, 1, seeds, nil)
			if counts := m.summary(secondMonth); counts["not_modified not_modified"] > 0 || counts["ok identical_payload"] == 0 {
				t.Errorf("%v", counts)
			}
		})
	}
}

// Without plan.history, a month that is planned from a list knows nothing of earlier months. Crawls that
// are older than this key behave in the same way.
func TestWithoutHistoryASecondMonthBeginsAnew(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	m := newMonthsLab(t, directory(t))
	seeds := slices.Collect(m.web.Seeds())
	m.crawl(firstMonth, stages.SystemClock{}, 1, seeds, nil)
	m.cfg.Plan.History = false
	m.crawl(secondMonth, monthAhead{}, 1, seeds, nil)
	if counts := m.summary(secondMonth); counts["ok"] == 0 || counts["changed false"] > 0 || counts["first seen in "+firstMonth] > 0 || counts["not_modified not_modified"] > 0 {
		t.Errorf("%v", counts)
	}
}

// If a month is planned from the frontier and a list, the URLs of the list get their history too, whether
// they are due or not. Due URLs of the frontier are planned even if the list does not name them.
func TestAListBesideTheFrontierHasItsHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for name, clock := range map[string]stages.Clock{"nothing is due": stages.SystemClock{}, "all is due": monthAhead{}} {
		t.Run(name, func(t *testing.T) {
			m := newMonthsLab(t, directory(t))
			m.cfg.Frontier.Follow = "none"
			seeds := slices.Collect(m.web.Seeds())
			m.crawl(firstMonth, stages.SystemClock{}, 1, seeds, nil)
			half := seeds[:len(seeds)/2]
			m.crawl(secondMonth, clock, 1, half, func(r *jobs.PlanRequest) { r.Frontier = true })
			counts, fetched := m.summary(secondMonth), m.fetched(secondMonth)
			if counts["ok"] > 0 || counts["changed unknown"] > 0 || counts["first seen in "+secondMonth] > 0 {
				t.Errorf("%v", counts)
			}
			if all := len(fetched) == len(m.fetched(firstMonth)); all != (clock == monthAhead{}) || len(fetched) == 0 {
				t.Errorf("%d URLs fetched in the first month, %d in the second", len(m.fetched(firstMonth)), len(fetched))
			}
			// Unchanged pages have their links, so that inlinks and ranks stay.
			if d := cmp.Diff(m.links(firstMonth), m.links(secondMonth)); name == "all is due" && d != "" {
				t.Errorf("%s has other links than %s (-want +got):\n%s", secondMonth, firstMonth, d)
			}
		})
	}
}

// A budget leaves out half of a list of known URLs, none of which is due. The next round plans that half.
func TestAListBesideTheFrontierWaitsForTheBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	m := newMonthsLab(t, directory(t))
	m.cfg.Frontier.Follow = "none"
	seeds := slices.Collect(m.web.Seeds())
	m.crawl(firstMonth, stages.SystemClock{}, 1, seeds, nil)
	m.cfg.Fetch.Window, m.cfg.Plan.Budgets.PerDay = config.Duration(24*time.Hour), (len(seeds)+1)/2
	m.crawl(secondMonth, stages.SystemClock{}, 2, seeds, func(r *jobs.PlanRequest) { r.Frontier = true })
	if d := cmp.Diff(m.fetched(firstMonth), m.fetched(secondMonth)); d != "" {
		t.Errorf("fetched in the second month (-want +got):\n%s", d)
	}
}

// URLs that were fetched within plan.skip_within are not planned again, except with --force.
func TestWhatWasFetchedRecentlyIsSkipped(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	m := newMonthsLab(t, directory(t))
	m.cfg.Frontier.Follow = "none"
	seeds := slices.Collect(m.web.Seeds())
	old, later := seeds[:len(seeds)/2], seeds[len(seeds)/2:]
	m.crawl(firstMonth, stages.SystemClock{}, 1, old, nil)
	fetched := m.fetched(firstMonth)

	m.cfg.Plan.SkipWithin = config.Duration(20 * 24 * time.Hour)
	if _, err := m.plan(secondMonth, stages.SystemClock{}, fetched, nil); !errors.Is(err, planner.ErrNothing) || !strings.Contains(err.Error(), "recent") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a plan only of URLs that were fetched recently: %v", err)
	}
	dry := func(r *jobs.PlanRequest) { r.DryRun = true }
	if p, err := m.plan(secondMonth, monthAhead{}, fetched, dry); err != nil || p.URLs != int64(len(fetched)) {
		t.Errorf("31 days later: %+v, %v", p, err)
	}
	if p, err := m.plan(secondMonth, stages.SystemClock{}, fetched, func(r *jobs.PlanRequest) { r.DryRun, r.Force = true, true }); err != nil || p.URLs != int64(len(fetched)) {
		t.Errorf("forced: %+v, %v", p, err)
	}
	p, err := m.plan(secondMonth, stages.SystemClock{}, seeds, nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := tabletest.Read[schema.Refused](t, m.b, p.RefusedFile.Key)
	var recent []string
	for _, r := range refused {
		if r.Reason == schema.SkipRecent {
			recent = append(recent, r.URL)
			if !strings.HasPrefix(r.Detail, "fetched at 20") || !strings.Contains(r.Detail, "plan.skip_within is 480h") || !strings.HasSuffix(r.Source, "urls.txt") {
				t.Errorf("%+v", r)
			}
		}
	}
	slices.Sort(recent)
	if d := cmp.Diff(fetched, recent); d != "" {
		t.Errorf("refused as recent (-want +got):\n%s", d)
	}
	if again, err := m.plan(secondMonth, monthAhead{}, seeds, nil); err != nil || again.ID != p.ID {
		t.Errorf("the same plan on another day: %v", err)
	}
	m.run(secondMonth, stages.SystemClock{}, 1)
	for _, url := range m.fetched(secondMonth) {
		if !slices.Contains(later, url) {
			t.Errorf("%s was fetched again", url)
		}
	}
}

// If a round of an earlier month is sealed after a later month was planned, the later month ignores this
// round.
func TestALateRoundOfAnEarlierMonthChangesNoLaterMonth(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	m := newMonthsLab(t, directory(t))
	m.cfg.Fetch.Sitemaps = config.SitemapsIfPlanned // otherwise sitemaps name all pages early, and the first month gets no third round
	seeds := slices.Collect(m.web.Seeds())
	m.crawl(firstMonth, stages.SystemClock{}, 1, seeds, nil)
	first, err := m.plan(secondMonth, stages.SystemClock{}, seeds, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.run(firstMonth, stages.SystemClock{}, 2)
	again, err := m.plan(secondMonth, stages.SystemClock{}, seeds, nil)
	if err != nil || again.ID != first.ID {
		t.Fatalf("planned again after another round of the month before: %v, %v", again, err)
	}
	m.run(secondMonth, stages.SystemClock{}, 1)
	m.run(firstMonth, stages.SystemClock{}, 3)
	m.run(secondMonth, stages.SystemClock{}, 2)
	crawl, _, err := roundstate.OpenCrawl(t.Context(), m.b, secondMonth, os.LookupEnv)
	if err != nil || !crawl.Listed || !slices.Equal(crawl.Continued, []manifest.ContinuedCrawl{{Crawl: firstMonth, Rounds: 1}}) {
		t.Errorf("%+v, %v", crawl, err)
	}
	m.crawl(thirdMonth, monthAhead{}, 2, seeds, nil)
	crawl, _, err = roundstate.OpenCrawl(t.Context(), m.b, thirdMonth, os.LookupEnv)
	if err != nil || !slices.Equal(crawl.Continued, []manifest.ContinuedCrawl{{Crawl: firstMonth, Rounds: 3}, {Crawl: secondMonth, Rounds: 2}}) {
		t.Errorf("%+v, %v", crawl, err)
	}
	if counts := m.summary(thirdMonth); counts["ok"] > 0 || counts["changed unknown"] > 0 {
		t.Errorf("the third month: %v", counts)
	}
}
