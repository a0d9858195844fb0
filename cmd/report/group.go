package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/cmd/report/sketch"
)

// value is a value column of a group.
type value struct {
	name, unit string
	how        sketch.Aggregate
	sql        string  // aggregate in SQL
	scale      float64 // factor from the added numbers to the values of the table; 0: 1
}

// key is a key column of a group.
type key struct {
	name, sql string
	number    bool
}

// group is a table that counts rows by key: a GROUP BY in bounded memory, with the SQL that gives the
// same.
type group struct {
	id, title, note string
	from            string // dataset
	where           string // further condition on the rows
	keys            []key
	values          []value
	rank            int  // index of the value that orders the table
	byKey           bool // true: the table is sorted by its keys, as numbers
	share           bool // true: a column with the share of the ranked value in all rows
	unique          bool // true: a key has one row in each round
	positive        bool // true: keys whose ranked value is 0 are left out
	limit           int  // rows of the table; 0: defaultLimit
	keep            int  // least number of keys that are counted exactly; 0: defaultKeep
	derived         []derived

	top   *sketch.Top
	total int64
}

// derived is a column that follows from the values of a row.
type derived struct {
	name, unit, sql string
	of              func(values []int64) any
}

// defaultKeep is the least number of keys that a group counts exactly.
const defaultKeep = 8192

// defaultLimit is the largest number of rows of a table. Most tables have fewer keys, unless a
// server invents keys.
const defaultLimit = 300

// count returns the value column that counts rows.
func count(name string) value { return value{name: name, unit: unitCount, sql: "count(*)"} }

// total returns the value column with the sum of a column.
func total(name, unit, column string) value {
	return value{name: name, unit: unit, sql: "sum(" + column + ")::BIGINT"}
}

func (g *group) start() *group {
	if g.keep == 0 {
		g.keep = defaultKeep
	}
	if g.limit == 0 {
		g.limit = defaultLimit
	}
	how := make([]sketch.Aggregate, len(g.values))
	for i, v := range g.values {
		how[i] = v.how
	}
	g.top = sketch.NewTop(g.keep, g.rank, how...)
	g.top.Unique = g.unique
	return g
}

// add adds a row. A group with two keys takes the result of pair.
func (g *group) add(key string, values ...int64) {
	g.total += values[g.rank]
	g.top.Add(key, values...)
}

// separator separates the two keys of a row.
const separator = "\x00"

// pair joins two keys.
func pair(a, b string) string { return strings.ReplaceAll(a, separator, "�") + separator + b }

// parts returns the keys of a row.
func (g *group) parts(key string) []string { return strings.SplitN(key, separator, len(g.keys)) }

// sql returns the query that gives the table of a crawl.
func (g *group) sql(crawl string) string {
	var columns, order []string
	for i, k := range g.keys {
		columns = append(columns, k.sql+" AS "+quoted(k.name))
		order = append(order, strconv.Itoa(i+1))
	}
	rank := len(g.keys) + g.rank + 1
	for _, v := range g.values {
		columns = append(columns, v.sql+" AS "+quoted(v.name))
	}
	ranked := g.values[g.rank].sql
	if g.share {
		columns = append(columns, fmt.Sprintf("%s / sum(%s) OVER () AS share", ranked, ranked))
	}
	for _, d := range g.derived {
		columns = append(columns, d.sql+" AS "+quoted(d.name))
	}
	sql := "SELECT " + strings.Join(columns, ",\n  ") + "\nFROM " + g.from + "\nWHERE crawl = '" + crawl + "'"
	if g.where != "" {
		sql += " AND " + g.where
	}
	sql += "\nGROUP BY " + strings.Join(order, ", ")
	if g.positive {
		sql += "\nHAVING " + ranked + " > 0"
	}
	if !g.byKey {
		order = append([]string{fmt.Sprintf("%d DESC", rank)}, order...)
	}
	sql += "\nORDER BY " + strings.Join(order, ", ")
	return sql + fmt.Sprintf("\nLIMIT %d", g.limit)
}

func quoted(name string) string { return `"` + name + `"` }

// table returns the finished table.
func (g *group) table(crawl string) *Table {
	t := &Table{ID: g.id, Title: g.title, Note: g.note, SQL: g.sql(crawl), Rows: [][]any{}}
	for _, k := range g.keys {
		unit := unitText
		if k.number {
			unit = unitScore
		}
		t.Columns = append(t.Columns, Column{Name: k.name, Unit: unit})
	}
	for i, v := range g.values {
		t.Columns = append(t.Columns, Column{Name: v.name, Unit: v.unit, bar: i == g.rank})
	}
	if g.share {
		t.Columns = append(t.Columns, Column{Name: "share", Unit: unitShare})
	}
	for _, d := range g.derived {
		t.Columns = append(t.Columns, Column{Name: d.name, Unit: d.unit})
	}
	entries := g.top.Sorted()
	slices.SortStableFunc(entries, g.compare)
	for i, e := range entries {
		if g.positive && e.Values[g.rank] <= 0 {
			continue
		}
		if len(t.Rows) == g.limit {
			t.More = int64(len(entries) - i)
			break
		}
		t.Bound = max(t.Bound, e.Missed)
		t.Rows = append(t.Rows, g.row(e))
	}
	t.More += g.top.Lost
	t.Approximate = g.top.Returned
	return t
}

// compare orders entries as the SQL does.
func (g *group) compare(a, b *sketch.Entry) int {
	if !g.byKey && a.Values[g.rank] != b.Values[g.rank] {
		if a.Values[g.rank] > b.Values[g.rank] {
			return -1
		}
		return 1
	}
	x, y := g.parts(a.Key), g.parts(b.Key)
	for i := range x {
		if c := strings.Compare(x[i], y[i]); c != 0 {
			if g.keys[i].number {
				return numberOf(x[i]) - numberOf(y[i])
			}
			return c
		}
	}
	return 0
}

func numberOf(s string) int {
	n, _ := strconv.Atoi(s) // the group's own collector wrote the number
	return n
}

func (g *group) row(e *sketch.Entry) (row []any) {
	for i, part := range g.parts(e.Key) {
		if g.keys[i].number {
			row = append(row, int64(numberOf(part)))
		} else {
			row = append(row, shown(part))
		}
	}
	for i, v := range g.values {
		n := e.Values[i]
		switch {
		case v.unit == unitTime:
			row = append(row, clock(n))
		case v.scale != 0:
			row = append(row, float64(n)*v.scale)
		default:
			row = append(row, n)
		}
	}
	if g.share {
		row = append(row, ratio(e.Values[g.rank], g.total))
	}
	for _, d := range g.derived {
		row = append(row, d.of(e.Values))
	}
	return row
}

// ratio returns a / b, or nil if b is 0.
func ratio(a, b int64) any {
	if b == 0 {
		return nil
	}
	return float64(a) / float64(b)
}
