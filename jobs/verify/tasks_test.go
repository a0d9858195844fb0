package verify

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
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
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// each returns an executor that runs each task twice, as happens after a pod was lost.
func each(o Options) Execute {
	return func(ctx context.Context, _ *manifest.Plan, tasks []stages.Task, done func(stages.Task, error)) error {
		for _, t := range slices.Concat(tasks, tasks) {
			done(t, RunTask(ctx, Options{Bucket: o.Bucket, Crawl: o.Crawl, Config: o.Config, Scratch: o.Scratch, Archive: o.Archive, Version: o.Version, Parallel: 1}, t))
		}
		return nil
	}
}

// sameInTasks audits in one process and in tasks, and compares the reports.
func (d *damagedCrawl) sameInTasks(tasks int, change func(*Options)) *Report {
	d.t.Helper()
	o := d.a.Options
	o.OneClock, o.Now = true, time.Now()
	if change != nil {
		change(&o)
	}
	before := d.keys()
	want, err := Run(d.t.Context(), o)
	if err != nil {
		d.t.Fatal(err)
	}
	got, err := RunInTasks(d.t.Context(), o, tasks, each(o))
	if err != nil {
		d.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		d.t.Errorf("in %d tasks (+) the report differs (-):\n%s", tasks, diff)
	}
	if after := d.keys(); !slices.Equal(before, after) {
		d.t.Errorf("%d objects before, %d after", len(before), len(after))
	}
	return want
}

func TestAnAuditInTasksGivesTheSameReport(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	urlOf := func(r *schema.URLRecord) string { return r.URL }
	for name, c := range map[string]struct {
		tasks  int
		damage func(*damagedCrawl)
		change func(*Options)
		clean  bool
	}{
		"one task":             {tasks: 1, clean: true},
		"seven tasks":          {tasks: 7, clean: true},
		"a sample":             {tasks: 3, clean: true, change: func(o *Options) { o.Sample = 0.3 }},
		"one round":            {tasks: 2, clean: true, change: func(o *Options) { o.Round = 0 }},
		"no config":            {tasks: 2, clean: true, change: func(o *Options) { o.Config = nil }},
		"a damaged document":   {tasks: 3, damage: func(d *damagedCrawl) { d.flip(result(stages.Merge, 0)) }},
		"a missing WARC file":  {tasks: 3, damage: func(d *damagedCrawl) { d.delete(warcOf(d)) }},
		"a damaged links file": {tasks: 3, damage: func(d *damagedCrawl) { d.flip(part(stages.FileLinks)) }},
		"a part that turns out unreadable, and a sample": {tasks: 5, damage: func(d *damagedCrawl) {
			d.replace(part(stages.FileLinks), make([]byte, len(d.body(part(stages.FileLinks)))))
		}, change: func(o *Options) { o.Sample = 0.01 }},
		"lost link targets": {tasks: 4, damage: func(d *damagedCrawl) {
			for range 3 {
				damageRow(d, stages.FileURLs, urlOf, func(r *schema.URLRecord) bool { return r.State == schema.StateFound }, func(*schema.URLRecord) []schema.URLRecord { return nil })
			}
		}},
		"many violations": {tasks: 3, damage: func(d *damagedCrawl) {
			rewrite(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				for i := range rows {
					rows[i].Start = rows[0].Start
				}
				return rows
			})
		}},
		"a robots.txt record that two rounds read": {tasks: 3, damage: func(d *damagedCrawl) {
			key := warcOf(d)
			body := slices.Clone(d.body(key))
			for i := 40; i < len(body); i += 97 {
				body[i] ^= 1
			}
			d.replace(key, body)
		}},
		"representatives that two rounds read": {tasks: 3, damage: func(d *damagedCrawl) {
			key := layout.Working(testCrawl, 0, "dedup", stages.FileRepresentatives, 0)
			body := slices.Clone(d.body(key))
			for i := 4; i < len(body)/2; i++ {
				body[i] = 0
			}
			d.replace(key, body)
		}, change: func(o *Options) { o.Sample = 0.01 }},
		"a stray": {tasks: 2, damage: func(d *damagedCrawl) {
			d.createObject(layout.Table(stages.FileLinks, testCrawl, 0, 77), part(stages.FileLinks))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := copyCrawl(t)
			if c.damage != nil {
				c.damage(d)
			}
			if r := d.sameInTasks(c.tasks, c.change); (r.Found() == 0) != c.clean {
				t.Errorf("%d violations", r.Found())
			}
		})
	}
}

func TestAnAuditThatFailsLeavesNothing(t *testing.T) {
	d := copyCrawl(t)
	before := d.keys()
	var task stages.Task
	gone := errors.New("the cluster is gone")
	o := d.a.Options
	o.Now = time.Now()
	_, err := RunInTasks(t.Context(), o, 2, func(_ context.Context, _ *manifest.Plan, tasks []stages.Task, _ func(stages.Task, error)) error {
		task = tasks[1]
		return gone
	})
	if !errors.Is(err, gone) {
		t.Error(err)
	}
	if after := d.keys(); !slices.Equal(before, after) {
		t.Errorf("%d objects before, %d after", len(before), len(after))
	}
	if err := RunTask(t.Context(), d.a.Options, task); !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("a task of an audit that has ended: %v", err)
	}
	// A task without a result must not count as a task that found nothing.
	_, err = RunInTasks(t.Context(), o, 2, func(context.Context, *manifest.Plan, []stages.Task, func(stages.Task, error)) error { return nil })
	if !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "has no result") {
		t.Error(err)
	}
}

func TestATaskThatOutlivesItsAuditLeavesNothing(t *testing.T) {
	d := copyCrawl(t)
	before := d.keys()
	o := d.a.Options
	o.Now = time.Now()
	late, read, removed := make(chan error), make(chan struct{}), make(chan struct{})
	_, err := RunInTasks(t.Context(), o, 1, func(ctx context.Context, _ *manifest.Plan, tasks []stages.Task, _ func(stages.Task, error)) error {
		own := o
		own.Bucket = gated{d.b, sync.OnceFunc(func() {
			close(read)
			<-removed
		})}
		go func() { late <- RunTask(context.WithoutCancel(ctx), own, tasks[0]) }()
		<-read // the task knows what to audit
		return errors.New("interrupted")
	})
	close(removed)
	if err == nil {
		t.Error("no error")
	}
	if err := <-late; !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "has ended") {
		t.Error(err)
	}
	if after := d.keys(); !slices.Equal(before, after) {
		t.Errorf("%d objects before, %d after", len(before), len(after))
	}
}

// gated calls a function before it lists objects.
type gated struct {
	store.Bucket
	before func()
}

func (g gated) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	g.before()
	return g.Bucket.List(ctx, prefix)
}

func TestDocumentsOfAnAuditThatWasBrokenOffAreLeftovers(t *testing.T) {
	d := copyCrawl(t)
	o := d.a.Options
	o.Now = time.Now()
	for age, want := range map[time.Duration]int{time.Hour: 0, 25 * time.Hour: 1} {
		key := layout.Inputs(testCrawl, 1, string(stages.AuditStage(audit.NewID(o.Now.Add(-age)), string(audit.Files))))
		if _, err := manifest.Create(t.Context(), d.b, key, &manifest.Audit{Crawl: testCrawl, Round: -1, Sample: 1, Tasks: 2}); err != nil {
			t.Fatal(err)
		}
		n := 0
		r, err := Strays(t.Context(), o, func(s Stray) error {
			n++
			if s.Read || !strings.Contains(s.Why, "broken off") {
				t.Errorf("%+v", s)
			}
			return nil
		})
		if err != nil || r.Found() != 0 || n != want {
			t.Errorf("%s: %d strays, want %d: %v", age, n, want, err)
		}
		d.delete(key)
	}
}

// full is a store whose disk is full.
type full struct{ store.Bucket }

func (full) Create(context.Context, string, io.ReaderAt, int64) (store.Version, error) {
	return "", &os.PathError{Op: "write", Path: "x", Err: store.ErrFull}
}

func TestAnAuditOnAFullDiskSaysSo(t *testing.T) {
	d := copyCrawl(t)
	o := d.a.Options
	o.Bucket, o.Now = full{d.b}, time.Now()
	if _, err := RunInTasks(t.Context(), o, 2, each(o)); !errors.Is(err, store.ErrFull) {
		t.Error(err)
	}
}
