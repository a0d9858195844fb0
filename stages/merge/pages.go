package merge

import (
	"context"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/topics"
	"crawlbatch.io/crawlbatch/stages"
)

func pageKey(k table.Key, p *schema.WorkingPage) table.Key { return k.Text(p.SURT).Text(p.URL) }

// documentChooser chooses one of the documents of a URL. Sorters are stable, so the pages, the texts and
// the links of a URL all come in the order in which its documents were recorded. An index in this order
// therefore names the same document in all three.
type documentChooser struct {
	page   schema.WorkingPage
	n      int // number of documents of the URL so far
	kept   int // index of the kept page among all documents of the URL
	linked int // number of documents with links so far
	links  int // index of the kept page among the documents with links; -1 if the page has no links
}

// see adds the page of the URL's next document, which becomes the kept page if it ranks before it.
func (d *documentChooser) see(p *schema.WorkingPage) {
	links := -1
	if p.Outlinks > 0 { // a document without outlinks has no rows of links; for others see correctLinked
		links = d.linked
		d.linked++
	}
	if d.n == 0 || better(&p.PageColumns, &d.page.PageColumns) {
		d.page, d.kept, d.links = *p, d.n, links
	}
	d.n++
}

// better reports whether a ranks before b. A page that was planned under its own URL ranks first.
// Other pages rank by their planned URLs, in byte order.
func better(a, b *schema.PageColumns) bool {
	if own := a.PlannedURL == a.URL; own != (b.PlannedURL == b.URL) {
		return own
	}
	return a.PlannedURL < b.PlannedURL
}

// mergePages writes the working file of pages, with one row for each URL, and the run of their terms.
func (m *merger) mergePages(ctx context.Context) error {
	rows, err := sorted(ctx, m, m.keys(stages.FilePages, ""), pageKey)
	if err != nil {
		return err
	}
	defer rows.Close()
	m.linked, m.unsure = map[string]int{}, map[string]int{}
	terms, err := topics.NewCounter(m.plan, m.env.Scratch, m.sortMemory/4)
	if err != nil {
		return err
	}
	defer terms.Close()
	err = keep(ctx, m, stages.FilePages, stages.ByURL, func(w *table.Writer[schema.WorkingPage]) error {
		var d documentChooser
		flush := func() error {
			if d.n == 0 {
				return nil
			}
			if d.n > 1 {
				url := strings.Clone(d.page.URL) // the texts of a sorted row share their memory
				m.twice[url], m.linked[url] = d.kept, d.links
				if d.links >= 0 && d.linked > 1 {
					m.unsure[url] = d.links
				}
				m.count("pages_dropped", int64(d.n-1))
			}
			if err := terms.Add(&d.page); err != nil {
				return err
			}
			m.score(&d.page)
			return w.Append(&d.page)
		}
		for p, err := range rows.Sorted(ctx) {
			if err != nil {
				return err
			}
			if d.n > 0 && p.URL != d.page.URL {
				if err := flush(); err != nil {
					return err
				}
				d = documentChooser{}
			}
			d.see(&p)
			if p.Outlinks > 0 {
				m.linkedPages++
			}
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return keepRun(ctx, m, stages.FileTerms, []string{"language", "term", "level"}, terms.Rows(ctx), func(r *schema.TermPages) int32 { return r.Bucket })
}

// score sets the column focus of a page, if the crawl has a model.
func (m *merger) score(p *schema.WorkingPage) {
	p.Focus = nil
	if m.focus != nil {
		p.Focus = new(m.focus.Score(append([]string{p.Title, p.Description}, p.Terms...)...))
	}
}

func textKey(k table.Key, t *schema.WorkingText) table.Key { return k.Text(t.SURT).Text(t.URL) }

// mergeText publishes the text of each page that is kept.
func (m *merger) mergeText(ctx context.Context) error {
	return publish(ctx, m, stages.FileText, stages.ByURL, func(w *table.Writer[schema.Text]) error {
		rows, err := sorted(ctx, m, m.keys(stages.FileText, ""), textKey)
		if err != nil {
			return err
		}
		defer rows.Close()
		url, n := "", 0 // n is the number of texts of this URL so far
		for row, err := range rows.Sorted(ctx) {
			if err != nil {
				return err
			}
			if n++; row.URL != url {
				url, n = strings.Clone(row.URL), 0
			}
			if kept, twice := m.twice[row.URL]; twice && kept != n {
				continue
			}
			text, err := row.Whole()
			if err != nil {
				return fmt.Errorf("%q: %w: %w", row.URL, err, manifest.ErrCorrupt)
			}
			if err := w.Append(&text); err != nil {
				return err
			}
		}
		return nil
	})
}
