package sqldb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/planner/source/sqldb/sqldbtest"
)

// open opens a table of a server.
func open(t *testing.T, s *sqldbtest.Server, options ...string) *Table {
	t.Helper()
	a, err := Parse(s.Address(options...), sqldbtest.Lookup)
	if err != nil {
		t.Fatal(err)
	}
	a.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	table, err := Open(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = table.Close() })
	return table
}

// read returns all rows as lines.
func read(t *testing.T, table *Table) (lines []string) {
	t.Helper()
	for row, err := range table.Rows(t.Context(), 100) {
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%d %q %s", row.N, row.Key, row.URL)
		if row.Null {
			line += "NULL"
		}
		if row.Priority.Valid {
			line += fmt.Sprintf(" %v", row.Priority.Float64)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestPagesFollowTheKey(t *testing.T) {
	sqldbtest.Each(t, func(t *testing.T, s *sqldbtest.Server) {
		const rows = 2*pageRows + 7
		s.Fill(rows)
		n := 0
		for row, err := range open(t, s).Rows(t.Context(), 1000) {
			if n++; err != nil || row.N != int64(n) || row.Key[0] != fmt.Sprint(n) || row.URL != sqldbtest.URL(n) {
				t.Fatalf("row %d: %+v, %v", n, row, err)
			}
		}
		if n != rows {
			t.Errorf("%d rows, want %d", n, rows)
		}
		if got := read(t, open(t, s, "where=id IN (3, 20001) OR id = 5 -- a comment")); !slices.Equal(got, []string{
			`1 ["3"] ` + sqldbtest.URL(3), `2 ["5"] ` + sqldbtest.URL(5), `3 ["20001"] ` + sqldbtest.URL(20001),
		}) {
			t.Errorf("with where: %q", got)
		}
		said := s.Statements()
		if strings.Contains(strings.ToUpper(said), "OFFSET") || strings.Count(said, "LIMIT") < 4 {
			t.Errorf("the server logged:\n%s", said)
		}
	})
}

func TestKeysAreTexts(t *testing.T) {
	sqldbtest.Each(t, func(t *testing.T, s *sqldbtest.Server) {
		bytes := map[string]string{"mysql": "VARBINARY(8)", "postgres": "BYTEA"}[s.Scheme]
		s.Exec("CREATE TABLE two (host VARCHAR(40), n INT, url TEXT, priority DOUBLE PRECISION, PRIMARY KEY (host, n))",
			`INSERT INTO two VALUES ('b', 2, 'http://b/2', 7.5), ('a', 10, NULL, NULL), ('b', -1, 'http://b/-1', -3), ('a', 9, '', 5000)`,
			"CREATE TABLE named (name "+bytes+" PRIMARY KEY, id BIGINT NOT NULL UNIQUE, link VARCHAR(200))",
			"INSERT INTO named VALUES ('y', 9007199254740993, 'http://y'), ('x', 9007199254740992, 'http://x')")
		if got := read(t, open(t, s, "table=two")); !slices.Equal(got, []string{
			`1 ["a" "9"]  5000`, `2 ["a" "10"] NULL`, `3 ["b" "-1"] http://b/-1 -3`, `4 ["b" "2"] http://b/2 7.5`,
		}) {
			t.Errorf("two columns: %q", got)
		}
		// If a page ends among rows with the same first column, the next page continues among them.
		for _, c := range []struct {
			table string
			last  []string
			want  string
		}{{"table=two", []string{"a", "9"}, "a 10"}, {"table=two", []string{"a", "10"}, "b -1"}, {"table=named&url=link", []string{"x"}, "y"}, {"table=named&url=link&key=id", []string{"9007199254740992"}, "9007199254740993"}} {
			r := reader{Table: open(t, s, c.table), maxURL: 10, last: c.last}
			var first string
			r.yield = func(row Row, _ error) bool { first = strings.Join(row.Key, " "); return false }
			if err := r.run(t.Context()); err != nil || first != c.want {
				t.Errorf("%s after %q: %q, want %q (%v)", c.table, c.last, first, c.want, err)
			}
		}
	})
}

func TestLongValuesAreCutByTheServer(t *testing.T) {
	sqldbtest.Each(t, func(t *testing.T, s *sqldbtest.Server) {
		text := map[string]string{"mysql": "LONGTEXT", "postgres": "TEXT"}[s.Scheme]
		s.Exec("CREATE TABLE long_ones (id INT PRIMARY KEY, url "+text+")", "INSERT INTO long_ones SELECT 1, repeat('é', 5000000)")
		for row, err := range open(t, s, "table=long_ones").Rows(t.Context(), 1001) {
			if err != nil || len(row.URL) != 1001 {
				t.Errorf("%d bytes, %v", len(row.URL), err)
			}
		}
	})
}

// TestAKilledServerLosesAndRepeatsNoRow kills the server once in the first page and once in the second.
func TestAKilledServerLosesAndRepeatsNoRow(t *testing.T) {
	sqldbtest.Each(t, func(t *testing.T, s *sqldbtest.Server) {
		const rows = 3 * pageRows
		s.Fill(rows)
		table := open(t, s)
		pauses := 0
		table.address.Sleep = func(ctx context.Context, _ time.Duration) error {
			if pauses++; pauses%3 == 0 { // the first tries find no server
				s.Restart()
			}
			return ctx.Err()
		}
		n := 0
		for row, err := range table.Rows(t.Context(), 1000) {
			if n++; err != nil || row.Key[0] != fmt.Sprint(n) {
				t.Fatalf("row %d: %+v, %v", n, row, err)
			}
			if n == 5 || n == pageRows+1 {
				s.Kill()
			}
		}
		if n != rows || pauses < 6 {
			t.Errorf("%d rows after %d pauses, want %d", n, pauses, rows)
		}
		table.address.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
		for row, err := range table.Rows(t.Context(), 1000) {
			if row.N == 5 {
				s.Kill()
			}
			if err == nil {
				n = int(row.N)
				continue
			}
			if !errors.Is(err, ErrLost) || errors.Is(err, ErrUnusable) || !strings.HasPrefix(err.Error(), fmt.Sprintf(`after row %d (id="%[1]d") (tried %d times): `, n, lostTries)) {
				t.Errorf("the server stays away: %v", err)
			}
			break
		}
	})
}

func TestMistakesAreExplainedInOneLine(t *testing.T) {
	sqldbtest.Each(t, func(t *testing.T, s *sqldbtest.Server) {
		s.Fill(3)
		s.Exec("CREATE TABLE keyless (url TEXT)", "CREATE TABLE dated (at DATE PRIMARY KEY, url TEXT)", "CREATE VIEW seen AS SELECT * FROM url_queue",
			"CREATE TABLE loose (id INT PRIMARY KEY, alias INT UNIQUE, url TEXT, priority VARCHAR(9))", "CREATE TABLE big (id INT PRIMARY KEY, url TEXT)")
		address := s.Address()
		here := fmt.Sprintf("@127.0.0.1:%d/", s.Port)
		for _, c := range []struct{ address, want string }{
			{strings.Replace(address, sqldbtest.User+":", "mallory:", 1), "mallory"},
			{strings.Replace(address, "SQL_PASSWORD", "WRONG", 1), sqldbtest.User},
			{strings.Replace(address, here+sqldbtest.Database, here+"nowhere", 1), "nowhere"},
			{s.Address("table=none"), `has no table "none" that this user may read: name another with table=`},
			{s.Address("url=uri"), `table "url_queue" has no column "uri": name another with url=: it has id, url, status`},
			{s.Address("priority=rank"), `has no column "rank": name another with priority=`},
			{s.Address("table=loose", "priority=priority"), "a priority is a number from 0 to 1000"},
			{s.Address("table=keyless"), `table "keyless" has no primary key (a view has none): name a unique key with key=`},
			{s.Address("table=seen"), `table "seen" has no primary key`},
			{s.Address("table=dated"), `column "at" of its key`},
			{s.Address("table=loose", "key=alias"), `column "alias" of its key`},
			{s.Address("key=url"), "no unique key on exactly url"},
			{s.Address("tls=verify"), "TLS SSL certificate"},
		} {
			a, err := Parse(c.address, func(name string) (string, bool) {
				if name == "WRONG" {
					return "hunter2", true
				}
				return sqldbtest.Lookup(name)
			})
			if err != nil {
				t.Fatal(err)
			}
			table, err := Open(t.Context(), a)
			if err == nil {
				_ = table.Close()
			}
			if !errors.Is(err, ErrUnusable) || errors.Is(err, ErrLost) || !containsAny(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
				strings.Contains(err.Error(), sqldbtest.Password) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v, want %s", c.address, err, c.want)
			}
		}
		for where, want := range map[string]string{"where=nonsense = 1": "nonsense", "where=(1": "after row 0: ", "where=1=1)%3B DROP TABLE big%3B --": "after row 0: "} {
			for _, err := range open(t, s, where).Rows(t.Context(), 100) {
				if !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %s", where, err, want)
				}
			}
		}
		open(t, s, "table=big")
	})
}

// containsAny reports whether the text contains words or, if words begins with "TLS", one of them.
func containsAny(text, words string) bool {
	if !strings.HasPrefix(words, "TLS") {
		return strings.Contains(text, words)
	}
	return slices.ContainsFunc(strings.Fields(words), func(w string) bool { return strings.Contains(text, w) })
}

// TestAConditionCannotTurnPagesIntoALoop uses a condition that closes a parenthesis that it did not
// open, so that every page has the first rows.
func TestAConditionCannotTurnPagesIntoALoop(t *testing.T) {
	sqldbtest.Each(t, func(t *testing.T, s *sqldbtest.Server) {
		s.Fill(pageRows + 5)
		n, last := 0, error(nil)
		for _, err := range open(t, s, "where=1=1) OR (1=1").Rows(t.Context(), 100) {
			n, last = n+1, err
		}
		if n > 2*pageRows+1 || !errors.Is(last, ErrUnusable) {
			t.Errorf("%d rows, then %v", n, last)
		}
	})
}

func TestResultsAreAppliedOnceAndNeverOverNewerOnes(t *testing.T) {
	sqldbtest.Each(t, func(t *testing.T, s *sqldbtest.Server) {
		s.Fill(10)
		table := open(t, s)
		r, err := table.OpenResults(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		give := func(crawl string, round int, outcome string, keys ...int) (stored, updated int64) {
			t.Helper()
			var all []Result
			for _, k := range keys {
				all = append(all, Result{Key: []string{fmt.Sprint(k)}, URL: sqldbtest.URL(k), Outcome: outcome, HTTPStatus: 200, FetchedAt: 1_700_000_000_000_000, Digest: "D"})
			}
			stored, updated, err := r.Apply(t.Context(), crawl, round, all)
			if err != nil {
				t.Fatal(err)
			}
			return stored, updated
		}
		states := func() string {
			return strings.Join(s.Query("SELECT concat(id, ' ', status) FROM url_queue ORDER BY id"), " ")
		}
		for _, c := range []struct {
			crawl           string
			round           int
			outcome         string
			keys            []int
			stored, updated int64
		}{
			{"2026-10", 1, "ok", []int{2, 4, 6}, 3, 3},
			{"2026-10", 1, "ok", []int{2, 4, 6}, 0, 0},
			{"2026-10", 0, "http_5xx", []int{1, 2, 3}, 3, 2},
			{"2026-09", 7, "timeout", []int{1, 4, 7}, 3, 1},
			{"2026-11", 0, "not_modified", []int{4}, 1, 1},
		} {
			if stored, updated := give(c.crawl, c.round, c.outcome, c.keys...); stored != c.stored || updated != c.updated {
				t.Errorf("%+v: %d stored, %d updated", c, stored, updated)
			}
		}
		if got, want := states(), "1 http_5xx 2 ok 3 http_5xx 4 not_modified 5 pending 6 ok 7 timeout 8 pending 9 pending 10 pending"; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		s.Exec("UPDATE url_queue SET status = 'again' WHERE id = 2")
		if stored, updated := give("2026-10", 1, "ok", 2, 4, 6); stored != 0 || updated != 0 || !strings.Contains(states(), "2 again") {
			t.Errorf("a row that was reset is overwritten: %d, %d, %s", stored, updated, states())
		}
		row := s.Query("SELECT http_status, fetched_at, content_digest FROM url_queue WHERE id = 4")[0]
		if !strings.HasPrefix(row, "200|2023-11-14") || !strings.HasSuffix(row, "|D") {
			t.Errorf("row %s", row)
		}
		if _, err := open(t, s, "results=url_queue").OpenResults(t.Context()); !errors.Is(err, ErrUnusable) {
			t.Errorf("a table of another shape: %v", err)
		}
		if _, err := open(t, s, "status=id").OpenResults(t.Context()); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "need a text of 18 characters") {
			t.Errorf("a status that is no text: %v", err)
		}
	})
}

// TestOnlyNewResultsAreApplied applies results between whose keys the round already has results. The user has
// reset the rows of the old results.
func TestOnlyNewResultsAreApplied(t *testing.T) {
	sqldbtest.Each(t, func(t *testing.T, s *sqldbtest.Server) {
		s.Exec("CREATE TABLE one (id INT PRIMARY KEY, url TEXT, status VARCHAR(32) NOT NULL)",
			"CREATE TABLE two (host VARCHAR(40), id INT, url TEXT, status VARCHAR(32) NOT NULL, PRIMARY KEY (host, id))",
			"INSERT INTO one VALUES (1, 'u', 'new'), (2, 'u', 'new'), (3, 'u', 'new'), (4, 'u', 'new'), (5, 'u', 'new'), (6, 'u', 'new'), (7, 'u', 'new')",
			"INSERT INTO two SELECT CASE WHEN id < 3 THEN 'a' ELSE 'b' END, id, url, status FROM one")
		for name, keys := range map[string][][]string{"one": {{"1"}, {"2"}, {"3"}, {"4"}, {"5"}, {"6"}, {"7"}}, "two": {{"a", "1"}, {"a", "2"}, {"b", "3"}, {"b", "4"}, {"b", "5"}, {"b", "6"}, {"b", "7"}}} {
			r, err := open(t, s, "table="+name).OpenResults(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				ids  []int
				want string // states of all rows
				n    int64
			}{
				{[]int{2, 4, 6}, "new ok new ok new ok new", 3},
				{[]int{1, 2, 3}, "ok reset ok reset new reset new", 2},
				{[]int{5, 7}, "reset reset reset reset ok reset ok", 2}, // the URL of row 6 is another one since
			} {
				var all []Result
				for _, id := range c.ids {
					all = append(all, Result{Key: keys[id-1], URL: "u", Outcome: "ok"})
				}
				if stored, updated, err := r.Apply(t.Context(), "2026-11", 0, all); err != nil || stored != c.n || updated != c.n {
					t.Errorf("%s %v: %d stored, %d updated, want %d (%v)", name, c.ids, stored, updated, c.n, err)
				}
				if got := strings.Join(s.Query("SELECT status FROM "+name+" ORDER BY id"), " "); got != c.want {
					t.Errorf("%s after %v: %s, want %s", name, c.ids, got, c.want)
				}
				s.Exec("UPDATE " + name + " SET status = 'reset' WHERE status = 'ok'")
			}
		}
	})
}

// TestFeedbackNeedsTheDocumentedRights grants the rights that planner/README.md lists.
func TestFeedbackNeedsTheDocumentedRights(t *testing.T) {
	s := sqldbtest.StartMariaDB(t)
	s.Fill(2)
	s.Limit("SELECT, UPDATE ON url_queue", "CREATE, SELECT, INSERT, UPDATE ON url_queue_results")
	r, err := open(t, s).OpenResults(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"1", "2"} {
		if stored, updated, err := r.Apply(t.Context(), "2026-11", 0, []Result{{Key: []string{id}, URL: "u", Outcome: "ok"}}); err != nil || stored != 1 || updated != 1 {
			t.Errorf("%d stored, %d updated (%v)", stored, updated, err)
		}
	}
}

func TestAKilledServerAppliesABatchOnce(t *testing.T) {
	sqldbtest.Each(t, func(t *testing.T, s *sqldbtest.Server) {
		s.Fill(100)
		table := open(t, s)
		r, err := table.OpenResults(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		table.address.Sleep = func(ctx context.Context, _ time.Duration) error { s.Restart(); return ctx.Err() }
		for from := 1; from <= 100; from += 10 {
			var batch []Result
			for k := from; k < from+10; k++ {
				batch = append(batch, Result{Key: []string{fmt.Sprint(k)}, URL: sqldbtest.URL(k), Outcome: "ok"})
			}
			if from%20 == 1 {
				s.Kill()
			}
			if stored, updated, err := r.Apply(t.Context(), "2026-11", 0, batch); err != nil || stored != 10 || updated != 10 {
				t.Errorf("%d stored, %d updated, %v", stored, updated, err)
			}
		}
		if got := s.Query("SELECT count(*), count(fetched_at) FROM url_queue WHERE status = 'ok'")[0]; got != "100|0" {
			t.Errorf("%s", got)
		}
	})
}
