package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
)

// TestALedgerThatIsBehindIsToldByEveryCommand puts an older ledger back, which knows 2, 1 or 0 of 3 rounds. Before and
// after the command that mends it, all commands agree.
func TestALedgerThatIsBehindIsToldByEveryCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	addr, dir := crawltest.Web(t), t.TempDir()
	store, seeds, conf, duckdb := filepath.Join(dir, "store"), filepath.Join(dir, "urls.txt"), filepath.Join(dir, "c.yaml"), filepath.Join(dir, "duckdb")
	crawltest.Write(t, seeds, "http://a.test/\nhttp://b.test/\n")
	crawltest.Write(t, conf, crawltest.Config)
	crawltest.Write(t, duckdb, "#!/bin/sh\ncat >/dev/null\n")
	if err := os.Chmod(duckdb, 0o755); err != nil {
		t.Fatal(err)
	}
	commands := func() [][]string {
		month := []string{"--month", "2026-11", "--store", store}
		return [][]string{
			append([]string{"status"}, month...), append([]string{"views"}, month...), {"views", "--store", store}, {"views", "--all-months", "--store", store},
			append([]string{"query", "SELECT 1", "--duckdb", duckdb}, month...), {"query", "SELECT 1", "--duckdb", duckdb, "--store", store},
			append([]string{"report", "-o", "json"}, month...), append([]string{"host", "a.test"}, month...),
			append([]string{"verify"}, month...), {"verify", "--store", store}, append([]string{"verify", "--round", "2"}, month...), append([]string{"verify", "--tasks", "2"}, month...),
			append([]string{"config"}, month...), append([]string{"feedback", "--to", filepath.Join(dir, "feedback.parquet")}, month...), append([]string{"compact"}, month...),
			append([]string{"inspect", "url", "http://a.test/"}, month...),
			append([]string{"retry", "--stage", "merge"}, month...), append([]string{"pause"}, month...), append([]string{"host", "a.test", "--stop", "x"}, month...),
			{"reparse", "--as", "2026-11r1", "--month", "2026-11", "--store", store}, append([]string{"run", "--rounds", "2"}, month...), append([]string{"run", "--rounds", "3"}, month...),
			append([]string{"plan", "--replace", "--source", seeds}, month...), {"plan", "--month", "2026-12", "--source", "frontier", "--connect-to", "::" + addr, "--store", store},
			{"takedown", "--domain", "b.test", "--store", store}, {"prune", "--store", store},
		}
	}
	run := func(args ...string) {
		t.Helper()
		if out, said, code := runCommandLine(t, args...); code != exitDone {
			t.Fatalf("%q: exit %d, %s%s", args, code, out, said)
		}
	}
	run("plan", "--month", "2026-11", "--source", seeds, "--config", conf, "--connect-to", "::"+addr, "--store", store)
	run("run", "--month", "2026-11", "--rounds", "3", "--store", store)
	whole := store
	for _, known := range []int{2, 1, 0} {
		store = filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(store, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		b := crawltest.OpenDir(t, store)
		ledgertest.Edit(t, b, "2026-11", func(all []manifest.Entry) []manifest.Entry {
			return all[:slices.IndexFunc(all, func(e manifest.Entry) bool { return e.InRound(known) })]
		})
		words := "an older ledger, which does not know that round " + string(rune('0'+known)) + " was started"
		for _, args := range commands() {
			out, said, code := runCommandLine(t, args...)
			said = strings.Join(strings.Fields(out+said), " ")
			if !strings.Contains(said, words) || !strings.Contains(said, "recreate it with `crawlbatch retry --month 2026-11 --store "+store+" --rebuild`") {
				t.Errorf("ledger of %d rounds, %q: exit %d, %s", known, args, code, said)
			}
			if wrong := map[bool]int{true: exitViolation}[args[0] == "verify"]; code == exitDone || code == exitUsage || wrong != 0 && code != wrong {
				t.Errorf("ledger of %d rounds, %q: exit %d, %s", known, args, code, said)
			}
		}
		run("retry", "--month", "2026-11", "--rebuild", "--store", store)
		for _, args := range commands()[:10] {
			run(args...)
		}
	}
}
