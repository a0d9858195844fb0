package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/stages"
)

func (m *maker) outcomes() Section {
	f := m.fetches
	return Section{
		ID: "outcomes", Title: "Outcomes",
		Figures: []Figure{
			m.of("URLs that took several attempts", f.retried, unitCount, "count(*) FILTER (WHERE attempts > 1)", "fetches"),
			m.of("Decoded bytes of documents", f.contentBytes, unitBytes, "coalesce(sum(content_bytes), 0)::BIGINT", "fetches"),
		},
		Tables: m.tables(f.outcomes, f.statuses, f.errors, f.blocked, m.requests.failures),
	}
}

func (m *maker) politeness() Section {
	q := m.requests
	return Section{
		ID: "politeness", Title: "Politeness",
		Figures: []Figure{
			m.of("Gaps compared with the delay", q.gaps, unitCount, "count(gap_ms)", "requests"),
			m.of("Gaps shorter than the delay", q.tooSoon, unitCount, "count(*) FILTER (WHERE gap_ms < delay_ms - 1)", "requests"),
		},
		Tables: m.tables(q.paces, q.soon, m.hosts.delays),
	}
}

func (m *maker) busyHosts() Section {
	h := m.hosts
	return Section{
		ID: "hosts", Title: "Domains and hosts",
		Figures: []Figure{
			m.of("Suspensions by the breaker", h.breakers, unitCount, "coalesce(sum(breaker_events), 0)::BIGINT", "hosts"),
			m.of("Suspended hosts, once for each round", h.suspendedHosts, unitCount, "count(*) FILTER (WHERE breaker_events > 0)", "hosts"),
		},
		Tables: m.tables(h.holding, h.busiest, h.worst, h.suspended),
	}
}

func (m *maker) robots() Section {
	return Section{ID: "robots", Title: "robots.txt and skipped URLs", Tables: m.tables(m.hosts.robots, m.fetches.rules, m.skips, m.traps)}
}

func (m *maker) blocked() Section {
	return Section{ID: "blocked", Title: "Networks that block", Tables: m.tables(m.requests.networks)}
}

func (m *maker) content() Section {
	p := m.pages
	t := &Table{ID: "sizes", Title: "Sizes of pages", Note: withinText, Columns: percentileColumns("of", "pages", unitCount), Rows: [][]any{}}
	var sql []string
	for _, s := range p.spreads {
		t.Rows = append(t.Rows, percentileRow(&s.Histogram, s.name, 1))
		sql = append(sql, percentileSQL(s.name, s.column, "")+"\nFROM pages WHERE crawl = '"+m.Crawl+"'")
	}
	t.SQL = strings.Join(sql, "\nUNION ALL ")
	return Section{
		ID: "content", Title: "Content",
		Figures: []Figure{
			m.of("Pages", p.pages, unitCount, "count(*)", "pages"),
			m.of("Pages that may be indexed", p.indexable, unitCount, "count(*) FILTER (WHERE indexable)", "pages"),
			m.of("Pages that were fetched before", p.compared, unitCount, "count(changed)", "pages"),
			m.of("Of these, changed", p.changed, unitCount, "count(*) FILTER (WHERE changed)", "pages"),
		},
		Tables: append(m.tables(p.languages, m.fetches.types, p.kinds, p.hints, m.fetches.depths), t),
	}
}

func (m *maker) copies() Section {
	d := m.duplicates
	return Section{
		ID: "duplicates", Title: "Duplicates",
		Figures: []Figure{m.of("Copies of other pages", d.copies, unitCount, "count(*) FILTER (WHERE kind <> 'representative')", "duplicates")},
		Tables:  m.tables(d.kinds, d.families),
	}
}

func (m *maker) graph() Section {
	return Section{ID: "links", Title: "Links and frontier", Tables: append(m.tables(m.urls.growth, m.urls.states, m.links, m.pages.linked, m.hosts.ranked), m.merged()...)}
}

// merged returns a table of what the steps of the canonical form merged, unless they merged nothing.
func (m *maker) merged() []*Table {
	t := &Table{
		ID: "merged", Title: "Links and listed entries that canonical URLs merged, by step", Rows: [][]any{},
		Columns: []Column{{Name: "step", Unit: unitText}, {Name: "listed entries", Unit: unitCount}, {Name: "links", Unit: unitCount, bar: true}},
		Source:  "the counts plan.merged and merge.merged that crawl=" + m.Crawl + "/round=…/sealed.json has",
		Note:    "A link counts if it differs from its target's canonical URL, a listed entry if it differs from another entry of its URL. Steps that the config adds (sessions to rewrite) count for listed entries only. Each is asked for in one form, as it was linked (column sent of urls).",
	}
	for _, step := range urlkey.Merged(math.MaxUint16).Names() {
		entries, links := countOf(m.rounds.sealed, "plan."+stages.CountMerged+step), countOf(m.rounds.sealed, "merge."+stages.CountMerged+step)
		if entries+links > 0 {
			t.Rows = append(t.Rows, []any{step, entries, links})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []*Table{t}
}

// stored returns the files that the seals list, by dataset.
func (m *maker) stored() *Table {
	sizes, names := m.sizes, slices.Collect(maps.Keys(m.sizes))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b].bytes, sizes[a].bytes), strings.Compare(a, b))
	})
	t := &Table{
		ID: "stored", Title: "Files of the finished rounds", Rows: [][]any{},
		Columns: []Column{{Name: "dataset", Unit: unitText}, {Name: "files", Unit: unitCount}, {Name: "rows", Unit: unitCount}, {Name: "bytes", Unit: unitBytes, bar: true}},
		Source:  "the manifests that crawl=" + m.Crawl + "/round=…/sealed.json names",
		Note:    "These are the tables, the WARC files with their indexes, and the working files that later rounds read.",
	}
	if m.status.NoRaw {
		t.Note += " The rows count WARC files that were deleted since then: " + m.status.Pruned + "."
	}
	for _, name := range names {
		of := sizes[name]
		t.Rows = append(t.Rows, []any{name, of.files, of.rows, of.bytes})
	}
	return t
}

// compared is a number by which two months are compared: the name of a count in seals, and the rows of a
// dataset that give the same number.
type compared struct{ name, count, dataset, where string }

// numbers lists the numbers by which rounds of two months are compared. Outcomes that neither has are left out.
func numbers(now, before []*manifest.Sealed) []compared {
	all := []compared{{"planned URLs", "plan.urls", "fetches", ""}}
	names := map[schema.Outcome]string{schema.OK: "documents that are new or changed (ok)", schema.NotModified: "documents that did not change (not_modified)"}
	for _, o := range schema.Outcomes {
		if count := "merge.outcome." + string(o); countOf(now, count)+countOf(before, count) > 0 {
			all = append(all, compared{cmp.Or(names[o], string(o)), count, "fetches", " AND outcome = '" + string(o) + "'"})
		}
	}
	return append(all, []compared{
		{"requests", "merge.requests", "requests", ""}, {"pages with content", "publish.pages", "pages", ""},
		{"copies of other pages", "publish.duplicates", "pages", " AND duplicate_of IS NOT NULL"},
		{"links", "merge.links", "links", ""}, {"skipped URLs", "frontier.skips", "skips", ""},
	}...)
}

// change compares the crawl with the previous one.
func (m *maker) change() Section {
	s := Section{ID: "change", Title: "Change since last month"}
	if m.previous == "" {
		s.Notes = []string{"The store holds no earlier month with a finished round, so there is nothing to compare with."}
		return s
	}
	// A month with more rounds has more of everything, so only as many rounds count as both months have.
	rounds := min(len(m.rounds.sealed), len(m.earlier))
	title, where := m.Crawl+" and "+m.previous, ""
	if len(m.rounds.sealed) != len(m.earlier) {
		title += ", the first " + strings.TrimPrefix(show.Count(int64(rounds), "round"), "1 ") + " of each"
		where = fmt.Sprintf(" AND round < %d", rounds)
	}
	t := &Table{
		ID: "change", Title: title, Rows: [][]any{},
		Note: fmt.Sprintf("A page that was fetched again and did not change counts as not_modified, not as ok or as a page with content. "+
			"`crawlbatch query what-changed-most --all-months%[5]s` and `gone-pages` name pages. The numbers are sums of the counts in sealed.json. %[2]s has %[1]s, and %[4]s has %[3]s. The SQL needs the views of all months: `crawlbatch views --dialect duckdb --all-months%[5]s`.",
			show.Count(int64(len(m.rounds.sealed)), "finished round"), m.Crawl, show.Count(int64(len(m.earlier)), "finished round"), m.previous, m.Flags),
		Columns: []Column{{Name: "number", Unit: unitText}, {Name: m.Crawl, Unit: unitCount}, {Name: m.previous, Unit: unitCount}, {Name: "change", Unit: unitShare}},
	}
	var sql []string
	for _, c := range numbers(m.rounds.sealed[:rounds], m.earlier[:rounds]) {
		now, before := countOf(m.rounds.sealed[:rounds], c.count), countOf(m.earlier[:rounds], c.count)
		t.Rows = append(t.Rows, []any{c.name, now, before, ratio(now-before, before)})
		const count = "count(*) FILTER (WHERE crawl = '%s'%s)"
		a, b := fmt.Sprintf(count, m.Crawl, c.where+where), fmt.Sprintf(count, m.previous, c.where+where)
		sql = append(sql, fmt.Sprintf("SELECT '%s' AS number, %s AS \"%s\", %s AS \"%s\", (%[2]s - %[4]s) / nullif(%[4]s, 0) AS change FROM %[6]s", c.name, a, m.Crawl, b, m.previous, c.dataset))
	}
	t.SQL = strings.Join(sql, "\nUNION ALL ")
	s.Tables = []*Table{t}
	return s
}

// countOf returns the sum of a count over rounds.
func countOf(sealed []*manifest.Sealed, name string) (n int64) {
	for _, s := range sealed {
		for _, c := range s.Counts {
			if c.Name == name {
				n += c.N
			}
		}
	}
	return n
}

// failedTasks returns the tasks that failed and have no result.
func (m *maker) failedTasks() (all []jobs.TaskStatus) {
	for _, r := range m.status.Rounds {
		for _, s := range r.Stages {
			all = append(all, s.Failed...)
		}
	}
	return all
}
