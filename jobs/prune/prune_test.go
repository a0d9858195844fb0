package prune

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/faultstore"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/quarantine"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

type fixed struct {
	stages.SystemClock
	now time.Time
}

func (f fixed) Now() time.Time { return f.now }

// put stores a document.
func put(t *testing.T, b store.Bucket, key string, d manifest.Document) {
	t.Helper()
	if _, err := manifest.Create(t.Context(), b, key, d); err != nil {
		t.Fatal(err)
	}
}

// crawled makes a store with a crawl for each month. Its round has a plan, a WARC file and, if sealed is
// true, a seal.
func crawled(t *testing.T, sealed bool, months ...string) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, month := range months {
		put(t, b, layout.CrawlManifest(month), &manifest.Crawl{Crawl: month})
		put(t, b, layout.PlanManifest(month, 0, "p"), &manifest.Plan{ID: "p", Crawl: month, Buckets: 1, Partitions: []manifest.PlanPartition{{}}})
		put(t, b, layout.Inputs(month, 0, "merge"), &manifest.Inputs{Stage: "merge", Plan: "p"})
		if sealed {
			put(t, b, layout.Sealed(month, 0), &manifest.Sealed{Crawl: month, Plan: "p", Buckets: 1})
		}
		for _, key := range []string{layout.WARC(month, 0, "p", 0, 1, 0), layout.CDXJ(layout.WARC(month, 0, "p", 0, 1, 0)), layout.Working(month, 0, "frontier", "known", 0), layout.Working(month, 0, "rank", "inlinks", 0)} {
			if _, err := store.CreateBytes(t.Context(), b, key, []byte("0123456789")); err != nil {
				t.Fatal(err)
			}
		}
		ledgertest.Make(t, b, month)
	}
	return b
}

func request(b store.Bucket, now string) Request {
	at, err := time.Parse("2006-01-02", now)
	if err != nil {
		panic(err)
	}
	return Request{Bucket: b, Raw: 12, Metadata: 18, Clock: fixed{now: at}, Version: "test"}
}

func TestAMonthIsKeptForItsRetentionAfterItsEnd(t *testing.T) {
	b := crawled(t, true, "2025-10", "2026-11")
	for now, want := range map[string]string{
		"2026-10-31": "", "2026-11-01": manifest.PruneRaw, "2027-04-30": manifest.PruneRaw, "2027-05-01": manifest.PruneMetadata,
	} {
		f, err := Find(t.Context(), request(b, now))
		if err != nil || f.Crawls[0].Policy != want || f.Crawls[1].Policy != "" {
			t.Errorf("at %s: %+v, %v", now, f.Crawls[0], err)
		}
	}
	for now, want := range map[string]string{"2026-12-31": "it is 1 month old", "2027-01-01": "it is 2 months old"} {
		if f, err := Find(t.Context(), request(b, now)); err != nil || f.Crawls[1].Why != want {
			t.Errorf("at %s: %+v, %v, want %s", now, f.Crawls[1], err, want)
		}
	}
	r := request(b, "2030-01-01")
	r.Raw, r.Metadata = 0, 0
	if f, err := Find(t.Context(), r); err != nil || f.Pending() {
		t.Errorf("without retention: %+v, %v", f, err)
	}
	if f, err := Find(t.Context(), request(b, "2030-01-01")); err != nil || f.Crawls[1].Policy != manifest.PruneRaw || !strings.Contains(f.Crawls[1].Why, "the month after 2026-11") {
		t.Errorf("the newest month: %+v, %v", f.Crawls[1], err)
	}
}

func TestKindsAndSizesAreCounted(t *testing.T) {
	f, err := Find(t.Context(), request(crawled(t, true, "2025-10", "2026-11"), "2026-11-01"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Kind{{"WARC files", Size{1, 10}}, {"WARC indexes", Size{1, 10}}, {"working files", Size{1, 10}}}
	got := f.Crawls[0].Delete
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || f.Crawls[0].Total() != (Size{3, 30}) {
		t.Errorf("%+v", got)
	}
}

func TestNothingIsDeletedWhileARoundIsUnfinished(t *testing.T) {
	b := crawled(t, false, "2025-01", "2026-11")
	f, err := Find(t.Context(), request(b, "2026-11-01"))
	if err != nil || len(f.Busy) != 2 || !strings.Contains(f.Busy[0], "finish it with `crawlbatch run --month 2025-01`") || f.Pending() {
		t.Errorf("%+v, %v", f, err)
	}
	r := request(b, "2026-11-01")
	if _, err := r.hold(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(t.Context(), r); !errors.Is(err, roundstate.ErrBusy) {
		t.Errorf("after an interrupted prune: %v", err)
	}
	if err := roundstate.CheckNoPruning(t.Context(), b, "2026-11"); err != nil {
		t.Errorf("the unfinished round cannot be finished: %v", err)
	}
}

func TestAPruneHoldsTheStore(t *testing.T) {
	b := crawled(t, true, "2025-10", "2026-11")
	r := request(b, "2026-11-01")
	f, err := Find(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.hold(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Load(t.Context(), b, "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	plan := &manifest.Plan{ID: "p", Crawl: "2025-10", Round: 0, Partitions: []manifest.PlanPartition{{}}}
	own, err := ledger.Load(t.Context(), b, "2025-10")
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]error{
		"a fetch stage":                   roundstate.Claim(t.Context(), b, l, &manifest.Plan{ID: "q", Crawl: "2026-11", Round: 1}, ledgertest.Writer()),
		"a fetch stage of the held round": roundstate.Claim(t.Context(), b, own, plan, ledgertest.Writer()),
		"a reparse":                       roundstate.CheckNoPruning(t.Context(), b, "2026-11"),
	}
	for what, err := range claims {
		if !errors.Is(err, roundstate.ErrBusy) || !strings.Contains(err.Error(), "crawlbatch prune --apply") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := roundstate.HoldForQuarantine(t.Context(), b, "2026-11", 0, ledgertest.Writer()); !errors.Is(err, roundstate.ErrBusy) || !strings.Contains(err.Error(), "crawlbatch prune --apply") {
		t.Errorf("quarantine: %v", err)
	}
	// The next prune takes the claim over, finishes and releases it.
	if _, err := Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := roundstate.CheckNoPruning(t.Context(), b, "2026-11"); err != nil {
		t.Error(err)
	}
}

// Nobody knows whether a quarantine is alive, so only another quarantine takes over, and the earlier one then stops.
func TestAPruneDoesNotTakeOverAQuarantine(t *testing.T) {
	b := crawled(t, true, "2025-10", "2026-11")
	r := request(b, "2026-11-01")
	w := ledger.Writer{Version: "test", Clock: r.Clock}
	first, err := roundstate.HoldForQuarantine(t.Context(), b, "2026-11", 0, w)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(t.Context(), r); !errors.Is(err, roundstate.ErrBusy) || !strings.Contains(err.Error(), "`crawlbatch verify --month 2026-11 --quarantine --yes`") {
		t.Errorf("%v", err)
	}
	if err := first.Check(t.Context()); err != nil {
		t.Errorf("the quarantine lost its hold: %v", err)
	}
	w.Clock = fixed{now: r.Clock.Now().Add(time.Second)}
	second, err := roundstate.HoldForQuarantine(t.Context(), b, "2025-10", 0, w)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Check(t.Context()); !errors.Is(err, roundstate.ErrBusy) {
		t.Errorf("the earlier quarantine goes on: %v", err)
	}
	if err := errors.Join(first.Release(t.Context()), second.Check(t.Context())); err != nil {
		t.Errorf("the earlier quarantine ended the hold of the later one: %v", err)
	}
	if err := second.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(t.Context(), r); err != nil {
		t.Error(err)
	}
}

func TestALostListIsMadeAgain(t *testing.T) {
	b := crawled(t, true, "2025-10", "2026-11")
	r := request(b, "2026-11-01")
	if _, err := Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Load(t.Context(), b, "2025-10")
	if err != nil || l.Pruning() == nil || l.PruneUnfinished() || l.Gone() {
		t.Fatalf("%+v, %v", l.Entries(), err)
	}
	if err := b.Delete(t.Context(), l.Pruning().Object); err != nil {
		t.Fatal(err)
	}
	lost := 0
	for x, err := range l.Losses(t.Context(), b) {
		if lost++; err != nil || x.Object != l.Pruning().Object || !strings.Contains(x.Error(), "crawlbatch prune --apply") {
			t.Errorf("%v, %v", x, err)
		}
	}
	if lost != 1 {
		t.Errorf("%d losses", lost)
	}
	if _, err := Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if l, err = ledger.Load(t.Context(), b, "2025-10"); err != nil {
		t.Fatal(err)
	}
	for x, err := range l.Losses(t.Context(), b) {
		t.Errorf("%v, %v", x, err)
	}
}

func TestARebuiltLedgerKnowsWhatWasPruned(t *testing.T) {
	b := crawled(t, true, "2025-10", "2026-11")
	if _, err := Apply(t.Context(), request(b, "2026-11-01")); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), layout.Ledger("2025-10")); err != nil {
		t.Fatal(err)
	}
	if _, err := ledgertest.Writer().Rebuild(t.Context(), b, "2025-10", []string{"2025-10", "2026-11"}, quarantine.Copy); err != nil {
		t.Fatal(err)
	}
	all, err := ledger.ReadAllPruned(t.Context(), b, "2026-11")
	if warc := layout.WARC("2025-10", 0, "p", 0, 1, 0); err != nil || !all.Has(warc) || !all.Has(layout.CDXJ(warc)) || all.Has(layout.Sealed("2025-10", 0)) || all.Has(layout.WARC("2026-11", 0, "p", 0, 1, 0)) {
		t.Errorf("%v, %v", all, err)
	}
}

// Without active.json, the ledgers say that a prune was interrupted. A month that goes as a whole has no crawl.json then.
func TestARebuiltActiveKnowsAnInterruptedPrune(t *testing.T) {
	for name, now := range map[string]string{"raw captures": "2026-11-01", "a whole month": "2027-05-01"} {
		t.Run(name, func(t *testing.T) {
			b := crawled(t, true, "2025-10", "2026-11")
			r := request(b, now)
			f, err := Find(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			c := f.Crawls[0]
			if _, err = r.hold(t.Context(), f); err == nil {
				_, err = ledgertest.Writer().BeginPruning(t.Context(), b, &c.list)
			}
			if err == nil && c.Policy == manifest.PruneMetadata {
				err = b.Delete(t.Context(), layout.CrawlManifest(c.Name))
			}
			if err == nil {
				err = b.Delete(t.Context(), layout.Active())
			}
			if err != nil {
				t.Fatal(err)
			}
			crawls, err := ledger.Crawls(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ledgertest.Writer().Rebuild(t.Context(), b, "2026-11", crawls, quarantine.Copy); err != nil {
				t.Fatal(err)
			}
			if err := roundstate.CheckNoPruning(t.Context(), b, "2026-11"); !errors.Is(err, roundstate.ErrBusy) || !strings.Contains(err.Error(), "crawlbatch prune --apply") {
				t.Errorf("a round may be planned: %v", err)
			}
			if _, err := Apply(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if err := roundstate.CheckNoPruning(t.Context(), b, "2026-11"); err != nil {
				t.Error(err)
			}
			if l, err := ledger.Load(t.Context(), b, c.Name); err != nil || l.PruneUnfinished() {
				t.Errorf("the prune is not finished, %v", err)
			}
		})
	}
}

func TestNothingIsDeletedWithoutTheLedgerOfACrawl(t *testing.T) {
	b := crawled(t, true, "2025-01", "2025-02", "2026-11")
	if err := b.Delete(t.Context(), layout.Ledger("2026-11")); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(t.Context(), request(b, "2026-11-01")); !errors.Is(err, ledger.ErrLost) || !strings.Contains(err.Error(), "needs") {
		t.Errorf("%v", err)
	}
	for _, month := range []string{"2025-01", "2025-02"} {
		if ok, err := manifest.Exists(t.Context(), b, layout.WARC(month, 0, "p", 0, 1, 0)); err != nil || !ok {
			t.Errorf("%s: the WARC file exists: %t, %v", month, ok, err)
		}
	}
}

func TestAnInterruptedPruneThatCannotGoOnLetsTheStoreGo(t *testing.T) {
	b := crawled(t, true, "2025-10", "2026-11")
	r := request(b, "2026-11-01")
	f, err := Find(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.hold(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), layout.Sealed("2026-11", 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(t.Context(), r); !errors.Is(err, ledger.ErrLost) {
		t.Errorf("%v", err)
	}
	if err := roundstate.CheckNoPruning(t.Context(), b, "2026-11"); err != nil {
		t.Errorf("nobody can repair the store: %v", err)
	}
}

func TestAPruneStopsWhenAnotherTakesOver(t *testing.T) {
	b := crawled(t, true, "2025-10", "2026-11")
	r := request(b, "2026-11-01")
	f, err := Find(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.hold(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	later := request(b, "2026-11-02")
	later.Raw = 0
	later.Metadata = 0
	if f, err := Apply(t.Context(), later); err != nil || f.Pending() { // keeps everything, and releases active.json
		t.Fatalf("%+v, %v", f, err)
	}
	if err := r.prune(t.Context(), f.Crawls[0], first); !errors.Is(err, roundstate.ErrBusy) {
		t.Errorf("%v", err)
	}
	if ok, err := manifest.Exists(t.Context(), b, layout.WARC("2025-10", 0, "p", 0, 1, 0)); err != nil || !ok {
		t.Errorf("the WARC file exists: %t, %v", ok, err)
	}
}

func TestARoundAfterAPruneWasNotPruned(t *testing.T) {
	b := crawled(t, true, "2025-10", "2026-11")
	if _, err := Apply(t.Context(), request(b, "2026-11-01")); err != nil {
		t.Fatal(err)
	}
	all, err := ledger.ReadAllPruned(t.Context(), b, "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	for round, want := range []bool{true, false} {
		warc := layout.WARC("2025-10", round, "p", 0, 1, 0)
		for _, key := range []string{warc, layout.CDXJ(warc), layout.Segment("2025-10", round, "p", 0, 1, 0, "pages"), layout.Working("2025-10", round, "rank", "inlinks", 0)} {
			if all.Has(key) != want {
				t.Errorf("%s was pruned: %t", key, !want)
			}
		}
	}
}

// sealedAt sets the time at which a crawl's round was sealed.
func sealedAt(t *testing.T, b store.Bucket, crawl, at string) {
	ledgertest.Edit(t, b, crawl, func(entries []manifest.Entry) []manifest.Entry {
		for i := range entries {
			if entries[i].What == manifest.EntrySealed {
				entries[i].At = at
			}
		}
		return entries
	})
}

func keysOf(t *testing.T, b store.Bucket) (keys []string) {
	t.Helper()
	for o, err := range b.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, regexp.MustCompile("/prune-.*").ReplaceAllString(o.Key, "/prune-"))
	}
	return keys
}

func TestWorkingDataGoesFirstAndRawCapturesGoLater(t *testing.T) {
	b := crawled(t, true, "2025-10", "2026-11")
	sealedAt(t, b, "2025-10", "2025-11-03T10:00:00Z")
	sealedAt(t, b, "2026-11", "2026-11-03T10:00:00Z")
	segment := layout.Segment("2025-10", 0, "p", 0, 1, 0, "pages")
	if _, err := store.CreateBytes(t.Context(), b, segment, nil); err != nil {
		t.Fatal(err)
	}
	at := func(now string) Request {
		r := request(b, now)
		r.Working = 35
		return r
	}
	for now, want := range map[string]string{"2025-12-08": "", "2025-12-09": manifest.PruneWorking, "2026-10-31": manifest.PruneWorking, "2026-11-01": manifest.PruneRaw, "2027-05-01": manifest.PruneMetadata} {
		f, err := Find(t.Context(), at(now))
		if err != nil || f.Crawls[0].Policy != want || f.Crawls[1].Policy != "" && now < "2026-12" {
			t.Errorf("at %s: %+v, %v", now, f.Crawls[0], err)
		}
		if c := f.Crawls[0]; want == "" && c.Why != "it is 2 months old; its working data goes after 2025-12-08" {
			t.Errorf("at %s: %s", now, c.Why)
		}
	}
	left := keysOf(t, b)
	for _, c := range []struct {
		now, why string
		goes     []string
	}{
		{"2025-12-09", "retention.working_data_days: 35 days", []string{layout.Working("2025-10", 0, "rank", "inlinks", 0)}},
		{"2025-12-10", "retention.working_data_days: 35 days", nil},
		{"2026-11-01", "retention.raw: 12 months", []string{segment, layout.WARC("2025-10", 0, "p", 0, 1, 0), layout.CDXJ(layout.WARC("2025-10", 0, "p", 0, 1, 0))}},
		{"2026-01-01", "retention.raw: 12 months", nil}, // a policy never narrows
	} {
		f, err := Apply(t.Context(), at(c.now))
		if err != nil || f.Crawls[0].Why != c.why || f.Pending() != (c.goes != nil) {
			t.Fatalf("at %s: %+v, %v", c.now, f.Crawls[0], err)
		}
		now := keysOf(t, b)
		gone := slices.DeleteFunc(slices.Clone(left), func(key string) bool { return slices.Contains(now, key) })
		slices.Sort(c.goes)
		if slices.Sort(gone); !slices.Equal(gone, c.goes) {
			t.Errorf("at %s: %v are gone, want %v", c.now, gone, c.goes)
		}
		left = now
	}
}

func TestAPruneOfWorkingDataThatIsKilledGoesOn(t *testing.T) {
	for _, late := range []bool{false, true} {
		for n := 1; ; n++ {
			b := crawled(t, true, "2025-10")
			sealedAt(t, b, "2025-10", "2025-11-03T10:00:00Z")
			r := request(b, "2025-12-09")
			r.Working = 35
			writes := 0
			r.Bucket = faultstore.New(b, faultstore.Faults{Choose: func(op faultstore.Op, _ string) faultstore.Fault {
				if op == faultstore.Create || op == faultstore.Swap || op == faultstore.Delete {
					writes++
				}
				switch {
				case late && writes == n && (op == faultstore.Create || op == faultstore.Swap || op == faultstore.Delete):
					return faultstore.After
				case writes >= n:
					return faultstore.Before
				}
				return faultstore.None
			}})
			_, err := Apply(t.Context(), r)
			r.Bucket = b
			if _, again := Apply(t.Context(), r); again != nil {
				t.Fatalf("killed at write %d (%v): %v", n, err, again)
			}
			if now := keysOf(t, b); slices.Contains(now, layout.Working("2025-10", 0, "rank", "inlinks", 0)) || !slices.Contains(now, layout.WARC("2025-10", 0, "p", 0, 1, 0)) {
				t.Errorf("killed at write %d: %v", n, now)
			}
			if l, err := ledger.Load(t.Context(), b, "2025-10"); err != nil || l.PruneUnfinished() || l.CheckRaw() != nil || l.CheckWorking() == nil {
				t.Errorf("killed at write %d: %v", n, err)
			}
			if err == nil {
				if n < 6 {
					t.Errorf("only %d writes", n)
				}
				break
			}
		}
	}
}
