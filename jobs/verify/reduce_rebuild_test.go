package verify

import (
	"bytes"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
)

// runner runs tasks on the copy.
func (d *damagedCrawl) runner() worker.Runner {
	return worker.Runner{
		Bucket: d.b, Config: d.a.Config, Version: "test", Scratch: d.t.TempDir(), Clock: stages.SystemClock{},
		Log: slog.New(slog.DiscardHandler), Progress: stages.NoProgress{},
	}
}

// keys lists all objects.
func (d *damagedCrawl) keys() []string {
	d.t.Helper()
	var keys []string
	for o, err := range d.b.List(d.t.Context(), "") {
		if err != nil {
			d.t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

func TestLostPartsAreRebuilt(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	d := copyCrawl(t)
	before := d.keys()
	runner := d.runner()
	lost, datasets := map[string]manifest.File{}, map[string]bool{}
	tasks := func(do func(stages.Task, *manifest.Result)) {
		for number := range 2 {
			r := d.load(number)
			for _, s := range stages.Order[1:] {
				for n := range r.Tasks(s) {
					do(stages.Task{Stage: s, Crawl: testCrawl, Round: number, Partition: n}, d.result(number, s, n))
				}
			}
		}
	}
	tasks(func(_ stages.Task, result *manifest.Result) {
		for _, f := range result.Files {
			// The test deletes at least one file of each dataset.
			if datasets[f.Dataset] && random.IntN(3) > 0 {
				continue
			}
			datasets[f.Dataset] = true
			lost[f.Key] = f
			if err := d.b.Delete(t.Context(), f.Key); err != nil {
				t.Fatal(err)
			}
		}
	})
	if len(datasets) < 13 {
		t.Errorf("datasets %v", datasets)
	}
	rebuilt := 0
	tasks(func(task stages.Task, result *manifest.Result) {
		keys, err := runner.Rebuild(t.Context(), task)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, key := range keys {
			if _, ok := lost[key]; !ok {
				t.Errorf("%s was rebuilt, although it was not lost", key)
			}
			rebuilt++
		}
		if keys, err := runner.Rebuild(t.Context(), task); err != nil || len(keys) > 0 {
			t.Errorf("rebuilt again: %v, %v", keys, err)
		}
	})
	if rebuilt != len(lost) {
		t.Errorf("seed %d: %d parts were rebuilt, %d lost", seed, rebuilt, len(lost))
	}
	for key, f := range lost {
		if got, err := d.a.Digest(t.Context(), key, false); err != nil || got.Bytes != f.Bytes || got.SHA256 != f.SHA256 {
			t.Errorf("seed %d: %s: %d bytes with %s, want %d with %s: %v", seed, key, got.Bytes, got.SHA256, f.Bytes, f.SHA256, err)
		}
	}
	if after := d.keys(); !slices.Equal(before, after) {
		t.Errorf("seed %d: %d objects before, %d after", seed, len(before), len(after))
	}
}

func TestAPartThatComesOutDifferentIsNotWritten(t *testing.T) {
	d := copyCrawl(t)
	forged := *d.result(0, stages.Publish, 0)
	forged.Files = slices.Clone(forged.Files)
	forged.Files[0].SHA256 = manifest.Digest([]byte("other bytes"))
	d.replace(layout.Result(testCrawl, 0, "publish", 0), encode(t, &forged))
	key := forged.Files[0].Key
	if err := d.b.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	before := d.keys()
	keys, err := d.runner().Rebuild(t.Context(), stages.Task{Stage: stages.Publish, Crawl: testCrawl})
	if len(keys) > 0 || !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), key) || !strings.HasPrefix(err.Error(), "rebuild publish@2026-11.0:0: ") {
		t.Errorf("%v, %v", keys, err)
	}
	if after := d.keys(); !slices.Equal(before, after) {
		t.Errorf("%d objects before, %d after", len(before), len(after))
	}
}

func TestLostInputsAndFetchedDataAreNamed(t *testing.T) {
	d := copyCrawl(t)
	segment := d.result(0, stages.Fetch, 1).FilesOf(stages.FileFetches)[0].Key
	merged := d.result(0, stages.Merge, 1).FilesOf(stages.FileFetches)[0].Key
	for _, key := range []string{segment, merged} {
		if err := d.b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	runner := d.runner()
	if keys, err := runner.Rebuild(t.Context(), stages.Task{Stage: stages.Fetch, Crawl: testCrawl}); err != nil || len(keys) > 0 {
		t.Errorf("a fetch task that lost nothing: %v, %v", keys, err)
	}
	if _, err := runner.Rebuild(t.Context(), stages.Task{Stage: stages.Fetch, Crawl: testCrawl, Partition: 1}); !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), segment) {
		t.Errorf("a lost segment: %v", err)
	}
	if _, err := runner.Rebuild(t.Context(), stages.Task{Stage: stages.Merge, Crawl: testCrawl, Partition: 1}); !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), segment) {
		t.Errorf("a part of a lost segment: %v", err)
	}
}

func TestADamagedPartIsMovedAwayAndMadeAnew(t *testing.T) {
	d := copyCrawl(t)
	task := stages.Task{Stage: stages.Frontier, Crawl: testCrawl}
	key := layout.Table(stages.FileURLs, testCrawl, 0, 0)
	whole := d.body(key)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for n, damage := range [][]byte{[]byte("short"), flipped} {
		d.replace(key, damage)
		keys, err := d.runner().Rebuild(t.Context(), task)
		if err != nil || !slices.Equal(keys, []string{key}) || !bytes.Equal(d.body(key), whole) {
			t.Errorf("rebuilt %q: %v", keys, err)
		}
		if kept := d.body(layout.Quarantined(key, n+1)); !bytes.Equal(kept, damage) {
			t.Errorf("quarantine has %d bytes, the damaged part had %d", len(kept), len(damage))
		}
	}
	// If a recomputed part has another digest, it does not replace the stored part.
	d.replace(key, flipped)
	edit(d, result(stages.Frontier, 0), func(r *manifest.Result) {
		for i := range r.Files {
			r.Files[i].SHA256 = manifest.Digest(flipped[:9])
		}
	})
	if keys, err := d.runner().Rebuild(t.Context(), task); len(keys) > 0 || !errors.Is(err, stages.ErrPermanent) || !bytes.Equal(d.body(key), flipped) {
		t.Errorf("rebuilt %q: %v", keys, err)
	}
}
