//go:build lab

package lab

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/sql"
	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// cookbook returns the questions.
func cookbook(t *testing.T) []sql.Question {
	t.Helper()
	all, err := sql.Questions()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// cookbookAbout returns a URL, a host or a topic of the crawl for each question that is about one. The order of
// rows differs between two crawls of the demo, because measured times decide about partitions.
func cookbookAbout(t *testing.T, d *demoStore) map[string]string {
	denied, linked, topic, most := "", "", "", int64(0)
	of := map[string]int{} // number of pages of each topic
	for _, f := range crawltest.RowsOf[schema.Fetch](t, d.bucket, d.sealed, "fetches") {
		if f.Outcome == "robots_denied" && f.URL > denied {
			denied = f.URL
		}
	}
	for _, p := range crawltest.RowsOf[schema.Page](t, d.bucket, d.sealed, "pages") {
		for _, name := range p.Topics {
			if of[name]++; topic == "" || of[name] > of[topic] || of[name] == of[topic] && name < topic {
				topic = name
			}
		}
		if p.Inlinks > most || p.Inlinks == most && p.URL > linked {
			linked, most = p.URL, p.Inlinks
		}
	}
	if denied == "" || linked == "" || topic == "" {
		t.Fatal("the demo has no denied URL, no page with links to it, or no topic")
	}
	return map[string]string{"why-not-crawled": denied, "url": linked, "host": linked, "domain": linked, "term": topic}
}

// filledCookbook returns the SQL of each question about the demo.
func filledCookbook(t *testing.T, d *demoStore) map[string]string {
	about, filled := cookbookAbout(t, d), map[string]string{}
	for _, q := range cookbook(t) {
		argument := about[q.Of]
		if about[q.Name] != "" {
			argument = about[q.Name]
		}
		text, err := q.Fill(argument)
		if err != nil {
			t.Fatal(err)
		}
		filled[q.Name] = text
	}
	return filled
}

// cookbookAnswers holds the answer to each question about the demo: the columns, the first rows, and a
// digest of the others. The rows are sorted as text. -update writes it from the answers of DuckDB.
const cookbookAnswers = "testdata/cookbook.txtar"

// expectedRows is the number of rows of an answer that cookbookAnswers shows.
const expectedRows = 8

var (
	// volatileColumns matches the columns of answers that differ between two crawls of the demo: also numbers of
	// requests, because a busy machine may make one again. cookbookAnswers only says which of their values are null.
	volatileColumns = regexp.MustCompile(`_ms$|requests$|^bytes_sent$|seconds|hours|dollars|^(peak_memory_bytes|puts|gets|fetch_time|start|(warc_)?file(name)?|(warc_)?record_offset|(warc_)?record_length|last_fetched|began_at|ended_at|machine)$`)
	// demoSeeds matches the path of the demo's list of URLs, which is a new one in each crawl.
	demoSeeds = regexp.MustCompile(`/[^|]*/urls\.txt`)
)

// stableSQL returns the SQL of a question without the values of its volatile columns.
func stableSQL(question string, columns []string) string {
	var list []string
	for _, c := range columns {
		if volatileColumns.MatchString(c) {
			c = fmt.Sprintf("CASE WHEN %s IS NULL THEN 'null' ELSE 'volatile' END AS %[1]s", c)
		}
		list = append(list, c)
	}
	return "SELECT " + strings.Join(list, ", ") + "\nFROM (\n" + strings.TrimSuffix(strings.TrimSpace(question), ";") + "\n) AS asked"
}

// abridged returns an answer as cookbookAnswers holds it.
func abridged(columns, rows []string) string {
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = strings.ReplaceAll(demoSeeds.ReplaceAllString(row, "urls.txt"), "\n", " ")
	}
	slices.Sort(lines)
	text := strings.Join(columns, "|") + "\n"
	for _, line := range lines[:min(len(lines), expectedRows)] {
		text += line + "\n"
	}
	if more := len(lines) - expectedRows; more > 0 {
		text += fmt.Sprintf("and %d more rows, SHA-256 %.8x\n", more, sha256.Sum256([]byte(strings.Join(lines[expectedRows:], "\n"))))
	}
	return text
}

// expectedAnswers returns the answers of cookbookAnswers by question.
func expectedAnswers(t *testing.T) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(cookbookAnswers)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for _, f := range archive.Files {
		answers[f.Name] = string(f.Data)
	}
	return answers
}

// columnsOf returns the columns of an expected answer.
func columnsOf(answer string) []string {
	first, _, _ := strings.Cut(answer, "\n")
	return strings.Split(first, "|")
}

// askCookbook asks each question of the cookbook about the demo. It compares each answer with the
// expected one, and some answers also with the rows.
func askCookbook(t *testing.T, d *demoStore, views string) {
	questions, raw, stable := filledCookbook(t, d), map[string]string{}, map[string]string{}
	files := []string{views}
	for name, text := range questions {
		raw[name] = duckdbtest.SQLFile(t, text)
		files = append(files, raw[name])
	}
	answers, columns := duckdbtest.Ask(t, files...), map[string][]string{}
	files = files[:1]
	for name, text := range questions {
		for _, c := range answers[raw[name]].Columns {
			columns[name] = append(columns[name], c[0])
		}
		stable[name] = duckdbtest.SQLFile(t, stableSQL(text, columns[name]))
		files = append(files, stable[name])
	}
	without, got := duckdbtest.Ask(t, files...), map[string]string{}
	archive := &txtar.Archive{Comment: []byte("The cookbook's answers about the demo: see cookbook_test.go.\n")}
	for _, name := range slices.Sorted(maps.Keys(questions)) {
		got[name] = abridged(columns[name], without[stable[name]].Lines())
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(got[name])})
	}
	if *update {
		if err := os.WriteFile(cookbookAnswers, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(expectedAnswers(t), got); diff != "" {
		t.Errorf("answers (- expected, + DuckDB; -update accepts them):\n%s", diff)
	}
	for name, want := range cookbookFacts(t, d) {
		got := slices.Clone(answers[raw[name]].Lines())
		slices.Sort(got)
		slices.Sort(want)
		want = slices.Compact(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (- from the rows, + DuckDB):\n%s", name, diff)
		}
	}
}

// In the demo, no page and no robots.txt changes, no task fails, and no URL is fetched twice.
// TestDuckDBAnswersAboutChanges asks the questions about them over a few rows.
func TestDuckDBAnswersAboutChanges(t *testing.T) {
	duckdbtest.Need(t)
	tables := duckdbtest.SQLFile(t, `
CREATE TABLE urls AS SELECT * FROM (VALUES
  ('http://a.test/', 2, 3, TIMESTAMP '2026-11-02'), ('http://a.test/same', 0, 2, TIMESTAMP '2026-11-03'),
  ('http://a.test/once', 0, 1, TIMESTAMP '2026-11-03'), ('http://a.test/found', 0, 0, NULL)
) AS t(url, changes, fetches, last_fetched);
CREATE TABLE hosts AS SELECT * FROM (VALUES
  ('a.test', 'a.test', '2026-10', 0, 'rules', 'D1'), ('a.test', 'a.test', '2026-10', 1, 'unreachable', NULL), ('a.test', 'a.test', '2026-11', 0, 'rules', 'D2'),
  ('b.test', 'b.test', '2026-10', 0, 'rules', 'D1'), ('b.test', 'b.test', '2026-11', 0, 'rules', 'D1'),
  ('c.test', 'c.test', '2026-10', 0, 'none', NULL), ('c.test', 'c.test', '2026-11', 0, 'rules', 'D3')
) AS t(domain, host, crawl, round, robots_state, robots_digest);
CREATE TABLE domains AS SELECT * FROM (VALUES
  ('a.test', '2026-11', 0, '2026-10.0', 'a.test', 'rules', 'D2', 4, 3, true), ('b.test', '2026-11', 0, '2026-10.0', 'b.test', 'rules', 'D1', 2, 0, false),
  ('d.test', '2026-11', 0, NULL, 'd.test', 'none', NULL, 2, 0, NULL)
) AS t(domain, crawl, round, robots_compared, robots_host, robots_state, robots_digest, planned, outcome_robots_denied, robots_changed);
CREATE TABLE stages AS SELECT * FROM (VALUES
  ('2026-11', 0, 'fetch', 3, 'a1', TIMESTAMP '2026-11-01 01:00:00', NULL, 'm1', 'failed', 'lost', 'killed'),
  ('2026-11', 0, 'fetch', 3, 'a2', TIMESTAMP '2026-11-01 02:00:00', TIMESTAMP '2026-11-01 03:00:00', 'm2', 'committed', NULL, NULL),
  ('2026-11', 0, 'fetch', 4, 'a3', TIMESTAMP '2026-11-01 02:00:00', TIMESTAMP '2026-11-01 03:00:00', 'm2', 'committed', NULL, NULL)
) AS t(crawl, round, stage, task, attempt, began_at, ended_at, machine, outcome, error_class, error);
CREATE TABLE fetches AS SELECT * FROM (VALUES
  ('2026-11', 0, 'back', 'http_4xx', 404), ('2026-11', 1, 'back', 'ok', 200), ('2026-11', 0, 'gone', 'ok', 200), ('2026-11', 1, 'gone', 'http_4xx', 410),
  ('2026-11', 0, 'unasked', 'http_4xx', 404), ('2026-11', 1, 'unasked', 'deferred', NULL), ('2026-11', 0, 'slow', 'timeout', NULL), ('2026-11', 0, 'odd', 'protocol_error', NULL),
  ('2026-10', 1, 'gone', 'http_5xx', 500), ('2026-11', 0, 'page', 'ok', 200), ('2026-11', 0, 'busy', 'rate_limited', 429)
) AS t(crawl, round, url, outcome, http_status);
CREATE TABLE links AS SELECT '2026-11' AS crawl, round, 'page' AS source, target, 'a' AS kind, 'more' AS anchor
FROM (VALUES (0), (1)) AS r(round), (VALUES ('back'), ('gone'), ('unasked'), ('slow'), ('odd'), ('busy')) AS t(target)`)
	for name, want := range map[string][]string{
		"what-changed": {"http://a.test/|2|3|volatile|2|1", "http://a.test/same|0|2|volatile|2|1"},
		"robots-changes": {
			"a.test|a.test|2026-11|0|2026-10|0|rules|rules|D1|D2", "c.test|c.test|2026-11|0|2026-10|0|none|rules|<nil>|D3",
		},
		"domain-robots-changes": {"a.test|2026-11|0|2026-10.0|a.test|rules|D2|4|3|75.0"},
		"broken-links": {
			"page|gone|more|http_4xx|410", "page|odd|more|protocol_error|<nil>", "page|slow|more|timeout|<nil>", "page|unasked|more|http_4xx|404",
		},
		"broken-targets": {"gone|410|1", "unasked|404|1"},
		"retried-tasks": {
			"2026-11|0|fetch|3|a1|volatile|null|volatile|failed|lost|killed", "2026-11|0|fetch|3|a2|volatile|volatile|volatile|committed|<nil>|<nil>",
		},
	} {
		all := cookbook(t)
		q := all[slices.IndexFunc(all, func(q sql.Question) bool { return q.Name == name })]
		file := duckdbtest.SQLFile(t, stableSQL(q.SQL, columnsOf(expectedAnswers(t)[name])))
		if diff := cmp.Diff(want, duckdbtest.Ask(t, tables, file)[file].Lines()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// cookbookFacts computes the answers to some questions without SQL.
func cookbookFacts(t *testing.T, d *demoStore) map[string][]string {
	text := func(s string) string {
		if s == "" {
			return "<nil>"
		}
		return s
	}
	counts, denied, linked, facts := map[string]int{}, map[string][]string{}, map[string]bool{}, map[string][]string{}
	for i, s := range d.sealed {
		for _, f := range crawltest.RowsOf[schema.Fetch](t, d.bucket, d.sealed[i:i+1], "fetches") {
			counts[fmt.Sprintf("%s|%d|%s", s.Crawl, s.Round, f.Outcome)]++
			rule := f.Host + "|" + text(f.RobotsRule)
			if _, of, ok := schema.DeniedRedirect(f.Error, f.ErrorDetail); ok {
				rule = f.Host + "|" + of
			}
			if f.Outcome == schema.RobotsDenied {
				denied[rule] = append(denied[rule], f.URL)
			}
		}
	}
	for of, n := range counts {
		facts["outcomes"] = append(facts["outcomes"], fmt.Sprintf("%s|%d", of, n))
	}
	for rule, urls := range denied {
		slices.Sort(urls)
		urls = slices.Compact(urls)
		facts["robots-denials"] = append(facts["robots-denials"], fmt.Sprintf("%s|%d|%s", rule, len(urls), urls[0]))
	}
	for _, l := range crawltest.RowsOf[schema.Link](t, d.bucket, d.sealed, "links") {
		linked[l.Target] = linked[l.Target] || l.Kind != schema.KindSitemap && l.Source != l.Target
	}
	for _, p := range crawltest.RowsOf[schema.Page](t, d.bucket, d.sealed, "pages") {
		if !linked[p.URL] && p.DocumentKind == "html" {
			facts["orphan-pages"] = append(facts["orphan-pages"], p.URL+"|"+text(p.Title))
		}
	}
	return facts
}
