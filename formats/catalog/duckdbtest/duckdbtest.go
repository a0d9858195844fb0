// Package duckdbtest runs DuckDB in tests, so that an independent program reads this project's
// Parquet files and SQL.
//
// The input is SQL files. An environment variable tells where DuckDB is installed. The output is
// DuckDB's columns, types and rows. The package imports only the standard library.
package duckdbtest

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Modules is the environment variable that names a directory whose node_modules folder holds
// DuckDB.
const Modules = "CRAWLBATCH_DUCKDB"

//go:embed query.mjs
var script []byte

// Answer is DuckDB's result for the last statement of a file.
type Answer struct {
	Columns [][2]string // name and type of each column
	// Rows holds a map of each row, by column. Values are as in JSON, but BIGINT and wider integers
	// are strings.
	Rows []map[string]any
}

// Need skips the test if DuckDB is not installed.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv(Modules) == "" {
		t.Skipf("set %s to the directory where npm installed DuckDB: `make test-duckdb` installs it and runs this test", Modules)
	}
}

// Ask runs SQL files in one session and returns the answers by file name. If DuckDB refuses a
// statement, the test fails. Without DuckDB, Ask skips the test.
func Ask(t testing.TB, files ...string) map[string]*Answer {
	t.Helper()
	Need(t)
	modules, err := filepath.Abs(os.Getenv(Modules))
	if err != nil {
		t.Fatal(err)
	}
	query := filepath.Join(t.TempDir(), "query.mjs")
	if err := os.WriteFile(query, script, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", append([]string{query}, files...)...)
	cmd.Env = append(os.Environ(), Modules+"="+modules)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("query.mjs: %v\n%s", err, stderr.String())
	}
	answers := map[string]*Answer{}
	var last *Answer
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var head struct {
			File    string
			Columns [][2]string
		}
		if err := json.Unmarshal(lines.Bytes(), &head); err == nil && head.File != "" && head.Columns != nil {
			last = &Answer{Columns: head.Columns}
			answers[head.File] = last
			continue
		}
		var row map[string]any
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil || last == nil {
			t.Fatalf("line %q: %v", lines.Text(), err)
		}
		last.Rows = append(last.Rows, row)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return answers
}

// SQLFile writes SQL to a new file and returns its name.
func SQLFile(t testing.TB, sql string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "query.sql")
	if err := os.WriteFile(name, []byte(sql), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// String returns the rows as one text, with a space between rows.
func (a *Answer) String() string { return strings.Join(a.Lines(), " ") }

// Lines returns a text for each row: its values with | between them.
func (a *Answer) Lines() (rows []string) {
	for _, r := range a.Rows {
		var values []string
		for _, c := range a.Columns {
			v := fmt.Sprint(r[c[0]])
			if n, ok := r[c[0]].(float64); ok && c[1] == "DOUBLE" {
				v = strconv.FormatFloat(n, 'f', 1, 64)
			} else if ok {
				v = strconv.FormatFloat(n, 'f', -1, 64)
			}
			values = append(values, v)
		}
		rows = append(rows, strings.Join(values, "|"))
	}
	return rows
}
