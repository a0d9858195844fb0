package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/prune"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// hookedStore is a store that calls hook before the n-th write or delete.
type hookedStore struct {
	store.Bucket
	n    int
	hook func()
	done bool // whether hook was called
}

func (b *hookedStore) step(key string) {
	if !strings.HasPrefix(key, "crawl") && key != layout.Active() {
		return // store.Probe makes this write
	}
	if b.n--; b.n == 0 {
		b.done = true
		b.hook()
	}
}

func (b *hookedStore) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	b.step(key)
	return b.Bucket.Create(ctx, key, body, size)
}

func (b *hookedStore) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	b.step(key)
	return b.Bucket.Swap(ctx, key, body, size, old)
}

func (b *hookedStore) Delete(ctx context.Context, key string) error {
	b.step(key)
	return b.Bucket.Delete(ctx, key)
}

// replacePlan replaces the plan of round 0 by a plan with other URLs and another config.
func (f *fixture) replacePlan(b store.Bucket) error {
	name := filepath.Join(f.driver.Scratch, "others.txt")
	if err := os.WriteFile(name, []byte("http://other.test/"), 0o644); err != nil {
		f.t.Fatal(err)
	}
	from, err := source.Files(name, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	c := f.driver.Config.Clone()
	c.Frontier.Follow = "host"
	_, _, err = Plan(f.t.Context(), PlanRequest{
		Bucket: b, Crawl: "2026-11", Sources: []source.Source{from}, Config: c, Replace: true,
		Clock: stages.SystemClock{}, Version: "test", Scratch: f.driver.Scratch, Lookup: os.LookupEnv,
	})
	return err
}

// checkStarted checks the store of a started round. The store must have the plan, all files of the
// plan, and the plan's own crawl.json.
func (f *fixture) checkStarted(first string) {
	f.t.Helper()
	p, started, err := roundstate.FindPlan(f.t.Context(), f.bucket, "2026-11", 0)
	if err != nil || !started {
		f.t.Errorf("started %t, %v", started, err)
		return
	}
	for _, part := range p.Partitions {
		if o, err := f.bucket.Open(f.t.Context(), part.File.Key); err != nil {
			f.t.Error(err)
		} else {
			_ = o.Close()
		}
	}
	crawl, _, err := ledger.LoadCrawl(f.t.Context(), f.bucket, "2026-11")
	if err != nil {
		f.t.Fatal(err)
	}
	if replaced := strings.Contains(crawl.Config, "follow: host"); replaced != (p.ID != first) {
		f.t.Errorf("the round follows plan %s, first was %s; the config is the replaced one: %t", p.ID, first, replaced)
	}
	l, err := ledger.Load(f.t.Context(), f.bucket, "2026-11")
	if err != nil {
		f.t.Fatal(err)
	}
	for lost, err := range l.Losses(f.t.Context(), f.bucket) {
		f.t.Errorf("%v, %v", lost, err)
	}
}

// TestAReplacementAndAStartHaveOneWinner starts the round before each write of a `plan --replace`.
// The test also replaces the plan before each write of the start of a round.
func TestAReplacementAndAStartHaveOneWinner(t *testing.T) {
	begin := func(f *fixture, b store.Bucket) error {
		_, err := roundstate.Begin(f.t.Context(), b, "2026-11", 0, ledgertest.Writer())
		return err
	}
	for name, race := range map[string]struct {
		slow, quick func(f *fixture, b store.Bucket) error
	}{
		"start in a replacement": {func(f *fixture, b store.Bucket) error { return f.replacePlan(b) }, begin},
		"replacement in a start": {begin, func(f *fixture, b store.Bucket) error { return f.replacePlan(b) }},
	} {
		for n := 1; ; n++ {
			f := newFixture(t)
			first := f.mustPlan().ID
			var quick error
			b := &hookedStore{Bucket: f.bucket, n: n}
			b.hook = func() { quick = race.quick(f, f.bucket) }
			slow := race.slow(f, b)
			if !b.done {
				break
			}
			for who, err := range map[string]error{"slow": slow, "quick": quick} {
				if err != nil && !errors.Is(err, ErrPlanned) && !errors.Is(err, roundstate.ErrReplacing) {
					t.Errorf("%s, write %d: the %s one: %v", name, n, who, err)
				}
			}
			if errors.Is(slow, ErrPlanned) && errors.Is(quick, ErrPlanned) {
				t.Errorf("%s, write %d: nobody won", name, n)
			}
			if err := begin(f, f.bucket); err != nil {
				t.Errorf("%s, write %d: the round cannot start: %v", name, n, err)
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) { f.t = t; f.checkStarted(first) })
		}
	}
}

// TestAReplacementThatIsKilledIsGoneOnWith stops a `plan --replace` before each of its writes.
// After the stop, either the round starts with the earlier plan, or an error says that the command
// has to be repeated.
func TestAReplacementThatIsKilledIsGoneOnWith(t *testing.T) {
	for n := 1; ; n++ {
		f := newFixture(t)
		first := f.mustPlan().ID
		b := &hookedStore{Bucket: f.bucket, n: n, hook: func() { panic("killed") }}
		func() {
			defer func() { _ = recover() }()
			if err := f.replacePlan(b); err != nil {
				t.Errorf("write %d: %v", n, err)
			}
		}()
		if !b.done {
			break
		}
		_, err := roundstate.Begin(t.Context(), f.bucket, "2026-11", 0, ledgertest.Writer())
		if errors.Is(err, roundstate.ErrReplacing) {
			if err := f.replacePlan(f.bucket); err != nil {
				t.Errorf("write %d: replaced again: %v", n, err)
			}
			_, err = roundstate.Begin(t.Context(), f.bucket, "2026-11", 0, ledgertest.Writer())
		}
		if err != nil {
			t.Errorf("write %d: %v", n, err)
			continue
		}
		f.checkStarted(first)
	}
}

// slowSwap is a store in which something happens while the first swap of the object key is on its way.
type slowSwap struct {
	store.Bucket
	key       string
	meanwhile func()
}

func (b *slowSwap) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	if act := b.meanwhile; act != nil && key == b.key && old != "" {
		b.meanwhile = nil
		act()
	}
	return b.Bucket.Swap(ctx, key, body, size, old)
}

// In 2030, the raw captures of 2026-11 are old.
type in2030 struct{ stages.SystemClock }

func (in2030) Now() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// TestAPlanThatIsChosenLateDoesNotFollowAPrune runs a whole `prune` while the entry that chooses a plan is on its way to
// the store.
func TestAPlanThatIsChosenLateDoesNotFollowAPrune(t *testing.T) {
	f := newFixture(t)
	id := f.mustPlan().ID
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateBytes(t.Context(), f.bucket, layout.WARC("2026-11", 0, id, 0, 1, 0), []byte("old")); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(list, []byte("http://a.test/1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	plan := func(b store.Bucket) error {
		from, err := source.Files(list, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = Plan(t.Context(), PlanRequest{
			Bucket: b, Crawl: "2026-12", Sources: []source.Source{from}, Config: f.driver.Config, Clock: stages.SystemClock{}, Version: "test", Scratch: f.driver.Scratch, Lookup: os.LookupEnv,
		})
		return err
	}
	b := &slowSwap{f.bucket, layout.Ledger("2026-12"), func() {
		found, err := prune.Apply(t.Context(), prune.Request{Bucket: f.bucket, Raw: 12, Clock: in2030{}, Version: "test"})
		if err != nil || found.Crawls[0].Total().Objects == 0 {
			t.Errorf("%+v, %v", found, err)
		}
	}}
	if err := plan(b); !errors.Is(err, ErrBusy) || b.meanwhile != nil {
		t.Errorf("plan: %v", err)
	}
	if planned, err := Planned(t.Context(), f.bucket, "2026-12"); planned || err != nil {
		t.Errorf("the plan was chosen: %t, %v", planned, err)
	}
	if err := plan(f.bucket); err != nil {
		t.Errorf("planned again: %v", err)
	}
}

// TestAReparseThatIsPlannedLateSeesATakedown claims active.json for a takedown while the entry that chooses the plan of a
// reparse is on its way to the store.
func TestAReparseThatIsPlannedLateSeesATakedown(t *testing.T) {
	f := newFixture(t)
	f.mustPlan()
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	r := ReparseRequest{As: "2026-11r1", Of: "2026-11", Config: f.driver.Config, Clock: stages.SystemClock{}, Version: "test", Scratch: f.driver.Scratch, Lookup: os.LookupEnv}
	var h *roundstate.Hold
	r.Bucket = &slowSwap{f.bucket, layout.Ledger(r.As), func() {
		var err error
		if h, err = roundstate.TakeHold(t.Context(), f.bucket, &manifest.Active{Crawl: "2026-11", Prune: true, Takedown: true, Nonce: "takedown-1"}); err == nil {
			err = ledgertest.Writer().Fence(t.Context(), f.bucket)
		}
		if err != nil {
			t.Fatal(err)
		}
	}}
	if _, err := Reparse(t.Context(), r); !errors.Is(err, ErrBusy) {
		t.Errorf("during the takedown: %v", err)
	}
	if planned, err := Planned(t.Context(), f.bucket, r.As); planned || err != nil {
		t.Errorf("the plan was chosen: %t, %v", planned, err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := Reparse(t.Context(), r); err != nil {
		t.Errorf("after the takedown: %v", err)
	}
}

// TestTwoDriversPlanWithOneClock lets one driver freeze the clock. A later driver plans with the
// frozen clock. If no URL was due at the frozen time, the next driver freezes its own clock, and
// all later drivers plan with this clock.
func TestTwoDriversPlanWithOneClock(t *testing.T) {
	f := newFixture(t)
	f.mustPlan()
	due := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	r := PlanRequest{Bucket: f.bucket, Crawl: "2026-11", Clock: stages.SystemClock{}, Version: "test", driver: true}
	early, late, latest := due.Add(-time.Second), due.Add(time.Second), due.Add(time.Hour)
	for _, at := range []time.Time{early, late, early} {
		if now, err := r.freezeNow(t.Context(), 1, time.Time{}, at); err != nil || !now.Equal(early) {
			t.Errorf("a driver at %s plans with %s, %v", at, now, err)
		}
	}
	for _, at := range []time.Time{late, latest, late} { // the driver with the early clock has found no due URL
		if now, err := r.freezeNow(t.Context(), 1, early, at); err != nil || !now.Equal(late) {
			t.Errorf("a driver at %s plans again with %s, %v", at, now, err)
		}
	}
}

// TestADriverThatFindsNothingDueWritesNothing runs a driver several times after the last round, as
// a CronJob does.
func TestADriverThatFindsNothingDueWritesNothing(t *testing.T) {
	f := newFixture(t)
	f.mustPlan()
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	entries := func() int {
		t.Helper()
		l, err := ledger.Load(t.Context(), f.bucket, "2026-11")
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Entries())
	}
	before := entries()
	for range 3 {
		if more, err := f.driver.planNext(t.Context(), "2026-11", 1); err != nil || more {
			t.Fatalf("%t, %v", more, err)
		}
	}
	if after := entries(); after != before {
		t.Errorf("the ledger has %d entries, before it had %d", after, before)
	}
}

func TestADriverFollowsThePlanOfAnother(t *testing.T) {
	f := newFixture(t)
	first := f.mustPlan()
	more, err := f.driver.planNext(t.Context(), "2026-11", 0)
	if err != nil || !more {
		t.Errorf("%t, %v", more, err)
	}
	if p, _, err := roundstate.FindPlan(t.Context(), f.bucket, "2026-11", 0); err != nil || p.ID != first.ID {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestARoundThatIsGoneIsNotPlannedAgain(t *testing.T) {
	f := newFixture(t)
	f.mustPlan()
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	remove := func(prefix string) {
		t.Helper()
		var keys []string
		for o, err := range f.bucket.List(t.Context(), prefix) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, o.Key)
		}
		for _, key := range keys {
			if err := f.bucket.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove(layout.RoundDir("2026-11", 0))
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ledger.ErrLost) || !errors.Is(err, stages.ErrPermanent) || strings.Contains(err.Error(), "crawlbatch plan") {
			t.Errorf("%s: %v", what, err)
		}
	}
	f.fake.ran = nil
	refused("run", f.driver.Run(t.Context(), "2026-11", 2))
	_, _, err := f.plan(true, someURLs...)
	refused("plan", err)
	_, err = f.driver.Retry(t.Context(), "2026-11", RetryRequest{})
	refused("retry", err)
	s, err := (&StatusReader{Bucket: f.bucket}).Read(t.Context(), "2026-11")
	if err != nil || len(s.Lost) == 0 {
		t.Errorf("status: %+v, %v", s, err)
	} else {
		refused("status", s.Err())
	}
	if len(f.fake.ran) > 0 {
		t.Errorf("ran %q", f.fake.ran)
	}
	if _, err := manifest.Exists(t.Context(), f.bucket, layout.CrawlManifest("2026-11")); err != nil {
		t.Error(err)
	}
	remove(layout.CrawlDir("2026-11"))
	_, _, err = f.plan(false, someURLs...)
	refused("plan of a crawl that is gone", err)
}

// afterCreate is a bucket that calls meanwhile, once, when it has created an object whose key ends with suffix. The call
// may come from any goroutine.
type afterCreate struct {
	store.Bucket
	suffix    string
	meanwhile func()
	once      sync.Once
}

func (b *afterCreate) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	v, err := b.Bucket.Create(ctx, key, body, size)
	if strings.HasSuffix(key, b.suffix) {
		b.once.Do(b.meanwhile)
	}
	return v, err
}

// TestAReparseSeesAPruneThatRanWhileItCopiedThePlan lets the prune begin and end meanwhile.
func TestAReparseSeesAPruneThatRanWhileItCopiedThePlan(t *testing.T) {
	f := newFixture(t)
	id := f.mustPlan().ID
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateBytes(t.Context(), f.bucket, layout.WARC("2026-11", 0, id, 0, 1, 0), []byte("old")); err != nil {
		t.Fatal(err)
	}
	r := ReparseRequest{As: "2026-11r1", Of: "2026-11", Config: f.driver.Config, Clock: stages.SystemClock{}, Version: "test", Scratch: f.driver.Scratch, Lookup: os.LookupEnv}
	r.Bucket = &afterCreate{Bucket: f.bucket, suffix: "/refused.parquet", meanwhile: func() {
		if _, err := prune.Apply(t.Context(), prune.Request{Bucket: f.bucket, Raw: 12, Clock: in2030{}, Version: "test"}); err != nil {
			t.Error(err)
		}
	}}
	if _, err := Reparse(t.Context(), r); !errors.Is(err, ErrBusy) {
		t.Errorf("the reparse: %v", err)
	}
	if planned, err := Planned(t.Context(), f.bucket, r.As); planned || err != nil {
		t.Errorf("the plan was chosen: %t, %v", planned, err)
	}
	if _, err := Reparse(t.Context(), r); !errors.Is(err, ledger.ErrPruned) {
		t.Errorf("a reparse of what was pruned: %v", err)
	}
}
