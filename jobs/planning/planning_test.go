package planning

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/spool"
	"crawlbatch.io/crawlbatch/stages"
)

// lab plans a month from a list.
type lab struct {
	*testing.T
	b     store.Bucket
	list  source.Source
	basis *Basis
	tasks *Tasks
}

// newLab returns a lab. The function before is called before each task, which a program of the given version runs.
func newLab(t *testing.T, version string, before func(store.Bucket, stages.Task)) *lab {
	t.Helper()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(name, []byte("http://a.test/\nhttp://b.test/\nhttp://a.test/2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := source.Files(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Plan.PartitionURLs = 1
	l := &lab{T: t, b: b, list: list, basis: &Basis{Bucket: b, Of: &manifest.Crawl{Crawl: "2026-11"}, Config: cfg, Now: time.Now(), Version: "v"}}
	l.tasks = &Tasks{Bucket: b, N: 2, Now: time.Now(), Version: "v", Shares: func(string) bool { return true }}
	w := Worker{Bucket: b, Scratch: t.TempDir(), Version: version, Lookup: os.LookupEnv, Open: func(_ context.Context, name string) (source.Source, error) {
		return source.Files(name, nil)
	}}
	l.tasks.Execute = func(ctx context.Context, _ *manifest.Plan, all []stages.Task, done func(stages.Task, error)) error {
		for _, task := range all {
			before(b, task)
			done(task, w.RunTask(ctx, task))
		}
		return nil
	}
	return l
}

// plan makes and commits the plan, and removes its working files.
func (l *lab) plan() error {
	scratch := l.TempDir()
	limits, request, err := l.basis.Request(l.Context(), scratch)
	if err != nil {
		return err
	}
	request.Sources, request.Elsewhere = []source.Source{l.list}, l.tasks.For(l.basis, limits.Gone, scratch)
	p, err := planner.Make(l.Context(), limits, request)
	if err == nil {
		err = p.Commit(l.Context(), l.b)
	}
	return errors.Join(err, l.tasks.Remove(l.Context()))
}

// objects returns the keys of the round that contain a text.
func (l *lab) objects(text string) (keys []string) {
	for o, err := range l.b.List(l.Context(), layout.RoundDir("2026-11", 0)) {
		if err != nil {
			l.Fatal(err)
		}
		if strings.Contains(o.Key, text) {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// A source that is replaced between two tasks by one of the same size ends the plan, also in pods, where other
// interruptions are tried again.
func TestAPlanInTasksNoticesAChangedSource(t *testing.T) {
	l := newLab(t, "v", func(store.Bucket, stages.Task) {})
	execute := l.tasks.Execute
	l.tasks.Execute = func(ctx context.Context, p *manifest.Plan, all []stages.Task, done func(stages.Task, error)) error {
		if strings.HasSuffix(string(all[0].Stage), "-read") {
			later := time.Now().Add(time.Minute)
			if err := errors.Join(os.WriteFile(l.list.Name(), []byte("http://a.test/\nhttp://c.test/\nhttp://a.test/2\n"), 0o600), os.Chtimes(l.list.Name(), later, later)); err != nil {
				t.Fatal(err)
			}
			w := Worker{Bucket: l.b, Scratch: t.TempDir(), Version: "v", Lookup: os.LookupEnv, Open: func(_ context.Context, name string) (source.Source, error) {
				return source.Files(name, nil)
			}}
			if err := w.RunPod(ctx, all[0]); !errors.Is(err, source.ErrChanged) || !errors.Is(err, stages.ErrPermanent) {
				t.Errorf("in a pod: %v", err)
			}
		}
		return execute(ctx, p, all, done)
	}
	if err := l.plan(); !errors.Is(err, source.ErrChanged) || errors.Is(err, stages.ErrPermanent) {
		t.Errorf("in this process: %v", err)
	}
	if left := l.objects(""); len(left) > 0 {
		t.Errorf("remain: %q", left)
	}
}

func TestTasksOfAPlanThatFailLeaveNoPlan(t *testing.T) {
	none := func(store.Bucket, stages.Task) {}
	// change replaces an object of a phase before the phase's first task. A nil body deletes it.
	change := func(phase, key string, body func([]byte) []byte) func(store.Bucket, stages.Task) {
		return func(b store.Bucket, task stages.Task) {
			if !strings.HasSuffix(string(task.Stage), "-"+phase) || task.Partition > 0 {
				return
			}
			key := layout.RoundDir(task.Crawl, task.Round) + strings.TrimSuffix(string(task.Stage), phase) + key
			old, _, err := b.Get(t.Context(), key, 1<<20)
			if err == nil {
				err = b.Delete(t.Context(), key)
			}
			if changed := body(old); err == nil && changed != nil {
				_, err = store.CreateBytes(t.Context(), b, key, changed)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	gone := func([]byte) []byte { return nil }
	half := func(b []byte) []byte { return b[:len(b)/2] }
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	for name, c := range map[string]struct {
		before  func(store.Bucket, stages.Task)
		version string
		says    string
	}{
		"another version":        {none, "w", "use one version"},
		"the plan has ended":     {change("read", "read/inputs.json", gone), "v", "run `crawlbatch plan --month 2026-11` again"},
		"the plan ended at last": {change("place", "place/inputs.json", gone), "v", "run `crawlbatch plan --month 2026-11` again"},
		"the work was cut short": {change("join", "join/inputs.json", half), "v", manifest.ErrCorrupt.Error() + ": " + spool.Remedy},
		"a result was cut short": {func(b store.Bucket, task stages.Task) {
			if task.Partition == 1 { // those of the first task are there, and nobody has read them
				change("read", "read/part-00000.json", half)(b, stages.Task{Stage: task.Stage, Crawl: task.Crawl})
			}
		}, "v", manifest.ErrCorrupt.Error() + ": " + spool.Remedy},
		"a share is gone":      {change("join", "join/shares/part-00000.json", gone), "v", "not found: " + spool.Remedy},
		"a share was changed":  {change("join", "join/shares/part-00000.json", flip), "v", manifest.ErrCorrupt.Error() + ": " + spool.Remedy},
		"records are gone":     {change("join", "work/records-read-0", gone), "v", "not found, but the crawl recorded it: " + spool.Remedy},
		"records were changed": {change("join", "work/records-read-0", flip), "v", spool.Remedy + ": the store is damaged"},
		"a file was changed":   {change("place", "work/plan-0", flip), "v", spool.Remedy + ": the store is damaged"},
		"a takedown began": {func(b store.Bucket, task stages.Task) {
			if !strings.HasSuffix(string(task.Stage), "-join") || task.Partition > 0 {
				return
			}
			if _, err := manifest.Create(t.Context(), b, layout.Takedowns(), &manifest.Takedowns{Entries: []manifest.Takedown{{}}}); err != nil {
				t.Error(err)
			}
		}, "v", errChanged.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, c.version, c.before)
			err := l.plan()
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, it should say %q", err, c.says)
			}
			if left := append(l.objects("plan.json"), l.objects(stages.PlanningPrefix)...); len(left) > 0 {
				t.Errorf("%v are left", left)
			}
		})
	}
	l := newLab(t, "v", none)
	if err := l.plan(); err != nil || len(l.objects("plan.json")) != 1 || len(l.objects(stages.PlanningPrefix)) > 0 {
		t.Errorf("%v, %v", err, l.objects(""))
	}
}
