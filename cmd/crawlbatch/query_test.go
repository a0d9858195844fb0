package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// TestQueryWithoutDuckDBSaysHowToGetIt checks the mistakes that need no duckdb.
func TestQueryWithoutDuckDBSaysHowToGetIt(t *testing.T) {
	store := sealedStore(t, 3, map[string]int{"2026-11": 1})
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
	store := sealedStore(t, 2, map[string]int{"2026-09": 1, "2026-10": 1, "2026-11": 1})
	for crawl, cfg := range map[string]string{
		"2026-09": "plan:\n  rewrite:\n    - match: ^http://(.*)$\n      replace: https://$1\n", "2026-10": "frontier:\n  follow: ${FOLLOW}\nplan:\n  strip_params: [sid]\n",
	} {
		text, err := manifest.Encode(&manifest.Crawl{Crawl: crawl, Config: cfg})
		if err == nil {
			text = bytes.Replace(text, fmt.Appendf(nil, `"format_version": %d`, schema.FormatVersion), []byte(`"format_version": 2`), 1)
			err = os.WriteFile(filepath.Join(store, filepath.FromSlash(layout.CrawlManifest(crawl))), text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
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

// queryDuckDB runs `crawlbatch query` with the real duckdb on PATH.
func queryDuckDB(t *testing.T, in string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errw bytes.Buffer
	code = execute(context.Background(), append([]string{"query"}, args...), strings.NewReader(in), &out, &errw)
	return out.String(), errw.String(), code
}

// askQuery runs SQL in the program duckdb in each way in which it can be given.
func askQuery(t *testing.T, store string) {
	duckdbtest.Need(t)
	if _, err := exec.LookPath("duckdb"); err != nil {
		t.Fatalf("%v: `make test-duckdb` installs it", err)
	}
	file := filepath.Join(t.TempDir(), "x.sql")
	if err := os.WriteFile(file, []byte("SELECT count(*) > 0 AS some FROM pages -- end"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := "SELECT sum(a) AS some FROM read_csv('/dev/stdin')"
	for _, tc := range []struct {
		in, want string
		code     int
		args     []string
	}{
		{"", "some\ntrue\n", 0, []string{"SELECT count(*) > 0 AS some FROM pages", "-o", "csv"}},
		{"", `[{"some":true}]`, 0, []string{"--file", file, "-o", "json"}},
		{"SELECT 1 AS a; SELECT count(*) > 0 AS b FROM pages", "a\n1\nb\ntrue\n", 0, []string{"-", "-o", "csv"}},
		{"a\n7\n8\n", "some\n15\n", 0, []string{data, "-o", "csv"}},
		{"", "", exitUsage, []string{"SELECT nope FROM pages; SELECT 1"}},
		{"", "a,b\n,2\n", 0, []string{"SELECT NULL AS a, 2 AS b", "-o", "csv"}},
		{"", "fact,crawl,round,answer,detail,source\nstate,,,unknown,no source and no link named it,\n", 0, []string{"why-not-crawled", "http://never.test/", "-o", "csv"}},
		{"", "", exitUsage, []string{"SELECT (1"}},
	} {
		out, said, code := queryDuckDB(t, tc.in, append(tc.args, "--store", store)...)
		if strings.TrimSpace(out) != strings.TrimSpace(tc.want) || code != tc.code {
			t.Errorf("%q: exit %d, %q, %s", tc.args, code, out, said)
		}
		if code == exitUsage && !strings.Contains(said, "Error: ") {
			t.Errorf("%q: the message of duckdb is missing: %s", tc.args, said)
		}
	}
	if out, said, code := queryDuckDB(t, "", "DESCRIBE skips", "--store", store); code != 0 || !strings.Contains(out, "reason") || strings.Contains(out, "\x1b") {
		t.Errorf("DESCRIBE in a pipe: exit %d, %q, %s", code, out, said)
	}
	for question, want := range map[string]string{
		"what-changed":  "what-changed has no row: no URL was fetched twice, ",
		"content-pages": "content-pages shows at most 1000 rows, so there may be more\n",
		"outcomes":      "",
	} {
		_, said, code := queryDuckDB(t, "", question, "-o", "csv", "--month", demo.Crawl, "--store", store)
		if code != 0 || want == "" && said != "" || !strings.Contains(said, want) {
			t.Errorf("%s: exit %d, %q, want %q", question, code, said, want)
		}
	}
	if table, said, code := queryDuckDB(t, "", "SELECT range FROM range(100)", "--store", store); code != 0 || strings.Count(table, "\n") < 100 {
		t.Errorf("a table in a pipe lacks rows: exit %d, %s%s", code, table, said)
	}
	terminal, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	lines := make(chan int, 1)
	go func() {
		shown, _ := io.ReadAll(terminal) // ends with an error when the other side closes
		lines <- bytes.Count(shown, []byte("\n"))
	}()
	code := execute(context.Background(), []string{"query", "SELECT range FROM range(100)", "--store", store}, strings.NewReader(""), tty, io.Discard)
	tty.Close()
	if n := <-lines; code != 0 || n < 15 || n > 23 {
		t.Errorf("a table on a terminal of 24 rows: exit %d, %d lines", code, n)
	}
}

func TestCompletionKnowsWhatTheStoreHolds(t *testing.T) {
	store := sealedStore(t, 3, map[string]int{"2026-10": 1, "2026-11": 2})
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
