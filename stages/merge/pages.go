package merge

import (
	"cmp"
	"context"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

func comparePages(a, b *schema.WorkingPage) int {
	return cmp.Or(strings.Compare(a.SURT, b.SURT), strings.Compare(a.URL, b.URL))
}

// document is a URL's documents as they come: sorters are stable, so the nth page
// of a URL is the nth that was recorded, and so are its text and its links.
type document struct {
	page   schema.WorkingPage
	n      int // documents seen
	kept   int // which of them page is
	linked int // documents with links seen
	links  int // which of those page is, -1 for none
}

// see takes the URL's next document and keeps it if it goes before.
func (d *document) see(p *schema.WorkingPage) {
	links := -1
	if p.Outlinks > 0 { // then, and only then, there are rows of links
		links = d.linked
		d.linked++
	}
	if d.n == 0 || better(&p.PageColumns, &d.page.PageColumns) {
		d.page, d.kept, d.links = *p, d.n, links
	}
	d.n++
}

// better is the rule of the package comment: planned under its own URL, then the
// least planned URL; between equals, the first stays.
func better(a, b *schema.PageColumns) bool {
	if own := a.PlannedURL == a.URL; own != (b.PlannedURL == b.URL) {
		return own
	}
	return a.PlannedURL < b.PlannedURL
}

// mergePages writes the working run of pages, one for each URL.
func (m *merger) mergePages(ctx context.Context) error {
	rows, err := sorted(ctx, m, m.keys(stages.FilePages, ""), comparePages)
	if err != nil {
		return err
	}
	defer rows.Close()
	w, err := table.NewWriter[schema.WorkingPage](m.scratch("pages"), table.Format(m.env.Format), table.Fast(), table.SortedBy("url_surtkey", "url"))
	if err != nil {
		return err
	}
	defer w.Abort()
	m.linked = map[string]int{}
	var d document
	flush := func() error {
		if d.n == 0 {
			return nil
		}
		if d.n > 1 {
			m.twice[d.page.URL], m.linked[d.page.URL] = d.kept, d.links
			m.counts["pages_dropped"] += int64(d.n - 1)
		}
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
			d = document{}
		}
		d.see(&p)
	}
	if err := flush(); err != nil {
		return err
	}
	return finish(ctx, m, w, stages.FilePages, "", m.working(stages.FilePages))
}

func compareText(a, b *schema.Text) int {
	return cmp.Or(strings.Compare(a.SURT, b.SURT), strings.Compare(a.URL, b.URL))
}

// mergeText publishes the text of each page that stayed.
func (m *merger) mergeText(ctx context.Context) error {
	rows, err := sorted(ctx, m, m.keys(stages.FileText, ""), compareText)
	if err != nil {
		return err
	}
	defer rows.Close()
	w, err := table.NewWriter[schema.Text](m.scratch("text"), table.Format(m.env.Format), table.SortedBy("url_surtkey", "url"))
	if err != nil {
		return err
	}
	defer w.Abort()
	last, n := "", 0
	for t, err := range rows.Sorted(ctx) {
		if err != nil {
			return err
		}
		if t.URL != last {
			last, n = strings.Clone(t.URL), 0
		}
		if keep, ok := m.twice[t.URL]; !ok || keep == n {
			if err := w.Append(&t); err != nil {
				return err
			}
		}
		n++
	}
	return finish(ctx, m, w, stages.FileText, "", m.published(stages.FileText))
}
