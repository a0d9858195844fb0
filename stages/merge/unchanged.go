package merge

import (
	"context"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// unchanged is a page that answered 304 (not modified).
type unchanged struct {
	File      string // key of an earlier part of links, by the task that stored the page's content
	SURT, URL string
}

func unchangedKey(k table.Key, u *unchanged) table.Key {
	return k.Text(u.File).Text(u.SURT).Text(u.URL)
}

// lookedUp bounds the number of pages whose links one pass over a part reads, because memory holds the
// URLs of these pages.
const lookedUp = 10_000

// takeLinks adds the links of pages that answered 304 to the sorter s. The task that stored the content
// of such a page published them in its part of links. The capture names the WARC file of the content,
// whose name tells the task. first is the number of the last document so far.
func (m *merger) takeLinks(ctx context.Context, s *table.Sorter[linkSet], first int64) error {
	pages, err := m.unchangedPages(ctx)
	if err != nil {
		return err
	}
	defer pages.Close()
	t := taker{m: m, out: s, number: first}
	var last unchanged
	for p, err := range pages.Sorted(ctx) {
		if err != nil {
			return err
		}
		if p == last { // a page that was requested twice has two captures
			continue
		}
		last = p
		if n := len(t.pages); n > 0 && (n == lookedUp || t.pages[0].File != p.File) {
			if err := t.take(ctx); err != nil {
				return err
			}
		}
		t.pages = append(t.pages, p)
	}
	return t.take(ctx)
}

// unchangedPages returns the pages that answered 304, if an earlier round has their links.
func (m *merger) unchangedPages(ctx context.Context) (*table.Sorter[unchanged], error) {
	type capture struct {
		SURT    string         `parquet:"url_surtkey"`
		URL     string         `parquet:"url"`
		Revisit schema.Revisit `parquet:"revisit,optional"`
		Payload string         `parquet:"payload_warc_filename,optional"`
	}
	has := map[string]bool{}
	for _, sealed := range m.earlier {
		for _, f := range sealed.FilesOf(stages.FileLinks) {
			has[f.Key] = true
		}
	}
	s, err := table.NewSorter(m.env.Scratch, unchangedKey, m.sortMemory/4)
	if err != nil {
		return nil, err
	}
	for c, err := range table.Concat[capture](ctx, m.env.Bucket, m.keys(stages.FileCaptures, schema.SubsetDiagnostics)) {
		if err == nil && c.Revisit == schema.RevisitNotModified {
			if key, ok := m.linksOf(c.Payload); ok && has[key] {
				err = s.Add(&unchanged{key, c.SURT, c.URL})
			} else {
				m.count("pages_unchanged_without_links", 1)
			}
		}
		if err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// linksOf returns the key of the part of links that belongs to a WARC file. In a reparse, this is the
// reparse's own part, if the crawl that it parses again wrote the WARC file.
func (m *merger) linksOf(warc string) (key string, ok bool) {
	crawl, round, partition, ok := layout.ParseWARC(warc)
	if month, of := layout.MonthOf(m.task.Crawl); of && crawl == month {
		crawl = m.task.Crawl
	}
	return layout.Table(stages.FileLinks, crawl, round, partition), ok
}

// taker reads the links of unchanged pages from a part of links.
type taker struct {
	m      *merger
	out    *table.Sorter[linkSet]
	number int64       // number of the last document
	pages  []unchanged // pages of one part, sorted

	set   linkSet
	links linkBuffer
}

// take reads the part of t.pages, adds the links of these pages, and empties t.pages.
func (t *taker) take(ctx context.Context) error {
	if len(t.pages) == 0 {
		return nil
	}
	surts := make([]string, len(t.pages))
	for i, p := range t.pages {
		surts[i] = p.SURT
	}
	rest := t.pages
	for l, err := range table.Concat[schema.Link](ctx, t.m.env.Bucket, []string{t.pages[0].File}, table.StringsIn("source_surtkey", surts)) {
		if err != nil {
			return err
		}
		for len(rest) > 0 && schema.CompareURLs(rest[0].SURT, rest[0].URL, l.SourceSURT, l.Source) < 0 {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			break
		}
		if rest[0].URL != l.Source || l.Kind == schema.KindRedirect {
			continue
		}
		if err := t.add(&l); err != nil {
			return err
		}
	}
	t.m.count("pages_unchanged", int64(len(t.pages)))
	t.pages = t.pages[:0]
	if err := t.links.end(&t.set, t.out); err != nil {
		return err
	}
	t.links.Begin(t.set.Source)
	return nil
}

// add adds a link to the set of its page.
func (t *taker) add(l *schema.Link) error {
	if begins := l.Source != t.set.Source; begins || t.links.Full() {
		if err := t.links.end(&t.set, t.out); err != nil {
			return err
		}
		if begins {
			t.number++
		}
		t.set = linkSet{SourceSURT: l.SourceSURT, Source: l.Source, Ordinal: l.Ordinal, Number: t.number, Earlier: true}
		t.links.Begin(l.Source)
		t.m.notePort(&t.set)
	}
	t.links.Add(l)
	return nil
}
