//go:build lab

package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner/source/sqldb/sqldbtest"
	"crawlbatch.io/crawlbatch/stages"
)

const sqlMonth = "2026-11"

// planFrom plans from a source into a new store. It returns the plan, and for each partition the digest of
// its rows without their listings, which differ between sources. It writes the output of the command to said.
func planFrom(t *testing.T, source string, said *bytes.Buffer) (p *manifest.Plan, rows []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	if code := execute(t.Context(), []string{"plan", "--store", dir, "--month", sqlMonth, "--source", source, "--user-agent", "examplebot/1.0 (+https://example.org/bot)"}, nil, said, said); code != 0 {
		t.Fatalf("plan from %s: exit %d\n%s", source, code, said)
	}
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p, _, err = roundstate.FindPlan(t.Context(), b, sqlMonth, 0); err != nil {
		t.Fatal(err)
	}
	for _, part := range p.Partitions {
		sum := sha256.New()
		for row, err := range table.Concat[schema.PlannedURL](t.Context(), b, []string{part.File.Key}) {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(sum, "%+v\n", row)
		}
		rows = append(rows, hex.EncodeToString(sum.Sum(nil)))
	}
	if found := filesWith(t, dir, sqldbtest.Password); len(found) > 0 || strings.Contains(said.String(), sqldbtest.Password) {
		t.Errorf("the password is in %q, or was printed:\n%s", found, said)
	}
	return p, rows
}

// filesWith returns the files below a directory that contain a text.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if bytes.Contains(body, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestSQLPlansEqualThatOfAList plans from a text list and from a table with the same URLs, and plans from
// the table again while the server is killed. All plans must be equal.
func TestSQLPlansEqualThatOfAList(t *testing.T) {
	rows, err := strconv.Atoi(os.Getenv("CRAWLBATCH_SQL_ROWS"))
	if err != nil {
		rows = 200_000
	}
	t.Setenv("SQL_PASSWORD", sqldbtest.Password)
	var want *manifest.Plan
	var wanted []string
	sqldbtest.Each(t, func(t *testing.T, s *sqldbtest.Server) {
		if want == nil {
			list, text := filepath.Join(t.TempDir(), "urls.txt"), new(bytes.Buffer)
			for i := range rows {
				fmt.Fprintln(text, sqldbtest.URL(i+1))
			}
			if err := os.WriteFile(list, text.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			want, wanted = planFrom(t, list, new(bytes.Buffer))
		}
		s.Fill(rows)
		began := time.Now()
		got, planned := planFrom(t, s.Address(), new(bytes.Buffer))
		t.Logf("%d rows planned in %v", rows, time.Since(began).Round(10*time.Millisecond))
		if !slices.Equal(planned, wanted) || got.URLs != want.URLs || got.SourceLines != int64(rows) {
			t.Errorf("%d URLs in %d partitions, want %d in %d", got.URLs, len(got.Partitions), want.URLs, len(want.Partitions))
		}
		if name := fmt.Sprintf("%s://127.0.0.1:%d/%s?", s.Scheme, s.Port, sqldbtest.Database); !slices.Equal(got.Sources, []string{name}) {
			t.Errorf("the plan names %q, want %q", got.Sources, name)
		}
		killed := make(chan error, 1)
		before := strings.Count(s.Statements(), "LIMIT")
		go func() {
			for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				if strings.Count(s.Statements(), "LIMIT") > before+2 {
					s.Kill()
					s.Restart()
					killed <- nil
					return
				}
				if time.Now().After(limit) {
					killed <- errors.New("the plan asked for no page")
					return
				}
			}
		}()
		again, _ := planFrom(t, s.Address(), new(bytes.Buffer))
		if err := <-killed; err != nil {
			t.Fatal(err)
		}
		if again.ID != got.ID {
			t.Errorf("the plan while the server was killed is %s, want %s", again.ID, got.ID)
		}
		if strings.Contains(strings.ToUpper(s.Statements()), "OFFSET") {
			t.Error("the server's log has an OFFSET")
		}
	})
}

func TestSQLMistakesAreOneLineAndExit2(t *testing.T) {
	t.Setenv("SQL_PASSWORD", sqldbtest.Password)
	t.Setenv("WRONG", "hunter2")
	sqldbtest.Each(t, func(t *testing.T, s *sqldbtest.Server) {
		s.Fill(3)
		s.Exec("CREATE TABLE bad (id INT PRIMARY KEY, url TEXT)", "INSERT INTO bad VALUES (1, NULL), (2, 'nonsense'), (3, 'http://a.example/')",
			"CREATE TABLE none_yet (id INT PRIMARY KEY, url TEXT)")
		dir := filepath.Join(t.TempDir(), "store")
		for _, c := range []struct{ source, want string }{
			{strings.Replace(s.Address(), "SQL_PASSWORD", "WRONG", 1), sqldbtest.User},
			{strings.Replace(s.Address(), "${SQL_PASSWORD}", "hunter2", 1), "is written out"},
			{s.Address("table=none"), "name another with table="},
			{s.Address("url=none"), "name another with url="},
			{s.Address("where=none=1"), "none"},
			{s.Address("where=id>99"), "no record meets the condition: check where="},
			{s.Address("table=none_yet"), "the table has no rows"},
		} {
			for _, args := range [][]string{{"plan", "--month", sqlMonth, "--source", c.source, "--user-agent", "examplebot/1.0 (+https://example.org/bot)"}} {
				var said bytes.Buffer
				code := execute(t.Context(), append(args, "--store", dir), nil, &said, &said)
				if text := said.String(); code != exitUsage || !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1 || strings.Contains(text, "hunter2") || strings.Contains(text, sqldbtest.Password) {
					t.Errorf("%s: exit %d, %s", c.source, code, text)
				}
			}
		}
		var said bytes.Buffer
		list := filepath.Join(t.TempDir(), "urls.txt")
		if err := os.WriteFile(list, []byte("http://a.example/\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if code := execute(t.Context(), []string{"plan", "--month", sqlMonth, "--source", s.Address("where=id>99"), "--source", list, "--user-agent", "examplebot/1.0 (+https://example.org/bot)", "--store", dir}, nil, &said, &said); code != 0 ||
			!strings.Contains(said.String(), "where=id>99: 0 entries, 0 refused; no record meets its condition") {
			t.Errorf("a list beside a table without a row that meets where=: exit %d\n%s", code, said.String())
		}
		said.Reset()
		p, _ := planFrom(t, s.Address("table=bad"), &said)
		if p.URLs != 1 || len(p.Refused) != 1 || p.Refused[0] != (manifest.Count{Name: string(schema.SkipNotURL), N: 2}) {
			t.Errorf("%d URLs, refused %v", p.URLs, p.Refused)
		}
	})
}

// TestSQLFeedbackGivesEveryOutcomeBack writes the URLs of a crawl into a table, some of them in other
// forms. After `feedback`, it compares the table with the fetches dataset. The address has a
// condition that no row meets, as that of a plan after the first outcomes.
func TestSQLFeedbackGivesEveryOutcomeBack(t *testing.T) {
	sqldbtest.Need(t)
	t.Setenv("SQL_PASSWORD", sqldbtest.Password)
	d := crawlDemo(t)
	sqldbtest.Each(t, func(t *testing.T, s *sqldbtest.Server) {
		s.Fill(1)
		fetches := crawltest.RowsOf[schema.Fetch](t, d.bucket, d.sealed, stages.FileFetches)
		want := map[string]schema.Fetch{}
		var values []string
		for i, f := range fetches {
			want[f.URL] = f // the newest round comes last
			if text := strings.ReplaceAll(f.URL, "'", "''"); i%2 == 0 {
				values = append(values, "('"+strings.Replace(text, "http://", "HTTP://", 1)+"#part')")
			} else {
				values = append(values, "('"+text+"')")
			}
		}
		s.Exec("INSERT INTO url_queue (url) VALUES "+strings.Join(values, ", "), "INSERT INTO url_queue (url) VALUES ('not a url'), ('http://never.example/')")
		address := s.Address("where=status='new'")
		run := func(args ...string) string {
			t.Helper()
			var said bytes.Buffer
			if code := execute(t.Context(), append([]string{"feedback", "--store", d.dir, "--month", demo.Crawl, "--to", address}, args...), nil, &said, &said); code != 0 {
				t.Fatalf("feedback: exit %d\n%s", code, said.String())
			}
			return said.String()
		}
		// The first `feedback` is interrupted after the first round. During the second, the server is killed
		// at the same point.
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		for _, c := range []struct {
			disturb func()
			code    int
		}{{interrupt, exitInterrupted}, {func() { s.Kill(); s.Restart() }, exitDone}} {
			var errs bytes.Buffer
			out := &disturbing{disturb: c.disturb}
			if code := execute(ctx, []string{"feedback", "--store", d.dir, "--month", demo.Crawl, "--to", address}, nil, out, &errs); code != c.code || out.lines < 1 {
				t.Errorf("a disturbed feedback: exit %d after %d rounds, want %d\n%s", code, out.lines, c.code, errs.String())
			}
			ctx = t.Context()
		}
		said := run()
		if strings.Count(said, "\n") != len(d.sealed) || !strings.Contains(said, " rows updated (status, http_status, fetched_at, content_digest)\n") {
			t.Errorf("feedback said:\n%s", said)
		}
		const state = "SELECT url, status, http_status, content_digest, fetched_at FROM url_queue ORDER BY id"
		first := s.Query(state)
		checked := 0
		for _, line := range first {
			v := strings.Split(line, "|")
			f, ok := want[strings.TrimSuffix(strings.Replace(v[0], "HTTP://", "http://", 1), "#part")]
			if !ok {
				if v[1] != "pending" || v[2] != "-" {
					t.Errorf("a URL that was not planned: %s", line)
				}
				continue
			}
			checked++
			status := "-"
			if f.HTTPStatus != 0 {
				status = fmt.Sprint(f.HTTPStatus)
			}
			if v[1] != string(f.Outcome) || v[2] != status || f.ContentDigest != "" && v[3] != f.ContentDigest || (v[4] == "-") != (f.FetchedAt == 0) {
				t.Errorf("%s, want %s %s %s", line, f.Outcome, status, f.ContentDigest)
			}
		}
		if checked != len(fetches) {
			t.Errorf("%d rows have a planned URL, want %d", checked, len(fetches))
		}
		for _, again := range []string{run(), run("--round", "0")} {
			if !strings.Contains(again, " 0 new rows in url_queue_results, 0 rows updated ") {
				t.Errorf("repeated:\n%s", again)
			}
		}
		if !slices.Equal(s.Query(state), first) {
			t.Error("a second feedback changed the table")
		}
		var out bytes.Buffer
		if code := execute(t.Context(), []string{"feedback", "--store", d.dir, "--month", demo.Crawl, "--to", s.Address("table=none")}, nil, &out, &out); code != exitUsage || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("no table: exit %d, %s", code, out.String())
		}
		out.Reset()
		if code := execute(t.Context(), []string{"feedback", "--store", d.dir, "--month", demo.Crawl, "--round", "9", "--to", s.Address()}, nil, &out, &out); code != exitUsage || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("no such round: exit %d, %s", code, out.String())
		}
	})
}

// disturbing is an output that calls disturb after the first line.
type disturbing struct {
	disturb func()
	lines   int
}

func (d *disturbing) Write(p []byte) (int, error) {
	if d.lines += bytes.Count(p, []byte("\n")); d.disturb != nil && d.lines > 0 {
		d.disturb()
		d.disturb = nil
	}
	return len(p), nil
}
