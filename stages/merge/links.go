package merge

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// linkRow is a link and the document that holds it: Set numbers the documents
// with links in the order of recording, 0 is for redirects.
type linkRow struct {
	schema.Link
	Set int64
}

func compareLinks(a, b *linkRow) int {
	return cmp.Or(strings.Compare(a.SourceSURT, b.SourceSURT), strings.Compare(a.Source, b.Source), cmp.Compare(a.Set, b.Set),
		cmp.Compare(a.Ordinal, b.Ordinal), strings.Compare(a.Target, b.Target), strings.Compare(a.Spelling, b.Spelling))
}

// readLinks reads the links into a sorter. They were recorded document by
// document, each with the redirects that led to it before it.
func (m *merger) readLinks(ctx context.Context) (*table.Sorter[linkRow], error) {
	s, err := table.NewSorter(m.env.Scratch, compareLinks, sortMemory)
	if err != nil {
		return nil, err
	}
	var sets int64
	last := schema.Link{Ordinal: -1}
	for l, err := range table.Concat[schema.Link](ctx, m.env.Bucket, m.keys(stages.FileLinks, "")) {
		if err == nil {
			row := linkRow{Link: l}
			switch {
			case l.Kind != schema.KindRedirect:
				if last.Kind == schema.KindRedirect || l.Source != last.Source || l.Ordinal <= last.Ordinal {
					sets++
				}
				row.Set = sets
			case last.Kind == schema.KindRedirect && last.Target == l.Source:
				m.hop(last.Source, l.Source)
			}
			last = l
			err = s.Add(&row)
		}
		if err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// hop notes that a redirect of from went through url.
func (m *merger) hop(from, url string) {
	head, ok := m.hops[from]
	if !ok {
		head = from
	}
	if _, ok := m.hops[url]; !ok && head != url {
		m.hops[strings.Clone(url)] = strings.Clone(head)
	}
}

// mergeLinks publishes the links of the pages that stayed and of redirects, and
// writes the working runs of edges and host edges.
func (m *merger) mergeLinks(ctx context.Context, rows *table.Sorter[linkRow]) error {
	w, err := table.NewWriter[schema.Link](m.scratch("links"), table.Format(m.env.Format), table.SortedBy("source_surtkey", "source", "ordinal"))
	if err != nil {
		return err
	}
	defer w.Abort()
	e, err := newEdges(m)
	if err != nil {
		return err
	}
	defer e.close()
	origins := newOrigins(ctx, m)
	defer origins.stop()

	var last linkRow
	sets := -1
	for l, err := range rows.Sorted(ctx) {
		if err != nil {
			return err
		}
		first := l.Source != last.Source
		if first {
			sets = -1
			of, err := origins.of(l.SourceSURT, l.Source)
			if err != nil {
				return err
			}
			if err := e.begin(&l.Link, of); err != nil {
				return err
			}
		}
		again := !first && l.Set == 0 && last.Set == 0 && l.Target == last.Target && l.Spelling == last.Spelling // the same redirect, met twice
		if l.Set != 0 && (first || l.Set != last.Set) {
			sets++
		}
		keep, twice := m.linked[l.Source]
		last = l
		if again || l.Set != 0 && twice && keep != sets {
			continue
		}
		if err := w.Append(&l.Link); err != nil {
			return err
		}
		// A spelling counts whatever the kind of the link: another link may lead to the target.
		if followed := m.followed[l.Kind]; followed || l.Spelling != "" {
			if err := e.add(&l.Link, followed); err != nil {
				return err
			}
		}
	}
	if err := finish(ctx, m, w, stages.FileLinks, "", m.published(stages.FileLinks)); err != nil {
		return err
	}
	return e.finish(ctx)
}

// origin is what edges need of a link's source.
type origin struct {
	depth   int32
	fetched int64 // when, milliseconds; 0 where it is no page
}

// origins gives what is known of link sources, which come in order: of pages, of
// planned URLs that redirected, of URLs that a redirect went through.
type origins struct {
	m     *merger
	pages *table.Cursor[deep]
	plans *table.Cursor[deep]
}

// deep is a URL with its depth.
type deep struct {
	SURT      string `parquet:"url_surtkey"`
	URL       string `parquet:"url"`
	Depth     int32  `parquet:"depth"`
	FetchTime int64  `parquet:"fetch_time,optional,timestamp(millisecond)"` // pages only
}

func newOrigins(ctx context.Context, m *merger) *origins {
	open := func(key string) *table.Cursor[deep] {
		return table.Pull(table.Concat[deep](ctx, m.env.Bucket, []string{key}))
	}
	return &origins{m: m, pages: open(m.working(stages.FilePages)), plans: open(m.published(stages.FileFetches))}
}

func (o *origins) stop() {
	o.pages.Close()
	o.plans.Close()
}

func (o *origins) of(surt, url string) (origin, error) {
	for _, rows := range []*table.Cursor[deep]{o.pages, o.plans} {
		found, err := rows.Find(func(d *deep) int { return compareKeys(&key{d.SURT, d.URL}, &key{surt, url}) })
		if err != nil {
			return origin{}, err
		}
		if found != nil {
			return origin{found.Depth, found.FetchTime}, nil
		}
	}
	if head, ok := o.m.hops[url]; ok {
		if depth, ok := o.m.depths[head]; ok {
			return origin{depth: depth}, nil
		}
	}
	return origin{}, fmt.Errorf("source %q is no page, no planned URL and no redirect's target: %w", url, stages.ErrPermanent)
}
