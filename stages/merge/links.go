package merge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// linkSet holds consecutive links of a document, or one redirect. merge sorts sets, and the links
// within a set keep the order in which they were recorded.
type linkSet struct {
	SourceSURT, Source string
	Number             int64  // number of the document in the order of recording, from 1; 0 for a redirect
	Ordinal            int32  // ordinal of the first link
	Target, Sent       string // set only for a redirect
	Links              string // encoded links (schema.LinkEncoder)
	Earlier            bool   // the links are from an earlier round, because the document answered 304
}

func setKey(k table.Key, s *linkSet) table.Key {
	return k.Text(s.SourceSURT).Text(s.Source).Int(s.Number).Int(int64(s.Ordinal)).Text(s.Target).Text(s.Sent)
}

// each calls take for each link of the set.
func (s *linkSet) each(take func(*schema.Link) error) error {
	err := schema.EachLink(s.SourceSURT, s.Source, s.Links, take)
	if errors.Is(err, schema.ErrLinkSet) {
		return fmt.Errorf("links of %q: %w: %w", s.Source, err, manifest.ErrCorrupt)
	}
	return err
}

// linkBuffer collects the links of a set.
type linkBuffer struct{ schema.LinkEncoder }

// end adds the set to a sorter if the set has links.
func (b *linkBuffer) end(set *linkSet, s *table.Sorter[linkSet]) error {
	if b.Len() == 0 {
		return nil
	}
	set.Links = string(b.Encoded())
	return s.Add(set)
}

// readLinks returns a sorter with all sets of links. For a page that answered 304, it takes the links from
// an earlier round. The caller closes the sorter.
func (m *merger) readLinks(ctx context.Context) (*table.Sorter[linkSet], error) {
	s, err := table.NewSorter(m.env.Scratch, setKey, m.sortMemory)
	if err != nil {
		return nil, err
	}
	documents, err := m.collectSets(ctx, s)
	if err == nil {
		err = m.takeLinks(ctx, s, documents)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// collectSets adds the sets of the segments to a sorter. Links were recorded document by document, and the
// redirects that led to a document come before its links. collectSets returns the number of documents with
// links.
func (m *merger) collectSets(ctx context.Context, s *table.Sorter[linkSet]) (documents int64, err error) {
	var last recorded
	type recordedSet struct { // schema.LinkSet, but with the links as a string: package table reads strings without the library
		SourceSURT string `parquet:"source_surtkey"`
		Source     string `parquet:"source"`
		Redirect   bool   `parquet:"redirect"`
		First      int32  `parquet:"first_ordinal"`
		Last       int32  `parquet:"last_ordinal"`
		Links      string `parquet:"links"`
	}
	for row, err := range table.Concat[recordedSet](ctx, m.env.Bucket, m.keys(stages.FileLinkSets, "")) {
		if err != nil {
			return 0, err
		}
		set := linkSet{SourceSURT: row.SourceSURT, Source: row.Source, Ordinal: row.First, Links: row.Links}
		if row.Redirect {
			err = set.each(func(l *schema.Link) error {
				set.Target, set.Sent = l.Target, l.Sent
				return nil
			})
		} else {
			if last.redirect || row.Source != last.source || row.First <= last.ordinal {
				documents++
				m.noteDocument(&set, &last)
			}
			set.Number = documents
		}
		m.noteSet(&set, &last, row.Redirect)
		if err == nil {
			err = s.Add(&set)
		}
		if err != nil {
			return 0, err
		}
		last = recorded{row.Source, set.Target, row.Redirect, row.Last, last.start}
	}
	return documents, nil
}

// recorded describes the link that was recorded last.
type recorded struct {
	source, target string
	redirect       bool
	ordinal        int32
	start          uint64 // hash of the URL at the start of the redirects, if it is one
}

// noteSet notes what the first link of a set shows.
func (m *merger) noteSet(s *linkSet, last *recorded, redirect bool) {
	switch {
	case redirect && last.redirect && last.target == s.Source:
		m.hop(last.source, s.Source)
	case redirect:
		last.start = xxh3.HashString(s.Source)
	}
	m.notePort(s)
}

// notePort records the host of a source in m.ported if the source's URL states the port 80 or 443. The
// SURT key keeps such a port and the name of the host omits it. So the SURT keys of the host's pages may
// differ before the ")".
func (m *merger) notePort(s *linkSet) {
	group, _, _ := strings.Cut(s.SourceSURT, ")")
	if !strings.HasSuffix(group, ":80") && !strings.HasSuffix(group, ":443") {
		return
	}
	if k, err := urlkey.KeyOf(s.Source); err == nil && !m.ported[k.Host] {
		m.ported[strings.Clone(k.Host)] = true
	}
}

// hop records a redirect from one URL to another in m.hops, which maps each URL of a redirect chain to
// the planned URL at the start of the chain.
func (m *merger) hop(from, url string) {
	head, ok := m.hops[from]
	if !ok {
		head = from
	}
	if _, ok := m.hops[url]; !ok && head != url {
		m.hops[strings.Clone(url)] = strings.Clone(head)
	}
}

// mergeLinks publishes redirects and the links of kept pages. It also writes the run of targets and the working
// file of host edges.
func (m *merger) mergeLinks(ctx context.Context, sets *table.Sorter[linkSet]) error {
	sums, err := newTargets(m)
	if err != nil {
		return err
	}
	defer sums.close()
	origins := newOrigins(ctx, m)
	defer origins.stop()
	if err := publish(ctx, m, stages.FileLinks, []string{"source_surtkey", "source", "ordinal"}, func(w *table.Writer[schema.Link]) error {
		filter := linkFilter{kept: m.linked}
		var of origin
		for set, err := range sets.Sorted(ctx) {
			if err != nil {
				return err
			}
			first, keep := filter.take(&set)
			if first {
				of, err = origins.originOf(ctx, set.SourceSURT, set.Source)
				if err == nil {
					err = sums.begin(set.SourceSURT, set.Source, of)
				}
				if err != nil {
					return err
				}
			}
			if !keep || set.Earlier && of.page { // another request of this round got the document and its links
				continue
			}
			if err := set.each(func(l *schema.Link) error {
				if err := w.Append(l); err != nil {
					return err
				}
				return sums.add(l, m.followed[l.Kind])
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return sums.finish(ctx)
}

// linkFilter decides which sets of links are kept. The links of each kept document are kept, and
// each redirect is kept once. Sets come in the order of setKey.
type linkFilter struct {
	kept map[string]int // index of the kept document, for each URL that was fetched more than once
	last linkSet

	set    int   // index of the current document among the documents of the same source
	number int64 // number of the current document
}

// take takes the next set. It reports whether s is the first set of its source, and whether s is kept.
func (f *linkFilter) take(s *linkSet) (first, keep bool) {
	first = s.Source != f.last.Source
	repeated := !first && s.Number == 0 && f.last.Number == 0 && s.Target == f.last.Target && s.Sent == f.last.Sent
	if first {
		f.set = -1
	}
	f.last = *s
	if s.Number == 0 {
		return first, !repeated
	}
	if first || s.Number != f.number {
		f.set++
	}
	f.number = s.Number
	set, twice := f.kept[s.Source]
	return first, !twice || set == f.set
}

// origin describes the source of a link.
type origin struct {
	depth   int32
	fetched schema.Time // time of the fetch; 0 if the source was not fetched
	page    bool        // whether the source is a page of this round
	focus   float64
}

// origins finds the origin of each source. A source may be a page, a planned URL that redirected, a
// sitemap that robots.txt names, or a later URL of a redirect chain. Sources must be looked up in order.
type origins struct {
	m        *merger
	pages    *table.Cursor[deep]
	plans    *table.Cursor[deep]
	sitemaps *table.Cursor[schema.Sitemap]
	chains   map[string]int32 // result of chainDepths; nil until a source needs it
}

// deep holds a URL and the URL's depth.
type deep struct {
	SURT      string      `parquet:"url_surtkey"`
	URL       string      `parquet:"url"`
	Depth     int32       `parquet:"depth"`
	Focus     float64     `parquet:"focus,optional"`                             // only in pages
	FetchTime schema.Time `parquet:"fetch_time,optional,timestamp(microsecond)"` // only in pages
	FetchedAt schema.Time `parquet:"fetched_at,optional,timestamp(microsecond)"` // only in fetches
}

func newOrigins(ctx context.Context, m *merger) *origins {
	open := func(key string) *table.Cursor[deep] {
		return table.Pull(table.Concat[deep](ctx, m.env.Bucket, []string{key}))
	}
	return &origins{
		m: m, pages: open(m.workingKey(stages.FilePages)), plans: open(m.publishedKey(stages.FileFetches)),
		sitemaps: table.Pull(table.Concat[schema.Sitemap](ctx, m.env.Bucket, []string{m.workingKey(stages.FileSitemaps)})),
	}
}

func (o *origins) stop() {
	o.pages.Close()
	o.plans.Close()
	o.sitemaps.Close()
}

func (o *origins) originOf(ctx context.Context, surt, url string) (origin, error) {
	for i, rows := range []*table.Cursor[deep]{o.pages, o.plans} {
		found, err := rows.Find(func(d *deep) int { return compareKeys(&key{d.SURT, d.URL}, &key{surt, url}) })
		if err != nil {
			return origin{}, err
		}
		if found != nil {
			if i > 0 { // the text of an unchanged page is not at hand
				found.Focus = o.m.focus.ScoreInlink(url, nil)
			}
			return origin{found.Depth, max(found.FetchTime, found.FetchedAt), i == 0, found.Focus}, nil
		}
	}
	sitemap, err := o.sitemaps.Find(func(s *schema.Sitemap) int { return compareKeys(&key{s.SURT, s.URL}, &key{surt, url}) })
	if err != nil {
		return origin{}, err
	}
	if sitemap != nil { // robots.txt names the sitemap, so its depth is 0, as if a source listed it
		return origin{fetched: sitemap.FetchedAt}, nil
	}
	if head, ok := o.m.hops[url]; ok {
		if depth, ok := o.m.depths[head]; ok {
			return origin{depth: depth}, nil
		}
	}
	if o.chains == nil {
		if o.chains, err = o.m.chainDepths(ctx); err != nil {
			return origin{}, err
		}
	}
	if depth, ok := o.chains[url]; ok {
		return origin{depth: depth}, nil
	}
	return origin{}, fmt.Errorf("source %q is neither a page nor a planned URL nor a sitemap nor the target of a redirect: %w", url, stages.ErrPermanent)
}

// chainDepths maps each URL that was requested in a redirect chain to the depth of the planned URL at the
// start of the chain. m.hops is not enough: it shows only chains that were recorded at once, and an
// interrupted chain, or one with a retry, is recorded in parts. Rows of requests name the planned URL of
// each request. Memory holds the URL of each redirect.
func (m *merger) chainDepths(ctx context.Context) (map[string]int32, error) {
	type request struct {
		URL     string `parquet:"url"`
		Planned string `parquet:"planned_url,optional"`
	}
	chains, starts := map[string]string{}, map[string]int32{}
	for q, err := range table.Concat[request](ctx, m.env.Bucket, m.keys(stages.FileRequests, "")) {
		if err != nil {
			return nil, err
		}
		if _, ok := chains[q.URL]; ok || q.Planned == "" || q.Planned == q.URL {
			continue
		}
		chains[strings.Clone(q.URL)] = strings.Clone(q.Planned)
		starts[chains[q.URL]] = -1
	}
	for f, err := range table.Concat[deep](ctx, m.env.Bucket, []string{m.publishedKey(stages.FileFetches)}) {
		if err != nil {
			return nil, err
		}
		if _, ok := starts[f.URL]; ok {
			starts[strings.Clone(f.URL)] = f.Depth // an assignment also replaces the key
		}
	}
	depths := map[string]int32{}
	for url, planned := range chains {
		if depth := starts[planned]; depth >= 0 {
			depths[url] = depth
		}
	}
	return depths, nil
}
