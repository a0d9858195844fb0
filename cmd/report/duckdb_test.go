package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
)

// TestDuckDBGivesTheNumbersOfTheReport runs the SQL of each figure and table over the views of the
// rounds, and compares the answer with the report.
func TestDuckDBGivesTheNumbersOfTheReport(t *testing.T) {
	duckdbtest.Need(t)
	f := newFake(t, 300)
	f.before = nil // the views have no tables of the month before
	f.round(6000)
	f.round(4000)
	var views strings.Builder
	if err := catalog.DuckDB(&views, fmt.Sprint(f.bucket), catalog.S3{}, "", f.sealed); err != nil {
		t.Fatal(err)
	}
	compareWithDuckDB(t, duckdbtest.SQLFile(t, views.String()), f.report())
}

func compareWithDuckDB(t *testing.T, views string, r *Report) {
	t.Helper()
	files, tables := []string{views}, map[string]*Table{}
	ask := func(g *Table) {
		if g.SQL != "" {
			file := duckdbtest.SQLFile(t, g.SQL)
			files, tables[file] = append(files, file), g
		}
	}
	figures := r.Headline
	for _, s := range r.Sections {
		figures = append(figures, s.Figures...)
		for _, g := range s.Tables {
			ask(g)
		}
	}
	for _, g := range figures {
		ask(&Table{ID: g.Name, SQL: g.SQL, Columns: []Column{{Name: g.Name, Unit: g.Unit}}, Rows: [][]any{{g.Value}}})
	}
	if len(tables) < 50 {
		t.Errorf("only %d queries", len(tables))
	}
	for file, answer := range duckdbtest.Ask(t, files...) {
		g := tables[file]
		if g == nil {
			continue
		}
		if len(answer.Rows) != len(g.Rows) {
			t.Errorf("%s: DuckDB has %d rows, the report %d\n%s", g.ID, len(answer.Rows), len(g.Rows), g.SQL)
			continue
		}
		for i, row := range g.Rows {
			at := 0
			for c, column := range g.Columns {
				if column.NoSQL {
					continue
				}
				name := answer.Columns[at][0]
				at++
				if got := answer.Rows[i][name]; !same(column, row[c], got) {
					t.Errorf("%s, row %d, %s: DuckDB has %v, the report %v\n%s", g.ID, i, column.Name, got, row[c], g.SQL)
				}
			}
			if at != len(answer.Columns) {
				t.Errorf("%s: DuckDB has the columns %v", g.ID, answer.Columns)
				break
			}
		}
	}
}

// same compares a value of the report with that of DuckDB.
func same(c Column, mine, duck any) bool {
	if mine == nil || duck == nil {
		return mine == duck
	}
	text := fmt.Sprint(duck)
	switch {
	case c.Unit == unitText:
		return mine == shown(text)
	case c.Unit == unitTime:
		at, err := time.Parse("2006-01-02 15:04:05.999999", text)
		return err == nil && mine == clock(at.UnixMilli())
	}
	n, err := strconv.ParseFloat(text, 64)
	return err == nil && math.Abs(n-number(mine)) <= max(c.Within, 1e-9)*math.Abs(n)
}
