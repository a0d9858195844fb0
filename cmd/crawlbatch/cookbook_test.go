package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/sql"
	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// formats/README.md must list the questions of the cookbook.
func TestDocumentsHaveTheCookbook(t *testing.T) {
	const doc, begin, end = "formats/README.md", "<!-- generated: cookbook -->\n", "<!-- end -->\n"
	want := "| name | question |\n|---|---|\n"
	for _, q := range cookbook(t) {
		want += fmt.Sprintf("| [`%s`](../cmd/sql/queries/%[1]s.sql) | %s |\n", q.Name, q.Asks)
	}
	before, rest, ok := strings.Cut(fileOfTree(t, doc), begin)
	got, after, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has no part between %q and %q", doc, begin, end)
	case got == want:
	case !*update:
		t.Errorf("the cookbook in %s is not as generated: run go test ./cmd/crawlbatch -run Documents -update", doc)
	default:
		if err := os.WriteFile(filepath.Join(tree, doc), []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// cookbook returns the questions, and checks the form of their files.
func cookbook(t *testing.T) []sql.Question {
	t.Helper()
	all, err := sql.Questions()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		first, rest, _ := strings.Cut(q.SQL, "\n")
		if !strings.HasPrefix(first, "-- ") || !strings.Contains(q.Asks, "?") || strings.Count(rest, ";") != 1 || !strings.HasSuffix(rest, ";\n") {
			t.Errorf("%s.sql is not one question and one statement", q.Name)
		}
	}
	if len(all) < 30 {
		t.Errorf("the cookbook has %d questions only", len(all))
	}
	return all
}

// cookbookAbout returns a URL or a host of the crawl for each question that is about one.
func cookbookAbout(t *testing.T, d *demoStore) map[string]string {
	denied, linked, most := "", "", int64(0)
	for _, f := range rowsOf[schema.Fetch](t, d.bucket, d.sealed, "fetches") {
		if f.Outcome == "robots_denied" {
			denied = f.URL
		}
	}
	for _, p := range rowsOf[schema.Page](t, d.bucket, d.sealed, "pages") {
		if p.Inlinks > most {
			linked, most = p.URL, p.Inlinks
		}
	}
	if denied == "" || linked == "" {
		t.Fatal("the demo has no denied URL or no page with links to it")
	}
	return map[string]string{"why-not-crawled": denied, "url": linked, "host": linked}
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

// answersNothing names the questions without an answer about the demo: nothing changes in the synthetic
// web, neither pages nor robots.txt, and no task fails.
var answersNothing = map[string]bool{"robots-changes": true, "domain-robots-changes": true, "retried-tasks": true, "what-changed": true}

// askCookbook asks each question of the cookbook about the demo, and compares some answers with the rows.
func askCookbook(t *testing.T, d *demoStore, views string) {
	files, names := []string{views}, map[string]string{}
	for name, text := range filledCookbook(t, d) {
		names[name] = duckdbtest.SQLFile(t, text)
		files = append(files, names[name])
	}
	answers := duckdbtest.Ask(t, files...)
	for name, file := range names {
		a := answers[file]
		if wantRows := !answersNothing[name]; a == nil || len(a.Columns) < 2 || len(a.Rows) > 0 != wantRows {
			t.Errorf("%s: %+v, want rows: %t", name, a, wantRows)
		}
	}
	for name, want := range cookbookFacts(t, d) {
		got := slices.Clone(answers[names[name]].Lines())
		slices.Sort(got)
		slices.Sort(want)
		want = slices.Compact(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (- from the rows, + DuckDB):\n%s", name, diff)
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
		for _, f := range rowsOf[schema.Fetch](t, d.bucket, d.sealed[i:i+1], "fetches") {
			counts[fmt.Sprintf("%s|%d|%s", s.Crawl, s.Round, f.Outcome)]++
			if rule := f.Host + "|" + text(f.RobotsRule); f.Outcome == schema.RobotsDenied {
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
	for _, l := range rowsOf[schema.Link](t, d.bucket, d.sealed, "links") {
		linked[l.Target] = linked[l.Target] || l.Kind != schema.KindSitemap && l.Source != l.Target
	}
	for _, p := range rowsOf[schema.Page](t, d.bucket, d.sealed, "pages") {
		if !linked[p.URL] && p.DocumentKind == "html" {
			facts["orphan-pages"] = append(facts["orphan-pages"], p.URL+"|"+text(p.Title))
		}
	}
	return facts
}
