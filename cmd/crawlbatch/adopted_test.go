package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// unpackFormat2 unpacks a store of format 2. testdata/format2/make made the store with the last
// crawlbatch that wrote format 2. The store has a month with a sealed and a half-fetched round,
// a reparse of this month, and a plan of another month that has not started.
func unpackFormat2(t *testing.T) string {
	t.Helper()
	return unpacked(t, "../../testdata/format2/landed.tar.gz")
}

func TestAStoreOfFormat2IsReadAsItIs(t *testing.T) {
	dir := unpackFormat2(t)
	for _, args := range [][]string{
		{"status", "--month", "2026-11"}, {"views", "--month", "2026-11"}, {"plan", "--month", "2026-12", "--source", "frontier", "--dry-run"},
		{"verify", "--month", "2026-11r1", "--sample", "0.01"},
	} {
		_, said, code := runCommandLine(t, append(args, "--store", dir)...)
		if code != 0 || !strings.Contains(said, "an older crawlbatch made 2026-1") {
			t.Errorf("%q: exit %d, it says %q", args, code, said)
		}
	}
	for _, key := range []string{layout.Crawls(), layout.Ledger("2026-11")} {
		if _, err := os.Stat(filepath.Join(dir, key)); err == nil {
			t.Errorf("a command that only reads created %s", key)
		}
	}
}

// TestAdoptionWaitsForAnOlderProcessThatFetches plays the part of a running process of the older
// crawlbatch. The test holds the lock of the partition that this process fetches.
func TestAdoptionWaitsForAnOlderProcessThatFetches(t *testing.T) {
	b, err := dirstore.Open(unpackFormat2(t), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	held, ok, err := b.Lock(layout.Checkpoint("2026-11", 1, 0))
	if err != nil || !ok {
		t.Fatalf("lock: %t, %v", ok, err)
	}
	waits, adopted := make(chan struct{}), make(chan error, 1)
	log := slog.New(slog.NewTextHandler(onWrite(func(line string) {
		if strings.Contains(line, "waiting until the older crawlbatch") {
			close(waits)
		}
	}), nil))
	go func() {
		_, err := roundstate.Ready(t.Context(), b, "2026-11", ledgers(), log)
		adopted <- err
	}()
	select {
	case <-waits:
	case err := <-adopted:
		t.Fatalf("the adoption ended beside the older process: %v", err)
	}
	var active manifest.Active
	if _, _, err := manifest.Load(t.Context(), b, layout.Active(), &active); err != nil || active.Format != 2 || active.Done {
		t.Errorf("active.json: %+v, %v", active, err)
	}
	if made, err := manifest.Exists(t.Context(), b, layout.Ledger("2026-11")); err != nil || made {
		t.Errorf("the ledger was made before the older process ended: %t, %v", made, err)
	}
	held.Release()
	if err := <-adopted; err != nil {
		t.Fatal(err)
	}
	if l, err := ledger.Load(t.Context(), b, "2026-11"); err != nil || !l.Stored || l.Started(1) == nil {
		t.Errorf("the ledger: %+v, %v", l, err)
	}
}

// onWrite is a writer that hands each text to a function.
type onWrite func(text string)

func (w onWrite) Write(text []byte) (int, error) {
	w(string(text))
	return len(text), nil
}

func TestAStoreOfFormat2IsAdoptedAndGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	dir := unpackFormat2(t)
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var checkpoint manifest.Checkpoint
	if _, _, err := manifest.Load(t.Context(), b, layout.Checkpoint("2026-11", 1, 0), &checkpoint); err != nil {
		t.Fatal(err)
	}
	recorded := map[string]bool{}
	for _, f := range checkpoint.Files {
		if f.Dataset == "fetches" {
			for _, row := range tabletest.Read[schema.Fetch](t, b, f.Key) {
				recorded[row.URL] = true
			}
		}
	}
	if len(recorded) != 15 {
		t.Fatalf("%d URLs are recorded", len(recorded))
	}
	addr, stop := serve(t, "--hosts", "5", "--pages", "10", "--seed", "7", "--faults", "0")
	mustRun(t, "run", "--month", "2026-11", "--rounds", "2", "--store", dir, "--connect-to", "::"+addr)
	for _, e := range stop() {
		if recorded["http://"+e.Host+e.Path] {
			t.Errorf("a URL that the old version recorded was requested again: %+v", e)
		}
	}
	for crawl, rounds := range map[string]int{"2026-11": 2, "2026-11r1": 1, "2026-12": 1} {
		l, err := ledger.Load(t.Context(), b, crawl)
		if err != nil || !l.Stored || l.Rounds() != rounds || !l.Entries()[0].Adopted {
			t.Errorf("%s: ledger %+v, %v", crawl, l, err)
		}
		_, _, err = ledger.LoadCrawl(t.Context(), b, crawl)
		if err != nil {
			t.Error(err)
		}
	}
	mustRun(t, "verify", "--month", "2026-11", "--store", dir)
	mustRun(t, "verify", "--month", "2026-11r1", "--store", dir)
	if _, said, code := runCommandLine(t, "status", "--month", "2026-11", "--store", dir); code != 0 || strings.Contains(said, "older crawlbatch") {
		t.Errorf("exit %d, %q", code, said)
	}
}
