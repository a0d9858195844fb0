package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
)

// sealedStore makes a store with crawls. rounds maps the name of each crawl to its number of sealed rounds.
func sealedStore(t *testing.T, rounds map[string]int) string {
	t.Helper()
	dir := t.TempDir()
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string, d manifest.Document) {
		t.Helper()
		if _, err := manifest.Create(t.Context(), b, key, d); err != nil {
			t.Fatal(err)
		}
	}
	for crawl, n := range rounds {
		put(layout.CrawlManifest(crawl), &manifest.Crawl{Crawl: crawl})
		for round := range n {
			s := &manifest.Sealed{Crawl: crawl, Round: round}
			for _, d := range catalog.Datasets() {
				s.Files = append(s.Files, manifest.File{Dataset: d.Name, Key: layout.Table(d.Name, crawl, round, 0)})
			}
			put(layout.Sealed(crawl, round), s)
		}
	}
	ledgertest.Make(t, b, slices.Collect(maps.Keys(rounds))...)
	return dir
}

// runCommandLine runs a command line and returns its output and exit code.
func runCommandLine(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errw bytes.Buffer
	code = execute(context.Background(), args, strings.NewReader(""), &out, &errw)
	return out.String(), errw.String(), code
}

func TestViewsOpenTheNewestCrawlAndSaySo(t *testing.T) {
	for name, tc := range map[string]struct {
		rounds map[string]int
		flags  []string
		head   string // beginning of the SQL
		note   string // note in the SQL and on stderr
	}{
		"one":                       {map[string]int{"2026-11": 2}, nil, "rounds 2026-11.0, 2026-11.1.", "opened 2026-11, the newest crawl with a finished round\n"},
		"two months":                {map[string]int{"2025-12": 1, "2026-01": 1}, nil, "rounds 2026-01.0.", "opened 2026-01, the newest crawl with a finished round, one of 2 crawls in this store. --month opens another, --all-months all of them\n"},
		"a month and its reparse":   {map[string]int{"2026-11": 1, "2026-11r1": 1}, nil, "rounds 2026-11.0.", "opened 2026-11"},
		"an older month's reparse":  {map[string]int{"2026-10r1": 1, "2026-10": 1, "2026-11": 1}, nil, "rounds 2026-11.0.", "opened 2026-11"},
		"the newest has none yet":   {map[string]int{"2026-11": 1, "2026-12": 0}, nil, "rounds 2026-11.0.", "opened 2026-11"},
		"nothing is finished":       {map[string]int{"2026-11": 0, "2026-12": 0}, nil, "no round is sealed yet.", "no round of 2026-12 is finished yet"},
		"reparses of others' files": {map[string]int{"2026-10r9": 1, "2026-10r10": 1}, nil, "rounds 2026-10r10.0.", "opened 2026-10r10"},
		"all":                       {map[string]int{"2026-10": 1, "2026-11": 1, "2026-11r1": 1}, []string{"--all-months"}, "rounds 2026-10.0, 2026-11.0, 2026-11r1.0.", ""},
		"a month":                   {map[string]int{"2026-10": 1, "2026-11": 1}, []string{"--month", "2026-10"}, "rounds 2026-10.0.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sealedStore(t, tc.rounds)
			for _, dialect := range []string{"duckdb", "trino", "spark"} {
				sql, note, code := runCommandLine(t, append([]string{"views", "--store", dir, "--dialect", dialect}, tc.flags...)...)
				if code != 0 || !strings.Contains(sql, tc.head) {
					t.Errorf("%s: exit %d, %s%.300s", dialect, code, note, sql)
				}
				if tc.note == "" && note != "" || !strings.Contains(note, tc.note) || !strings.Contains(sql, strings.TrimSpace(tc.note)) {
					t.Errorf("%s says %q, want %q, in the SQL too:\n%.600s", dialect, note, tc.note, sql)
				}
			}
		})
	}
	if _, said, code := runCommandLine(t, "views", "--month", "2026-11", "--all-months", "--store", t.TempDir()); code != exitUsage || !strings.Contains(said, "cannot be combined") {
		t.Errorf("--month with --all-months: exit %d, %s", code, said)
	}
}

func TestViewsWriteOneStatementAFile(t *testing.T) {
	store, dir := sealedStore(t, map[string]int{"2026-11": 1}), filepath.Join(t.TempDir(), "ddl")
	split := func(flags ...string) (string, int) {
		_, said, code := runCommandLine(t, append([]string{"views", "--store", store, "--dialect", "trino", "--split", dir}, flags...)...)
		return said, code
	}
	if said, code := split(); code != 0 || !strings.Contains(said, "run them in the order of their names") {
		t.Fatalf("exit %d: %s", code, said)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.sql"))
	if len(files) < 30 || filepath.Base(files[0]) != "001-schema.sql" {
		t.Fatalf("%d files, the first %v", len(files), files[:1])
	}
	statement := regexp.MustCompile(`(?m)^(CREATE|DROP|CALL) `)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || bytes.ContainsRune(b, ';') || len(statement.FindAll(b, -1)) != 1 {
			t.Errorf("%s: %v\n%s", f, err, b)
		}
	}
	if said, code := split(); code != exitUsage || !strings.Contains(said, "is not empty") {
		t.Errorf("a second time: exit %d, %s", code, said)
	}
	stale, mine := filepath.Join(dir, "999-old.sql"), filepath.Join(dir, "notes.txt")
	for _, name := range []string{stale, mine} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if said, code := split("--force"); code != 0 {
		t.Errorf("--force: exit %d, %s", code, said)
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("a statement of an earlier call is left")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error("a file of somebody else is gone")
	}
}
