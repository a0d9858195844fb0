package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// replace stores other bytes under a key, as if a user had copied a file there.
func replace(t *testing.T, b store.Bucket, key string, body []byte) {
	t.Helper()
	if err := b.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateBytes(t.Context(), b, key, body); err != nil {
		t.Fatal(err)
	}
}

// contents returns all objects of a store except attempt records.
func contents(t *testing.T, b store.Bucket) map[string]string {
	t.Helper()
	all := map[string]string{}
	for o, err := range b.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := b.Get(t.Context(), o.Key, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(o.Key, "/attempts/") {
			all[o.Key] = string(body)
		}
	}
	return all
}

func TestDocumentsOfElsewhereAreRefusedByName(t *testing.T) {
	ranked := task(stages.Rank, 0)
	other := task(stages.Merge, 1)
	other.Crawl = "2026-10"
	result := func(of stages.Task, plan string) manifest.Document {
		return &manifest.Result{Task: of.String(), Stage: string(of.Stage), Partition: of.Partition, Plan: plan}
	}
	for _, c := range []struct {
		name, key string
		put       manifest.Document
		says      string
	}{
		{"a result of another partition", layout.Result("2026-11", 0, "merge", 1), result(task(stages.Merge, 0), "p"), "belongs to task merge@2026-11.0:0, not to task merge@2026-11.0:1"},
		{"a result of another crawl", layout.Result("2026-11", 0, "merge", 1), result(other, "p"), "belongs to task merge@2026-10.0:1, not to task merge@2026-11.0:1"},
		{"a result of another plan", layout.Result("2026-11", 0, "merge", 1), result(task(stages.Merge, 1), "q"), "belongs to plan q, not to plan p"},
		{"a plan of another crawl", layout.PlanManifest("2026-11", 0, "p"), &manifest.Plan{ID: "p", Crawl: "2026-10", Buckets: 1}, "belongs to plan p of 2026-10.0, not to plan p of 2026-11.0"},
		{"a plan of another round", layout.PlanManifest("2026-11", 0, "p"), &manifest.Plan{ID: "p", Crawl: "2026-11", Round: 1, Buckets: 1}, "belongs to plan p of 2026-11.1, not to plan p of 2026-11.0"},
		{"another plan", layout.PlanManifest("2026-11", 0, "p"), &manifest.Plan{ID: "q", Crawl: "2026-11", Buckets: 1}, "belongs to plan q of 2026-11.0, not to plan p of 2026-11.0"},
		{"inputs of another stage", layout.Inputs("2026-11", 0, "rank"), &manifest.Inputs{Stage: "dedup", Plan: "p"}, "belongs to dedup of plan p, not to rank of plan p"},
		{"a seal of another crawl", layout.Sealed("2026-11", 0), &manifest.Sealed{Crawl: "2026-10"}, "belongs to round 2026-10.0, not to round 2026-11.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := startedStore(t)
			for n := range 2 {
				commitResult(t, r.Bucket, task(stages.Merge, n))
			}
			if _, err := roundstate.Begin(t.Context(), r.Bucket, "2026-11", 0, ledgertest.Writer()); err != nil {
				t.Fatal(err)
			}
			body, err := manifest.Encode(c.put)
			if err != nil {
				t.Fatal(err)
			}
			replace(t, r.Bucket, c.key, body)
			before := contents(t, r.Bucket)
			err = r.Run(t.Context(), ranked)
			if !errors.Is(err, manifest.ErrCorrupt) || !errors.Is(err, stages.ErrPermanent) ||
				!strings.Contains(err.Error(), fmt.Sprintf("%q %s: restore the right document", c.key, c.says)) {
				t.Errorf("%v", err)
			}
			unchanged(t, before, contents(t, r.Bucket))
			if a := attempts(t, r.Bucket, ranked); len(a) != 1 || a[0].Class != manifest.ClassCorrupt {
				t.Errorf("recorded as %+v", a)
			}
		})
	}
}

func unchanged(t *testing.T, before, after map[string]string) {
	t.Helper()
	for key, body := range before {
		if after[key] != body && key != layout.Ledger("2026-11") { // only the ledger may change, because it grows
			t.Errorf("%q was changed", key)
		}
	}
}

func TestACrawlManifestOfAnotherCrawlIsRefused(t *testing.T) {
	r, _ := startedStore(t)
	body, err := manifest.Encode(&manifest.Crawl{Crawl: "2026-10"})
	if err != nil {
		t.Fatal(err)
	}
	replace(t, r.Bucket, layout.CrawlManifest("2026-11"), body)
	_, _, err = roundstate.OpenCrawl(t.Context(), r.Bucket, "2026-11", os.LookupEnv)
	if !errors.Is(err, manifest.ErrCorrupt) || !strings.Contains(err.Error(), `"crawl=2026-11/crawl.json" belongs to crawl 2026-10, not to crawl 2026-11`) {
		t.Errorf("%v", err)
	}
}

func TestDamagedAndNewerDocumentsStopATaskAndAreLeftAsTheyAre(t *testing.T) {
	newer := bytes.Replace([]byte(`{"format_version": N, "kind": "result"}`), []byte("N"), fmt.Append(nil, schema.FormatVersion+1), 1)
	for _, key := range []string{
		layout.PlanManifest("2026-11", 0, "p"), layout.Ledger("2026-11"), layout.Inputs("2026-11", 0, "rank"),
		layout.Result("2026-11", 0, "merge", 1), layout.Result("2026-11", 0, "rank", 0), layout.Sealed("2026-11", 0),
	} {
		for want, damage := range map[error]func([]byte) []byte{
			manifest.ErrCorrupt: func(body []byte) []byte { return body[:len(body)/2] },
			manifest.ErrFormat:  func([]byte) []byte { return newer },
		} {
			t.Run(fmt.Sprint(key, " ", want), func(t *testing.T) {
				r, p := startedStore(t)
				for n := range 2 {
					commitResult(t, r.Bucket, task(stages.Merge, n))
				}
				if _, err := roundstate.Begin(t.Context(), r.Bucket, "2026-11", 0, ledgertest.Writer()); err != nil {
					t.Fatal(err)
				}
				if _, err := roundstate.Freeze(t.Context(), r.Bucket, p, stages.Rank, ledgertest.Writer()); err != nil {
					t.Fatal(err)
				}
				body, _, err := r.Bucket.Get(t.Context(), key, 1<<20)
				if errors.Is(err, store.ErrNotFound) {
					body, err = manifest.Encode(&manifest.Sealed{})
				}
				if err != nil {
					t.Fatal(err)
				}
				replace(t, r.Bucket, key, damage(body))
				before := contents(t, r.Bucket)
				err = r.Run(t.Context(), task(stages.Rank, 0))
				if !errors.Is(err, want) || !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), fmt.Sprintf("%q", key)) {
					t.Errorf("%v", err)
				}
				unchanged(t, before, contents(t, r.Bucket))
			})
		}
	}
}

func TestAnInputOfAnotherSizeIsCorruptBeforeItIsRead(t *testing.T) {
	r, _ := startedStore(t)
	key := layout.Working("2026-11", 0, "merge", stages.FilePages, 0)
	if _, err := store.CreateBytes(t.Context(), r.Bucket, key, []byte("PAR1 cut off PAR1")); err != nil {
		t.Fatal(err)
	}
	commitResult(t, r.Bucket, task(stages.Merge, 0), manifest.File{Dataset: stages.FilePages, Key: key, Bytes: 1000, Rows: 1})
	commitResult(t, r.Bucket, task(stages.Merge, 1))
	err := r.Run(t.Context(), task(stages.Dedup, 0))
	want := fmt.Sprintf("%q: it has 17 bytes, but 1000 bytes were recorded: restore it from a copy, or rebuild it with `crawlbatch retry --month 2026-11 --rebuild`", key)
	if !errors.Is(err, manifest.ErrChanged) || !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if a := attempts(t, r.Bucket, task(stages.Dedup, 0)); len(a) != 1 || a[0].Class != manifest.ClassCorrupt {
		t.Errorf("recorded as %+v", a)
	}
}

func TestAChangedInputStopsATaskBeforeItsResult(t *testing.T) {
	r, _ := startedStore(t)
	key := layout.Working("2026-11", 0, "merge", stages.FilePages, 0)
	w, err := table.NewWriter[schema.WorkingPage](filepath.Join(t.TempDir(), "pages"), table.Fast())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(&schema.WorkingPage{}); err != nil {
		t.Fatal(err)
	}
	f, err := table.Finish(t.Context(), w, r.Bucket, stages.FilePages, key)
	if err != nil {
		t.Fatal(err)
	}
	body, _, err := r.Bucket.Get(t.Context(), key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	commitResult(t, r.Bucket, task(stages.Merge, 0), f)
	commitResult(t, r.Bucket, task(stages.Merge, 1))
	at := bytes.LastIndex(body, []byte("crawlbatch")) // the text is in the footer, which no checksum of Parquet covers
	body[at] ^= 1
	replace(t, r.Bucket, key, body)
	err = r.Run(t.Context(), task(stages.Dedup, 0))
	if !errors.Is(err, manifest.ErrChanged) || !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), fmt.Sprintf("%q: its SHA-256 is ", key)) {
		t.Errorf("%v", err)
	}
	if a := attempts(t, r.Bucket, task(stages.Dedup, 0)); len(a) != 1 || a[0].Class != manifest.ClassCorrupt {
		t.Errorf("recorded as %+v", a)
	}
	body[at] ^= 1
	replace(t, r.Bucket, key, body)
	if err := r.Run(t.Context(), task(stages.Dedup, 0)); err != nil {
		t.Errorf("put back: %v", err)
	}
}

func TestACheckpointThatIsDamagedNewerOrOfElsewhereIsNotTakenOver(t *testing.T) {
	whole, err := manifest.Encode(&manifest.Checkpoint{Plan: "p", Epoch: 1, Released: true})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := manifest.Encode(&manifest.Checkpoint{Plan: "another", Epoch: 1, Released: true})
	if err != nil {
		t.Fatal(err)
	}
	key := layout.Checkpoint("2026-11", 0, 0)
	for name, c := range map[string]struct {
		body  []byte
		want  error
		class string
	}{
		"cut off":         {whole[:len(whole)-20], manifest.ErrCorrupt, manifest.ClassCorrupt},
		"empty":           {nil, manifest.ErrCorrupt, manifest.ClassCorrupt},
		"newer":           {fmt.Appendf(nil, `{"format_version": %d, "kind": "checkpoint"}`, schema.FormatVersion+1), manifest.ErrFormat, manifest.ClassCorrupt},
		"of another plan": {elsewhere, stages.ErrPermanent, manifest.ClassPermanent},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := startedStore(t)
			replace(t, r.Bucket, key, c.body)
			err := r.Run(t.Context(), task(stages.Fetch, 0))
			if !errors.Is(err, c.want) || !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), fmt.Sprintf("%q", key)) {
				t.Errorf("%v", err)
			}
			if got := contents(t, r.Bucket)[key]; got != string(c.body) {
				t.Errorf("the checkpoint was written over: %s", got)
			}
			if a := attempts(t, r.Bucket, task(stages.Fetch, 0)); len(a) != 1 || a[0].Class != c.class {
				t.Errorf("recorded as %+v", a)
			}
		})
	}
}
