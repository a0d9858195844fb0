package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// put creates a document.
func (f *fixture) put(key string, d manifest.Document) {
	f.t.Helper()
	if _, err := manifest.Create(f.t.Context(), f.bucket, key, d); err != nil {
		f.t.Fatal(err)
	}
}

// recordEnded records an attempt that has ended.
func (f *fixture) recordEnded(stage stages.Stage, partition, attempt int, class, text string, u manifest.Usage) {
	f.t.Helper()
	f.put(layout.Attempt("2026-11", 0, string(stage), partition, attempt), &manifest.Attempt{Attempt: attempt, Class: class, Error: text, Usage: &u})
}

func (f *fixture) begin() *manifest.Plan {
	f.t.Helper()
	f.mustPlan()
	return f.beginPlanned()
}

// beginPlanned begins the planned round.
func (f *fixture) beginPlanned() *manifest.Plan {
	f.t.Helper()
	p, err := roundstate.Begin(f.t.Context(), f.bucket, "2026-11", 0, ledgertest.Writer())
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func (f *fixture) stage(r *StatusReader, stage stages.Stage) StageStatus {
	f.t.Helper()
	s, err := r.Read(f.t.Context(), "2026-11")
	if err != nil {
		f.t.Fatal(err)
	}
	i := slices.IndexFunc(s.Rounds[0].Stages, func(st StageStatus) bool { return st.Stage == stage })
	return s.Rounds[0].Stages[i]
}

func TestStatusTellsOfFetchTasksWhatTheirCheckpointsSay(t *testing.T) {
	f := newFixture(t)
	p := f.begin()
	if len(p.Partitions) != 3 {
		t.Fatalf("%d partitions", len(p.Partitions))
	}
	rows := roaring.New()
	rows.Add(1)
	recorded, err := rows.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	f.put(layout.Checkpoint("2026-11", 0, 0), &manifest.Checkpoint{Plan: p.ID, Epoch: 3, Recorded: recorded, ElapsedMS: 1500})
	f.put(layout.Checkpoint("2026-11", 0, 1), &manifest.Checkpoint{Plan: p.ID, Partition: 1, Epoch: 1, Released: true})
	f.put(layout.Result("2026-11", 0, "fetch", 2), &manifest.Result{
		Task: "fetch@2026-11.0:2", Stage: "fetch", Partition: 2, Plan: p.ID, Counts: []manifest.Count{{Name: "outcome.ok", N: 2}}})
	got := f.stage(&StatusReader{Bucket: f.bucket}, stages.Fetch)
	want := StageStatus{
		Stage: stages.Fetch, Tasks: 3, Done: 1, Running: 1, Recorded: 1 + 2, Counts: []manifest.Count{{Name: "outcome.ok", N: 2}},
		Fetching: []FetchStatus{
			{Partition: 0, Planned: 2, Recorded: 1, Done: 1, Epoch: 3, ElapsedMS: 1500},
			{Partition: 1, Planned: 2, Epoch: 1, Released: true},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestStatusCountsFailuresAndGivesTheCommandThatReruns(t *testing.T) {
	f := newFixture(t)
	f.begin()
	cost := manifest.Usage{WallMS: 10, Puts: 1, Gets: 2, BytesRead: 3}
	f.recordEnded(stages.Merge, 0, 1, manifest.ClassFailed, "boom", cost)
	f.recordEnded(stages.Merge, 0, 2, manifest.ClassInterrupted, "interrupted", cost)
	f.recordEnded(stages.Merge, 0, 10, manifest.ClassDiskFull, "no room", cost) // the store lists attempt 10 before attempt 2
	f.recordEnded(stages.Merge, 1, 1, manifest.ClassFailed, "boom", cost)
	f.recordEnded(stages.Merge, 1, 2, manifest.ClassInterrupted, "interrupted", cost)
	f.recordEnded(stages.Merge, 2, 1, manifest.ClassDone, "", cost)
	got := f.stage(&StatusReader{Bucket: f.bucket, Flags: " --store 'a b'"}, stages.Merge)
	want := StageStatus{
		Stage: stages.Merge, Tasks: 3, Attempts: 6,
		Usage: manifest.Usage{WallMS: 60, Puts: 6, Gets: 12, BytesRead: 18},
		Failed: []TaskStatus{{
			Task: "merge@2026-11.0:0", Attempts: 2, Class: manifest.ClassDiskFull, Error: "no room",
			Rerun: "crawlbatch retry --month 2026-11 --stage merge --partition 0 --store 'a b'",
		}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestStatusPredictsFromEarlierRoundsAsPlanDoes(t *testing.T) {
	f := newFixture(t)
	p := f.begin()
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	m := &cost.Model{Config: f.driver.Config, Pods: func(*manifest.Plan, stages.Stage) cost.Pod { return cost.Pod{Cores: 1} }}
	plain := m.Predict(p, cost.Past{})[stages.Merge]
	for n := range 3 {
		f.recordEnded(stages.Merge, n, 1, manifest.ClassDone, "", manifest.Usage{WallMS: 3_600_000, Puts: plain.Puts, Gets: 1})
	}
	r := &StatusReader{Bucket: f.bucket, Costs: m}
	for range 2 { // a second Read must not count the round twice
		st := f.stage(r, stages.Merge)
		if st.Predicted == nil || st.Predicted.Usage != plain || math.Abs(st.Dollars.Machines-3*0.037) > 1e-9 {
			t.Errorf("a first round: predicted %+v, %+v", st.Predicted, st.Dollars)
		}
	}
	for name, before := range map[string]struct {
		crawl string
		round int
		on    []manifest.ContinuedCrawl
		want  int
	}{
		"a later round":     {"2026-11", 1, nil, 1},
		"the next month":    {"2026-12", 0, []manifest.ContinuedCrawl{{Crawl: "2026-10", Rounds: 2}, {Crawl: "2026-11", Rounds: 1}}, 1},
		"no earlier round":  {"2026-11", 0, nil, 0},
		"a month without":   {"2026-12", 0, nil, 0},
		"a month that left": {"2026-12", 0, []manifest.ContinuedCrawl{{Crawl: "2026-10", Rounds: 2}}, 0},
	} {
		past, err := Past(t.Context(), f.bucket, m, before.crawl, before.round, before.on)
		if err != nil || past.Rounds != before.want {
			t.Errorf("%s: %d rounds, %v", name, past.Rounds, err)
			continue
		}
		puts := plain.Puts
		if past.Rounds > 0 {
			puts *= 3
		}
		if got := m.Predict(p, past)[stages.Merge].Puts; got != puts {
			t.Errorf("%s: %d PUTs, want %d", name, got, puts)
		}
	}
}

func TestADamagedRecordOfAnEarlierRoundDoesNotStopAPrediction(t *testing.T) {
	f := newFixture(t)
	p := f.begin()
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	f.recordEnded(stages.Merge, 0, 1, manifest.ClassDone, "", manifest.Usage{Puts: 7})
	broken := []byte("{")
	if _, err := f.bucket.Create(t.Context(), layout.Attempt("2026-11", 0, "rank", 0, 1), bytes.NewReader(broken), int64(len(broken))); err != nil {
		t.Fatal(err)
	}
	m := &cost.Model{Config: f.driver.Config, Pods: func(*manifest.Plan, stages.Stage) cost.Pod { return cost.Pod{} }}
	past, err := Past(t.Context(), f.bucket, m, p.Crawl, 1, nil)
	if err != nil || past.Rounds != 0 {
		t.Errorf("%d rounds, %v", past.Rounds, err)
	}
}

// cancelling ends a context after it has listed a prefix.
type cancelling struct {
	store.Bucket
	prefix string
	cancel func()
}

func (b cancelling) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		b.Bucket.List(ctx, prefix)(yield)
		if prefix == b.prefix {
			b.cancel()
		}
	}
}

// The end of a run ends the context of its display, wherever the display reads at that instant.
func TestAnEndedContextIsAnErrorOfStatus(t *testing.T) {
	f := newFixture(t)
	f.begin()
	f.recordEnded(stages.Fetch, 0, 1, manifest.ClassFailed, "", manifest.Usage{})
	ctx, cancel := context.WithCancel(t.Context())
	b := cancelling{f.bucket, layout.AttemptsDir("2026-11", 0, string(stages.Fetch)), cancel}
	if s, err := (&StatusReader{Bucket: b}).Read(ctx, "2026-11"); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestStatusListsAStageOnceAndReadsWhatIsNewOnly(t *testing.T) {
	f := newFixture(t)
	f.begin()
	if err := f.driver.Run(t.Context(), "2026-11", 1); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		f.recordEnded(stages.Fetch, n, 1, manifest.ClassDone, "", manifest.Usage{})
	}
	counted := store.Count(f.bucket)
	r := &StatusReader{Bucket: counted}
	first, err := r.Read(t.Context(), "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	cold := counted.Counts()
	// Read lists the attempts and the results of six stages, except the results of fetch. The
	// function ledger.Crawls sends 38 LISTs, and one looks for objects of a round that the ledger does not know.
	if cold.Lists != 2*6-1+38+1 {
		t.Errorf("%d LISTs", cold.Lists)
	}
	second, err := r.Read(t.Context(), "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	warm := counted.Counts().Gets - cold.Gets
	// The second Read gets the ledger, because the round is sealed and complete. It also gets eight
	// objects that the ledger names: crawl.json, the plan, five inputs.json and the seal. Finally, the
	// second Read gets the head, active.json and the manifest that the seal names.
	if warm != 1+8+3 || counted.Counts().Lists != cold.Lists {
		t.Errorf("%d GETs to read the same again, %d at first", warm, cold.Gets)
	}
	if d := cmp.Diff(first, second); d != "" {
		t.Error(d)
	}
}

func TestRetryTakesTheTasksOfAClassOfFailure(t *testing.T) {
	f := newFixture(t)
	f.begin()
	broken := true
	f.fake.fails = func(t stages.Task) error {
		if broken && t.Stage == stages.Merge {
			return fmt.Errorf("no luck")
		}
		return nil
	}
	if err := f.driver.Run(t.Context(), "2026-11", 1); err == nil {
		t.Fatal("merge did not fail")
	}
	f.recordEnded(stages.Merge, 0, 1, manifest.ClassDiskFull, "x", manifest.Usage{})
	f.recordEnded(stages.Merge, 1, 1, manifest.ClassDiskFull, "x", manifest.Usage{})
	f.recordEnded(stages.Merge, 1, 2, manifest.ClassPermanent, "x", manifest.Usage{}) // only the class of the newest attempt counts
	broken = false
	for _, c := range []struct {
		request RetryRequest
		want    string
	}{
		{RetryRequest{Classes: []string{manifest.ClassStoreDenied}}, ""},
		{RetryRequest{Stage: stages.Merge, Partitions: []int{1, 2}, Classes: []string{manifest.ClassDiskFull}}, ""},
		{RetryRequest{Classes: []string{manifest.ClassStoreDenied, manifest.ClassDiskFull}}, "merge@2026-11.0:0"},
		{RetryRequest{Stage: stages.Merge, Classes: []string{manifest.ClassPermanent}}, "merge@2026-11.0:1"},
		{RetryRequest{}, "merge@2026-11.0:2"}, // this task has no class, because it has no recorded attempt
	} {
		f.fake.ran = nil
		n, err := f.driver.Retry(t.Context(), "2026-11", c.request)
		if err != nil || strings.Join(f.fake.ran, " ") != c.want || n != len(f.fake.ran) {
			t.Errorf("%+v ran %q (%d), %v; want %q", c.request, f.fake.ran, n, err, c.want)
		}
	}
}

// A checkpoint lists fewer outcomes than the report says, and the report names the hosts that delay the end.
func TestAFetchStatusTellsWhatIsDoneAndHowToStopItsHosts(t *testing.T) {
	f := newFixture(t)
	p := f.begin()
	f.put(layout.Checkpoint("2026-11", 0, 0), &manifest.Checkpoint{Plan: p.ID, Epoch: 1, Activity: &manifest.Activity{
		At: 1, Left: 1, Waits: []manifest.Wait{{Host: "slow.test", Why: "one request every 20s", URLs: 29}, {Host: "[::1]", Why: "robots.txt answered 503, asked again", Until: 2, URLs: 5}},
		Latest: &manifest.Wait{Host: "[::1]", Why: "answered 503", Until: 3},
	}})
	got := f.stage(&StatusReader{Bucket: f.bucket, Flags: " --store /x"}, stages.Fetch).Fetching[0]
	want := []HostStop{
		{"slow.test", 29, `crawlbatch host slow.test --month 2026-11 --stop "REASON" --store /x`},
		{"[::1]", 5, `crawlbatch host '[::1]' --month 2026-11 --stop "REASON" --store /x`},
	}
	if d := cmp.Diff(want, got.Stops); d != "" || got.Recorded != 0 || got.Done != 1 {
		t.Errorf("%+v: %s", got, d)
	}
}

// If several hosts end last together, the commands stop the first three of them.
func TestTheCommandsStopTheHostsThatEndLastTogether(t *testing.T) {
	a := &manifest.Activity{
		Waits: []manifest.Wait{{Host: "a.test", URLs: 7}, {Host: "c.test", URLs: 2}}, Slowest: []string{"a.test", "b.test", "c.test", "d.test"},
		Latest: &manifest.Wait{Host: "c.test"},
	}
	stop := func(host string, urls int64) HostStop {
		return HostStop{Host: host, URLs: urls, Command: `crawlbatch host ` + host + ` --month 2026-11 --stop "REASON" --store x`}
	}
	want := []HostStop{stop("a.test", 7), stop("b.test", 0), stop("c.test", 2)}
	if d := cmp.Diff(want, hostStops(a, "2026-11", " --store x")); d != "" {
		t.Error(d)
	}
}
