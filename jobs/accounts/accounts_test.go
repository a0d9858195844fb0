package accounts

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

const crawl = "2026-11"

// lab holds a round of two partitions and one bucket.
type lab struct {
	*Round
	t   *testing.T
	log *bytes.Buffer
}

func newLab(t *testing.T) *lab {
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Prices = config.Prices{Date: "2026-11", CPU: 1, Puts: 1000, Gets: 0, Stored: 1e9}
	l := &lab{t: t, log: &bytes.Buffer{}}
	l.Round = &Round{
		Bucket: b, Version: "v9", Scratch: t.TempDir(), Log: slog.New(slog.NewTextHandler(l.log, nil)),
		Plan:  &manifest.Plan{Header: manifest.Header{Format: schema.FormatVersion}, ID: "p", Crawl: crawl, Buckets: 1, URLs: 9, Partitions: []manifest.PlanPartition{{EstimatedSeconds: 7200}, {EstimatedSeconds: 3600}}},
		Costs: &cost.Model{Config: cfg, Pods: func(*manifest.Plan, stages.Stage) cost.Pod { return cost.Pod{Cores: 2} }},
	}
	return l
}

// clock returns a time on the day of the round, such as 10:00:00.
func clock(at string) string { return "2026-11-25T" + at + "Z" }

func (l *lab) begun(stage stages.Stage, task, n int, at, machine string) {
	l.t.Helper()
	l.put(layout.Begun(crawl, 0, string(stage), task, n), &manifest.Begun{Header: manifest.Header{Version: "v9"}, At: clock(at), Machine: machine})
}

func (l *lab) ended(stage stages.Stage, task, n int, a manifest.Attempt) {
	l.t.Helper()
	a.Attempt, a.At = n, clock(a.At)
	if a.Began != "" {
		a.Began = clock(a.Began)
	}
	l.put(layout.Attempt(crawl, 0, string(stage), task, n), &a)
}

func (l *lab) put(key string, d manifest.Document) {
	l.t.Helper()
	if _, err := manifest.Create(l.t.Context(), l.Bucket, key, d); err != nil {
		l.t.Fatal(err)
	}
}

// write writes the parts, and returns the rows of stages in short form, and the row of runs.
func (l *lab) write(predicted cost.Usages) ([]string, schema.Run) {
	l.t.Helper()
	if _, err := l.Write(l.t.Context(), predicted); err != nil {
		l.t.Fatal(err)
	}
	var short []string
	for _, a := range tabletest.Read[schema.StageAttempt](l.t, l.Bucket, publish.AccountKey(l.Plan, stages.FileStages)) {
		show := func(n *int64) string {
			if n == nil {
				return "-"
			}
			return fmt.Sprint(*n)
		}
		epoch := "-"
		if a.Epoch != nil {
			epoch = fmt.Sprint(*a.Epoch)
		}
		times := [2]string{"-", "-"}
		for i, at := range []schema.Time{a.BeganAt, a.EndedAt} {
			if at > 0 {
				times[i] = fmt.Sprint(at.Sub(timeOf(clock("10:00:00"))).Seconds())
			}
		}
		short = append(short, strings.TrimSpace(fmt.Sprintf("%s:%d #%d epoch %s, %s to %s s, cpu %s, rows %s, puts %s, %s: %s %s %s", a.Stage, a.Task, a.Attempt, epoch, times[0], times[1],
			show(a.CPUMS), show(a.Rows), show(a.Puts), a.Machine, a.Outcome, a.ErrorClass, a.Error)))
	}
	runs := tabletest.Read[schema.Run](l.t, l.Bucket, publish.AccountKey(l.Plan, stages.FileRuns))
	if len(runs) != 1 {
		l.t.Fatalf("%d rows of runs", len(runs))
	}
	return short, runs[0]
}

func TestEveryAttemptIsARowEvenIfItWasKilled(t *testing.T) {
	l := newLab(t)
	rows := int64(7)
	// Partition 0: a process that was killed, then one that was stopped, then one that finished.
	l.begun(stages.Fetch, 0, 1, "10:00:00", "a")
	l.begun(stages.Fetch, 0, 2, "10:01:00", "a")
	l.begun(stages.Fetch, 0, 3, "10:02:00", "b")
	l.ended(stages.Fetch, 0, 1, manifest.Attempt{At: "10:01:30", Class: manifest.ClassInterrupted, Error: "interrupted", Machine: "a", Began: "10:01:00", Epoch: 2, CPUMS: 10, Usage: &manifest.Usage{WallMS: 30_000, Puts: 1}})
	l.ended(stages.Fetch, 0, 2, manifest.Attempt{At: "10:03:00", Class: manifest.ClassDone, Machine: "b", Began: "10:02:00", Epoch: 3, CPUMS: 20, Peak: 99, Rows: &rows, Usage: &manifest.Usage{WallMS: 60_000, Puts: 2}})
	// Partition 1: pods that a driver found dead. It knew the name of one of them.
	l.begun(stages.Fetch, 1, 1, "10:00:00", "pod-1")
	l.begun(stages.Fetch, 1, 2, "10:00:10", "pod-2")
	l.ended(stages.Fetch, 1, 1, manifest.Attempt{At: "10:05:00", Class: manifest.ClassOutOfMemory, Error: "too much memory", Machine: "pod-1"})
	l.ended(stages.Fetch, 1, 2, manifest.Attempt{At: "10:06:00", Class: manifest.ClassFailed, Error: "pods are gone"})
	// An attempt without a beginning, and a failure of eleven attempts, whose keys sort after e1.
	for n := 1; n <= 11; n++ {
		l.ended(stages.Merge, 0, n, manifest.Attempt{At: fmt.Sprintf("11:00:%02d", n), Began: fmt.Sprintf("10:59:%02d", n), Class: manifest.ClassDiskFull, Error: "full", Machine: "c", Usage: &manifest.Usage{WallMS: 1000, Puts: 3}})
	}
	got, run := l.write(nil)
	want := []string{
		"fetch:0 #1 epoch 1, 0 to - s, cpu -, rows -, puts -, a: killed killed",
		"fetch:0 #2 epoch 2, 60 to 90 s, cpu 10, rows -, puts 1, a: interrupted  interrupted",
		"fetch:0 #3 epoch 3, 120 to 180 s, cpu 20, rows 7, puts 2, b: done",
		"fetch:1 #1 epoch -, 0 to 300 s, cpu -, rows -, puts -, pod-1: killed out_of_memory too much memory",
		"fetch:1 #2 epoch -, 10 to 360 s, cpu -, rows -, puts -, pod-2: failed failed pods are gone",
	}
	for n := 1; n <= 11; n++ {
		want = append(want, fmt.Sprintf("merge:0 #%d epoch -, %d to %d s, cpu 0, rows -, puts 3, c: failed disk_full full", n, 3540+n, 3600+n))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if run.Attempts != 16 || run.Failed != 14 || run.Puts != 36 || run.PeakMemory != 99 || run.CPUHours*3.6e6 != 30 || run.TaskHours*3600 != 101 {
		t.Errorf("%+v", run)
	}
	// 101 s on two cores at a dollar an hour, and 36 calls at a dollar each.
	if want := 101.0/3600*2 + 36; run.Dollars == nil || fmt.Sprintf("%.6f", *run.Dollars) != fmt.Sprintf("%.6f", want) || run.PredictedDollars != nil || run.PricesDate != "2026-11" {
		t.Errorf("%+v, want %v dollars", run, want)
	}
	if *run.Hours*3600 != 3611 || *run.FetchHours*3600 != 360 {
		t.Errorf("%v and %v hours", *run.Hours, *run.FetchHours)
	}
}

func TestARunHasThePredictionBesideWhatItTook(t *testing.T) {
	l := newLab(t)
	l.Counts = manifest.SortedCounts(map[string]int64{"merge.outcome.ok": 5, "merge.outcome.not_modified": 2, "merge.outcome.deferred": 1, "merge.requests": 11, "publish.pages": 5})
	for n := range 2 { // at the same time, so the longer partition decides the prediction
		l.ended(stages.Fetch, n, 1, manifest.Attempt{At: "12:00:00", Began: "10:00:00", Class: manifest.ClassDone, Usage: &manifest.Usage{WallMS: 7_200_000, Gets: 5}})
	}
	_, run := l.write(cost.Usages{stages.Fetch: {WallMS: 3_600_000, Puts: 1, Gets: 2, Lists: 3, BytesWritten: 4}})
	if *run.PredictedFetch != 2 || *run.PredictedTask != 1 || *run.PredictedPuts != 1 || *run.PredictedGets != 2 || *run.PredictedLists != 3 || *run.PredictedBytes != 4 || *run.PredictedDollars != 6 {
		t.Errorf("%+v", run)
	}
	if run.URLsPlanned != 9 || run.URLsFetched != 7 || run.URLsDeferred != 1 || run.Requests != 11 || run.Pages != 5 || run.TaskHours != 4 || run.Gets != 10 || *run.FetchHours != 2 {
		t.Errorf("%+v", run)
	}
}

func TestTheFirstPartsStay(t *testing.T) {
	l := newLab(t)
	if done, err := l.Written(t.Context()); done || err != nil {
		t.Fatal(done, err)
	}
	before, _ := l.write(nil)
	if done, err := l.Written(t.Context()); !done || err != nil {
		t.Fatal(done, err)
	}
	l.begun(stages.Publish, 0, 1, "10:00:00", "late")
	if after, _ := l.write(nil); len(before) != 0 || len(after) != 0 {
		t.Errorf("%q, then %q", before, after)
	}
}

func TestADamagedRecordCostsOnlyItsRow(t *testing.T) {
	l := newLab(t)
	l.begun(stages.Rank, 0, 1, "10:00:00", "a")
	for key, body := range map[string]string{
		layout.Attempt(crawl, 0, "rank", 0, 1):             `{"format_version": 9, "kind": "attempt", "surprise": 1}`,
		layout.Begun(crawl, 0, "rank", 0, 2):               "",
		layout.Attempt(crawl, 0, "rank", 0, 2):             `{"format_version": 99, "kind": "attempt"}`,
		layout.Attempt(crawl, 0, "rank", 7, 1):             "a task that the plan lacks",
		layout.AttemptsDir(crawl, 0, "rank") + "notes.txt": "hello",
	} {
		if _, err := store.CreateBytes(t.Context(), l.Bucket, key, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("ä", 1000) // 2,000 bytes
	l.ended(stages.Rank, 0, 3, manifest.Attempt{At: "never", Began: "10:00:01", Class: manifest.ClassPermanent, Error: "x" + long, Machine: "b"})
	got, run := l.write(nil)
	want := []string{
		"rank:0 #1 epoch -, 0 to - s, cpu -, rows -, puts -, a: killed killed",
		"rank:0 #2 epoch -, 1 to - s, cpu -, rows -, puts -, b: failed permanent x" + strings.Repeat("ä", 499),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if run.Hours != nil || strings.Count(l.log.String(), "cannot be read") != 3 {
		t.Errorf("hours %v; log:\n%s", run.Hours, l.log)
	}
}
