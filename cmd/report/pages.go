package report

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/cmd/report/sketch"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// pageRow holds the columns of the pages dataset that a report needs.
type pageRow struct {
	URL          string `parquet:"url"`
	Language     string `parquet:"language,optional"`
	Kind         string `parquet:"document_kind,optional"`
	Hint         string `parquet:"page_hint,optional"`
	Indexable    bool   `parquet:"indexable"`
	WordCount    int32  `parquet:"word_count"`
	Inlinks      int64  `parquet:"inlinks"`
	Outlinks     int32  `parquet:"outlinks"`
	ContentBytes int64  `parquet:"content_bytes"`
	Changed      *bool  `parquet:"changed,optional"`
}

// spread is a column of the pages dataset with the histogram of its values.
type spread struct {
	name, column, unit string
	of                 func(*pageRow) int64
	sketch.Histogram
}

// pages collects the figures of the pages dataset.
type pages struct {
	languages, kinds, hints, linked *group
	spreads                         []*spread
	pages, indexable                int64
	compared, changed               int64 // pages with an earlier fetch
}

func newPages() *pages {
	n := []value{count("pages")}
	return &pages{
		spreads: []*spread{
			{name: "words of the main text", column: "word_count", unit: unitCount, of: func(r *pageRow) int64 { return int64(r.WordCount) }},
			{name: "bytes of the document", column: "content_bytes", unit: unitBytes, of: func(r *pageRow) int64 { return r.ContentBytes }},
			{name: "links on the page", column: "outlinks", unit: unitCount, of: func(r *pageRow) int64 { return int64(r.Outlinks) }},
			{name: "pages that link to it", column: "inlinks", unit: unitCount, of: func(r *pageRow) int64 { return r.Inlinks }},
		},
		languages: (&group{id: "languages", title: "Languages", from: stages.FilePages, share: true, limit: 30,
			keys: []key{{name: "language (ISO 639-3)", sql: orNull("language", "unknown")}}, values: n}).start(),
		kinds: (&group{id: "kinds", title: "Kinds of documents", from: stages.FilePages, share: true,
			keys: []key{{name: "kind", sql: orNull("document_kind", "unknown")}}, values: n}).start(),
		hints: (&group{id: "hints", title: "Pages that seem to be no content", from: stages.FilePages, where: "page_hint IS NOT NULL",
			keys: []key{{name: "seems to be", sql: "page_hint"}}, values: n}).start(),
		linked: (&group{id: "linked", title: "Pages with the most links to them", from: stages.FilePages, limit: 20, positive: true, keep: 1024,
			keys:   []key{{name: "URL", sql: "url"}},
			values: []value{{name: "linking pages", unit: unitCount, how: sketch.Largest, sql: "max(inlinks)"}},
			note:   "The number counts distinct pages of one round. It is the largest of all rounds."}).start(),
	}
}

func (p *pages) read(ctx context.Context, r *rounds) error {
	return scan(ctx, r, stages.FilePages, nil, p.add)
}

func (p *pages) add(_ int, row *pageRow) {
	p.pages++
	p.indexable += one(row.Indexable)
	if row.Changed != nil {
		p.compared++
		p.changed += one(*row.Changed)
	}
	p.languages.add(cmp.Or(row.Language, "unknown"), 1)
	p.kinds.add(cmp.Or(row.Kind, "unknown"), 1)
	if row.Hint != "" {
		p.hints.add(row.Hint, 1)
	}
	if row.Inlinks > 0 {
		p.linked.add(row.URL, row.Inlinks)
	}
	for _, s := range p.spreads {
		s.Add(s.of(row))
	}
}

// duplicates collects the figures of the duplicates dataset.
type duplicates struct {
	kinds, families *group
	copies          int64 // exact and near
}

func newDuplicates() *duplicates {
	return &duplicates{
		kinds: (&group{id: "duplicate-kinds", title: "Members of families of duplicates", from: stages.FileDuplicates,
			keys: []key{{name: "kind", sql: "kind"}}, values: []value{count("pages")}}).start(),
		families: (&group{id: "families", title: "The largest families of duplicates", from: stages.FileDuplicates, limit: 25, keep: 1024,
			keys: []key{{name: "representative", sql: "representative"}},
			values: []value{
				{name: "pages", unit: unitCount, how: sketch.Largest, sql: "max(cluster_size)"},
				countIf("exact copies", "kind = 'exact'"), countIf("near copies", "kind = 'near'"),
			},
			note: "The number of pages is that of the round with the most. Copies are counted over all rounds."}).start(),
	}
}

func (d *duplicates) read(ctx context.Context, r *rounds) error {
	return scan(ctx, r, stages.FileDuplicates, nil, func(_ int, row *smallRow) {
		d.copies += one(row.Kind != string(schema.DupRepresentative))
		d.kinds.add(row.Kind, 1)
		d.families.add(row.Representative, int64(row.ClusterSize), one(row.Kind == string(schema.DupExact)), one(row.Kind == string(schema.DupNear)))
	})
}

// urls collects the figures of the urls dataset.
type urls struct{ states, growth *group }

func newURLs() *urls {
	round := key{name: "round", sql: "round", number: true}
	return &urls{
		states: (&group{id: "states", title: "States of URLs after each round", from: "urls_history",
			keys: []key{round, {name: "state", sql: "state"}}, values: []value{count("URLs")}, byKey: true,
			note: "Each round counts the URLs whose state it changed."}).start(),
		growth: (&group{id: "growth", title: "Growth of the frontier", from: "urls_history", keys: []key{round}, byKey: true,
			values: []value{countIf("found", "first_seen = crawl || '.' || round"), countIf("waiting to be fetched", "state = 'found'"), count("changed")},
			note:   "Found are URLs that no earlier round knew. Waiting are URLs that the round left for a later round."}).start(),
	}
}

func (u *urls) read(ctx context.Context, r *rounds) error {
	return scan(ctx, r, stages.FileURLs, nil, func(round int, row *smallRow) {
		n := strconv.Itoa(round)
		u.states.add(pair(n, string(row.State)), 1)
		u.growth.add(n, one(row.FirstSeen == r.crawl+"."+n), one(row.State == schema.StateFound), 1)
	})
}

func newLinks() *group {
	return (&group{id: "links", title: "Links by kind", from: stages.FileLinks, share: true,
		keys: []key{{name: "kind", sql: "kind"}}, values: []value{count("links"), countIf("nofollow", "nofollow")}}).start()
}

func readLinks(ctx context.Context, r *rounds, g *group) error {
	return scan(ctx, r, stages.FileLinks, nil, func(_ int, row *smallRow) { g.add(row.Kind, 1, one(row.Nofollow)) })
}

func newSkips() *group {
	return (&group{id: "skips", title: "URLs that were found and not planned, by reason", from: stages.FileSkips, share: true,
		keys: []key{{name: "reason", sql: "reason"}}, values: []value{count("URLs")}}).start()
}

// newTraps returns the table of traps. In the column detail, the evidence follows in parentheses.
func newTraps() *group {
	return (&group{id: "traps", title: "URLs that were refused as traps", from: stages.FileSkips, where: "reason = 'trap'",
		keys: []key{{name: "trap", sql: "coalesce(split_part(detail, ' (', 1), '')"}}, values: []value{count("URLs")}}).start()
}

func readSkips(ctx context.Context, r *rounds, skips, traps *group) error {
	return scan(ctx, r, stages.FileSkips, nil, func(_ int, row *smallRow) {
		skips.add(string(row.Reason), 1)
		if row.Reason == schema.SkipTrap {
			trap, _, _ := strings.Cut(row.Detail, " (")
			traps.add(trap, 1)
		}
	})
}

func newCaptures() *group {
	return (&group{id: "captures", title: "Stored responses", from: stages.FileCaptures,
		keys:   []key{{name: "content", sql: orNull("revisit", "own content")}},
		values: []value{count("responses"), total("compressed bytes", unitBytes, "warc_record_length")},
		note:   "A revisit is a response whose content an earlier record already holds, or that says that the content did not change."}).start()
}

func readCaptures(ctx context.Context, r *rounds, g *group) error {
	return scan(ctx, r, stages.FileCaptures, nil, func(_ int, row *smallRow) { g.add(cmp.Or(row.Revisit, "own content"), 1, int64(row.Length)) })
}

// smallRow holds the columns that a report needs of five datasets: `duplicates`, `urls`, `links`,
// `skips` and `captures`. Each dataset has only some of these columns. One type serves all five, because each
// row type adds 30 kB of readers to the binary.
type smallRow struct {
	Representative string            `parquet:"representative"`
	Kind           string            `parquet:"kind"`
	ClusterSize    int32             `parquet:"cluster_size"`
	Nofollow       bool              `parquet:"nofollow"`
	State          schema.URLState   `parquet:"state"`
	FirstSeen      string            `parquet:"first_seen"`
	Reason         schema.SkipReason `parquet:"reason"`
	Detail         string            `parquet:"detail,optional"`
	Length         int32             `parquet:"warc_record_length"`
	Revisit        string            `parquet:"revisit,optional"`
}
