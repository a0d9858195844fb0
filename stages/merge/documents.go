package merge

import (
	"context"
	"strings"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// linkedDocument is a document with rows of links, or such a sitemap that is no page.
type linkedDocument struct {
	source uint64 // hash of its URL
	start  uint64 // hash of the URL at the start of the redirects that were recorded just before it; 0 without redirects
}

// noteDocument adds a document to m.documents. The document begins at the set of links s; last is the set
// before.
func (m *merger) noteDocument(s *linkSet, last *recorded) {
	d := linkedDocument{source: xxh3.HashString(s.Source)}
	if last.redirect && last.target == s.Source {
		d.start = last.start
	}
	m.documents = append(m.documents, d)
}

// recordedPage holds the columns of a recorded page that correctLinked reads.
type recordedPage struct {
	URL      string `parquet:"url"`
	Planned  string `parquet:"planned_url"`
	Outlinks int32  `parquet:"outlinks"`
}

// correctLinked corrects the indexes in m.linked for documents that have links without rows: links to URLs
// that were taken down. A document of which no link is left counts for an index, but mergeLinks does not
// meet it. correctLinked compares the pages with m.documents, which are in the same order. If that does not
// explain all documents, it corrects nothing.
func (m *merger) correctLinked(ctx context.Context) error {
	if len(m.unsure) == 0 {
		return nil
	}
	others := map[uint64]bool{} // sitemaps that are no pages
	for s, err := range table.Concat[schema.Sitemap](ctx, m.env.Bucket, m.keys(stages.FileSitemaps, "")) {
		if err != nil {
			return err
		}
		if s.Outcome == schema.OK && !s.Earlier {
			others[xxh3.HashString(s.URL)] = true
		}
	}
	docs := make([]linkedDocument, 0, len(m.documents))
	for _, d := range m.documents {
		if !others[d.source] {
			docs = append(docs, d)
		}
	}
	if len(docs) >= m.linkedPages {
		return nil
	}
	has := map[string][]bool{} // for each URL in m.unsure, which of its documents with outlinks have rows of links
	var run []recordedPage     // consecutive pages of one URL
	end := func() {
		if len(run) == 0 {
			return
		}
		var found []bool
		found, docs = match(run, docs)
		if _, ok := m.unsure[run[0].URL]; ok {
			url := strings.Clone(run[0].URL)
			has[url] = append(has[url], found...)
		}
		run = run[:0]
	}
	for p, err := range table.Concat[recordedPage](ctx, m.env.Bucket, m.keys(stages.FilePages, "")) {
		if err != nil {
			return err
		}
		if p.Outlinks == 0 {
			continue
		}
		if len(run) > 0 && run[0].URL != p.URL {
			end()
		}
		run = append(run, p)
	}
	end()
	if len(docs) > 0 {
		return nil
	}
	for url, kept := range m.unsure {
		found := has[url]
		if !found[kept] {
			m.linked[url] = -1
			continue
		}
		for _, ok := range found[:kept] {
			if !ok {
				m.linked[url]--
			}
		}
	}
	return nil
}

// match reports which pages of a URL have documents at the beginning of docs, and returns the other
// documents. If there are fewer documents than pages, the redirects before a document tell its page, if they
// start at the page's planned URL. Otherwise a document belongs to the first page that has none.
func match(pages []recordedPage, docs []linkedDocument) (found []bool, rest []linkedDocument) {
	n, url := 0, xxh3.HashString(pages[0].URL)
	for n < len(pages) && n < len(docs) && docs[n].source == url {
		n++
	}
	found = make([]bool, len(pages))
	next := 0
	for i, d := range docs[:n] {
		at := next
		for j := next; j <= len(pages)-(n-i); j++ { // leaves a page for each later document
			if d.start != 0 && d.start == xxh3.HashString(pages[j].Planned) {
				at = j
				break
			}
		}
		found[at], next = true, at+1
	}
	return found, docs[n:]
}
