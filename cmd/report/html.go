package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/jobs/show"
)

//go:embed uplot/uPlot.iife.min.js
var uplotScript string

//go:embed uplot/uPlot.min.css
var uplotStyle string

//go:embed uplot/LICENSE
var uplotLicense string

//go:embed page.js
var pageScript string

//go:embed page.css
var pageStyle string

// page writes HTML. It escapes texts itself: all texts go through text or attributes of tag.
type page struct{ bytes.Buffer }

// raw writes HTML that holds no text from outside.
func (p *page) raw(s string) { p.WriteString(s) }

// text writes a text.
func (p *page) text(s string) { p.WriteString(html.EscapeString(strings.ToValidUTF8(s, "�"))) }

// tag writes the start of an element. The attributes are names and values in turn.
func (p *page) tag(name string, attributes ...string) {
	p.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		p.WriteString(" " + attributes[i] + `="`)
		p.text(attributes[i+1])
		p.WriteString(`"`)
	}
	p.WriteString(">")
}

// element writes an element that holds a text.
func (p *page) element(name, text string, attributes ...string) {
	p.tag(name, attributes...)
	p.text(text)
	p.raw("</" + name + ">")
}

// hashOf returns the source expression that allows an inline script or style in a
// Content-Security-Policy.
func hashOf(inline string) string {
	digest := sha256.Sum256([]byte(inline))
	return "'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'"
}

// HTML writes a report as one HTML document.
func HTML(w io.Writer, r *Report) error {
	script := "/*\n" + uplotLicense + "*/\n" + uplotScript + "\n" + pageScript
	style := uplotStyle + "\n" + pageStyle
	var p page
	p.raw("<!DOCTYPE html>\n")
	p.tag("html", "lang", "en")
	p.raw("\n<head>\n<meta charset=\"utf-8\">\n")
	p.tag("meta", "http-equiv", "Content-Security-Policy", "content",
		"default-src 'none'; script-src "+hashOf(script)+"; style-src "+hashOf(style)+"; base-uri 'none'; form-action 'none'")
	p.raw("\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n")
	p.element("title", "Crawl "+r.Crawl+": report")
	p.raw("\n<style>" + style + "</style>\n</head>\n<body>\n")
	p.raw(`<a class="skip" href="#main">Skip to the report</a>` + "\n")
	p.header(r)
	p.raw("<main id=\"main\" tabindex=\"-1\">\n")
	p.summary(r)
	for i := range r.Sections {
		p.section(&r.Sections[i])
	}
	p.raw("</main>\n<footer>")
	p.element("p", "Written by crawlbatch "+r.Version+". Times are UTC. kB, MB and GB are powers of 1,000.")
	p.raw("<p>The SQL is for DuckDB, with the views that this command prints:</p>")
	p.element("pre", r.Views+" > views.sql && duckdb -init views.sql", "tabindex", "0")
	p.raw("<p>Charts: uPlot, MIT licence.</p></footer>\n<script>" + script + "</script>\n</body>\n</html>\n")
	_, err := p.WriteTo(w)
	return err
}

func (p *page) header(r *Report) {
	p.raw("<header>\n")
	p.element("h1", "Crawl "+r.Crawl)
	p.raw("<p class=\"muted\">")
	p.text(show.Count(int64(len(r.Rounds)), "finished round") + " in ")
	p.element("bdi", shown(r.Store))
	p.raw("</p>\n<nav aria-label=\"Sections\"><ul>")
	for _, s := range r.Sections {
		p.raw("<li>")
		p.element("a", s.Title, "href", "#"+s.ID)
		p.raw("</li>")
	}
	p.raw("</ul></nav>\n</header>\n")
}

// marks are the symbols of the levels of attention, for people who see no colours.
var marks = map[string]string{levelBad: "✕", levelWarn: "!", levelGood: "✓", levelNote: "i"}

func (p *page) summary(r *Report) {
	p.raw("<section id=\"summary\" aria-labelledby=\"summary-title\">\n<h2 id=\"summary-title\">Summary</h2>\n<ul class=\"attention\">\n")
	for _, a := range r.Attention {
		p.tag("li", "class", "is-"+a.Level)
		p.element("span", marks[a.Level], "class", "mark", "aria-hidden", "true")
		p.raw("<span>")
		p.element("span", a.Level+": ", "class", "only-read")
		p.text(a.Text + " ")
		p.element("a", "Details", "href", "#"+a.Section, "aria-label", "Details: "+a.Text)
		p.raw("</span></li>\n")
	}
	p.raw("</ul>\n")
	p.figures(r.Headline, "figures headline")
	p.raw("</section>\n")
}

func (p *page) figures(all []Figure, class string) {
	if len(all) == 0 {
		return
	}
	p.tag("div", "class", class)
	for _, f := range all {
		p.raw("<div class=\"figure\">")
		p.element("p", f.Name, "class", "name")
		p.tag("p", "class", "value", "title", exact(f.Value))
		p.text(formatted(f.Value, f.Unit))
		p.raw("</p>")
		if f.Note != "" {
			p.element("p", f.Note, "class", "name")
		}
		p.query(f.SQL, f.Source, "SQL of "+f.Name)
		p.raw("</div>\n")
	}
	p.raw("</div>\n")
}

func (p *page) section(s *Section) {
	p.tag("section", "id", s.ID, "aria-labelledby", s.ID+"-title")
	p.raw("\n")
	p.element("h2", s.Title, "id", s.ID+"-title")
	p.raw("\n")
	for _, n := range s.Notes {
		p.note(n)
	}
	p.figures(s.Figures, "figures")
	for _, t := range s.Tables {
		p.table(t)
	}
	p.raw("</section>\n")
}

// note writes a paragraph, with the texts between backquotes as code.
func (p *page) note(s string) {
	p.raw("<p class=\"note\">")
	for i, part := range strings.Split(s, "`") {
		if i%2 == 1 {
			p.element("code", part)
		} else {
			p.text(part)
		}
	}
	p.raw("</p>\n")
}

// query writes the SQL or the source of numbers.
func (p *page) query(sql, source, label string) {
	summary, text := "SQL", sql
	if sql == "" {
		if summary, text = "Source", source; source == "" {
			return
		}
	}
	p.raw("<details class=\"sql\">")
	p.element("summary", summary, "aria-label", strings.Replace(label, "SQL", summary, 1))
	p.element("pre", text, "tabindex", "0")
	p.raw("</details>")
}

func (p *page) table(t *Table) {
	p.tag("div", "class", "block", "id", "table-"+t.ID)
	p.raw("\n")
	p.element("h3", t.Title, "id", "table-"+t.ID+"-title")
	p.raw("\n")
	if t.Note != "" {
		p.note(t.Note)
	}
	if len(t.Rows) == 0 {
		p.raw("<p class=\"empty\">There are none.</p>\n")
		p.query(t.SQL, t.Source, "SQL of "+t.Title)
		p.raw("</div>\n")
		return
	}
	if t.Chart != nil {
		p.chart(t)
		p.raw("<details class=\"numbers\">")
		p.element("summary", "The numbers of the chart", "aria-label", "The numbers of the chart "+t.Title)
	} else if t.folded {
		p.raw("<details>")
		p.element("summary", show.Count(int64(len(t.Rows)), "row"), "aria-label", t.Title+": "+show.Count(int64(len(t.Rows)), "row"))
	}
	if len(t.Rows) >= filterFrom {
		p.raw("<p class=\"filter\">")
		p.tag("label")
		p.text("Filter ")
		p.tag("input", "type", "search", "data-filter", t.ID, "autocomplete", "off", "spellcheck", "false", "aria-label", "Filter "+t.Title)
		p.raw("</label> <span role=\"status\"></span></p>\n")
	}
	p.tag("div", "class", "scroll", "role", "region", "aria-labelledby", "table-"+t.ID+"-title", "tabindex", "0")
	p.grid(t)
	p.raw("</div>\n")
	if t.Chart != nil || t.folded {
		p.raw("</details>\n")
	}
	if t.More > 0 {
		p.note(fmt.Sprintf("%s are not shown.", show.Thousands(t.More)+" more"))
	}
	if t.Approximate {
		p.note(fmt.Sprintf("There are more different keys than the report counts exactly. The numbers that order the table may be up to %s too low, and the others may leave out rows of keys that were rare at first.", show.Thousands(t.Bound)))
	}
	p.query(t.SQL, t.Source, "SQL of "+t.Title)
	p.raw("</div>\n")
}

// filterFrom is the number of rows from which on a table has a filter.
const filterFrom = 8

func (p *page) chart(t *Table) {
	y := make([]string, len(t.Chart.Y))
	for i, c := range t.Chart.Y {
		y[i] = strconv.Itoa(c)
	}
	p.tag("figure", "class", "chart", "tabindex", "0", "role", "img", "aria-label", t.Chart.Alt+" Arrow keys move along the chart. The numbers are in the table below.",
		"data-table", t.ID, "data-x", strconv.Itoa(t.Chart.X), "data-y", strings.Join(y, ","), "data-step", strconv.FormatInt(t.Chart.Seconds, 10),
		"data-rate", strconv.FormatBool(t.Chart.Rate), "data-gaps", strconv.FormatBool(t.Chart.Gaps))
	p.raw("</figure>")
	p.raw("<p class=\"readout\" role=\"status\"></p>\n")
	p.raw("<noscript><p class=\"note\">The chart needs JavaScript. The numbers are below.</p></noscript>\n")
}

// grid writes the rows of a table.
func (p *page) grid(t *Table) {
	p.tag("table", "data-table", t.ID)
	p.raw("<thead><tr>")
	for _, c := range t.Columns {
		class := "n"
		if c.Unit == unitText || c.Unit == unitTime {
			class = ""
		}
		p.tag("th", "scope", "col", "class", class, "data-unit", c.Unit)
		p.raw("<button type=\"button\">")
		p.text(c.Name)
		if u := unitNames[c.Unit]; u != "" {
			p.element("span", ", "+u, "class", "unit")
		}
		p.raw("</button></th>")
	}
	p.raw("</tr></thead>\n<tbody>\n")
	largest := make([]float64, len(t.Columns))
	for _, row := range t.Rows {
		for i, v := range row {
			largest[i] = max(largest[i], number(v))
		}
	}
	for _, row := range t.Rows {
		p.raw("<tr>")
		for i, v := range row {
			p.cell(&t.Columns[i], v, i == 0, largest[i])
		}
		p.raw("</tr>\n")
	}
	p.raw("</tbody></table>")
}

// unitNames are the units that the head of a column shows.
var unitNames = map[string]string{unitTime: "UTC"}

func (p *page) cell(c *Column, v any, first bool, largest float64) {
	name := "td"
	attributes := []string{}
	if first {
		name, attributes = "th", []string{"scope", "row"}
	}
	switch c.Unit {
	case unitText:
		p.tag(name, attributes...)
		p.element("bdi", formatted(v, c.Unit))
	case unitTime:
		p.tag(name, append(attributes, "class", "time", "data-v", exact(v))...)
		p.text(formatted(v, c.Unit))
	default:
		class := "n"
		if c.bar {
			class = "n has-bar"
		}
		p.tag(name, append(attributes, "class", class, "data-v", exact(v))...)
		if n := number(v); c.bar && largest > 0 {
			fmt.Fprintf(p, `<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width="%.1f" height="10"/></svg>`, 100*n/largest)
		}
		p.text(formatted(v, c.Unit))
	}
	p.raw("</" + name + ">")
}
