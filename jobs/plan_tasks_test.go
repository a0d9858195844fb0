package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/overlay"
	"crawlbatch.io/crawlbatch/jobs/planning"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// planInTasks plans round 0 in tasks, which run one after the other. It removes the working files as the command
// does.
func (f *fixture) planInTasks(b store.Bucket, list string, now time.Time) (*manifest.Plan, error) {
	src, err := source.Files(list, nil)
	if err != nil {
		return nil, err
	}
	w := planning.Worker{
		Bucket: b, Scratch: f.driver.Scratch, Version: "test", Lookup: os.LookupEnv,
		Open: func(_ context.Context, name string) (source.Source, error) { return source.Files(name, nil) },
	}
	tasks := &planning.Tasks{Bucket: b, N: 2, Now: now, Version: "test", Shares: func(string) bool { return true }}
	tasks.Execute = func(ctx context.Context, _ *manifest.Plan, all []stages.Task, done func(stages.Task, error)) error {
		for _, t := range all {
			done(t, w.RunTask(ctx, t))
		}
		return nil
	}
	cfg := f.driver.Config.Clone()
	cfg.Plan.PartitionURLs = 1
	p, _, err := Plan(f.t.Context(), PlanRequest{
		Bucket: b, Crawl: "2026-11", Config: cfg, Sources: []source.Source{src}, Clock: stages.SystemClock{}, Version: "test", Scratch: f.driver.Scratch, Tasks: tasks,
	})
	if err != nil {
		return p, err
	}
	return p, tasks.Remove(f.t.Context())
}

// leftovers returns the number of objects of plans in tasks, and of all others, in the folder of round 0.
func (f *fixture) leftovers() (planning, others int) {
	dir := layout.RoundDir("2026-11", 0)
	for o, err := range f.bucket.List(f.t.Context(), dir) {
		if err != nil {
			f.t.Fatal(err)
		}
		if strings.HasPrefix(o.Key, dir+stages.PlanningPrefix) {
			planning++
		} else {
			others++
		}
	}
	return planning, others
}

// TestAPlanInTasksThatIsKilledIsPlannedAgain stops a plan in tasks before each of its writes and deletes. The next
// plan in tasks makes the same plan, and leaves at most what the killed one left. A plan a day later removes this.
func TestAPlanInTasksThatIsKilledIsPlannedAgain(t *testing.T) {
	f, now, list := newFixture(t), time.Now(), filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(list, []byte("http://a.test/1\nno url\nhttp://b.test/1\nhttp://a.test/1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	want, err := f.planInTasks(f.bucket, list, now)
	if err != nil {
		t.Fatal(err)
	}
	_, files := f.leftovers()
	kills, left := 0, 0
	for n := 1; ; n++ {
		f := newFixture(t)
		f.bucket = overlay.New(f.bucket, t.TempDir()) // it need not be durable
		b := &hookedStore{Bucket: f.bucket, n: n, hook: func() { panic("killed") }}
		func() {
			defer func() { _ = recover() }()
			if _, err := f.planInTasks(b, list, now); err != nil {
				t.Errorf("write %d: %v", n, err)
			}
		}()
		if !b.done {
			break
		}
		kills++
		before, _ := f.leftovers()
		left = max(left, before)
		at := now.Add(time.Hour)
		if n%2 == 0 {
			at = now.Add(25 * time.Hour)
		}
		p, err := f.planInTasks(f.bucket, list, at)
		if err != nil || p.ID != want.ID {
			t.Fatalf("write %d: planned again: %v, %v", n, p, err)
		}
		after, others := f.leftovers()
		if n%2 == 0 && after != 0 || after > before || others != files {
			t.Errorf("write %d: at %s the folder has %d working files, before it had %d, and %d other objects, not %d", n, at, after, before, others, files)
		}
	}
	if kills < 30 || left < 20 {
		t.Errorf("the plan was killed at %d writes, and at most %d working files were left", kills, left)
	}
}

// fullStore is a store with room for a number of further objects.
type fullStore struct {
	store.Bucket
	room int
}

func (b *fullStore) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	if !strings.HasPrefix(key, "crawl=") {
		return b.Bucket.Create(ctx, key, body, size) // store.Probe makes this write
	}
	if b.room--; b.room < 0 {
		return "", fmt.Errorf("%s: %w", key, store.ErrFull)
	}
	return b.Bucket.Create(ctx, key, body, size)
}

// TestAPlanOnAFullDiskLeavesNoPart has room for a few objects. The plan fails, and removes what it stored of itself,
// but never the objects of a plan that the ledger names.
func TestAPlanOnAFullDiskLeavesNoPart(t *testing.T) {
	f, removed := newFixture(t), 0
	b := f.bucket
	var p *manifest.Plan
	for room := 0; p == nil; room++ {
		f.bucket = &fullStore{b, room}
		made, _, err := f.plan(false, someURLs...)
		if err == nil {
			p = made
			break
		}
		if _, files := f.leftovers(); !errors.Is(err, store.ErrFull) || files > 0 {
			t.Errorf("room for %d objects: %v leaves %d objects", room, err, files)
		}
		if strings.Contains(err.Error(), "is removed") {
			removed++
		}
	}
	if removed < 3 {
		t.Errorf("%d plans removed what they stored", removed)
	}
	_, files := f.leftovers()
	if err := b.Delete(t.Context(), layout.PlanManifest(p.Crawl, p.Round, p.ID)); err != nil {
		t.Fatal(err)
	}
	f.bucket = &fullStore{b, 0}
	if _, _, err := f.plan(true, someURLs...); !errors.Is(err, store.ErrFull) || strings.Contains(err.Error(), "is removed") {
		t.Errorf("a plan that the ledger names: %v", err)
	}
	if _, left := f.leftovers(); left != files-1 {
		t.Errorf("%d objects remain of a plan that the ledger names, not %d", left, files-1)
	}
}
