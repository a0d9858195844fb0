package compact

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

const crawl = "2026-11"

type fixed struct {
	stages.SystemClock
	now time.Time
}

func (f fixed) Now() time.Time { return f.now }

func request(t *testing.T, b store.Bucket) Request {
	return Request{Bucket: b, Crawl: crawl, Version: "test", Clock: stages.SystemClock{}, Scratch: t.TempDir()}
}

func put(t *testing.T, b store.Bucket, key string, d manifest.Document) {
	t.Helper()
	if _, err := manifest.Create(t.Context(), b, key, d); err != nil {
		t.Fatal(err)
	}
}

// publish stores a published part.
func publish[T any](t *testing.T, b store.Bucket, dataset, subset, key string, sorted []string, rows []T) manifest.File {
	t.Helper()
	w, err := table.NewWriter[T](t.TempDir()+"/part", table.SortedBy(sorted...))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	f, err := table.Finish(t.Context(), w, b, dataset, key)
	if err != nil {
		t.Fatal(err)
	}
	f.Subset = subset
	return f
}

// crawled makes a store with a crawl of the given number of rounds. Each has five parts of
// fetches, requests and captures, and one of hosts.
func crawled(t *testing.T, b store.Bucket, rounds int) store.Bucket {
	t.Helper()
	put(t, b, layout.CrawlManifest(crawl), &manifest.Crawl{Crawl: crawl})
	for round := range rounds {
		put(t, b, layout.PlanManifest(crawl, round, "p"), &manifest.Plan{ID: "p", Crawl: crawl, Round: round, Buckets: 1, Partitions: []manifest.PlanPartition{{}}})
		for _, stage := range []stages.Stage{stages.Merge, stages.Dedup, stages.Rank, stages.Frontier, stages.Publish} {
			put(t, b, layout.Inputs(crawl, round, string(stage)), &manifest.Inputs{Stage: string(stage), Plan: "p"})
		}
		var files []manifest.File
		for p := range 5 {
			var fetches []schema.Fetch
			var requests []schema.Request
			var captures []schema.Capture
			for i := range 40 {
				host := fmt.Sprintf("h%02d.example", (i*7+p)%31)
				url := fmt.Sprintf("http://%s/%d/%d", host, p, i)
				var f schema.Fetch
				f.SURT, f.URL, f.Host, f.Domain, f.Outcome = fmt.Sprintf("example,h%02d)/%d/%02d", (i*7+p)%31, p, i), url, host, host, schema.OK
				fetches = append(fetches, f)
				var c schema.Capture
				c.SURT, c.URL = f.SURT, f.URL
				captures = append(captures, c)
				gap := int64(i % 3)
				r := schema.Request{URL: url, Host: host, Start: schema.Time(i)}
				if gap > 0 {
					r.GapMS = &gap
				}
				requests = append(requests, r, r) // the same row twice
			}
			slices.SortFunc(fetches, func(a, b schema.Fetch) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) })
			slices.SortFunc(captures, func(a, b schema.Capture) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) })
			slices.SortStableFunc(requests, func(a, b schema.Request) int { return strings.Compare(a.Host, b.Host) })
			files = append(files,
				publish(t, b, stages.FileFetches, "", layout.Table(stages.FileFetches, crawl, round, p), []string{"url_surtkey", "url"}, fetches),
				publish(t, b, stages.FileRequests, "", layout.Table(stages.FileRequests, crawl, round, p), []string{"host", "start"}, requests),
				publish(t, b, stages.FileCaptures, "warc", layout.Captures(crawl, "warc", round, p), []string{"url_surtkey", "url"}, captures),
				publish(t, b, stages.FileCaptures, "robotstxt", layout.Captures(crawl, "robotstxt", round, p), []string{"url_surtkey", "url"}, captures[:3]))
		}
		zero := int64(0)
		files = append(files, publish(t, b, stages.FileHosts, "", layout.Table(stages.FileHosts, crawl, round, 0), []string{"host"}, []schema.Host{{Host: "a.example", DelayMS: &zero}, {Host: "b.example"}}))
		slices.SortFunc(files, func(a, b manifest.File) int { return strings.Compare(a.Key, b.Key) })
		put(t, b, layout.Sealed(crawl, round), &manifest.Sealed{Crawl: crawl, Round: round, Plan: "p", Buckets: 1, Files: files})
	}
	ledgertest.Make(t, b, crawl)
	return b
}

func directory(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// contents returns the digests of the objects under a prefix, by key.
func contents(t *testing.T, b store.Bucket, prefix string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	for o, err := range b.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := b.Get(t.Context(), o.Key, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		all[o.Key] = sha256.Sum256(body)
	}
	return all
}

// opened returns the rounds as views open them.
func opened(t *testing.T, b store.Bucket) (sealed []*manifest.Sealed, copied int) {
	t.Helper()
	sealed, err := roundstate.Sealed(t.Context(), b, crawl)
	if err != nil {
		t.Fatal(err)
	}
	sealed, _, err = roundstate.WithCompacted(t.Context(), b, sealed)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sealed {
		if !slices.ContainsFunc(s.Files, func(f manifest.File) bool { return strings.HasPrefix(f.Key, "tables/fetches/") }) {
			copied++
		}
		for _, f := range s.Files {
			o, err := b.Open(t.Context(), f.Key)
			if err != nil {
				t.Fatalf("views open %q, which is gone: %v", f.Key, err)
			}
			_ = o.Close()
		}
	}
	return sealed, copied
}

// rows returns the rows of a dataset and subset of a round as views read them, in order.
func rows[T any](t *testing.T, b store.Bucket, sealed []*manifest.Sealed, round int, dataset, subset string) (all []T) {
	t.Helper()
	for _, s := range sealed {
		for _, f := range s.FilesOf(dataset) {
			if f.Subset != subset {
				continue
			}
			rows := slices.Collect(succeed(t, table.Concat[T](t.Context(), b, []string{f.Key})))
			places := slices.Collect(succeed(t, table.Concat[placeOfCapture](t.Context(), b, []string{f.Key})))
			for i, row := range rows {
				switch copied := strings.HasPrefix(f.Key, "compacted/"); {
				case copied && (places[i].Crawl != crawl || places[i].Subset != subset):
					t.Fatalf("%q: row %d is of %+v", f.Key, i, places[i])
				case copied && int(places[i].Round) == round, !copied && s.Round == round:
					all = append(all, row)
				}
			}
		}
	}
	return all
}

func succeed[T any](t *testing.T, rows iter.Seq2[T, error]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for row, err := range rows {
			if err != nil {
				t.Fatal(err)
			}
			if !yield(row) {
				return
			}
		}
	}
}

func TestACopyHasTheSameRows(t *testing.T) {
	b := crawled(t, directory(t), 2)
	before := contents(t, b, "tables/")
	published, _ := opened(t, b)
	r := request(t, b)
	r.Target = 1 // so that parts end after every checkRows rows
	f, err := Run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if f.Covered != 2 || f.Rounds != 2 || f.Current == "" || f.Deleted != 0 {
		t.Errorf("%+v", f)
	}
	if diff := cmp.Diff(before, contents(t, b, "tables/")); diff != "" {
		t.Error("published parts changed")
	}
	copied, n := opened(t, b)
	if n != 2 {
		t.Errorf("views read a copy of %d rounds, want 2", n)
	}
	if got := copied[0].FilesOf(stages.FileFetches); len(got) != 1 || got[0].Rows != 400 || len(copied[1].FilesOf(stages.FileFetches)) != 0 {
		t.Errorf("parts of fetches: %+v", got)
	}
	urls := slices.Collect(succeed(t, table.Concat[schema.Fetch](t.Context(), b, []string{copied[0].FilesOf(stages.FileFetches)[0].Key})))
	for i := 0; i < len(urls); i += 2 {
		if urls[i].URL != urls[i+1].URL {
			t.Fatalf("row %d is of %s, the next of %s, not of the other round", i, urls[i].URL, urls[i+1].URL)
		}
	}
	for i := range copied {
		compareURLs := func(a, b schema.Fetch) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }
		want, got := rows[schema.Fetch](t, b, published, i, stages.FileFetches, ""), rows[schema.Fetch](t, b, copied, i, stages.FileFetches, "")
		slices.SortFunc(want, compareURLs)
		if diff := cmp.Diff(want, got); diff != "" || len(got) != 200 {
			t.Errorf("round %d: %d rows of fetches (-published +copied):\n%s", i, len(got), diff)
		}
		compareRequests := func(a, b schema.Request) int {
			return strings.Compare(fmt.Sprint(a.Host, a.URL), fmt.Sprint(b.Host, b.URL))
		}
		sent, kept := rows[schema.Request](t, b, published, i, stages.FileRequests, ""), rows[schema.Request](t, b, copied, i, stages.FileRequests, "")
		slices.SortFunc(sent, compareRequests)
		slices.SortFunc(kept, compareRequests)
		if diff := cmp.Diff(sent, kept); diff != "" || len(kept) != 400 {
			t.Errorf("round %d: %d rows of requests (-published +copied):\n%s", i, len(kept), diff)
		}
		if n := len(rows[schema.Capture](t, b, copied, i, stages.FileCaptures, "robotstxt")); n != 15 {
			t.Errorf("round %d: %d captures of robots.txt, want 15", i, n)
		}
		if diff := cmp.Diff(rows[schema.Host](t, b, published, i, stages.FileHosts, ""), rows[schema.Host](t, b, copied, i, stages.FileHosts, "")); diff != "" {
			t.Errorf("round %d: hosts (-published +copied):\n%s", i, diff)
		}
	}
}

func TestANewCopyReplacesTheOneBefore(t *testing.T) {
	b := crawled(t, directory(t), 1)
	first, err := Run(t.Context(), request(t, b))
	if err != nil {
		t.Fatal(err)
	}
	old := contents(t, b, layout.CompactedDir(crawl))
	second, err := Run(t.Context(), request(t, b))
	if err != nil || second.Deleted != len(old)+1 || second.Current == first.Current {
		t.Fatalf("%+v, %v", second, err)
	}
	now := contents(t, b, layout.CompactedDir(crawl))
	for key := range old {
		if _, ok := now[key]; ok {
			t.Errorf("%q is left over", key)
		}
	}
	// A copy that no ledger names is kept for a day, because its process may still run.
	stray := layout.Compacted(crawl, layout.Revision(time.Now().Add(-23*time.Hour), 7), "fetches", 0)
	if _, err := store.CreateBytes(t.Context(), b, stray, []byte("x")); err != nil {
		t.Fatal(err)
	}
	r := request(t, b)
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {2 * time.Hour, false}} {
		r.Clock = fixed{now: time.Now().Add(tt.after)}
		if _, err := Run(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if _, ok := contents(t, b, "compacted/")[stray]; ok != tt.want {
			t.Errorf("after %v: kept %t", tt.after, ok)
		}
	}
	d, err := Drop(t.Context(), request(t, b))
	if err != nil || d.Current != "" {
		t.Fatalf("%+v, %v", d, err)
	}
	if left := contents(t, b, "compacted/"); len(left) > 0 {
		t.Errorf("after drop: %v", slices.Collect(maps.Keys(left)))
	}
	if _, n := opened(t, b); n != 0 {
		t.Error("views read a dropped copy")
	}
	if d, err := Drop(t.Context(), request(t, b)); err != nil || d.Deleted != 0 {
		t.Errorf("a second drop: %+v, %v", d, err)
	}
}

func TestARoundSealedLaterIsReadFromItsParts(t *testing.T) {
	b := crawled(t, directory(t), 2)
	if _, err := Run(t.Context(), request(t, b)); err != nil {
		t.Fatal(err)
	}
	ledgertest.Edit(t, b, crawl, func(entries []manifest.Entry) []manifest.Entry {
		for i, e := range entries {
			if e.What == manifest.EntrySealed && e.InRound(1) {
				entries[i].SHA256 = strings.Repeat("0", 64) // as if the round had another seal now
			}
		}
		return entries
	})
	f, err := Find(t.Context(), request(t, b))
	if err == nil {
		t.Fatalf("a changed seal was not noticed: %+v", f)
	}
	l, err := ledger.Load(t.Context(), b, crawl)
	if err != nil {
		t.Fatal(err)
	}
	list, err := roundstate.Compaction(t.Context(), b, l)
	if err != nil || roundstate.Covers(list, l) {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestAnUnfinishedMonthIsRefused(t *testing.T) {
	b := directory(t)
	put(t, b, layout.CrawlManifest(crawl), &manifest.Crawl{Crawl: crawl})
	ledgertest.Make(t, b, crawl)
	if _, err := Run(t.Context(), request(t, b)); !errors.Is(err, jobs.ErrNotSealed) {
		t.Error(err)
	}
}

func TestADamagedPartEndsTheCopyWithoutATrace(t *testing.T) {
	for name, damage := range map[string]func(body []byte) []byte{
		"cut":   func(body []byte) []byte { return body[:len(body)/2] },
		"empty": func([]byte) []byte { return nil },
		"gone":  nil,
	} {
		b := crawled(t, directory(t), 1)
		key := layout.Table(stages.FileFetches, crawl, 0, 3)
		body, _, err := b.Get(t.Context(), key, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if damage != nil {
			if _, err := store.CreateBytes(t.Context(), b, key, damage(body)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Run(t.Context(), request(t, b)); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
		if left := contents(t, b, "compacted/"); len(left) > 0 {
			t.Errorf("%s: %d objects are left over", name, len(left))
		}
	}
}

// A part with other rows than its seal lists is not copied.
func TestRowsThatTheSealDoesNotListAreNoticed(t *testing.T) {
	b := crawled(t, directory(t), 1)
	key := layout.Table(stages.FileHosts, crawl, 0, 0)
	if err := b.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	publish(t, b, stages.FileHosts, "", key, []string{"host"}, []schema.Host{{Host: "a.example"}})
	if _, err := Run(t.Context(), request(t, b)); !errors.Is(err, manifest.ErrCorrupt) || !strings.Contains(err.Error(), key) {
		t.Error(err)
	}
}

// failing fails every write from the n-th one on, like a process that was killed: the undo fails too.
type failing struct {
	store.Bucket
	left *atomic.Int64
}

var errKilled = errors.New("killed")

func (f failing) Unwrap() store.Bucket { return f.Bucket }

func (f failing) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	if f.left.Add(-1) < 0 {
		return "", errKilled
	}
	return f.Bucket.Create(ctx, key, body, size)
}

func (f failing) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	if f.left.Add(-1) < 0 {
		return "", errKilled
	}
	return f.Bucket.Swap(ctx, key, body, size, old)
}

func (f failing) Delete(ctx context.Context, key string) error {
	if f.left.Add(-1) < 0 {
		return errKilled
	}
	return f.Bucket.Delete(ctx, key)
}

func TestACopyThatIsKilledAtAnyWriteHarmsNothing(t *testing.T) {
	b := crawled(t, directory(t), 1)
	before := contents(t, b, "tables/")
	done := false
	for n := int64(0); !done; n++ {
		left := new(atomic.Int64)
		left.Store(n)
		do := Run
		if n%3 == 2 {
			do = Drop
		}
		_, err := do(t.Context(), request(t, failing{b, left}))
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatalf("after %d writes: %v", n, err)
		}
		done = err == nil && left.Load() > 0 && n%3 != 2
		if diff := cmp.Diff(before, contents(t, b, "tables/")); diff != "" {
			t.Fatalf("after %d writes: published parts changed", n)
		}
		opened(t, b) // every part that views read is there
	}
	r := request(t, b)
	r.Clock = fixed{now: time.Now().Add(25 * time.Hour)}
	f, err := Run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for key := range contents(t, b, "compacted/") {
		if layout.RevisionOf(key, crawl) != f.Current {
			t.Errorf("%q is left over", key)
		}
	}
}

func TestCopiesAtTheSameTimeLeaveOne(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	b := crawled(t, directory(t), 1)
	for range 5 {
		var all sync.WaitGroup
		for range 4 {
			do := Run
			if random.IntN(4) == 0 {
				do = Drop
			}
			r := request(t, b)
			all.Go(func() {
				var leftover *Leftover
				if _, err := do(t.Context(), r); err != nil && !errors.As(err, &leftover) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		opened(t, b)
	}
	f, err := Run(t.Context(), request(t, b))
	if err != nil {
		t.Fatal(err)
	}
	if _, n := opened(t, b); n != 1 {
		t.Error("views do not read the copy")
	}
	for key := range contents(t, b, "compacted/") {
		if layout.RevisionOf(key, crawl) != f.Current {
			t.Errorf("%q is left over", key)
		}
	}
}

func TestALostListIsMadeAgain(t *testing.T) {
	b := crawled(t, directory(t), 1)
	if _, err := Run(t.Context(), request(t, b)); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Load(t.Context(), b, crawl)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), l.Of(manifest.EntryCompacted).Object); err != nil {
		t.Fatal(err)
	}
	f, err := Find(t.Context(), request(t, b))
	if err != nil || !strings.Contains(f.Fault, "crawlbatch compact --month 2026-11") {
		t.Errorf("%+v, %v", f, err)
	}
	if _, n := opened(t, b); n != 0 {
		t.Error("views read a copy without its list")
	}
	if _, err := Run(t.Context(), request(t, b)); err != nil {
		t.Error(err)
	}
	if _, n := opened(t, b); n != 1 {
		t.Error("views do not read the new copy")
	}
}

// Every dataset but stages and runs is copied, and sorted and selected by columns that it has.
func TestDatasetsAreCopiedByColumnsThatTheyHave(t *testing.T) {
	var names []string
	for _, d := range datasets() {
		names = append(names, d.name)
		described, err := catalog.Find(d.name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(described.SortedBy, d.sorted); diff != "" {
			t.Errorf("%s: order (-documented +copied):\n%s", d.name, diff)
		}
		for _, name := range d.lookup {
			if !slices.ContainsFunc(described.Columns, func(c catalog.Column) bool { return c.Name == name }) {
				t.Errorf("%s has no column %s", d.name, name)
			}
		}
	}
	for _, d := range catalog.Datasets() {
		if !slices.Contains(names, d.Name) && d.Name != stages.FileStages && d.Name != stages.FileRuns {
			t.Errorf("%s is not copied", d.Name)
		}
	}
}

func TestRowGroupsHaveBloomFiltersAndAPageIndex(t *testing.T) {
	b := crawled(t, directory(t), 1)
	if _, err := Run(t.Context(), request(t, b)); err != nil {
		t.Fatal(err)
	}
	sealed, _ := opened(t, b)
	o, err := b.Open(t.Context(), sealed[0].FilesOf(stages.FileFetches)[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close() //nolint:errcheck // only read
	f, err := parquet.OpenFile(o, o.Size())
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range f.RowGroups() {
		for _, chunk := range group.ColumnChunks() {
			name, filter := f.Schema().Columns()[chunk.Column()][0], chunk.BloomFilter()
			if want := name == "url" || name == "host" || name == "domain"; want != (filter != nil) {
				t.Errorf("column %s has a filter: %t", name, filter != nil)
			}
			index, err := chunk.ColumnIndex()
			if offsets, failed := chunk.OffsetIndex(); err != nil || failed != nil || index.NumPages() == 0 || offsets.NumPages() != index.NumPages() {
				t.Fatalf("column %s has no page index: %v, %v", name, err, failed)
			}
			if name == "url" && len(index.MaxValue(0).String()) < len("http://h30.example/0/0") {
				t.Errorf("the page index cuts URLs: %s", index.MaxValue(0)) // pages of a host would not differ
			}
			if name != "host" {
				continue
			}
			for value, want := range map[string]bool{"h05.example": true, "other.example": false} {
				if has, err := filter.Check(parquet.ValueOf(value)); err != nil || has != want {
					t.Errorf("%s: %t, %v", value, has, err)
				}
			}
		}
	}
}
