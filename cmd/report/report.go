// Package report writes a report of a crawl: one HTML file that a browser opens from disk, or the
// same as JSON.
//
// The inputs are the tables and the documents of a crawl's sealed rounds. Each dataset is read once,
// with only the columns that the report needs. The output is a Report: sections of figures, charts
// and tables. Each of these names the SQL over the views of `crawlbatch views` that gives the same
// numbers, or the document that holds them.
//
// The memory does not depend on the number of rows. Tables of the most frequent keys count at most
// a fixed number of keys. If there are more, the table says by how much its counts may be too low.
// Percentiles come from histograms whose buckets are at most 1.6 % wide.
//
// The same store gives the same bytes. The report holds no clock time of its own. Texts from the web
// are escaped, and a Content-Security-Policy allows only the scripts of the report itself.
//
// Package report imports its sketch, jobs, stages and formats, and embeds uPlot. Only cmd/crawlbatch imports it.
package report

import (
	"slices"
	"strings"
	"unicode"
)

// The units of figures and columns.
const (
	unitText    = "text"
	unitCount   = "count"
	unitBytes   = "bytes"
	unitMS      = "ms"
	unitSeconds = "seconds"
	unitHours   = "hours"
	unitShare   = "share" // 0 to 1
	unitRate    = "per second"
	unitRatio   = "ratio"
	unitScore   = "score"
	unitDollars = "dollars"
	unitTime    = "time" // text in RFC 3339, UTC
)

// Report is the report of a crawl.
type Report struct {
	Crawl      string      `json:"crawl"`
	Store      string      `json:"store"`
	Version    string      `json:"written_by"` // version of crawlbatch that wrote the report
	Rounds     []int       `json:"rounds"`     // sealed rounds
	Unfinished string      `json:"unfinished"` // state of the round that is not sealed; "" if there is none
	Views      string      `json:"views"`      // command that prints the views for the SQL
	Attention  []Attention `json:"attention"`  // what needs attention, the most urgent first
	Headline   []Figure    `json:"headline"`
	Sections   []Section   `json:"sections"`
}

// The levels of Attention.
const (
	levelBad  = "problem"
	levelWarn = "warning"
	levelGood = "good"
	levelNote = "note"
)

// Attention is a sentence about something that an operator should know.
type Attention struct {
	Level   string `json:"level"` // problem, warning, note or good
	Text    string `json:"text"`
	Section string `json:"section"` // ID of the section with details
}

// Section is a part of the report.
type Section struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Notes   []string `json:"notes,omitempty"`
	Figures []Figure `json:"figures,omitempty"`
	Tables  []*Table `json:"tables,omitempty"`
}

// Figure is a number with its name.
type Figure struct {
	Name   string `json:"name"`
	Value  any    `json:"value"` // number or text; nil if it does not exist
	Unit   string `json:"unit"`
	Note   string `json:"note,omitempty"`
	SQL    string `json:"sql,omitempty"`
	Source string `json:"source,omitempty"` // where the number comes from, if it is not in a table
}

// Column is a column of a table.
type Column struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Within float64 `json:"error_max,omitempty"`  // largest relative error of the values; 0: exact
	NoSQL  bool    `json:"not_in_sql,omitempty"` // true: the SQL does not give the column
	bar    bool    // true: the page shows a bar beside each value
}

// Table is a table, and perhaps a chart of it.
type Table struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Note        string   `json:"note,omitempty"`
	Columns     []Column `json:"columns"`
	Rows        [][]any  `json:"rows"`                     // texts, numbers, true, false and null
	More        int64    `json:"more,omitempty"`           // keys that the table leaves out
	Approximate bool     `json:"approximate,omitempty"`    // true: there were more keys than are counted exactly, so numbers may be too low
	Bound       int64    `json:"too_low_by_max,omitempty"` // how much too low the ordering numbers may be
	SQL         string   `json:"sql,omitempty"`
	Source      string   `json:"source,omitempty"`
	Chart       *Chart   `json:"chart,omitempty"`
	folded      bool     // true: the page shows the rows when the reader asks for them
}

// Chart draws columns of a table over its column time.
type Chart struct {
	X       int    `json:"x"`            // index of the column of the times
	Y       []int  `json:"y"`            // indexes of the columns to draw
	Seconds int64  `json:"step_seconds"` // distance of two times
	Rate    bool   `json:"rate"`         // true: draw values per second
	Gaps    bool   `json:"gaps"`         // true: a missing time is no value; false: it is 0
	Alt     string `json:"alt"`          // what the chart shows, in words
}

// mostText is the largest number of characters of a text in a table.
const mostText = 200

// shown bounds a text from the web, and replaces characters that do not show or that change the
// direction of writing.
func shown(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '�'
	}, cut(s, mostText+1))
	if n := []rune(s); len(n) > mostText {
		return string(n[:mostText-1]) + "…"
	}
	return s
}

// cut returns the first n characters of a text.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	count := 0
	for i := range s {
		if count == n {
			return s[:i]
		}
		count++
	}
	return s
}

// table returns the table with the given ID, or nil.
func (r *Report) table(id string) *Table {
	for _, s := range r.Sections {
		if i := slices.IndexFunc(s.Tables, func(t *Table) bool { return t.ID == id }); i >= 0 {
			return s.Tables[i]
		}
	}
	return nil
}
