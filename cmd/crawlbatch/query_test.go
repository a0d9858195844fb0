package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
)

// TestQueryWithoutDuckDBSaysHowToGetIt checks the mistakes that need no duckdb.
func TestQueryWithoutDuckDBSaysHowToGetIt(t *testing.T) {
	store := sealedStore(t, map[string]int{"2026-11": 1})
	t.Setenv("PATH", t.TempDir())
	for want, args := range map[string][]string{
		"pip install duckdb-cli":          {"SELECT 1"},
		"--duckdb":                        {"SELECT 1", "--duckdb", "/nowhere/duckdb"},
		"did you mean broken-links?":      {"brokn-links"},
		"`crawlbatch query --list`":       {"nothing-like-it-at-all"},
		"--list prints text only":         {"--list", "-o", "json"},
		"is about one url":                {"why-not-crawled"},
		"takes no argument":               {"broken-links", "x"},
		"quote the SQL as one word":       {"SELECT", "1"},
		"either SQL or --file":            {"SELECT 1", "--file", "x.sql"},
		"no such file":                    {"--file", "/nowhere/x.sql"},
		"needs a terminal":                {},
		"the SQL is empty":                {" "},
		"--output \"xml\"":                {"SELECT 1", "-o", "xml"},
		"cannot be combined":              {"SELECT 1", "--month", "2026-11", "--all-months"},
		"--list takes no SQL":             {"--list", "SELECT 1"},
		"give a host such as example.org": {"requests-of-a-host", "//"},
	} {
		if _, said, code := runCommandLine(t, append([]string{"query", "--store", store}, args...)...); code != exitUsage || !strings.Contains(said, want) {
			t.Errorf("%q: exit %d, %swant %q", args, code, said, want)
		}
	}
	if list, said, code := runCommandLine(t, "query", "--list"); code != 0 || strings.Count(list, "\n") < 30 {
		t.Errorf("--list: exit %d, %s%s", code, said, list)
	}
}

// TestAQuestionFollowsTheRulesOfItsCrawls asks about a URL in crawls with different rules.
func TestAQuestionFollowsTheRulesOfItsCrawls(t *testing.T) {
	store := sealedStore(t, map[string]int{"2026-09": 1, "2026-10": 1, "2026-11": 1})
	for crawl, cfg := range map[string]string{
		"2026-09": "plan:\n  rewrite:\n    - match: ^http://(.*)$\n      replace: https://$1\n", "2026-10": "frontier:\n  follow: ${FOLLOW}\nplan:\n  strip_params: [sid]\n",
	} {
		text, err := manifest.Encode(&manifest.Crawl{Crawl: crawl, Config: cfg})
		if err == nil {
			err = os.WriteFile(filepath.Join(store, filepath.FromSlash(layout.CrawlManifest(crawl))), text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := dirstore.Open(store, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ledgertest.Make(t, b, "2026-09", "2026-10", "2026-11")
	duckdb := filepath.Join(t.TempDir(), "duckdb")
	if err := os.WriteFile(duckdb, []byte("#!/bin/sh\ncat \"$5\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	query := []string{"query", "--store", store, "--duckdb", duckdb, "provenance", "http://a.test/?utm_id=1&sid=1"}
	t.Setenv("FOLLOW", "none")
	for _, c := range []struct{ flag, want string }{
		{"--month=2026-11", "'http://a.test/?sid=1'"},
		{"--month=2026-10", "'http://a.test/?utm_id=1'"},
		{"--month=2026-09", "'https://a.test/?sid=1', 'http://a.test/?sid=1'"}, // the second as the target of a redirect
		{"--all-months", "'https://a.test/?sid=1', 'http://a.test/?sid=1', 'http://a.test/?utm_id=1'"},
	} {
		sql, said, code := runCommandLine(t, append(query, c.flag)...)
		if code != 0 || !strings.Contains(sql, "\nWHERE url IN ("+c.want+");\n") {
			t.Errorf("%s: exit %d, %s%s", c.flag, code, said, sql[max(0, strings.LastIndex(sql, "CREATE")):])
		}
	}
}

func TestCompletionKnowsWhatTheStoreHolds(t *testing.T) {
	store := sealedStore(t, map[string]int{"2026-10": 1, "2026-11": 2})
	for args, want := range map[string]string{
		"status --month=":                     "2026-11\n2026-10\n",
		"task fetch --month 2026-11 --round=": "1\n0\n",
		"task fetch --round=":                 "",
		"query brok":                          "broken-links\t",
	} {
		out, _, code := runCommandLine(t, append([]string{"__complete", "--store", store}, strings.Fields(args)...)...)
		if got, _, _ := strings.Cut(out, ":"); code != 0 || want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: exit %d, %q, want %q", args, code, out, want)
		}
	}
	missing := filepath.Join(t.TempDir(), "none")
	if out, _, code := runCommandLine(t, "__complete", "--store", missing, "status", "--month="); code != 0 || strings.HasPrefix(out, "2") {
		t.Errorf("without a store: exit %d, %q", code, out)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("completion made a store")
	}
}
