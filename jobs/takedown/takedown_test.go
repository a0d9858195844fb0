package takedown

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	names "crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// An object gets its new content only in place of the content that it had, and a second time changes
// nothing.
func TestAnObjectIsChangedOnlyFromItsOldContent(t *testing.T) {
	old, renewed := []byte("old"), []byte("new")
	for name, c := range map[string]struct {
		have, want string
		o          manifest.ChangedObject
		err        error
	}{
		"old":               {"old", "new", manifest.ChangedObject{Old: manifest.Digest(old), New: manifest.Digest(renewed)}, nil},
		"new":               {"new", "new", manifest.ChangedObject{Old: manifest.Digest(old), New: manifest.Digest(renewed)}, nil},
		"somebody else's":   {"else", "else", manifest.ChangedObject{Old: manifest.Digest(old), New: manifest.Digest(renewed)}, manifest.ErrCorrupt},
		"absent, but had":   {"", "", manifest.ChangedObject{Old: manifest.Digest(old), New: manifest.Digest(renewed)}, manifest.ErrCorrupt},
		"created":           {"", "new", manifest.ChangedObject{New: manifest.Digest(renewed)}, nil},
		"deleted":           {"old", "", manifest.ChangedObject{Old: manifest.Digest(old)}, nil},
		"deleted before":    {"", "", manifest.ChangedObject{Old: manifest.Digest(old)}, nil},
		"deleted, but else": {"else", "else", manifest.ChangedObject{Old: manifest.Digest(old)}, manifest.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if c.have != "" {
				if _, err := store.CreateBytes(ctx, b, "key", []byte(c.have)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := store.CreateBytes(ctx, b, layout.Staged("id", 1), renewed); err != nil {
				t.Fatal(err)
			}
			r := &Request{Bucket: b}
			c.o.Key, c.o.Staged = "key", 1
			if err := r.changeObject(ctx, "id", &c.o); !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			got, _, err := b.Get(ctx, "key", 100)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("the object is %q, want %q", got, c.want)
			}
		})
	}
}

func TestRecordedRowsAreRenumbered(t *testing.T) {
	rows := roaring.BitmapOf(0, 1, 3, 4, 7, 9)
	body, err := rows.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	k := &manifest.Checkpoint{Recorded: body}
	if err := compactRows(k, []int32{1, 2, 7}); err != nil { // row 2 had no outcome
		t.Fatal(err)
	}
	got, err := k.RecordedRows()
	if err != nil {
		t.Fatal(err)
	}
	if want := []uint32{0, 1, 2, 6}; !slices.Equal(got.ToArray(), want) {
		t.Errorf("rows %v, want %v", got.ToArray(), want)
	}
}

func TestCountsFollowTheRows(t *testing.T) {
	counts := []manifest.Count{{Name: "bytes", N: 9}, {Name: "links", N: 7}, {Name: "outcome.gone", N: 2}, {Name: "outcome.ok", N: 5}, {Name: "urls", N: 7}}
	lost := map[string]int64{stages.FileFetches: 3, stages.FileLinks: 4}
	recounts := map[string]int64{"bytes": 2, "outcome.ok": 1, "outcome.gone": 2}
	got := lower(slices.Clone(counts), stages.Fetch, lost, recounts)
	want := []manifest.Count{{Name: "bytes", N: 7}, {Name: "links", N: 3}, {Name: "outcome.ok", N: 4}, {Name: "urls", N: 4}}
	if !slices.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
}

// Without takedown.json, the new contents are the only ones if a ledger says that objects have changed. So
// they stay.
func TestALostTakedownKeepsItsNewContents(t *testing.T) {
	ctx := t.Context()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Bucket: b, Clock: stages.SystemClock{}, Version: "test"}
	staged := layout.Staged("id", 1)
	if _, err := store.CreateBytes(ctx, b, staged, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.Create(ctx, b, layout.CrawlManifest("2026-11"), &manifest.Crawl{Crawl: "2026-11"}); err != nil {
		t.Fatal(err)
	}
	if err := r.writer().Found(ctx, b, "2026-11"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.writer().Append(ctx, b, "2026-11", func(*ledger.Ledger) ([]manifest.Entry, error) {
		return []manifest.Entry{{What: manifest.EntryTakedown, Object: layout.Removal("2026-11", strings.Repeat("0", 64)), SHA256: strings.Repeat("0", 64)}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.finish(ctx, &roundstate.Hold{}); !errors.Is(err, manifest.ErrCorrupt) {
		t.Errorf("error %v, want one that names takedown.json", err)
	}
	if err := r.abandon(ctx, &roundstate.Hold{}, "id", errors.New("the store failed")); err == nil || strings.Contains(err.Error(), "changed only the list") {
		t.Errorf("abandon says %v, although objects have changed", err)
	}
	if there, err := manifest.Exists(ctx, b, staged); err != nil || !there {
		t.Errorf("the new content is there: %t, %v", there, err)
	}
}

// A mistyped store has no crawl, so a takedown in it would be none.
func TestAStoreWithoutACrawlIsRefused(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Bucket: b, Domains: []string{"gone.test"}, Reason: "asked", Secret: "0123456789abcdef", Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir()}
	if _, err := Find(t.Context(), r); !errors.Is(err, ledger.ErrNoCrawl) {
		t.Errorf("Find: %v", err)
	}
	if _, err := Apply(t.Context(), r); !errors.Is(err, ledger.ErrNoCrawl) {
		t.Errorf("Apply: %v", err)
	}
	for o, err := range b.List(t.Context(), "") {
		t.Errorf("the store has %s (%v)", o.Key, err)
	}
}

// The takedown that is finished deletes its own new contents only, and takedown.json only if it is its own.
func TestATakedownLeavesThoseOfOthers(t *testing.T) {
	ctx := t.Context()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Bucket: b}
	for _, id := range []string{"mine", "other"} {
		if _, err := store.CreateBytes(ctx, b, layout.Staged(id, 1), []byte(id)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := manifest.Create(ctx, b, layout.Takedown(), &manifest.Removing{ID: "other"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.removeStaged(ctx, layout.TakedownDir+"mine/"), r.removePending(ctx, "mine")); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{layout.Staged("mine", 1): false, layout.Staged("other", 1): true, layout.Takedown(): true} {
		if there, err := manifest.Exists(ctx, b, key); err != nil || there != want {
			t.Errorf("%s is there: %t, %v; want %t", key, there, err, want)
		}
	}
}

// founded makes a store with crawls that have no round, and a request for a takedown in it.
func founded(t *testing.T, crawls ...string) *Request {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.UserAgent = "bot/1.0 (+https://example.org/bot)"
	text, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Bucket: b, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir()}
	for _, crawl := range crawls {
		if _, err := manifest.Create(t.Context(), b, layout.CrawlManifest(crawl), &manifest.Crawl{Crawl: crawl, Config: text}); err != nil {
			t.Fatal(err)
		}
		if err := r.writer().Found(t.Context(), b, crawl); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// takeOver claims active.json for a takedown.
func (r *Request) takeOver(t *testing.T) *roundstate.Hold {
	t.Helper()
	h, err := r.hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A takedown deletes the remains of one that died. If it was suspended meanwhile, another one may have taken over and
// have stored new contents, which the first one leaves alone when it wakes up.
func TestATakedownThatIsOvertakenLeavesTheNewContentsOfItsSuccessor(t *testing.T) {
	for name, before := range map[string]bool{"before it checks its claim": true, "just after that": false} {
		t.Run(name, func(t *testing.T) {
			ctx, r := t.Context(), founded(t, "2026-11")
			b := r.Bucket
			made := func(keys ...string) {
				for _, key := range keys {
					if _, err := store.CreateBytes(ctx, b, key, []byte("{}")); err != nil {
						t.Fatal(err)
					}
				}
			}
			dead := []string{layout.Staged("dead", 1), layout.Removal("2026-11", strings.Repeat("0", 64))}
			successors := []string{layout.Staged("later", 1), layout.Removal("2026-11", strings.Repeat("1", 64))}
			made(dead...)
			other := &ledgertest.Overtaken{Bucket: b, Key: layout.Active()}
			r.Bucket = other
			h := r.takeOver(t)
			overtake := func() {
				(&Request{Bucket: b, Clock: stages.SystemClock{}, Version: "test"}).takeOver(t)
				made(successors...)
			}
			if before {
				overtake()
			} else {
				other.Act = overtake
			}
			if _, err := r.finish(ctx, h); before != errors.Is(err, roundstate.ErrBusy) || !before && err != nil {
				t.Errorf("%v", err)
			}
			for _, key := range successors {
				if there, err := manifest.Exists(ctx, b, key); err != nil || !there {
					t.Errorf("%s of the successor is there: %t, %v", key, there, err)
				}
			}
			for _, key := range dead {
				if there, err := manifest.Exists(ctx, b, key); err != nil || there != before {
					t.Errorf("%s of the dead takedown is there: %t, %v", key, there, err)
				}
			}
		})
	}
}

// begin stores the list and the takedown.json of a takedown whose only change is a document of round 0.
func (r *Request) begin(t *testing.T, id string) manifest.RemovalName {
	t.Helper()
	round := 0
	list := &manifest.Removal{Crawl: "2026-11", At: id, Entries: []manifest.Entry{{What: manifest.EntrySealed, Round: &round, Object: layout.Sealed("2026-11", 0), SHA256: id}}}
	body, err := manifest.Encode(list)
	if err != nil {
		t.Fatal(err)
	}
	digest := manifest.ContentDigest(body)
	n := manifest.RemovalName{Crawl: list.Crawl, Object: layout.Removal(list.Crawl, digest), SHA256: digest}
	if _, err := store.CreateBytes(t.Context(), r.Bucket, n.Object, body); err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.Create(t.Context(), r.Bucket, layout.Takedown(), &manifest.Removing{ID: id, Crawls: []manifest.RemovalName{n}}); err != nil {
		t.Fatal(err)
	}
	return n
}

// suspended is the store of a process that is suspended just before it first appends to the ledger of 2026-11.
type suspended struct {
	store.Bucket
	meanwhile func()
}

func (s *suspended) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	if act := s.meanwhile; act != nil && key == layout.Ledger("2026-11") && old != "" {
		s.meanwhile = nil
		act()
	}
	return s.Bucket.Swap(ctx, key, body, size, old)
}

// A takedown is suspended before it appends to a ledger. Another one takes over, ends it and begins its own changes. The
// first one leaves the ledger to it when it wakes up.
func TestATakedownEndsOnlyItsOwnEntry(t *testing.T) {
	for _, begun := range []bool{false, true} {
		t.Run(fmt.Sprintf("begun %t", begun), func(t *testing.T) {
			ctx, first := t.Context(), founded(t, "2026-11")
			later := &Request{Bucket: first.Bucket, Clock: stages.SystemClock{}, Version: "test"}
			n := first.begin(t, "1")
			if begun {
				if err := first.writer().BeginTakedown(ctx, first.Bucket, n.Crawl, n.Object, n.SHA256); err != nil {
					t.Fatal(err)
				}
			}
			var second *roundstate.Hold
			h := first.takeOver(t)
			first.Bucket = &suspended{first.Bucket, func() {
				second = later.takeOver(t)
				if did, err := later.finish(ctx, second); err != nil || !did {
					t.Fatalf("%t, %v", did, err)
				}
				n := later.begin(t, "2")
				if err := later.writer().BeginTakedown(ctx, later.Bucket, n.Crawl, n.Object, n.SHA256); err != nil {
					t.Fatal(err)
				}
			}}
			if _, err := first.finish(ctx, h); !errors.Is(err, roundstate.ErrBusy) {
				t.Errorf("the first one says %v", err)
			}
			if l, err := ledger.Load(ctx, later.Bucket, "2026-11"); err != nil || !l.TakedownUnfinished() {
				t.Errorf("the first one ended the other, %v", err)
			}
			if did, err := later.finish(ctx, second); err != nil || !did {
				t.Errorf("the other one: %t, %v", did, err)
			}
			l, err := ledger.Load(ctx, later.Bucket, "2026-11")
			if err != nil {
				t.Fatal(err)
			}
			if sealed := l.Newest(manifest.EntrySealed, 0); l.TakedownUnfinished() || sealed.SHA256 != "2" {
				t.Errorf("unfinished %t, and the ledger names the digest %s", l.TakedownUnfinished(), sealed.SHA256)
			}
		})
	}
}

// losing is a store in which somebody deletes the lists of changed objects as soon as takedown.json names them.
type losing struct{ store.Bucket }

func (l losing) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	v, err := l.Bucket.Create(ctx, key, body, size)
	if err == nil && key == layout.Takedown() {
		for o, listed := range l.List(ctx, layout.RemovalDir("2026-11")) {
			err = errors.Join(err, listed, l.Delete(ctx, o.Key))
		}
	}
	return v, err
}

func TestATakedownThatChangedNothingIsNoSuccess(t *testing.T) {
	ctx, r := t.Context(), founded(t, "2026-11")
	b, key := r.Bucket, "quarantine/answer.json"
	if _, err := store.CreateBytes(ctx, b, key, []byte(`{"url": "http://gone.test/"}`)); err != nil {
		t.Fatal(err)
	}
	r.Domains, r.Reason, r.Secret = []string{"gone.test"}, "asked", "0123456789abcdef"
	r.Bucket = losing{b}
	if f, err := Apply(ctx, *r); !errors.Is(err, roundstate.ErrBusy) || !strings.Contains(err.Error(), "give it again") {
		t.Errorf("found %+v, %v", f, err)
	}
	if there, err := manifest.Exists(ctx, b, key); err != nil || !there {
		t.Fatalf("the object was deleted: %t, %v", there, err)
	}
	r.Bucket = b
	if f, err := Apply(ctx, *r); err != nil || f.Objects() != 1 {
		t.Errorf("again: %+v, %v", f, err)
	}
	if there, err := manifest.Exists(ctx, b, key); err != nil || there {
		t.Errorf("the object is there: %t, %v", there, err)
	}
}

// A whole takedown runs while the entry that chooses a plan is on its way to the store.
func TestAPlanThatIsChosenLateDoesNotFollowATakedown(t *testing.T) {
	ctx, r := t.Context(), founded(t, "2026-11", "2026-12")
	r.Domains, r.Reason, r.Secret = []string{"gone.test"}, "asked", "0123456789abcdef"
	list := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(list, []byte("http://a.test/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	from, err := source.Files(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.UserAgent = "bot/1.0 (+https://example.org/bot)"
	b := &suspended{r.Bucket, func() {
		if f, err := Apply(ctx, *r); err != nil {
			t.Errorf("%+v, %v", f, err)
		}
	}}
	_, _, err = jobs.Plan(ctx, jobs.PlanRequest{
		Bucket: b, Crawl: "2026-11", Sources: []source.Source{from}, Config: cfg, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
	})
	if !errors.Is(err, roundstate.ErrBusy) || b.meanwhile != nil {
		t.Errorf("plan: %v", err)
	}
	if planned, err := jobs.Planned(ctx, r.Bucket, "2026-11"); planned || err != nil {
		t.Errorf("the plan was chosen: %t, %v", planned, err)
	}
}

// Without active.json, takedown.json and the ledgers say that a takedown was interrupted.
func TestARebuiltActiveKnowsAnInterruptedTakedown(t *testing.T) {
	for _, begun := range []bool{false, true} {
		t.Run(fmt.Sprintf("begun %t", begun), func(t *testing.T) {
			ctx, r := t.Context(), founded(t, "2026-10", "2026-11")
			r.takeOver(t)
			n, err := r.begin(t, "1"), error(nil)
			if begun {
				err = r.writer().BeginTakedown(ctx, r.Bucket, n.Crawl, n.Object, n.SHA256)
			}
			if err == nil {
				err = r.Bucket.Delete(ctx, layout.Active())
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.writer().Rebuild(ctx, r.Bucket, "2026-10", []string{"2026-10", "2026-11"}, ledgertest.NoCopy); err != nil {
				t.Fatal(err)
			}
			if err := roundstate.CheckNoPruning(ctx, r.Bucket, "2026-10"); !errors.Is(err, roundstate.ErrBusy) || !strings.Contains(err.Error(), "crawlbatch takedown --resume") {
				t.Errorf("a round may be planned: %v", err)
			}
			if did, err := Resume(ctx, *r); err != nil || !did {
				t.Errorf("%t, %v", did, err)
			}
			if err := errors.Join(roundstate.CheckNoPruning(ctx, r.Bucket, "2026-10"), ledger.CheckTakedown(ctx, r.Bucket)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestALargeObjectIsChangedWithoutHoldingIt(t *testing.T) {
	ctx, size := t.Context(), 32<<20
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	old, renewed := bytes.Repeat([]byte("a"), size), bytes.Repeat([]byte("b"), size)
	for key, body := range map[string][]byte{"key": old, layout.Staged("id", 1): renewed} {
		if _, err := store.CreateBytes(ctx, b, key, body); err != nil {
			t.Fatal(err)
		}
	}
	o := &manifest.ChangedObject{Key: "key", Old: manifest.Digest(old), New: manifest.Digest(renewed), Staged: 1}
	scratch := t.TempDir()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := (&Request{Bucket: b, Scratch: scratch}).changeObject(ctx, "id", o); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > uint64(size)/2 {
		t.Errorf("changing an object of %d MiB took %d MiB of memory", size>>20, n>>20)
	}
	if got, _, err := b.Get(ctx, "key", int64(size)); err != nil || !bytes.Equal(got, renewed) {
		t.Errorf("the object has not its new content: %v", err)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("%d scratch files are left, %v", len(left), err)
	}
}

// The last crawl is a reparse: the months must not get its clusters.
func TestMonthsShareTheirClustersAndAReparseHasItsOwn(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &work{r: &Request{Bucket: b}}
	for _, name := range []string{"2026-10", "2026-10r1", "2026-11", "2026-11r1"} {
		w.crawls = append(w.crawls, &crawl{name: name})
	}
	if err := w.findClusters(t.Context()); err != nil {
		t.Fatal(err)
	}
	month, first, again, second := w.crawls[0].clusters, w.crawls[1].clusters, w.crawls[2].clusters, w.crawls[3].clusters
	if month == nil || month != again || first == nil || second == nil || month == first || month == second || first == second {
		t.Errorf("clusters %p and %p of months, %p and %p of reparses", month, again, first, second)
	}
}

// The crawl's rules remove www., so a URL that a person names with it is stored without.
func TestAURLIsRecognizedWithTheRulesOfItsCrawl(t *testing.T) {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.UserAgent, cfg.Plan.Canonical.WWW = "bot/1.0 (+https://example.org/bot)", true
	text, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	crawl := &manifest.Crawl{Header: manifest.Header{Version: "test"}, Crawl: "2026-11", Config: text}
	if _, err := manifest.Create(t.Context(), b, layout.CrawlManifest("2026-11"), crawl); err != nil {
		t.Fatal(err)
	}
	m, err := (&Request{Bucket: b, URLs: []string{"http://www.gone.test/a"}}).matcher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]bool{"http://gone.test/a": true, "http://www.gone.test/a": true, "http://gone.test/b": false} {
		if got := m.URL(url); got != want {
			t.Errorf("URL(%q) = %v, want %v", url, got, want)
		}
	}
}

// A month was pruned as a whole, but one of its WARC files stays because a later month refers to it. A row of the
// later month is about another URL, and loses its pointer to the record of the target.
func TestRecordsOfAPrunedMonthGoBeforeTheRowsThatReferToThem(t *testing.T) {
	ctx := t.Context()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const old, later = "2026-10", "2027-11"
	m, err := names.New([]string{"http://a.test/gone"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{old, later} {
		if _, err := manifest.Create(ctx, b, layout.CrawlManifest(name), &manifest.Crawl{Crawl: name}); err != nil {
			t.Fatal(err)
		}
	}
	ledgertest.Make(t, b, old, later)
	kept := layout.WARC(old, 0, "4f2a", 0, 1, 0)
	var body bytes.Buffer
	var at [2]warc.Extent
	archive := warc.NewWriter(&body)
	for i, url := range []string{"http://a.test/gone", "http://a.test/kept"} {
		block := [][]byte{[]byte("HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat(url, 20))}
		if at[i], err = archive.Write(&warc.Record{Type: warc.Response, Date: time.Unix(0, 0), TargetURI: url, Block: block}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.CreateBytes(ctx, b, kept, body.Bytes()); err != nil {
		t.Fatal(err)
	}
	rows := func(yield func(schema.URLRecord, error) bool) {
		for i, url := range []string{"http://a.test/another", "http://a.test/kept"} {
			if !yield(schema.URLRecord{URL: url, WARCFilename: kept, WARCRecordOff: int32(at[i].Offset), WARCRecordLen: int32(at[i].Length)}, nil) {
				return
			}
		}
	}
	local, err := table.WriteFile(filepath.Join(t.TempDir(), "urls.parquet"), iter.Seq2[schema.URLRecord, error](rows))
	if err != nil {
		t.Fatal(err)
	}
	urls, err := table.Commit(ctx, b, local, stages.FileURLs, layout.Table(stages.FileURLs, later, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	plan := &manifest.Plan{Header: manifest.Header{Format: schema.FormatVersion}, ID: "4f2a", Crawl: later, Partitions: []manifest.PlanPartition{{}}, Buckets: 1}
	for _, stage := range stages.Of(plan) {
		for _, task := range roundstate.Tasks(plan, stage) {
			res := &manifest.Result{Task: task.String(), Stage: string(stage), Plan: plan.ID}
			if stage == stages.Frontier {
				res.Files = []manifest.File{urls}
			}
			if _, err := manifest.Create(ctx, b, roundstate.ResultKey(task), res); err != nil {
				t.Fatal(err)
			}
		}
	}
	pruned := &manifest.Prune{Crawl: old, Prune: manifest.Pruning{Policy: manifest.PruneMetadata, Months: 1}, Kept: []string{kept}}
	if _, err := ledgertest.Writer().BeginPruning(ctx, b, pruned); err != nil {
		t.Fatal(err)
	}
	if err := ledgertest.Writer().EndPruning(ctx, b, old); err != nil {
		t.Fatal(err)
	}
	w, err := newWork(&Request{Bucket: b}, m, "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{old, later} {
		c := &crawl{name: name}
		if c.ledger, err = ledger.Load(ctx, b, name); err == nil {
			c.pruned, err = c.ledger.ReadPruned(ctx, b)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.crawls = append(w.crawls, c)
	}
	w.crawls[1].rounds = []*round{{crawl: w.crawls[1], plan: plan}}
	if err := w.everyFile(ctx); err != nil {
		t.Fatal(err)
	}
	k := w.kinds["table urls"]
	if len(w.rw.Removed[kept]) != 1 || k == nil || k.Adjusted != 1 || w.changed[urls.Key].Rows != 2 {
		t.Errorf("removed %v, changed %+v", w.rw.Removed, k)
	}
}
