package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/faultstore"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/jobstest"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/prune"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/reparse"
)

// ahead is a clock that is the given number of days ahead.
type ahead struct {
	stages.SystemClock
	days int
}

func (a ahead) Now() time.Time { return time.Now().AddDate(0, 0, a.days) }

// fixed is a clock that stands still.
type fixed struct {
	stages.SystemClock
	now time.Time
}

func (f fixed) Now() time.Time { return f.now }

// monthAfter returns the name of a month.
func monthAfter(first time.Time, n int) string { return first.AddDate(0, n, 0).Format("2006-01") }

var firstOfYear = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// year crawls months of a small web. The first month has all hosts, the later months have half of
// them, and their pages are unchanged.
func year(t *testing.T, b store.Bucket, months, hosts, pages int) *monthsLab {
	t.Helper()
	m := newMonthsLabOf(t, b, hosts, pages)
	m.cfg.Frontier.Follow = "none"
	m.cfg.Plan.PartitionURLs = 1
	seeds := slices.Sorted(m.web.Seeds())
	for n := range months {
		m.crawlOnce(monthAfter(firstOfYear, n), ahead{days: 400 * n}, seeds)
		seeds = seeds[:max(2, len(seeds)/2)]
	}
	return m
}

// crawlOnce plans a month and crawls one round of it, without an audit.
func (m *monthsLab) crawlOnce(month string, clock stages.Clock, urls []string) {
	m.t.Helper()
	if _, err := m.plan(month, clock, urls, nil); err != nil {
		m.t.Fatal(err)
	}
	m.runOnce(month, clock)
}

func (m *monthsLab) runOnce(month string, clock stages.Clock) {
	m.t.Helper()
	if err := m.driver(month, clock).Run(m.t.Context(), month, 1); err != nil {
		m.t.Fatal(err)
	}
}

func (m *monthsLab) driver(month string, clock stages.Clock) *jobs.Driver {
	m.t.Helper()
	cfg := m.frozen(month)
	log, scratch := slog.New(slog.DiscardHandler), m.t.TempDir()
	try := worker.Runner{Bucket: m.b, Config: cfg, Version: "test", Scratch: scratch, Clock: stages.SystemClock{}, Log: log, Progress: stages.NoProgress{}}
	return &jobs.Driver{
		Bucket: m.b, Observer: jobstest.NoObserver{}, Config: cfg, Clock: clock, Log: log, Version: "test", Scratch: scratch, Lookup: os.LookupEnv, Runner: try,
		Executor: &local.Executor{Try: try.Run, FetchTasks: 4, Tasks: 2, Attempts: 1, Clock: stages.SystemClock{}, Log: log},
	}
}

func (m *monthsLab) frozen(month string) *config.Config {
	m.t.Helper()
	_, cfg, err := roundstate.OpenCrawl(m.t.Context(), m.b, month, os.LookupEnv)
	if err != nil {
		m.t.Fatal(err)
	}
	return cfg
}

// request returns a request to prune at a month after the first month.
func (m *monthsLab) request(now int) prune.Request {
	return prune.Request{Bucket: m.b, Raw: 12, Metadata: 18, Clock: fixed{now: firstOfYear.AddDate(0, now, 10)}, Version: "test"}
}

func (m *monthsLab) apply(now int) *prune.Found {
	m.t.Helper()
	f, err := prune.Apply(m.t.Context(), m.request(now))
	if err != nil {
		m.t.Fatal(err)
	}
	return f
}

// keys lists the keys below a prefix.
func (m *monthsLab) keys(prefix string) (keys []string) {
	m.t.Helper()
	for o, err := range m.b.List(m.t.Context(), prefix) {
		if err != nil {
			m.t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

// notes audits a month, which must have no violation, and returns the notes of the audit.
func (m *monthsLab) notes(month string) string {
	m.t.Helper()
	r, err := Run(m.t.Context(), Options{Bucket: m.b, Crawl: month, Round: -1, Config: m.frozen(month), Scratch: m.t.TempDir(), Sample: 1, OneClock: true})
	if err != nil {
		m.t.Fatal(err)
	}
	for _, v := range r.Violations {
		m.t.Errorf("verify %s: %+v", month, v)
	}
	return strings.Join(r.Notes, "\n")
}

// resolves checks that each revisit of a month names a record that exists and has the payload.
func (m *monthsLab) resolves(month string) {
	m.t.Helper()
	revisits := 0
	for _, c := range rowsOfMonth[schema.Capture](m, month, stages.FileCaptures) {
		if c.Revisit == "" {
			continue
		}
		revisits++
		o, err := m.b.Open(m.t.Context(), c.PayloadFilename)
		if err != nil {
			m.t.Fatalf("%s: the payload of %s: %v", month, c.URL, err)
		}
		e, err := warc.NewReader(nil, warc.ReaderOptions{Check: true}).ReadAt(o, warc.Extent{Offset: int64(c.PayloadRecordOff), Length: int64(c.PayloadRecordLen)})
		if err != nil || e.Header.Get("WARC-Type") != "response" {
			m.t.Errorf("%s: the payload of %s: %v", month, c.URL, err)
		}
		_ = o.Close()
	}
	if revisits == 0 {
		m.t.Errorf("%s has no revisit", month)
	}
}

func TestRawCapturesOfAYearArePruned(t *testing.T) { testRawCaptures(t, directory(t)) }

func TestS3RawCapturesOfAYearArePruned(t *testing.T) {
	server := versitygw.Start(t)
	for _, pair := range server.Env(server.Endpoint) {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	b, err := s3store.Open(t.Context(), "s3://"+server.NewBucket(t)+"/crawls", s3store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testRawCaptures(t, b)
}

func testRawCaptures(t *testing.T, b store.Bucket) {
	m := year(t, b, 3, 4, 5)
	first, second, third := monthAfter(firstOfYear, 0), monthAfter(firstOfYear, 1), monthAfter(firstOfYear, 2)
	before := m.keys("warc/" + layout.CrawlDir(first))
	tables := m.keys("tables/")

	f, err := prune.Find(t.Context(), m.request(13))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, m.keys("warc/"+layout.CrawlDir(first))); d != "" {
		t.Errorf("a dry run changed the store:\n%s", d)
	}
	c := f.Crawls[0]
	if c.Name != first || c.Policy != manifest.PruneRaw || c.Kept.Objects == 0 || c.Total().Objects == 0 {
		t.Fatalf("found %+v", c)
	}
	for _, other := range f.Crawls[1:] {
		if other.Policy != "" {
			t.Errorf("found %+v", other)
		}
	}
	m.apply(13)
	for month, want := range map[string]string{first: "the raw captures were pruned on 2026-02-11 (retention.raw: 12 months)", second: ""} {
		s, err := (&jobs.StatusReader{Bucket: b}).Read(t.Context(), month)
		if err != nil || !strings.Contains(s.Pruned, want) || want == "" && s.Pruned != "" || s.Err() != nil {
			t.Errorf("status of %s: %v, %+v, want %q", month, err, s, want)
		}
	}
	after := m.keys("warc/" + layout.CrawlDir(first))
	if len(after) != 2*int(c.Kept.Objects) || len(after) >= len(before) {
		t.Errorf("%d of %d WARC files and indexes stay, %d files were to stay", len(after), len(before), c.Kept.Objects)
	}
	for _, key := range m.keys(layout.CrawlDir(first)) {
		if folder := path.Base(path.Dir(key)); folder == "segments" || folder == "targets" {
			t.Errorf("%s was not deleted", key)
		}
	}
	if d := cmp.Diff(tables, m.keys("tables/")); d != "" {
		t.Errorf("tables changed:\n%s", d)
	}
	m.resolves(second)
	if notes := m.notes(first); !strings.Contains(notes, "the raw captures were pruned on 2026-02-11 (retention.raw: 12 months)") || strings.Contains(notes, "not finished") {
		t.Errorf("notes: %s", notes)
	}
	m.notes(second)
	m.notes(third)

	all := m.keys("")
	m.apply(13)
	if d := cmp.Diff(all, m.keys("")); d != "" {
		t.Errorf("a second prune changed the store:\n%s", d)
	}

	// A reparse of the month is refused. Nothing has to be rebuilt.
	_, err = jobs.Reparse(t.Context(), jobs.ReparseRequest{Bucket: m.b, As: first + "r1", Of: first, Config: m.frozen(first), Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv})
	if !errors.Is(err, ledger.ErrPruned) || !strings.Contains(err.Error(), "2026-02-11") {
		t.Errorf("reparse: %v", err)
	}
	err = m.driver(first, stages.SystemClock{}).Rebuild(t.Context(), first, jobs.RebuildRequest{Round: jobs.AllRounds}, func(task stages.Task, keys []string) { t.Errorf("rebuilt %s: %v", task, keys) })
	if err != nil {
		t.Errorf("rebuild: %v", err)
	}
	// A reparse of a month that refers to kept payloads works.
	if _, err = jobs.Reparse(t.Context(), jobs.ReparseRequest{Bucket: m.b, As: second + "r1", Of: second, Config: m.frozen(second), Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv}); err != nil {
		t.Fatal(err)
	}
	if f, err := prune.Apply(t.Context(), m.request(14)); !errors.Is(err, roundstate.ErrBusy) || len(f.Busy) != 1 {
		t.Errorf("prune during a reparse: %+v, %v", f, err)
	}
	m.runOnce(second+"r1", stages.SystemClock{})
	m.notes(second + "r1")

	// The next month plans with history, and does not refer to a pruned payload.
	next := monthAfter(firstOfYear, 3)
	m.crawlOnce(next, ahead{days: 1600}, slices.Sorted(m.web.Seeds()))
	m.notes(next)
	m.resolves(next)
	counts := m.summary(next)
	if counts["first seen in "+first] == 0 || counts["ok"] == 0 {
		t.Errorf("%s: %v", next, counts)
	}

	// What is not pruned is still lost.
	kept := m.keys("warc/" + layout.CrawlDir(first))
	if err := m.b.Delete(t.Context(), kept[len(kept)-1]); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Options{Bucket: m.b, Crawl: first, Round: -1, Config: m.frozen(first), Scratch: t.TempDir(), Sample: 1})
	if err != nil || r.Found() != 1 || r.Violations[0].Object != kept[len(kept)-1] {
		t.Errorf("without %s: %v, %+v", kept[len(kept)-1], err, r.Violations)
	}
}

func TestWholeMonthsArePruned(t *testing.T) {
	m := year(t, directory(t), 4, 3, 4)
	names := make([]string, 6)
	for n := range names {
		names[n] = monthAfter(firstOfYear, n)
	}
	f := m.apply(20)
	var gone []string
	for _, c := range f.Crawls {
		if c.Policy == manifest.PruneMetadata {
			gone = append(gone, c.Name)
		}
	}
	t.Logf("pruned as a whole: %v of %v", gone, names)
	if len(gone) == 0 {
		t.Fatalf("found %+v", f.Crawls)
	}
	for _, month := range gone {
		left := slices.DeleteFunc(m.keys(layout.CrawlDir(month)), func(key string) bool {
			return key == layout.Ledger(month) || strings.HasPrefix(key, layout.PruneDir(month))
		})
		for _, key := range append(left, m.keys("tables/")...) {
			if layout.CrawlOf(key) == month {
				t.Errorf("%s is left", key)
			}
		}
		if _, _, err := roundstate.OpenCrawl(t.Context(), m.b, month, os.LookupEnv); !errors.Is(err, ledger.ErrPruned) {
			t.Errorf("open %s: %v", month, err)
		}
		if _, err := m.plan(month, stages.SystemClock{}, []string{"http://a.example/"}, nil); !errors.Is(err, ledger.ErrPruned) {
			t.Errorf("plan %s: %v", month, err)
		}
	}
	sealed, err := roundstate.AllSealed(t.Context(), m.b)
	if err != nil || len(sealed) != 4-len(gone) {
		t.Errorf("%d sealed rounds, %v", len(sealed), err)
	}
	for _, month := range names[len(gone):4] {
		m.notes(month)
	}
	seeds := slices.Sorted(m.web.Seeds())
	m.crawlOnce(names[4], ahead{days: 2000}, seeds)
	m.notes(names[4])
	if counts := m.summary(names[4]); counts["first seen in "+names[0]] == 0 {
		t.Errorf("%s: %v", names[4], counts)
	}
	for lost, err := range ledger.HeadLosses(t.Context(), m.b, names[4]) {
		t.Errorf("%v, %v", lost, err)
	}
}

// The tasks of some stages read the states, representatives and domains of earlier months. With one bucket and
// with several, other stages read them. An audit does not compute these tasks again without them.
func TestNoTaskIsComputedAgainWithoutPrunedMonths(t *testing.T) {
	for buckets, bucketURLs := range map[string]int{"one bucket": 100, "several buckets": 4} {
		t.Run(buckets, func(t *testing.T) {
			m := newMonthsLabOf(t, directory(t), 3, 4)
			m.cfg.Frontier.Follow, m.cfg.Plan.PartitionURLs, m.cfg.Plan.BucketURLs = "none", 1, bucketURLs
			seeds := slices.Sorted(m.web.Seeds())
			for n := range 3 {
				m.crawlOnce(monthAfter(firstOfYear, n), ahead{days: 400 * n}, seeds)
			}
			r := m.request(20)
			r.Raw = r.Metadata
			if _, err := prune.Apply(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			last := monthAfter(firstOfYear, 2)
			p, _, err := roundstate.FindPlan(t.Context(), m.b, last, 0)
			if err != nil || (p.Buckets > 1) != (buckets == "several buckets") {
				t.Fatalf("%d buckets, %v", p.Buckets, err)
			}
			want := "the same inputs, the same bytes: left out for"
			if notes := m.notes(last); !strings.Contains(notes, want) {
				t.Errorf("notes: %s\nwant %q", notes, want)
			}
		})
	}
}

// countWrites makes faults that never happen, and counts the writes.
func countWrites(f *faultstore.Faults) *int {
	var mu sync.Mutex
	n := new(int)
	f.Choose = func(op faultstore.Op, _ string) faultstore.Fault {
		mu.Lock()
		defer mu.Unlock()
		if op == faultstore.Create || op == faultstore.Swap || op == faultstore.Delete {
			*n++
		}
		return faultstore.None
	}
	return n
}

// killed makes the n-th call fail, and all calls after it. If late is true, the n-th call takes effect.
func killed(b store.Bucket, n int, late bool) *faultstore.Store {
	var mu sync.Mutex
	calls := 0
	return faultstore.New(b, faultstore.Faults{Choose: func(op faultstore.Op, _ string) faultstore.Fault {
		mu.Lock()
		defer mu.Unlock()
		if op != faultstore.Create && op != faultstore.Swap && op != faultstore.Delete {
			if calls >= n {
				return faultstore.Before
			}
			return faultstore.None
		}
		if calls++; calls == n && late {
			return faultstore.After
		} else if calls >= n {
			return faultstore.Before
		}
		return faultstore.None
	}})
}

func TestAPruneThatIsKilledAtAnyWriteGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	dir := t.TempDir()
	origin := filepath.Join(dir, "origin")
	open := func(dir string) store.Bucket {
		b, err := dirstore.Open(dir, dirstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	m := year(t, open(origin), 3, 2, 2)
	fresh := func(name string) store.Bucket {
		to := filepath.Join(dir, name)
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(origin)); err != nil {
			t.Fatal(err)
		}
		return open(to)
	}
	const now = 20
	m.b = fresh("whole")
	m.apply(now)
	want := m.keys("")
	months := []string{monthAfter(firstOfYear, 0), monthAfter(firstOfYear, 1), monthAfter(firstOfYear, 2)}
	counting := faultstore.Faults{}
	writes, kills, audits := countWrites(&counting), 0, 0
	r := m.request(now)
	r.Bucket = faultstore.New(fresh("killed"), counting)
	if _, err := prune.Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	most := *writes
	for n := 1; n <= most; n++ {
		if n > 25 && n < most-15 && n%9 != 0 {
			continue // one deletion among many
		}
		b := fresh("killed")
		r := m.request(now)
		faulty := killed(b, n, n%2 == 0)
		r.Bucket = faulty
		_, err := prune.Apply(t.Context(), r)
		if err == nil {
			t.Fatalf("killed at write %d of %d: no error", n, most)
		}
		kills++
		m.b = b
		if n < 6 || n%16 == 0 { // an audit takes longer than a prune
			for _, month := range months {
				l, err := ledger.Load(t.Context(), b, month)
				if err != nil {
					t.Fatal(err)
				}
				if l.Gone() {
					continue
				}
				audits++
				if notes := m.notes(month); l.PruneUnfinished() != strings.Contains(notes, "the deletions are not finished: run `crawlbatch prune --apply`") {
					t.Errorf("killed at write %d, %s: unfinished is %t, notes: %s", n, month, l.PruneUnfinished(), notes)
				}
			}
			if _, err := m.plan(monthAfter(firstOfYear, 4), ahead{days: 2000}, slices.Sorted(m.web.Seeds()), func(r *jobs.PlanRequest) { r.DryRun = true }); err != nil {
				t.Errorf("killed at write %d: plan: %v", n, err)
			}
		}
		m.apply(now)
		if d := cmp.Diff(withoutDigests(want), withoutDigests(m.keys(""))); d != "" {
			t.Errorf("killed at write %d: the store differs from that of an undisturbed prune:\n%s", n, d)
		}
		if a, _, err := ledger.LoadActive(t.Context(), b, months[0]); err != nil || !a.Done {
			t.Errorf("killed at write %d: active.json %+v, %v", n, a, err)
		}
	}
	t.Logf("%d kills, %d audits", kills, audits)
	if kills < 20 || audits == 0 {
		t.Errorf("%d kills, %d audits", kills, audits)
	}
}

// withoutDigests removes the digests from the keys of lists, because they depend on the time.
func withoutDigests(keys []string) (out []string) {
	for _, key := range keys {
		if at := strings.Index(key, "/prune-"); at >= 0 {
			key = fmt.Sprint(key[:at], "/prune-")
		}
		out = append(out, key)
	}
	return out
}

// during is a source of URLs. While it is read, something happens once.
type during struct {
	source.Source
	once *sync.Once
	act  func()
}

func (d during) Entries(ctx context.Context) iter.Seq2[source.Entry, error] {
	d.once.Do(d.act)
	return d.Source.Entries(ctx)
}

func (m *monthsLab) reparse(of, as string) error {
	_, err := jobs.Reparse(m.t.Context(), jobs.ReparseRequest{Bucket: m.b, As: as, Of: of, Config: m.frozen(of), Clock: stages.SystemClock{}, Version: "test", Scratch: m.t.TempDir(), Lookup: os.LookupEnv})
	return err
}

func TestAPlanDoesNotUseWhatIsPrunedMeanwhile(t *testing.T) {
	m := year(t, directory(t), 2, 3, 4)
	next, clock, seeds := monthAfter(firstOfYear, 2), ahead{days: 1600}, slices.Sorted(m.web.Seeds())
	_, err := m.plan(next, clock, seeds, func(r *jobs.PlanRequest) {
		r.Sources[0] = during{r.Sources[0], &sync.Once{}, func() { m.apply(13) }}
	})
	if !errors.Is(err, roundstate.ErrBusy) || !strings.Contains(err.Error(), "was pruned while "+next+" was planned") {
		t.Fatalf("plan: %v", err)
	}
	m.crawlOnce(next, clock, seeds)
	m.notes(next)
	m.resolves(next)
}

// The files of another store are read for hours. They do not depend on what is pruned of this one, but may name what is
// taken down.
func TestAReparseOfOtherFilesDoesNotDependOnAPrune(t *testing.T) {
	m := year(t, directory(t), 2, 3, 4)
	var files []string
	others := directory(t)
	for _, key := range m.keys(layout.WARCDir(monthAfter(firstOfYear, 0))) {
		body, _, err := m.b.Get(t.Context(), key, 64<<20)
		if err == nil {
			_, err = store.CreateBytes(t.Context(), others, key, body)
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(key, ".warc.gz") {
			files = append(files, key)
		}
	}
	month := monthAfter(firstOfYear, 1)
	t.Setenv("TAKEDOWN_KEY", takedownSecret)
	file := filepath.Join(t.TempDir(), "key.yaml")
	if err := os.WriteFile(file, []byte("store: {takedown_key: \"${TAKEDOWN_KEY}\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadOver(m.frozen(month), file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	reparse := func(as string, meanwhile func()) error {
		_, err := jobs.Reparse(t.Context(), jobs.ReparseRequest{
			Bucket: m.b, As: as, Config: cfg, Archive: &atCall{Bucket: others, at: func(string, string) bool { return true }, meanwhile: meanwhile}, ArchiveName: "others", Files: files,
			Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
		})
		return err
	}
	if err := reparse(month+"r1", func() { removeDomain(t, m.b, "gone.test") }); !errors.Is(err, jobs.ErrBusy) {
		t.Errorf("a takedown ran meanwhile: %v", err)
	}
	pruned := int64(0)
	if err := reparse(month+"r1", func() { pruned = m.apply(13).Crawls[0].Total().Objects }); err != nil || pruned == 0 {
		t.Errorf("%d objects were pruned meanwhile: %v", pruned, err)
	}
}

func TestNothingIsPlannedDuringAnInterruptedPrune(t *testing.T) {
	m := year(t, directory(t), 2, 3, 4)
	second, next, seeds := monthAfter(firstOfYear, 1), monthAfter(firstOfYear, 2), slices.Sorted(m.web.Seeds())
	r := m.request(13)
	r.Bucket = killed(m.b, 5, false)
	if _, err := prune.Apply(t.Context(), r); err == nil {
		t.Fatal("the prune was not interrupted")
	}
	if _, err := m.plan(next, ahead{days: 1600}, seeds, nil); !errors.Is(err, roundstate.ErrBusy) {
		t.Errorf("plan: %v", err)
	}
	if err := m.reparse(second, second+"r1"); !errors.Is(err, roundstate.ErrBusy) {
		t.Errorf("reparse: %v", err)
	}
	m.apply(13) // no round is unfinished, so the prune goes on
	m.crawlOnce(next, ahead{days: 1600}, seeds)
	m.notes(next)
}

func TestAReparseGetsNoRoundWhoseCapturesWerePruned(t *testing.T) {
	m := year(t, directory(t), 2, 3, 4)
	first, seeds := monthAfter(firstOfYear, 0), slices.Sorted(m.web.Seeds())
	as := first + "r1"
	if err := m.reparse(first, as); err != nil {
		t.Fatal(err)
	}
	m.runOnce(as, stages.SystemClock{})
	if _, err := m.plan(first, ahead{days: 1600}, seeds, nil); err != nil { // a second round of the source
		t.Fatal(err)
	}
	if err := m.driver(first, ahead{days: 1600}).Run(t.Context(), first, 2); err != nil {
		t.Fatal(err)
	}
	m.apply(13)
	if err := m.driver(as, stages.SystemClock{}).Run(t.Context(), as, 2); !errors.Is(err, ledger.ErrPruned) {
		t.Errorf("run: %v", err)
	}
	if f, err := prune.Find(t.Context(), m.request(13)); err != nil || len(f.Busy) > 0 {
		t.Errorf("a later prune: %+v, %v", f, err)
	}
}

func TestAReparseNeedsTheStatesBeforeIt(t *testing.T) {
	m := year(t, directory(t), 4, 3, 4)
	last := monthAfter(firstOfYear, 3)
	r := m.request(20)
	r.Raw, r.Metadata = 17, 17
	if _, err := prune.Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := m.reparse(last, last+"r1"); !errors.Is(err, ledger.ErrPruned) || !strings.Contains(err.Error(), "states of URLs") {
		t.Errorf("reparse: %v", err)
	}
	if keys := m.keys(layout.CrawlDir(last + "r1")); len(keys) > 0 {
		t.Errorf("the refused reparse left %v", keys)
	}
}

// The publish task of a bucket's first partition reads the domains of earlier months. After these months
// were pruned, its other parts can still be recomputed.
func TestLostPartsAreRebuiltAfterEarlierMonthsWerePruned(t *testing.T) {
	m := year(t, directory(t), 4, 3, 4)
	r := m.request(20)
	r.Raw = 18
	f, err := prune.Apply(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	gone := 0
	for _, c := range f.Crawls {
		if c.Policy == manifest.PruneMetadata {
			gone++
		}
	}
	if gone == 0 {
		t.Fatal("no month was pruned")
	}
	month := monthAfter(firstOfYear, gone)
	rebuild := func() error {
		return m.driver(month, stages.SystemClock{}).Rebuild(t.Context(), month, jobs.RebuildRequest{Round: jobs.AllRounds}, func(stages.Task, []string) {})
	}
	lose := func(dataset string) (keys []string) {
		for _, k := range m.keys("tables/" + dataset + "/") {
			if strings.Contains(k, "crawl="+month+"/") {
				keys = append(keys, k)
				if err := m.b.Delete(t.Context(), k); err != nil {
					t.Fatal(err)
				}
			}
		}
		return keys
	}
	lost := lose("pages")
	if err := rebuild(); err != nil || len(lost) == 0 {
		t.Fatalf("%d parts of pages: %v", len(lost), err)
	}
	for _, k := range lost {
		if _, _, err := m.b.Get(t.Context(), k, 64<<20); err != nil {
			t.Error(err)
		}
	}
	lose("domains")
	if err := rebuild(); !errors.Is(err, ledger.ErrPruned) || !strings.Contains(err.Error(), monthAfter(firstOfYear, 0)) {
		t.Errorf("parts of domains: %v", err)
	}
}

// A crawl gets another round after its raw captures were pruned: the round requests anew what the earlier round had
// of robots.txt files and sitemaps. The captures of this round stay as long as the retention of that time says.
func TestACrawlGoesOnAfterItsRawCapturesWerePruned(t *testing.T) {
	m := newMonthsLabOf(t, directory(t), 3, 4)
	m.cfg.Frontier.Follow = "none"
	first, seeds := monthAfter(firstOfYear, 0), slices.Sorted(m.web.Seeds())
	m.crawlOnce(first, stages.SystemClock{}, seeds)
	m.apply(13)
	later := ahead{days: 400}
	if _, err := m.plan(first, later, seeds, nil); err != nil {
		t.Fatal(err)
	}
	if err := m.driver(first, later).Run(t.Context(), first, 2); err != nil {
		t.Fatal(err)
	}
	m.notes(first)
	files := m.keys("warc/crawl=" + first + "/round=1/")
	if len(files) == 0 {
		t.Fatalf("no WARC files of round 1 in %v", m.keys("warc/"))
	}
	for _, raw := range []int{0, 36} {
		r := m.request(13)
		r.Raw = raw
		if _, err := prune.Apply(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if now := m.keys("warc/crawl=" + first + "/round=1/"); !slices.Equal(now, files) {
			t.Errorf("with retention.raw %d, %v stay of %v", raw, now, files)
		}
	}
	m.apply(13)
	if now := m.keys("warc/crawl=" + first + "/round=1/"); len(now) != 0 {
		t.Errorf("with retention.raw 12, %v stay", now)
	}
	m.notes(first)
}

// Working data goes long before the captures. What is left can be checked, parsed again, taken down and continued.
func TestWorkingDataIsPrunedBeforeRawCaptures(t *testing.T) {
	m := newMonthsLabOf(t, directory(t), 3, 4)
	m.cfg.Plan.PartitionURLs, m.cfg.Plan.BucketURLs = 1, 4
	first, second, third := monthAfter(firstOfYear, 20), monthAfter(firstOfYear, 21), monthAfter(firstOfYear, 22)
	seeds := slices.Sorted(m.web.Seeds())
	m.crawl(first, stages.SystemClock{}, 2, seeds, nil)
	m.crawlOnce(second, ahead{days: 400}, seeds)
	apply := func(days, raw int) *prune.Found {
		t.Helper()
		f, err := prune.Apply(t.Context(), prune.Request{Bucket: m.b, Working: 35, Raw: raw, Clock: ahead{days: days}, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	before := m.keys("")
	if f := apply(34, 0); f.Pending() || !strings.Contains(f.Crawls[0].Why, "its working data goes after ") {
		t.Errorf("after 34 days: %+v", f.Crawls[0])
	}
	apply(36, 0)
	after := m.keys("")
	files, gone := map[string]int{}, 0
	for _, key := range before {
		if slices.Contains(after, key) {
			continue
		}
		gone++
		parts := strings.Split(key, "/")
		switch {
		case parts[0] == "crawl="+first && parts[3] == "work":
			files[parts[4]]++
		case parts[0] == "crawl="+first && strings.HasSuffix(key, "-text.parquet"):
			files["text"]++
		default:
			t.Errorf("%s is gone", key)
		}
	}
	t.Logf("%d working files are gone: %v", gone, files)
	if files["text"] == 0 || files["pages"] == 0 || files["targets"] == 0 || files["inlinks"] == 0 || files["known"]+files["representatives"]+files["urls-base"] > 0 {
		t.Errorf("gone: %v", files)
	}
	apply(37, 0)
	if d := cmp.Diff(after, m.keys("")); d != "" {
		t.Errorf("a second prune changed the store:\n%s", d)
	}
	s, err := (&jobs.StatusReader{Bucket: m.b}).Read(t.Context(), first)
	if err != nil || !strings.Contains(s.Pruned, "the working data was pruned on") || s.NoRaw || s.Err() != nil {
		t.Errorf("status: %v, %+v", err, s)
	}
	notes := m.notes(first)
	for _, want := range []string{"(retention.working_data_days: 35 days): {n} files", "round 0, the same inputs, the same bytes: left out for", "round 0, topics follow from terms: left out for"} {
		if part, _, _ := strings.Cut(want, " {n}"); !strings.Contains(notes, part) {
			t.Errorf("notes: %s\nwant %s", notes, part)
		}
	}
	m.notes(second)

	// What cannot be rebuilt says what still works.
	key := m.keys("tables/links/" + layout.CrawlDir(first))[0]
	body, _, err := m.b.Get(t.Context(), key, 64<<20)
	if err == nil {
		err = m.b.Delete(t.Context(), key)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = m.driver(first, stages.SystemClock{}).Rebuild(t.Context(), first, jobs.RebuildRequest{Round: jobs.AllRounds}, func(stages.Task, []string) {})
	if !errors.Is(err, ledger.ErrPruned) || !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "retention.working_data_days: 35 days") || !strings.Contains(err.Error(), "`crawlbatch reparse --month "+first+" --as "+first+"rN`") {
		t.Errorf("rebuild: %v", err)
	}
	if _, err := store.CreateBytes(t.Context(), m.b, key, body); err != nil {
		t.Fatal(err)
	}

	as := first + "r1"
	if err := m.reparse(first, as); err != nil {
		t.Fatal(err)
	}
	if err := m.driver(as, stages.SystemClock{}).Run(t.Context(), as, 2); err != nil {
		t.Fatal(err)
	}
	m.notes(as)
	m.crawlOnce(third, ahead{days: 800}, seeds)
	m.notes(third)
	removeDomain(t, m.b, rowsOfMonth[schema.Fetch](m, first, stages.FileFetches)[0].Domain)
	for _, month := range []string{first, as, second, third} {
		m.notes(month)
	}
	if f := apply(600, 12); f.Crawls[0].Policy != manifest.PruneRaw || f.Crawls[0].Total().Objects == 0 {
		t.Errorf("after a year: %+v", f.Crawls[0])
	}
	for _, key := range m.keys(layout.CrawlDir(first)) {
		if path.Base(path.Dir(key)) == "segments" {
			t.Errorf("%s was not deleted", key)
		}
	}
	for _, month := range []string{first, as, second, third} {
		m.notes(month)
	}
}

// A page whose content is not stored keeps its text. After the texts of segments were pruned, the published table has it.
func TestAReparseTakesPrunedTextsFromTheTable(t *testing.T) {
	_, addr := serveLinks(t, map[string]string{
		"a.test/": "/not-stored", "a.test/not-stored": `<p><meta name="robots" content="noarchive">These words are in no WARC file.`,
	})
	l := newCrawlLab(t, addr, []string{"http://a.test/", "http://a.test/not-stored"}, func(c *config.Config) { c.Parse.NoArchive = config.NoArchiveText })
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	var texts [][]schema.Text
	for n := range 2 {
		as := fmt.Sprintf("%sr%d", testCrawl, n+1)
		l.reparse(t, as)
		if err := l.driver.Run(t.Context(), as, 1); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, tabletest.Read[schema.Text](t, l.bucket, layout.Table(stages.FileText, as, 0, 0)))
		result, _, err := roundstate.LoadResult(t.Context(), l.bucket, stages.Task{Stage: stages.Fetch, Crawl: as})
		if err != nil || result.Count(reparse.CountWithheld) != 1 {
			t.Errorf("%s: %d pages are not stored, %v", as, result.Count(reparse.CountWithheld), err)
		}
		if n == 1 {
			break
		}
		if f, err := prune.Apply(t.Context(), prune.Request{Bucket: l.bucket, Working: 35, Clock: ahead{days: 36}, Version: "test"}); err != nil || f.Crawls[0].Total().Objects == 0 {
			t.Fatalf("%+v, %v", f, err)
		}
	}
	if d := cmp.Diff(texts[0], texts[1]); d != "" || !strings.Contains(fmt.Sprint(texts[0]), "These words are in no WARC file.") {
		t.Errorf("%v: a reparse after the prune has other texts:\n%s", texts[0], d)
	}
	l.cfg.Parse.NoArchive = config.NoArchiveCounts
	l.reparse(t, testCrawl+"r3")
	if err := l.driver.Run(t.Context(), testCrawl+"r3", 1); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(tabletest.Read[schema.Text](t, l.bucket, layout.Table(stages.FileText, testCrawl+"r3", 0, 0))); strings.Contains(text, "These words") || !strings.Contains(text, "true") {
		t.Errorf("a reparse with parse.noarchive: counts keeps words of a page that is not stored: %s", text)
	}
	for _, crawl := range []string{testCrawl, testCrawl + "r1", testCrawl + "r2", testCrawl + "r3"} {
		r, err := Run(t.Context(), Options{Bucket: l.bucket, Crawl: crawl, Round: -1, Config: l.cfg, Scratch: t.TempDir(), Sample: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range r.Violations {
			t.Errorf("%s: %+v", crawl, v)
		}
	}
}
