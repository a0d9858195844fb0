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

// linkRow is a link. Set is the number of the document that contains the link. Documents with links
// are numbered from 1 in the order of recording. For a redirect, Set is 0.
type linkRow struct {
	schema.Link
	Set int64
}

func compareLinks(a, b *linkRow) int {
	if c := schema.CompareURLs(a.SourceSURT, a.Source, b.SourceSURT, b.Source); c != 0 {
		return c
	}
	if c := cmp.Or(cmp.Compare(a.Set, b.Set), cmp.Compare(a.Ordinal, b.Ordinal)); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(a.Target, b.Target), strings.Compare(a.Spelling, b.Spelling))
}

// readLinks reads the links into a sorter. Links were recorded document by document. The redirects
// that led to a document come before the document's links.
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

// hop notes that from redirected to url, and with which planned URL the chain of redirects began.
func (m *merger) hop(from, url string) {
	head, ok := m.hops[from]
	if !ok {
		head = from
	}
	if _, ok := m.hops[url]; !ok && head != url {
		m.hops[strings.Clone(url)] = strings.Clone(head)
	}
}

// mergeLinks publishes redirects and the links of the pages that are kept. mergeLinks also writes
// the working files of edges and host edges.
func (m *merger) mergeLinks(ctx context.Context, rows *table.Sorter[linkRow]) error {
	e, err := newEdges(m)
	if err != nil {
		return err
	}
	defer e.close()
	origins := newOrigins(ctx, m)
	defer origins.stop()
	if err := publish(ctx, m, stages.FileLinks, []string{"source_surtkey", "source", "ordinal"}, func(w *table.Writer[schema.Link]) error {
		filter := linkFilter{kept: m.linked}
		for l, err := range rows.Sorted(ctx) {
			if err != nil {
				return err
			}
			first, keep := filter.take(&l)
			if first {
				if err := e.begin(&l.Link, origins); err != nil {
					return err
				}
			}
			if !keep {
				continue
			}
			if err := w.Append(&l.Link); err != nil {
				return err
			}
			if err := e.add(&l.Link, m.followed[l.Kind]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return e.finish(ctx)
}

// linkFilter decides which links are kept. The links of each kept document are kept, and each
// redirect is kept once. Links come in the order of compareLinks.
type linkFilter struct {
	kept map[string]int // index of the kept set of links, for each URL that was fetched more than once
	last linkRow
	set  int // index of the current set of links among the sets of the same source
}

// take reports whether the link l is the first link of its source, and whether l is kept.
func (f *linkFilter) take(l *linkRow) (first, keep bool) {
	first = l.Source != f.last.Source
	repeated := !first && l.Set == 0 && f.last.Set == 0 && l.Target == f.last.Target && l.Spelling == f.last.Spelling
	if first {
		f.set = -1
	}
	if l.Set != 0 && (first || l.Set != f.last.Set) {
		f.set++
	}
	f.last = *l
	if l.Set == 0 {
		return first, !repeated
	}
	set, twice := f.kept[l.Source]
	return first, !twice || set == f.set
}

// origin holds the columns of an edge that describe the link's source.
type origin struct {
	depth   int32
	fetched int64 // time of the fetch in milliseconds; 0 if the source is not a page
}

// origins finds the origin of a source. A source may be a page, a planned URL that redirected, or a
// later URL of a redirect chain. Callers look up sources in order.
type origins struct {
	m     *merger
	pages *table.Cursor[deep]
	plans *table.Cursor[deep]
}

// deep holds a URL and the URL's depth.
type deep struct {
	SURT      string `parquet:"url_surtkey"`
	URL       string `parquet:"url"`
	Depth     int32  `parquet:"depth"`
	FetchTime int64  `parquet:"fetch_time,optional,timestamp(millisecond)"` // only in pages
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

func (o *origins) originOf(surt, url string) (origin, error) {
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
