package reparse

import (
	"context"
	"fmt"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// previous reads the captures, links and texts that the source task recorded. Its cursors advance
// with the documents, in the order of recording. It copies captures and links that belong to no
// document to the new segment. It reads texts only for documents that cannot be parsed again.
type previous struct {
	pages     int64 // number of documents read so far
	captures  *table.Cursor[schema.Capture]
	edges     *table.Cursor[schema.Link]
	texts     *table.Cursor[schema.WorkingText]
	published func(*schema.Page) (*schema.Text, error) // reads the text of a page from Input.Texts; nil: texts has it
	textRow   int64                                    // number of the next text
	sitemaps  map[uint64]bool                          // hashes of the URLs of sitemaps that have no row of pages
}

func pull[T any](ctx context.Context, r *run, dataset, subset string) *table.Cursor[T] {
	return table.Pull(table.Concat[T](ctx, r.env.Bucket, r.keysOf(dataset, subset)))
}

func (r *run) previous(ctx context.Context) (*previous, error) {
	p := &previous{
		captures: pull[schema.Capture](ctx, r, stages.FileCaptures, schema.SubsetWARC),
		edges:    table.Pull(segments.Links(ctx, r.env.Bucket, r.in.From)),
		texts:    pull[schema.WorkingText](ctx, r, stages.FileText, ""),
		sitemaps: map[uint64]bool{},
	}
	if r.in.Texts != "" {
		p.published = func(page *schema.Page) (*schema.Text, error) { return r.published(ctx, page) }
	}
	for s, err := range table.Concat[schema.Sitemap](ctx, r.env.Bucket, r.keysOf(stages.FileSitemaps, "")) {
		if err != nil {
			p.close()
			return nil, err
		}
		if s.Outcome == schema.OK && !s.Earlier {
			p.sitemaps[xxh3.HashString(s.URL)] = true
		}
	}
	return p, nil
}

func (p *previous) close() {
	_ = p.captures.Close() // closing a cursor returns no error
	_ = p.edges.Close()
	_ = p.texts.Close()
}

// missingRow returns the error for a page without its row in a dataset.
func missingRow(dataset, url string) error {
	return fmt.Errorf("the segments of %s lack the row for the page %q: %w", dataset, url, manifest.ErrCorrupt)
}

// capture returns the row of captures that belongs to a document. The preceding rows belong to
// responses without a page; capture copies them to out.
func (p *previous) capture(out *segments.Segment, d *recordedDoc) (*schema.Capture, error) {
	is := func(c *schema.Capture) bool {
		return c.WARCFilename == d.fetch.File && c.WARCRecordOffset == d.fetch.Offset
	}
	if d.fetch.URL == "" { // a takedown removed it
		is = func(c *schema.Capture) bool { return c.URL == d.page.URL && c.FetchTime == d.page.FetchTime }
	}
	for {
		c, err := p.captures.Next()
		switch {
		case err != nil:
			return nil, err
		case c == nil:
			return nil, missingRow(stages.FileCaptures, d.page.URL)
		case is(c):
			return c, nil
		}
		if err := copyCapture(out, c); err != nil {
			return nil, err
		}
	}
}

func copyCapture(out *segments.Segment, c *schema.Capture) error {
	return out.Add(&segments.Record{Captures: []segments.Capture{{Subset: schema.SubsetWARC, Capture: *c}}})
}

// linksOf returns the links that a page had. It first copies the preceding rows that belong to no
// page. A page with outlinks lacks rows if all its links led to URLs that were taken down. Parsers before
// version 4 made none if no link within their bounds had a target.
func (p *previous) linksOf(out *segments.Segment, page *schema.Page) ([]schema.Link, error) {
	if page.Outlinks == 0 {
		return nil, nil
	}
	if err := p.copyOthers(out); err != nil {
		return nil, err
	}
	var links []schema.Link
	for {
		l, err := p.edges.Peek()
		if err != nil {
			return nil, err
		}
		if l == nil || l.Kind == schema.KindRedirect || l.Source != page.URL || len(links) > 0 && l.Ordinal <= links[len(links)-1].Ordinal {
			break
		}
		links = append(links, *l)
		_, _ = p.edges.Next() // skips the row that Peek returned
	}
	return links, nil
}

// copied is the number of links that copyOthers copies at a time.
const copied = 256

// copyOthers copies redirects, and links of sitemaps that robots.txt names, up to the first row that is
// a link of a page.
func (p *previous) copyOthers(out *segments.Segment) error {
	var links []schema.Link
	for {
		l, err := p.edges.Peek()
		if err != nil {
			return err
		}
		end := l == nil || l.Kind != schema.KindRedirect && !p.sitemaps[xxh3.HashString(l.Source)]
		if len(links) == copied || end && len(links) > 0 {
			if err := out.Add(&segments.Record{Links: links}); err != nil {
				return err
			}
			links = links[:0]
		}
		if end {
			return nil
		}
		links = append(links, *l)
		_, _ = p.edges.Next() // skips the row that Peek returned
	}
}

// published reads the text of a page from the published part. A URL with several documents has one text there, but then
// merge publishes only this document of the reparse too.
func (r *run) published(ctx context.Context, page *schema.Page) (*schema.Text, error) {
	for t, err := range table.Concat[schema.Text](ctx, r.env.Bucket, []string{r.in.Texts}, table.StringRange("url_surtkey", page.SURT, page.SURT)) {
		if err != nil {
			return nil, err
		}
		if t.URL == page.URL {
			return &t, nil
		}
	}
	return nil, fmt.Errorf("%s lacks the row for the page %q: %w", r.in.Texts, page.URL, manifest.ErrCorrupt)
}

// text returns the text that a page had. Each page has one text, in the order of the pages.
func (p *previous) text(page *schema.Page) (*schema.Text, error) {
	if p.published != nil {
		return p.published(page)
	}
	for {
		t, err := p.texts.Next()
		if err != nil {
			return nil, err
		}
		p.textRow++
		switch {
		case t == nil || p.textRow > p.pages && t.URL != page.URL:
			return nil, missingRow(stages.FileText, page.URL)
		case p.textRow > p.pages:
			text, err := t.Whole()
			if err != nil {
				err = fmt.Errorf("%q: %w: %w", page.URL, err, manifest.ErrCorrupt)
			}
			return &text, err
		}
	}
}

// finish copies the rows after those of the last document.
func (p *previous) finish(out *segments.Segment) error {
	if err := p.copyOthers(out); err != nil {
		return err
	}
	l, err := p.edges.Peek()
	if l != nil {
		err = fmt.Errorf("the segments of %s have rows of %q, which is not a page: %w", stages.FileLinkSets, l.Source, manifest.ErrCorrupt)
	}
	if err != nil {
		return err
	}
	for {
		c, err := p.captures.Next()
		if err != nil || c == nil {
			return err
		}
		if err := copyCapture(out, c); err != nil {
			return err
		}
	}
}
