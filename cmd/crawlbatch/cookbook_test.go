package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/sql"
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
		if !strings.HasPrefix(first, "-- ") || !strings.Contains(q.Asks, "?") || strings.Count(rest, ";") != 1 || !strings.HasSuffix(rest, ";\n") || strings.Contains(rest, "\n--") {
			t.Errorf("%s.sql is not one question and one statement", q.Name)
		}
	}
	if len(all) < 30 {
		t.Errorf("the cookbook has %d questions only", len(all))
	}
	return all
}
