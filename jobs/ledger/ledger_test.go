package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/stages"
)

const month = "2026-11"

func newStore(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// put stores a document.
func put(t *testing.T, b store.Bucket, key string, d manifest.Document) {
	t.Helper()
	if _, err := manifest.Create(t.Context(), b, key, d); err != nil {
		t.Fatal(err)
	}
}

// storeCrawl stores a crawl with one sealed round, a round that is being fetched, and a revision
// of its politeness.
func storeCrawl(t *testing.T, b store.Bucket, crawl string) {
	t.Helper()
	put(t, b, layout.CrawlManifest(crawl), &manifest.Crawl{Crawl: crawl, Config: "user_agent: x\n"})
	put(t, b, layout.Politeness(crawl), &manifest.Politeness{Revision: 3, Config: "politeness: {delay: 2s}\n"})
	for round, id := range []string{"p0", "p1"} {
		put(t, b, layout.PlanManifest(crawl, round, id), &manifest.Plan{ID: id, Crawl: crawl, Round: round, Buckets: 1, Partitions: []manifest.PlanPartition{{}}})
		put(t, b, layout.Checkpoint(crawl, round, 0), &manifest.Checkpoint{Plan: id, Epoch: 1, Released: true})
	}
	put(t, b, layout.Result(crawl, 0, "fetch", 0), &manifest.Result{Stage: "fetch", Plan: "p0"})
	put(t, b, layout.Inputs(crawl, 0, "merge"), &manifest.Inputs{Stage: "merge", Plan: "p0"})
	put(t, b, layout.Sealed(crawl, 0), &manifest.Sealed{Crawl: crawl, Plan: "p0"})
}

// describeEntries describes the entries of a ledger without times and digests.
func describeEntries(l *ledger.Ledger) []string {
	var all []string
	for _, e := range l.Entries() {
		round := ""
		if e.Round != nil {
			round = fmt.Sprint(*e.Round)
		}
		all = append(all, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %t", e.What, round, e.Stage, e.Plan, e.Rebuilt)), " "))
	}
	return all
}

func load(t *testing.T, b store.Bucket, crawl string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Load(t.Context(), b, crawl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rebuilt describes the entries of a rebuilt ledger of the crawl that storeCrawl stores.
var rebuilt = []string{
	"crawl true", "politeness true", "plan 0 p0 true", "started 0 p0 true", "fetching 0 true", "frozen 0 merge true", "sealed 0 true",
	"plan 1 p1 true", "started 1 p1 true", "fetching 1 true",
}

// A ledger that another process makes while it is read is not lost.
func TestALedgerThatIsMadeMeanwhileIsNotLost(t *testing.T) {
	b := newStore(t)
	storeCrawl(t, b, month)
	ledgertest.Make(t, b, month)
	late := &lateLedger{Bucket: b}
	l, err := ledger.Load(t.Context(), late, month)
	if err != nil || !late.read {
		t.Fatalf("read %t: %v", late.read, err)
	}
	if d := cmp.Diff(rebuilt, describeEntries(l)); d != "" || !l.Stored {
		t.Errorf("stored %t: %s", l.Stored, d)
	}
	if err := b.Delete(t.Context(), layout.Ledger(month)); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Load(t.Context(), b, month); !errors.Is(err, ledger.ErrLost) {
		t.Errorf("a deleted ledger: %v", err)
	}
}

// lateLedger is a store in which the ledger appears after it was read first.
type lateLedger struct {
	store.Bucket
	read bool
}

func (l *lateLedger) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	if key == layout.Ledger(month) && !l.read {
		l.read = true
		return nil, "", store.ErrNotFound
	}
	return l.Bucket.Get(ctx, key, limit)
}

func TestACrawlWhoseCreationWasInterruptedHasAnEmptyLedger(t *testing.T) {
	b := newStore(t)
	put(t, b, layout.CrawlManifest(month), &manifest.Crawl{Crawl: month})
	if l := load(t, b, month); l.Stored || len(l.Entries()) > 0 {
		t.Errorf("stored %t: %q", l.Stored, describeEntries(l))
	}
	seal := func(*ledger.Ledger) ([]manifest.Entry, error) {
		return []manifest.Entry{{What: manifest.EntrySealed}}, nil
	}
	if _, err := ledgertest.Writer().Append(t.Context(), b, month, seal); !errors.Is(err, stages.ErrPermanent) {
		t.Errorf("Append to a crawl without a ledger: %v", err)
	}
	if err := ledgertest.Writer().Found(t.Context(), b, month); err != nil {
		t.Fatal(err)
	}
	if l := load(t, b, month); !l.Stored || len(l.Entries()) != 1 {
		t.Errorf("founded: stored %t: %q", l.Stored, describeEntries(l))
	}
}

func TestAppendsAtOnceAreAllInTheChain(t *testing.T) {
	b := newStore(t)
	storeCrawl(t, b, month)
	ledgertest.Make(t, b, month)
	var group sync.WaitGroup
	for round := range 8 {
		group.Go(func() {
			_, err := ledgertest.Writer().Append(t.Context(), b, month, func(l *ledger.Ledger) ([]manifest.Entry, error) {
				if l.Newest(manifest.EntrySealed, round+10) != nil {
					return nil, nil
				}
				return []manifest.Entry{ledger.Named(manifest.EntrySealed, round+10, "k", "d")}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	l := load(t, b, month)
	for round := range 8 {
		if l.Newest(manifest.EntrySealed, round+10) == nil {
			t.Errorf("round %d is not in the ledger", round+10)
		}
	}
	if n := len(l.Entries()); n != len(rebuilt)+8 {
		t.Errorf("%d entries", n)
	}
}

func TestAForkedOrEditedLedgerIsRefused(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"an entry less": func(body []byte) []byte {
			at := bytes.Index(body, []byte("  {\n   \"n\": 2,"))
			return append(body[:at:at], body[bytes.Index(body, []byte("  {\n   \"n\": 3,")):]...)
		},
		"another plan": func(body []byte) []byte {
			return bytes.Replace(body, []byte(`"plan": "p0"`), []byte(`"plan": "p9"`), 1)
		},
		"another digest": func(body []byte) []byte { return bytes.Replace(body, []byte(`"sha256": "`), []byte(`"sha256": "0`), 1) },
	} {
		b := newStore(t)
		storeCrawl(t, b, month)
		ledgertest.Make(t, b, month)
		key := layout.Ledger(month)
		body, version, err := b.Get(t.Context(), key, manifest.MaxBytes)
		if err != nil {
			t.Fatal(err)
		}
		changed := change(bytes.Clone(body))
		if bytes.Equal(changed, body) {
			t.Fatalf("%s: nothing was changed", name)
		}
		if _, err := store.SwapBytes(t.Context(), b, key, changed, version); err != nil {
			t.Fatal(err)
		}
		if _, err := ledger.Load(t.Context(), b, month); !errors.Is(err, manifest.ErrCorrupt) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatTheLedgerNamesIsMissed deletes or changes each object that a ledger names.
func TestWhatTheLedgerNamesIsMissed(t *testing.T) {
	fetched := layout.StageDir(month, 1, string(stages.Fetch))
	for _, tc := range []struct {
		key    string // the deleted object
		named  string // the object that the error names; "" means that it names the deleted object
		remedy string
	}{
		{layout.CrawlManifest(month), "", "restore it from a copy"},
		{layout.Politeness(month), "", "--config FILE"},
		{layout.PlanManifest(month, 0, "p0"), "", "restore it from a copy"},
		{layout.Inputs(month, 0, "merge"), "", "--rebuild"},
		{layout.Sealed(month, 0), "", "--rebuild"},
		{layout.Checkpoint(month, 1, 0), fetched, "restore it from a copy"},
	} {
		for _, changed := range []bool{false, true} {
			if changed && tc.named != "" {
				continue
			}
			b := newStore(t)
			storeCrawl(t, b, month)
			ledgertest.Make(t, b, month)
			l := load(t, b, month)
			for lost, err := range l.Losses(t.Context(), b) {
				t.Fatalf("before: %v, %v", lost, err)
			}
			body, version, err := b.Get(t.Context(), tc.key, manifest.MaxBytes)
			if err == nil && changed {
				_, err = store.SwapBytes(t.Context(), b, tc.key, bytes.Replace(body, []byte("{\n"), []byte("{\n\n"), 1), version)
			} else if err == nil {
				err = b.Delete(t.Context(), tc.key)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := tc.named
			if want == "" {
				want = tc.key
			}
			var found []string
			for lost, err := range l.Losses(t.Context(), b) {
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, lost.Object)
				if !errors.Is(lost, ledger.ErrLost) || !errors.Is(lost, stages.ErrPermanent) || lost.Changed != changed ||
					!strings.Contains(lost.Error(), tc.remedy) || strings.Contains(lost.Error(), "make one with") {
					t.Errorf("%s: %v", tc.key, lost)
				}
			}
			if !slices.Equal(found, []string{want}) {
				t.Errorf("%s (changed: %t): found %q", tc.key, changed, found)
			}
		}
	}
}

func TestALostLedgerHeadOrActiveIsMadeAnew(t *testing.T) {
	for _, key := range []string{layout.Ledger(month), layout.Crawls(), layout.Active()} {
		b := newStore(t)
		storeCrawl(t, b, month)
		ledgertest.Make(t, b, month)
		// The entry that follows the rebuilt ones proves that a missing head once existed.
		w := ledgertest.Writer()
		if _, err := w.Append(t.Context(), b, month, func(*ledger.Ledger) ([]manifest.Entry, error) {
			return []manifest.Entry{ledger.Planning(2, w.Clock.Now())}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		missed := func() error {
			head, _, err := ledger.LoadHead(t.Context(), b, month)
			if err != nil {
				return err
			}
			l, err := ledger.Load(t.Context(), b, month)
			if err == nil {
				err = ledger.CheckHead(l, head)
			}
			if err != nil {
				return err
			}
			return ledger.CheckActive(t.Context(), b, head, month)
		}
		var lost *ledger.Lost
		if err := missed(); !errors.As(err, &lost) || lost.Object != key || !strings.Contains(err.Error(), "--rebuild") {
			t.Errorf("%s: %v", key, err)
		}
		made, err := w.Rebuild(t.Context(), b, month, []string{month}, ledgertest.NoCopy)
		if err != nil || !slices.Equal(made, []string{key}) {
			t.Errorf("%s: made %q, %v", key, made, err)
		}
		if err := missed(); err != nil {
			t.Errorf("%s, made anew: %v", key, err)
		}
	}
	b := newStore(t)
	storeCrawl(t, b, month)
	ledgertest.Make(t, b, month)
	if err := b.Delete(t.Context(), layout.Active()); err != nil {
		t.Fatal(err)
	}
	if _, err := ledgertest.Writer().Rebuild(t.Context(), b, month, []string{month}, ledgertest.NoCopy); err != nil {
		t.Fatal(err)
	}
	var a manifest.Active
	if _, _, err := manifest.Load(t.Context(), b, layout.Active(), &a); err != nil || a.Done || a.Crawl != month || a.Round != 1 {
		t.Errorf("the round that was being fetched is not claimed: %+v, %v", a, err)
	}
}

func TestACrawlThatIsGoneIsNotTakenForANewOne(t *testing.T) {
	b := newStore(t)
	if _, err := ledger.Load(t.Context(), b, month); !errors.Is(err, ledger.ErrNoCrawl) {
		t.Errorf("a crawl that never was: %v", err)
	}
	storeCrawl(t, b, month)
	ledgertest.Make(t, b, month)
	for _, key := range []string{layout.CrawlManifest(month), layout.Ledger(month)} {
		if err := b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		_, _, err := ledger.LoadCrawl(t.Context(), b, month)
		if !errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrNoCrawl) || strings.Contains(err.Error(), "crawlbatch plan") {
			t.Errorf("without %s: %v", key, err)
		}
	}
}

// TestALedgerMadeAnewFollowsThePlanThatWasFetched rebuilds the ledger of a crawl whose round has two
// plans, because the process that started the round was killed before it deleted the replaced plan.
func TestALedgerMadeAnewFollowsThePlanThatWasFetched(t *testing.T) {
	b := newStore(t)
	put(t, b, layout.CrawlManifest(month), &manifest.Crawl{Crawl: month})
	for _, id := range []string{"p0", "p1"} {
		put(t, b, layout.PlanManifest(month, 0, id), &manifest.Plan{ID: id, Crawl: month, Buckets: 1, Partitions: []manifest.PlanPartition{{}}})
	}
	put(t, b, layout.Checkpoint(month, 0, 0), &manifest.Checkpoint{Plan: "p1", Epoch: 1})
	put(t, b, layout.Taken(month, 0, 0), &manifest.Taken{Plan: "p1"})
	ledgertest.Make(t, b, month)
	choice, started := load(t, b, month).Plan(0)
	if choice == nil || choice.Plan != "p1" || !started {
		t.Errorf("%+v, started %t", choice, started)
	}
}

// TestALedgerMadeAnewFindsTheRoundsAfterManyLostOnes rebuilds the ledger of a crawl that has lost
// several rounds in a row. Of the newest round, only a WARC file is left.
func TestALedgerMadeAnewFindsTheRoundsAfterManyLostOnes(t *testing.T) {
	b := newStore(t)
	put(t, b, layout.CrawlManifest(month), &manifest.Crawl{Crawl: month})
	for _, round := range []int{0, 4, 12} {
		put(t, b, layout.PlanManifest(month, round, "p"), &manifest.Plan{ID: "p", Crawl: month, Round: round})
	}
	if _, err := store.CreateBytes(t.Context(), b, layout.WARC(month, 14, "p", 0, 1, 0), []byte("WARC")); err != nil {
		t.Fatal(err)
	}
	ledgertest.Make(t, b, month)
	l := load(t, b, month)
	if l.Rounds() != 15 {
		t.Errorf("%d rounds", l.Rounds())
	}
	for round := range 16 {
		choice, _ := l.Plan(round)
		err := l.NoPlan(round)
		if planned := round == 0 || round == 4 || round == 12; planned != (choice != nil) {
			t.Errorf("round %d: plan %+v", round, choice)
		} else if lost := errors.Is(err, ledger.ErrLost); !planned && lost != (round < 15) {
			t.Errorf("round %d: %v", round, err)
		}
	}
}

// TestAHeadThatWasChangedOrPutBackIsRefusedAndMadeAnew changes a digit of the head. It also puts
// back a head that was copied before the second crawl was created.
func TestAHeadThatWasChangedOrPutBackIsRefusedAndMadeAnew(t *testing.T) {
	b := newStore(t)
	w := ledgertest.Writer()
	older := ""
	for _, crawl := range []string{"2026-10", month} {
		put(t, b, layout.CrawlManifest(crawl), &manifest.Crawl{Crawl: crawl})
		if err := w.Found(t.Context(), b, crawl); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Append(t.Context(), b, crawl, func(*ledger.Ledger) ([]manifest.Entry, error) {
			return []manifest.Entry{ledger.Planning(0, w.Clock.Now())}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if body, _, err := b.Get(t.Context(), layout.Crawls(), manifest.MaxBytes); err != nil {
			t.Fatal(err)
		} else if older == "" {
			older = string(body)
		}
	}
	body, _, err := b.Get(t.Context(), layout.Crawls(), manifest.MaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	for name, now := range map[string]string{"changed": strings.Replace(string(body), "2026-10", "2026-09", 1), "put back": older} {
		if err := b.Delete(t.Context(), layout.Crawls()); err != nil {
			t.Fatal(err)
		}
		if _, err := store.CreateBytes(t.Context(), b, layout.Crawls(), []byte(now)); err != nil {
			t.Fatal(err)
		}
		err := ledger.CheckNames(t.Context(), b, "2026-10")
		if lost, ok := errors.AsType[*ledger.Lost](err); !ok || lost.Object != layout.Crawls() || !strings.Contains(err.Error(), "--month 2026-10 --rebuild") {
			t.Errorf("%s: %v", name, err)
		}
		if made, err := w.Rebuild(t.Context(), b, "2026-10", []string{"2026-10", month}, ledgertest.NoCopy); err != nil || !slices.Equal(made, []string{layout.Crawls()}) {
			t.Errorf("%s: made %q, %v", name, made, err)
		}
		if err := ledger.CheckNames(t.Context(), b, "2026-10"); err != nil {
			t.Errorf("%s, made anew: %v", name, err)
		}
	}
	// A rebuilt head names a crawl that has only its ledger left.
	for _, key := range []string{layout.Crawls(), layout.CrawlManifest(month)} {
		if err := b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if made, err := w.Rebuild(t.Context(), b, "2026-10", []string{"2026-10"}, ledgertest.NoCopy); err != nil || !slices.Equal(made, []string{layout.Crawls()}) {
		t.Errorf("made %q, %v", made, err)
	}
	if head, _, err := ledger.LoadHead(t.Context(), b, "2026-10"); err != nil || !head.Names(month) {
		t.Errorf("the head forgets a crawl without crawl.json: %+v, %v", head, err)
	}
}

// listHook is a store that calls do once, at the first listing of rounds.
type listHook struct {
	store.Bucket
	do func()
}

func (l *listHook) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	if do := l.do; do != nil && strings.HasPrefix(prefix, layout.CrawlDir(month)+"round=") {
		l.do = nil
		do()
	}
	return l.Bucket.List(ctx, prefix)
}

// TestARebuildLeavesTheLedgerThatAnotherProcessWritesMeanwhile starts a round while Rebuild looks
// at the rounds. The test then damages the ledger, and lets a second Rebuild mend the ledger while
// the first Rebuild copies it.
func TestARebuildLeavesTheLedgerThatAnotherProcessWritesMeanwhile(t *testing.T) {
	b := newStore(t)
	w := ledgertest.Writer()
	put(t, b, layout.CrawlManifest(month), &manifest.Crawl{Crawl: month})
	if err := w.Found(t.Context(), b, month); err != nil {
		t.Fatal(err)
	}
	add := func(e manifest.Entry) {
		if _, err := w.Append(t.Context(), b, month, func(*ledger.Ledger) ([]manifest.Entry, error) { return []manifest.Entry{e}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	round := 0
	put(t, b, layout.PlanManifest(month, 0, "p"), &manifest.Plan{ID: "p", Crawl: month, Buckets: 1, Partitions: []manifest.PlanPartition{{}}})
	live := &listHook{b, func() {
		add(manifest.Entry{What: manifest.EntryStarted, Round: &round, Plan: "p"})
		put(t, b, layout.Checkpoint(month, 0, 0), &manifest.Checkpoint{Plan: "p", Epoch: 1})
	}}
	made, err := w.Rebuild(t.Context(), live, month, []string{month}, ledgertest.NoCopy)
	if want := []string{"crawl false", "started 0 p false"}; err != nil || len(made) > 0 || !slices.Equal(describeEntries(load(t, b, month)), want) {
		t.Errorf("beside a run: made %q, %v: %q", made, err, describeEntries(load(t, b, month)))
	}
	body, version, err := b.Get(t.Context(), layout.Ledger(month), manifest.MaxBytes)
	if err == nil {
		_, err = store.SwapBytes(t.Context(), b, layout.Ledger(month), bytes.Replace(body, []byte(`"plan": "p"`), []byte(`"plan": "q"`), 1), version)
	}
	if err != nil {
		t.Fatal(err)
	}
	made, err = w.Rebuild(t.Context(), b, month, []string{month}, func(context.Context, store.Bucket, string) (string, error) {
		if _, err := ledger.Load(t.Context(), b, month); err == nil {
			t.Fatal("a good ledger is replaced")
		}
		if made, err := w.Rebuild(t.Context(), b, month, []string{month}, ledgertest.NoCopy); err != nil || len(made) != 1 {
			t.Errorf("the other rebuild made %q, %v", made, err)
		}
		add(ledger.Planning(1, w.Clock.Now()))
		return "", nil
	})
	if _, ok := load(t, b, month).Now(1); err != nil || len(made) > 0 || !ok {
		t.Errorf("beside another rebuild: made %q, %v: %q", made, err, describeEntries(load(t, b, month)))
	}
}
