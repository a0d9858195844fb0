package sql

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// standIn writes a program that takes the place of duckdb. $5 is the file with the SQL.
func standIn(t *testing.T, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "duckdb")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

func s3Views(w io.Writer) error {
	s := &Store{Address: func() string { return "s3://bucket/prefix" }}
	return s.duckDB(w, "", []*manifest.Sealed{{Crawl: "2026-11"}})
}

func TestCredentialsReachDuckDBByTheEnvironmentOnly(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("AWS_SECRET_ACCESS_KEY", "topsecret")
	var out bytes.Buffer
	d := duckDB{program: standIn(t, `printf '%s\n' "args: $*" "secret: $AWS_SECRET_ACCESS_KEY"; stat -c 'mode: %a' "$5" "$(dirname "$5")"; cat "$5"`), mode: ".mode csv", out: &out}
	if err := d.run(t.Context(), s3Views, strings.NewReader("SELECT 42")); err != nil {
		t.Fatal(err)
	}
	head, sql, _ := strings.Cut(out.String(), ".mode trash\n")
	if !strings.Contains(head, "secret: topsecret\nmode: 600\nmode: 700\n") || strings.Count(out.String(), "topsecret") != 1 {
		t.Errorf("duckdb saw:\n%s", out.String())
	}
	if secret, after := strings.Index(sql, "CREATE OR REPLACE SECRET"), strings.Index(sql, "\n.mode csv\nSELECT 42\n;\n"); secret < 0 || after < secret || !strings.HasPrefix(sql, "SET temp_directory = '") {
		t.Errorf("the SQL is:\n%s", sql)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left in TMPDIR: %v, %v", left, err)
	}
}

func TestHowDuckDBEndsDecidesTheError(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		ok     func(error) bool
	}{
		"it succeeds":              {"exit 0", func(err error) bool { return err == nil }},
		"the SQL is wrong":         {"echo 'Parser Error' >&2; exit 1", func(err error) bool { return errors.Is(err, usage.Err) }},
		"head closed the pipe":     {"kill -PIPE $$", func(err error) bool { return err == nil }},
		"the same of a shell":      {"exit 141", func(err error) bool { return err == nil }},
		"the same of pip's duckdb": {"exit 243", func(err error) bool { return err == nil }},
		"memory ran out":           {"kill -KILL $$", func(err error) bool { return err != nil && !errors.Is(err, usage.Err) }},
	} {
		t.Run(name, func(t *testing.T) {
			if err := (duckDB{program: standIn(t, tc.script)}).run(t.Context(), s3Views, strings.NewReader("")); !tc.ok(err) {
				t.Error(err)
			}
		})
	}
}

func TestAnInterruptionReachesDuckDB(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	go func() {
		buf := make([]byte, 100)
		if n, _ := out.Read(buf); strings.HasPrefix(string(buf[:n]), "ready") {
			cancel()
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	interrupted := filepath.Join(t.TempDir(), "interrupted")
	d := duckDB{program: standIn(t, "trap 'touch "+interrupted+"; exit 1' INT; echo ready; while :; do sleep 0.01; done"), out: in}
	if err := d.run(ctx, s3Views, strings.NewReader("")); !errors.Is(err, stages.ErrInterrupted) {
		t.Error(err)
	}
	if _, err := os.Stat(interrupted); err != nil {
		t.Error("duckdb got no SIGINT")
	}
}

func TestQuestionsAboutOneThingTakeAnyForm(t *testing.T) {
	for of, want := range map[string]string{"url": "'http://a.example.org/x''y'", "host": "'a.example.org'", "domain": "'example.org'"} {
		got, err := (Question{Of: of, SQL: "'{" + of + "}'"}).Fill("HTTP://A.example.org:80/x'y")
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", of, got, err, want)
		}
	}
	if got, err := (Question{Of: "term", SQL: "'{term}'"}).Fill(" Old\t O'Brien "); err != nil || got != "'old o''brien'" {
		t.Errorf("term: %s, %v", got, err)
	}
	if _, err := (Question{Of: "url"}).Fill("no url"); !errors.Is(err, usage.Err) {
		t.Error(err)
	}
}

func TestAnAnswerWithoutRowsIsExplained(t *testing.T) {
	q := &Question{Name: "what", None: "nothing happened", SQL: "-- What?\nSELECT 1\nLIMIT 1000;\n"}
	for _, c := range []struct{ name, script, none, want string }{
		{"no row", "echo 0", "nothing happened", "crawlbatch: what has no row: nothing happened\n"},
		{"no row, without a meaning", "echo 0", "", "crawlbatch: what has no row: nothing in the opened rounds meets the question\n"},
		{"some rows", "echo 7", "nothing happened", ""},
		{"as many rows as the limit", "echo 1000", "nothing happened", "crawlbatch: what shows at most 1000 rows, so there may be more\n"},
	} {
		var said bytes.Buffer
		o := queryOptions{err: &said}
		q.None = c.none
		d := duckDB{program: standIn(t, c.script+` > "$(sed -n "s/^COPY .* TO '\(.*\)' (FORMAT csv, HEADER false);$/\1/p" "$5")"`), mode: ".mode csv"}
		if err := o.answer(t.Context(), d, s3Views, q); err != nil || said.String() != c.want {
			t.Errorf("%s: %v, %q, want %q", c.name, err, said.String(), c.want)
		}
	}
	none := duckDB{program: standIn(t, "exit 0"), mode: ".mode csv"}
	if err := (&queryOptions{err: io.Discard}).answer(t.Context(), none, s3Views, q); err != nil {
		t.Errorf("a duckdb that counts nothing: %v", err)
	}
}
