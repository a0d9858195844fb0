package jobs

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// polledClock is a clock that stands still, except during Sleep. Before a Sleep ends, it calls the function
// in polls that has the Sleep's number, if there is one.
type polledClock struct {
	now    time.Time
	sleeps int
	polls  map[int]func()
}

func (c *polledClock) Now() time.Time { return c.now }

func (c *polledClock) Sleep(ctx context.Context, d time.Duration) error {
	if c.sleeps == 100_000 {
		panic("a wait without an end")
	}
	c.now = c.now.Add(d)
	if c.sleeps++; c.polls[c.sleeps] != nil {
		c.polls[c.sleeps]()
	}
	return ctx.Err()
}

// earlierFixture is a store in which months are planned and crawled at the time of a clock.
type earlierFixture struct {
	*fixture
	clock *polledClock
	log   bytes.Buffer
}

func newEarlierFixture(t *testing.T) *earlierFixture {
	f := &earlierFixture{fixture: newFixture(t), clock: &polledClock{now: time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC), polls: map[int]func(){}}}
	f.driver.Clock = f.clock
	return f
}

// request returns a request to plan a month from a list and, if frontier is true, from the frontier too.
func (f *earlierFixture) request(month string, frontier bool) PlanRequest {
	f.t.Helper()
	name := filepath.Join(f.driver.Scratch, month+".txt")
	if err := os.WriteFile(name, []byte(strings.Join(someURLs, "\n")), 0o644); err != nil {
		f.t.Fatal(err)
	}
	s, err := source.Files(name, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return PlanRequest{
		Bucket: f.bucket, Crawl: month, Sources: []source.Source{s}, Frontier: frontier, Config: f.driver.Config, Clock: f.clock, Version: "test",
		Scratch: f.t.TempDir(), Lookup: os.LookupEnv, Continues: &Continuation{}, Log: slog.New(slog.NewTextHandler(&f.log, nil)),
	}
}

// plan plans a month, and returns what the plan continues.
func (f *earlierFixture) plan(month string) *Continuation {
	f.t.Helper()
	r := f.request(month, true)
	if _, _, err := Plan(f.t.Context(), r); err != nil {
		f.t.Fatal(err)
	}
	return r.Continues
}

// run crawls a month until a number of rounds is sealed.
func (f *earlierFixture) run(month string, rounds int) {
	f.t.Helper()
	if err := f.driver.Run(f.t.Context(), month, rounds); err != nil {
		f.t.Fatal(err)
	}
}

// fail starts to crawl a month, whose fetch stage fails.
func (f *earlierFixture) fail(month string) {
	f.t.Helper()
	f.fake.fails = func(stages.Task) error { return errors.New("no luck") }
	if err := f.driver.Run(f.t.Context(), month, 0); !errors.Is(err, ErrTasksFailed) {
		f.t.Fatal(err)
	}
	f.fake.fails = nil
}

// await waits with the plan of a month, and returns how long.
func (f *earlierFixture) await(month string) time.Duration {
	f.t.Helper()
	began := f.clock.now
	f.clock.sleeps = 0
	if _, err := f.request(month, true).AwaitEarlier(f.t.Context(), EarlierWait{UntilPlanned: true, Flags: " --store x"}); err != nil {
		f.t.Fatal(err)
	}
	return f.clock.now.Sub(began)
}

// ledger returns the ledger of a month.
func (f *earlierFixture) ledger(month string) *ledger.Ledger {
	f.t.Helper()
	l, err := ledger.Load(f.t.Context(), f.bucket, month)
	if err != nil {
		f.t.Fatal(err)
	}
	return l
}

const crawlWindow = 30 * 24 * time.Hour

func TestAPlanWaitsUntilTheEarlierMonthIsFinished(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-11")
	f.fail("2026-11")
	if _, _, err := f.driver.ledgers().Pause(t.Context(), f.bucket, "2026-11", "ana", ""); err != nil {
		t.Fatal(err)
	}
	f.clock.polls[5] = func() {
		if _, _, err := f.driver.ledgers().Continue(t.Context(), f.bucket, "2026-11", "ana"); err != nil {
			t.Fatal(err)
		}
		f.run("2026-11", 1)
	}
	if waited := f.await("2026-12"); waited != 5*earlierEvery {
		t.Errorf("it waited %s:\n%s", waited, &f.log)
	}
	said := f.log.String()
	for _, text := range []string{
		"the plan of 2026-12 waits for 2026-11, which is not finished (its crawl window ends 2026-12-01T03:00:00Z); it is paused since 2026-11-01T03:00:00Z by ana; " +
			"continue it with `crawlbatch continue --month 2026-11 --store x`; to end the wait sooner, finish it with `crawlbatch run --month 2026-11 --rounds 1 --store x`, " +
			"or give the same command without `--after-earlier`: it plans without what 2026-11 will find, and the `run` of 2026-12 then begins to fetch when the round of 2026-11 has been fetched",
		`the plan of 2026-12 goes on" waited=5m0s`,
	} {
		if strings.Count(said, text) != 1 {
			t.Errorf("the log does not say once %q:\n%s", text, said)
		}
	}
	if n := strings.Count(said, "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, said)
	}
}

func TestAPlanWaitsAtMostUntilTheEndOfTheCrawlWindow(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-11")
	f.fail("2026-11")
	f.clock.now = f.clock.now.Add(crawlWindow - 3*time.Minute)
	if waited := f.await("2026-12"); waited != 3*time.Minute || !strings.Contains(f.log.String(), "finish it with `crawlbatch run --month 2026-11 --rounds 1 --store x`") {
		t.Errorf("it waited %s:\n%s", waited, &f.log)
	}
}

func TestAPlanDoesNotWaitFor(t *testing.T) {
	for _, c := range []struct {
		name  string
		month string
		setUp func(f *earlierFixture)
	}{
		{"an empty store", "2026-12", func(*earlierFixture) {}},
		{"a finished month", "2026-12", func(f *earlierFixture) { f.plan("2026-11"); f.run("2026-11", 1) }},
		{"a month that ended in a failure and then was finished", "2026-12", func(f *earlierFixture) { f.plan("2026-11"); f.fail("2026-11"); f.run("2026-11", 0) }},
		{"a month that was planned and forgotten", "2026-12", func(f *earlierFixture) { f.plan("2026-11"); f.clock.now = f.clock.now.Add(startWithin) }},
		{"a month that is not planned", "2027-01", func(f *earlierFixture) { f.plan("2026-11"); f.run("2026-11", 1) }},
		{"a later month", "2026-10", func(f *earlierFixture) { f.plan("2026-11"); f.fail("2026-11") }},
		{"the month itself", "2026-11", func(f *earlierFixture) { f.plan("2026-11"); f.fail("2026-11") }},
		{"a reparse", "2026-12", func(f *earlierFixture) {
			const reparse = "2026-11r1"
			if _, err := manifest.Create(f.t.Context(), f.bucket, layout.CrawlManifest(reparse), &manifest.Crawl{Crawl: reparse}); err != nil {
				f.t.Fatal(err)
			}
			w := f.driver.ledgers()
			if err := errors.Join(w.Found(f.t.Context(), f.bucket, reparse),
				w.NoteRunning(f.t.Context(), f.bucket, reparse, ledger.Window{Begin: f.clock.now, End: f.clock.now.Add(crawlWindow)})); err != nil {
				f.t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newEarlierFixture(t)
			c.setUp(f)
			if waited := f.await(c.month); waited > 0 || f.log.Len() > 0 {
				t.Errorf("it waited %s:\n%s", waited, &f.log)
			}
		})
	}
}

// A plan and the Job that runs it begin minutes apart.
func TestAPlanGivesAnEarlierMonthTimeToStart(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-11")
	f.clock.polls[2] = func() { f.fail("2026-11") }
	f.clock.polls[4] = func() { f.run("2026-11", 1); f.plan("2026-12") }
	f.clock.polls[6] = func() { f.run("2026-12", 1) }
	if waited := f.await("2027-01"); waited != 6*earlierEvery {
		t.Errorf("it waited %s:\n%s", waited, &f.log)
	}
	for _, text := range []string{
		"for 2026-11, which is planned and not yet crawled (if nobody begins to crawl it, the wait ends 2026-11-01T09:00:00Z); to end the wait sooner, give the same command without `--after-earlier`: it plans without what 2026-11 will find, and the `run` of 2027-01",
		"for 2026-11, which is not finished", "for 2026-12, which is planned and not yet crawled",
	} {
		if strings.Count(f.log.String(), text) != 1 {
			t.Errorf("the log does not say once %q:\n%s", text, &f.log)
		}
	}
}

// A task that a person starts by hand begins a round, but no window. Nor does a rebuilt ledger know one.
func TestAPlanWaitsForAMonthThatIsCrawledWithoutAWindow(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-11")
	f.clock.now = f.clock.now.Add(5 * time.Hour)
	if _, err := f.driver.begin(t.Context(), "2026-11", 0); err != nil {
		t.Fatal(err)
	}
	if waited := f.await("2026-12"); waited != startWithin {
		t.Errorf("it waited %s:\n%s", waited, &f.log)
	}
	if text := "which is being crawled, and its window is not known (if no `run` begins one, the wait ends 2026-11-01T14:00:00Z); to end the wait sooner, finish it with `crawlbatch run --month 2026-11 --rounds 1 --store x`, or "; !strings.Contains(f.log.String(), text) {
		t.Errorf("the log lacks %q:\n%s", text, &f.log)
	}
}

func TestAWaitingPlanRepeatsItsReasonOnceADay(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-11")
	f.fail("2026-11")
	f.clock.now = f.clock.now.Add(crawlWindow - 50*time.Hour)
	if waited := f.await("2026-12"); waited != 50*time.Hour || strings.Count(f.log.String(), "waits for 2026-11") != 3 {
		t.Errorf("it waited %s:\n%s", waited, &f.log)
	}
}

// The command that the log recommends finishes a month, also between two rounds.
func TestTheRecommendedCommandEndsTheWait(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-11")
	f.run("2026-11", 1)
	w, _ := f.ledger("2026-11").Window()
	if err := f.driver.ledgers().NoteRunning(t.Context(), f.bucket, "2026-11", w); err != nil { // a driver began another round, and died before that
		t.Fatal(err)
	}
	f.clock.polls[3] = func() { f.run("2026-11", 1) }
	if waited := f.await("2026-12"); waited != 3*earlierEvery || !strings.Contains(f.log.String(), "finish it with `crawlbatch run --month 2026-11 --rounds 1 --store x`") {
		t.Errorf("it waited %s:\n%s", waited, &f.log)
	}
	if f.ledger("2026-11").Unfinished() {
		t.Error("the month is unfinished")
	}
}

// refusing is a store that gives an error while refuses is true.
type refusing struct {
	store.Bucket
	with    error
	refuses bool
}

func (s *refusing) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	if s.refuses {
		return nil, "", s.with
	}
	return s.Bucket.Get(ctx, key, limit)
}

func TestAWaitingPlanWaitsForItsStoreToo(t *testing.T) {
	for _, away := range []error{store.ErrUnavailable, store.ErrDenied} {
		t.Run(away.Error(), func(t *testing.T) {
			f := newEarlierFixture(t)
			f.plan("2026-11")
			f.fail("2026-11")
			s := &refusing{Bucket: f.bucket, with: away}
			f.bucket = s
			f.clock.polls[2] = func() { s.refuses = true }
			f.clock.polls[12+25*60] = func() { s.refuses = false; f.run("2026-11", 1) }
			if waited := f.await("2026-12"); waited != 25*time.Hour+12*time.Minute {
				t.Errorf("it waited %s:\n%s", waited, &f.log)
			}
			if n := strings.Count(f.log.String(), "level=WARN"); n != 2 { // the second after a day
				t.Errorf("%d warnings:\n%s", n, &f.log)
			}
		})
	}
}

func TestAPlanThatMayNotReadTheStoreDoesNotWait(t *testing.T) {
	f := newEarlierFixture(t)
	f.bucket = &refusing{Bucket: f.bucket, with: store.ErrDenied, refuses: true}
	if _, err := f.request("2026-12", true).AwaitEarlier(t.Context(), EarlierWait{}); !errors.Is(err, store.ErrDenied) || f.clock.sleeps > 0 {
		t.Errorf("after %d polls: %v", f.clock.sleeps, err)
	}
	f.bucket = &refusing{Bucket: f.bucket, with: store.ErrUnavailable, refuses: true}
	ctx, stop := context.WithCancel(t.Context())
	f.clock.polls[3] = stop
	f.bucket.(*refusing).Bucket.(*refusing).refuses = false
	if _, err := f.request("2026-12", true).AwaitEarlier(ctx, EarlierWait{}); err == nil || !strings.Contains(err.Error(), "the plan of 2026-12 waited for the store: interrupted: ") {
		t.Error(err)
	}
}

// gets counts the ledgers that a store sends.
type gets struct {
	store.Bucket
	ledgers map[string]int
}

func (g *gets) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	g.ledgers[key]++
	return g.Bucket.Get(ctx, key, limit)
}

// GetNew implements store.Renewer.
func (g *gets) GetNew(ctx context.Context, key string, limit int64, have store.Version) ([]byte, store.Version, error) {
	body, v, err := store.GetNew(ctx, g.Bucket, key, limit, have)
	if err == nil {
		g.ledgers[key]++
	}
	return body, v, err
}

func TestAWaitingPlanReadsALedgerOnlyIfItHasChanged(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2023-11")
	f.plan("2026-10")
	f.run("2026-10", 1)
	f.plan("2026-11")
	f.fail("2026-11")
	f.clock.polls[500] = func() { f.run("2026-11", 1) }
	g := &gets{f.bucket, map[string]int{}}
	f.bucket = g
	if waited := f.await("2026-12"); waited != 500*earlierEvery {
		t.Errorf("it waited %s:\n%s", waited, &f.log)
	}
	got := []int{g.ledgers[layout.Ledger("2023-11")], g.ledgers[layout.Ledger("2026-10")], g.ledgers[layout.Ledger("2026-11")]}
	if d := cmp.Diff([]int{0, 1, 2}, got); d != "" { // 2023-11 is out of reach, and no frontier would come from it
		t.Error(d)
	}
}

func TestAWaitingPlanEndsWhenItIsAskedTo(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-11")
	f.fail("2026-11")
	ctx, stop := context.WithCancel(t.Context())
	f.clock.polls[3] = stop
	_, err := f.request("2026-12", true).AwaitEarlier(ctx, EarlierWait{})
	if !errors.Is(err, stages.ErrInterrupted) || !strings.Contains(err.Error(), "waited for 2026-11: ") || !strings.Contains(err.Error(), "the same command waits again") || f.clock.sleeps != 3 {
		t.Errorf("after %d polls: %v", f.clock.sleeps, err)
	}
}

func TestAWaitingPlanEndsWhenTheMonthHasAPlan(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-11")
	f.fail("2026-11")
	f.clock.polls[5] = func() { f.plan("2026-12") } // another process does not wait
	if planned, err := f.request("2026-12", true).AwaitEarlier(t.Context(), EarlierWait{UntilPlanned: true}); err != nil || !planned || f.clock.sleeps != 5 {
		t.Errorf("after %d polls: %v, %v\n%s", f.clock.sleeps, planned, err, &f.log)
	}
	if !strings.Contains(f.log.String(), "the plan of 2026-12 waits no longer, because the month was planned meanwhile") {
		t.Errorf("the log:\n%s", &f.log)
	}
	f.clock.polls[10] = func() { f.run("2026-11", 1) }
	if planned, err := f.request("2026-12", true).AwaitEarlier(t.Context(), EarlierWait{}); err != nil || planned || f.clock.sleeps != 10 {
		t.Errorf("a plan that replaces another ended the wait after %d polls: %v, %v", f.clock.sleeps, planned, err)
	}
}

func TestAPlanOfOnlyAFrontierNamesTheMonthThatIsToLeaveIt(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-11")
	f.fail("2026-11")
	r := f.request("2026-12", true)
	r.Sources = nil
	_, _, err := Plan(t.Context(), r)
	if !errors.Is(err, planner.ErrNothing) || !strings.Contains(err.Error(), "2026-11 is not finished and has no finished round yet, ") ||
		!strings.Contains(err.Error(), "--after-earlier, which waits for it, or finish it with `crawlbatch run --month 2026-11 --rounds 1` first") {
		t.Error(err)
	}
}

// lastCrawl skips a month that the store lists but does not hold.
func TestAPlanLacksNothingOfAMonthThatDoesNotExist(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-10")
	f.fail("2026-10")
	all, err := f.request("2026-12", true).missed(t.Context(), "", []string{"2026-11", "2026-10"})
	if d := cmp.Diff([]MissedMonth{{Crawl: "2026-10", Final: 1}}, all); err != nil || d != "" {
		t.Error(err, d)
	}
}

func TestAPlanNamesTheUnfinishedMonthsThatItLacks(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-10")
	f.run("2026-10", 1)
	if c := f.plan("2026-11"); c.From != "2026-10" || len(c.Missed) > 0 {
		t.Errorf("after a normal end: %+v", c)
	}
	f.fail("2026-11")
	for month, want := range map[string][]MissedMonth{"2026-12": {{Crawl: "2026-11", Final: 1}}, "2026-11": nil} {
		if d := cmp.Diff(want, f.wouldContinue(month).Missed); d != "" {
			t.Errorf("%s: %s", month, d)
		}
	}
	f.run("2026-11", 1)
	if c := f.wouldContinue("2026-12"); c.From != "2026-11" || len(c.Missed) > 0 {
		t.Errorf("after the end: %+v", c)
	}
}

// wouldContinue plans a month without storing the plan, and returns what the plan would continue.
func (f *earlierFixture) wouldContinue(month string) *Continuation {
	f.t.Helper()
	r := f.request(month, true)
	r.DryRun = true
	if _, _, err := Plan(f.t.Context(), r); err != nil && !errors.Is(err, ErrPlanned) {
		f.t.Fatal(err)
	}
	return r.Continues
}

func TestARestartedDriverKeepsTheCrawlWindow(t *testing.T) {
	f := newEarlierFixture(t)
	began := f.clock.now
	window := func() ledger.Window {
		w, ok := f.ledger("2026-11").Window()
		if !ok {
			t.Error("no window")
		}
		return w
	}
	f.plan("2026-11")
	if _, ok := f.ledger("2026-11").Window(); ok {
		t.Error("a plan begins a window")
	}
	f.fail("2026-11")
	f.clock.now = began.Add(10 * 24 * time.Hour)
	f.fail("2026-11")
	if d := cmp.Diff(ledger.Window{Begin: began, End: began.Add(crawlWindow)}, window()); d != "" {
		t.Error(d)
	}
	entries := len(f.ledger("2026-11").Entries())
	f.fail("2026-11")
	if n := len(f.ledger("2026-11").Entries()); n != entries {
		t.Errorf("a restart appended %d entries", n-entries)
	}
	f.driver.Config.Fetch.CrawlWindow *= 2
	f.fail("2026-11")
	if d := cmp.Diff(ledger.Window{Begin: began, End: began.Add(2 * crawlWindow)}, window()); d != "" {
		t.Errorf("a longer window: %s", d)
	}
	// A driver that is restarted in the last round of the window ends with it.
	f.clock.now = began.Add(3 * crawlWindow)
	f.run("2026-11", 0)
	if l := f.ledger("2026-11"); l.Unfinished() || !window().Begin.Equal(began) {
		t.Errorf("unfinished %v, %v", l.Unfinished(), window())
	}
	entries = len(f.ledger("2026-11").Entries())
	f.run("2026-11", 0)
	if n := len(f.ledger("2026-11").Entries()); n != entries {
		t.Errorf("a run of a finished crawl appended %d entries", n-entries)
	}
}

func TestARunAfterTheCrawlWindowBeginsAnother(t *testing.T) {
	f := newEarlierFixture(t)
	began := f.clock.now
	f.plan("2026-11")
	f.fail("2026-11")
	l := f.ledger("2026-11")
	if !l.Unfinished() || !l.InRound() {
		t.Error("a failed month is finished")
	}
	f.run("2026-11", 1)
	l = f.ledger("2026-11")
	f.clock.now = began.Add(crawlWindow - 1)
	if w := f.driver.window(l); !w.Begin.Equal(began) {
		t.Errorf("within the window: %v", w)
	}
	f.clock.now = began.Add(crawlWindow)
	want := ledger.Window{Begin: f.clock.now, End: f.clock.now.Add(crawlWindow)}
	if d := cmp.Diff(want, f.driver.window(l)); d != "" {
		t.Error(d)
	}
	// A shorter window that is over does not keep the window of a finished crawl.
	f.driver.Config.Fetch.CrawlWindow /= 2
	f.clock.now = began.Add(crawlWindow * 3 / 4)
	if w := f.driver.window(l); !w.Begin.Equal(f.clock.now) {
		t.Errorf("a shorter window that is over: %v", w)
	}
	f.driver.Config.Fetch.CrawlWindow *= 2
	f.clock.now = want.Begin
	w := f.driver.ledgers()
	if err := w.NoteRunning(t.Context(), f.bucket, "2026-11", want); err != nil {
		t.Fatal(err)
	}
	if l = f.ledger("2026-11"); !l.Unfinished() {
		t.Error("a further round leaves the month finished")
	}
	// A config with a shorter window ends a window that is open.
	f.driver.Config.Fetch.CrawlWindow /= 2
	f.clock.now = f.clock.now.Add(crawlWindow * 3 / 4)
	if w := f.driver.window(l); !w.Begin.Equal(want.Begin) || f.clock.now.Before(w.End) {
		t.Errorf("a shorter window: %v", w)
	}
}

// A driver that Kubernetes starts again after the end of the window, between two rounds, ends the crawl.
func TestARestartAfterTheCrawlWindowEndsTheCrawl(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-11")
	f.run("2026-11", 1)
	began, _ := f.ledger("2026-11").Window()
	if err := f.driver.ledgers().NoteRunning(t.Context(), f.bucket, "2026-11", began); err != nil {
		t.Fatal(err)
	}
	f.clock.now = began.End.Add(time.Hour)
	f.driver.Log = slog.New(slog.NewTextHandler(&f.log, nil))
	f.run("2026-11", 0)
	l := f.ledger("2026-11")
	if w, _ := l.Window(); l.Unfinished() || !w.Begin.Equal(began.Begin) || !strings.Contains(f.log.String(), "crawl window is over") {
		t.Errorf("unfinished %v, window %v:\n%s", l.Unfinished(), w, &f.log)
	}
}

func TestAWindowThatBeginsInTheFutureIsReplaced(t *testing.T) {
	f := newEarlierFixture(t)
	f.plan("2026-11")
	f.clock.now = f.clock.now.AddDate(10, 0, 0)
	f.fail("2026-11")
	l := f.ledger("2026-11")
	f.clock.now = f.clock.now.AddDate(-10, 0, 0)
	if w := f.driver.window(l); !w.Begin.Equal(f.clock.now) {
		t.Errorf("%v", w)
	}
	f.clock.now = f.clock.now.AddDate(10, 0, 0).Add(-clockAhead)
	if w := f.driver.window(l); w.Begin.Equal(f.clock.now) {
		t.Errorf("a clock that is a little behind: %v", w)
	}
}
