//go:build lab

package lab

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
)

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
		{"", "a\n\"\u009b\u202e\"\n", 0, []string{"SELECT chr(155) || chr(8238) AS a", "-o", "csv"}}, // a file has the text as it is
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
	if out, said, code := queryDuckDB(t, "", "SELECT chr(27) || chr(155) || chr(8238) AS a", "--store", store); code != 0 || !strings.Contains(out, `\u009b\u202e`) || strings.ContainsAny(out, "\x1b\u009b\u202e") {
		t.Errorf("text of a hostile server in a table: exit %d, %q, %s", code, out, said)
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
