package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// fake is an executor that commits an empty result for each task. If f.fails is not nil and returns
// an error for a task, the task fails with this error.
type fake struct {
	bucket store.Bucket
	ran    []string
	fails  func(t stages.Task) error
}

func (f *fake) Run(ctx context.Context, tasks []stages.Task, done func(stages.Task, error)) error {
	for _, t := range tasks {
		f.ran = append(f.ran, t.String())
		if f.fails != nil {
			if err := f.fails(t); err != nil {
				done(t, fmt.Errorf("%s: %w", t, err))
				continue
			}
		}
		key := layout.Result(t.Crawl, t.Round, string(t.Stage), t.Partition)
		p, _, err := roundstate.FindPlan(ctx, f.bucket, t.Crawl, t.Round)
		if err == nil {
			_, err = manifest.Create(ctx, f.bucket, key, &manifest.Result{Task: t.String(), Stage: string(t.Stage), Partition: t.Partition, Plan: p.ID})
		}
		done(t, err)
	}
	return nil
}

type fixture struct {
	t      *testing.T
	bucket store.Bucket
	fake   *fake
	driver *Driver
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Fetch.ConnectTo = []string{"::127.0.0.1:1"}
	c.Plan.PartitionURLs = 2
	f := &fake{bucket: b}
	return &fixture{t, b, f, &Driver{
		Bucket: b, Executor: f, Observer: &callLog{}, Config: c, Clock: stages.SystemClock{},
		Log: slog.New(slog.DiscardHandler), Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
	}}
}

// plan makes the plan of round 0 from a list of URLs.
func (f *fixture) plan(replace bool, urls ...string) (*manifest.Plan, bool, error) {
	f.t.Helper()
	name := filepath.Join(f.driver.Scratch, "urls.txt")
	if err := os.WriteFile(name, []byte(strings.Join(urls, "\n")), 0o644); err != nil {
		f.t.Fatal(err)
	}
	s, err := source.Files(name, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return Plan(f.t.Context(), PlanRequest{
		Bucket: f.bucket, Crawl: "2026-11", Sources: []source.Source{s}, Config: f.driver.Config, Replace: replace,
		Clock: stages.SystemClock{}, Version: "test", Scratch: f.t.TempDir(), Lookup: os.LookupEnv,
	})
}

var someURLs = []string{"http://a.test/1", "http://a.test/2", "http://b.test/1", "http://b.test/2", "http://c.test/1", "http://c.test/2"}

func (f *fixture) mustPlan() *manifest.Plan {
	f.t.Helper()
	p, _, err := f.plan(false, someURLs...)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func TestARoundRunsItsStagesInOrderAndIsSealedOnce(t *testing.T) {
	f := newFixture(t)
	p := f.mustPlan()
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range stages.Order {
		for n := range s.Tasks(p) {
			want = append(want, fmt.Sprintf("%s@2026-11.0:%d", s, n))
		}
	}
	if d := cmp.Diff(want, f.fake.ran); d != "" {
		t.Error(d)
	}
	f.fake.ran = nil
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil || len(f.fake.ran) > 0 {
		t.Errorf("a sealed round was run again: %v, %v", err, f.fake.ran)
	}
}

func TestAFailedTaskHoldsTheRoundAndRetryRunsJustThat(t *testing.T) {
	f := newFixture(t)
	f.mustPlan()
	broken := true
	f.fake.fails = func(t stages.Task) error {
		if broken && t.Stage == stages.Merge && t.Partition == 1 {
			return errors.New("no luck")
		}
		return nil
	}
	err := f.driver.Run(t.Context(), "2026-11", 1)
	if !errors.Is(err, ErrTasksFailed) || !strings.Contains(err.Error(), "crawlbatch retry --month 2026-11") {
		t.Fatalf("%v", err)
	}
	if slices.ContainsFunc(f.fake.ran, func(s string) bool { return strings.HasPrefix(s, "dedup") }) {
		t.Error("dedup was started though a merge task has no result")
	}
	f.fake.ran, broken = nil, false
	n, err := f.driver.Retry(t.Context(), "2026-11", RetryRequest{})
	if err != nil || n != 1 {
		t.Fatalf("retry ran %d tasks: %v", n, err)
	}
	if d := cmp.Diff([]string{"merge@2026-11.0:1"}, f.fake.ran); d != "" {
		t.Error(d)
	}
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Error(err)
	}
}

func TestOnlyPermanentFailuresArePermanent(t *testing.T) {
	f := newFixture(t)
	f.mustPlan()
	f.fake.fails = func(stages.Task) error { return stages.ErrPermanent }
	if err := f.driver.Run(t.Context(), "2026-11", 1); !errors.Is(err, stages.ErrPermanent) || errors.Is(err, ErrTasksFailed) {
		t.Errorf("%v", err)
	}
}

func TestPlansAreKeptReplacedAndRefused(t *testing.T) {
	f := newFixture(t)
	if err := f.driver.Run(t.Context(), "2026-11", 1); !errors.Is(err, roundstate.ErrNoCrawl) || !strings.Contains(err.Error(), "crawlbatch plan") {
		t.Errorf("run without a plan: %v", err)
	}
	first := f.mustPlan()
	if p, same, err := f.plan(false, someURLs...); err != nil || !same || p.ID != first.ID {
		t.Errorf("the same plan again: same %v, %v", same, err)
	}
	if _, _, err := f.plan(false, "http://z.test/"); !errors.Is(err, ErrPlanned) || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("another plan: %v", err)
	}
	second, _, err := f.plan(true, "http://z.test/")
	if err != nil {
		t.Fatal(err)
	}
	if p, _, err := roundstate.FindPlan(t.Context(), f.bucket, "2026-11", 0); err != nil || p.ID != second.ID {
		t.Errorf("the plan after --replace: %v, %v", p, err)
	}
	if _, err := roundstate.Begin(t.Context(), f.bucket, "2026-11", 0, ledgertest.Writer()); err != nil {
		t.Fatal(err)
	}
	ids, err := roundstate.Plans(t.Context(), f.bucket, "2026-11", 0)
	if err != nil || !slices.Equal(ids, []string{second.ID}) {
		t.Errorf("plans of a started round: %v, %v", ids, err)
	}
	if _, _, err := f.plan(true, someURLs...); !errors.Is(err, ErrPlanned) {
		t.Errorf("a started round was planned again: %v", err)
	}
}

func TestTheFirstPlanRefusesAnAgentThatRobotsCannotName(t *testing.T) {
	f := newFixture(t)
	const bad = "bot2/1.0 (+https://example.org/bot)"
	f.driver.Config.UserAgent = bad
	if _, _, err := f.plan(false, someURLs...); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), `as "bot"`) {
		t.Errorf("a first plan: %v", err)
	}
	f.driver.Config.UserAgent = "bot/2.0 (+https://example.org/bot)"
	f.mustPlan()
	f.driver.Config.UserAgent = bad
	if _, _, err := f.plan(true, someURLs...); !errors.Is(err, config.ErrInvalid) {
		t.Errorf("a plan that replaces the first: %v", err)
	}
	// What a crawl froze is not judged again.
	var crawl manifest.Crawl
	version, _, err := manifest.Load(t.Context(), f.bucket, layout.CrawlManifest("2026-11"), &crawl)
	if err != nil {
		t.Fatal(err)
	}
	crawl.Config = strings.Replace(crawl.Config, "bot/2.0", "bot2/1.0", 1)
	if _, err := manifest.Swap(t.Context(), f.bucket, layout.CrawlManifest("2026-11"), &crawl, version); err != nil {
		t.Fatal(err)
	}
	ledgertest.Make(t, f.bucket, "2026-11")
	if _, same, err := f.plan(false, someURLs...); err != nil || !same {
		t.Errorf("a crawl that froze it: %v", err)
	}
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Errorf("a crawl that froze it: %v", err)
	}
}

func TestOneFetchStageAStoreAtATime(t *testing.T) {
	f := newFixture(t)
	p := f.mustPlan()
	other := *p
	other.Crawl = "2026-12"
	if _, err := manifest.Create(t.Context(), f.bucket, layout.CrawlManifest("2026-12"), &manifest.Crawl{Crawl: "2026-12"}); err != nil {
		t.Fatal(err)
	}
	ledgertest.Make(t, f.bucket, "2026-12")
	l, err := ledger.Load(t.Context(), f.bucket, other.Crawl)
	if err == nil {
		err = roundstate.Claim(t.Context(), f.bucket, l, &other, ledgertest.Writer())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.driver.Run(t.Context(), "2026-11", 1); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "--month 2026-12") {
		t.Errorf("two fetch stages at once: %v", err)
	}
	if err := roundstate.Release(t.Context(), f.bucket, &other, ledgertest.Writer()); err != nil {
		t.Fatal(err)
	}
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Error(err)
	}
}
