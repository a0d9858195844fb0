package fetch

import (
	"context"
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// former are the rows of a fetch task that a reparse goes along with, each dataset
// in the order in which it was recorded: of captures and links some are as they were,
// of text those of documents that cannot be parsed again.
type former struct {
	pages    int64 // documents that were passed
	captures puller[schema.Capture]
	edges    puller[schema.Link]
	texts    puller[schema.Text]
	textRow  int64 // of texts, of the next
}

func (r *reparse) former(ctx context.Context) *former {
	return &former{
		captures: pull[schema.Capture](ctx, r, stages.FileCaptures, schema.SubsetWARC),
		edges:    pull[schema.Link](ctx, r, stages.FileLinks, ""),
		texts:    pull[schema.Text](ctx, r, stages.FileText, ""),
	}
}

func (f *former) close() {
	f.captures.close()
	f.edges.close()
	f.texts.close()
}

// missing is the error of a row that should be there.
func missing(dataset, url string) error {
	return fmt.Errorf("the segments of %s have no row for the page %q, which they should: %w", dataset, url, manifest.ErrCorrupt)
}

// capture gives the row of the record that a fetch points to; those before it, which
// are of answers that gave no page, stay as they are.
func (f *former) capture(out *segments.Segment, of *fetchedAs) (*schema.Capture, error) {
	for {
		c, ok, err := f.captures.take()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, missing(stages.FileCaptures, of.URL)
		}
		if c.WARCFilename == of.File && c.WARCRecordOffset == of.Offset {
			return &c, nil
		}
		if err := out.Add(&segments.Record{Captures: []segments.Capture{{Subset: schema.SubsetWARC, Capture: c}}}); err != nil {
			return nil, err
		}
	}
}

// links gives the links that a page had. The redirects before them stay where they are.
func (f *former) links(out *segments.Segment, page *schema.Page) ([]schema.Link, error) {
	if page.Outlinks == 0 {
		return nil, nil
	}
	if err := f.redirects(out); err != nil {
		return nil, err
	}
	var links []schema.Link
	for {
		l, ok, err := f.edges.peek()
		if err != nil {
			return nil, err
		}
		if !ok || l.Kind == schema.KindRedirect || l.Source != page.URL || len(links) > 0 && l.Ordinal <= links[len(links)-1].Ordinal {
			break
		}
		links = append(links, *l)
		f.edges.skip()
	}
	if len(links) == 0 {
		return nil, missing(stages.FileLinks, page.URL)
	}
	return links, nil
}

// redirects keeps the redirects that come next.
func (f *former) redirects(out *segments.Segment) error {
	for {
		l, ok, err := f.edges.peek()
		if err != nil || !ok || l.Kind != schema.KindRedirect {
			return err
		}
		if err := out.Add(&segments.Record{Links: []schema.Link{*l}}); err != nil {
			return err
		}
		f.edges.skip()
	}
}

// text gives the text that a page had: documents have one each, in their order.
func (f *former) text(page *schema.Page) (*schema.Text, error) {
	for {
		t, ok, err := f.texts.take()
		if err != nil {
			return nil, err
		}
		f.textRow++
		switch {
		case !ok || f.textRow > f.pages && t.URL != page.URL:
			return nil, missing(stages.FileText, page.URL)
		case f.textRow > f.pages:
			return &t, nil
		}
	}
}

// finish keeps what came after the last document.
func (f *former) finish(out *segments.Segment) error {
	if err := f.redirects(out); err != nil {
		return err
	}
	if l, ok, err := f.edges.peek(); err != nil || ok {
		if err == nil {
			err = fmt.Errorf("the segments of %s have rows of %q, which is no page: %w", stages.FileLinks, l.Source, manifest.ErrCorrupt)
		}
		return err
	}
	for {
		c, ok, err := f.captures.take()
		if err != nil || !ok {
			return err
		}
		if err := out.Add(&segments.Record{Captures: []segments.Capture{{Subset: schema.SubsetWARC, Capture: c}}}); err != nil {
			return err
		}
	}
}

// puller takes the rows of segments one by one; nothing is read before the first is
// asked for.
type puller[T any] struct {
	rows iter.Seq2[T, error]
	next func() (T, error, bool)
	stop func()
	row  T
	have bool
}

func pull[T any](ctx context.Context, r *reparse, dataset, subset string) puller[T] {
	return puller[T]{rows: table.Concat[T](ctx, r.env.Bucket, r.keysOf(dataset, subset))}
}

// peek gives the next row, which stays the next.
func (p *puller[T]) peek() (*T, bool, error) {
	if p.next == nil {
		p.next, p.stop = iter.Pull2(p.rows)
	}
	if !p.have {
		var err error
		if p.row, err, p.have = p.next(); err != nil {
			p.have = false
			return nil, false, err
		}
	}
	return &p.row, p.have, nil
}

func (p *puller[T]) skip() { p.have = false }

// take gives the next row and goes on.
func (p *puller[T]) take() (row T, ok bool, err error) {
	next, ok, err := p.peek()
	if ok {
		row = *next
		p.skip()
	}
	return row, ok, err
}

func (p *puller[T]) close() {
	if p.stop != nil {
		p.stop()
	}
}
