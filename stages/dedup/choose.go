package dedup

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// candidate is a member of a cluster, with what decides which member represents the cluster.
type candidate struct {
	member
	digest
	Source    int32 // index in choice.sources
	Elsewhere bool  // the page names another page as canonical
	SURT, URL string
}

// choice finds the representative of every cluster.
type choice struct {
	sources    []source
	cfg        Config
	trees      trees // trees of those clusters that have several classes
	candidates *table.Sorter[candidate]
	verdicts   *table.Sorter[verdict]
	unlinked   *table.Sorter[unlinked]
	viaPages   *table.Sorter[viaPage]
	order      int64 // number of rows added to viaPages

	clusters int64 // for the result's counts
}

// verdict says what dedup writes about a page of this round that is in a cluster.
type verdict = schema.Verdict

// verdictKey compares verdicts in the order in which the pages are written.
func verdictKey(k table.Key, v *verdict) table.Key {
	return k.Int(int64(v.Bucket)).Text(v.SURT).Text(v.URL)
}

// unlinked is a verdict whose column via is still empty, because the page and its representative are
// not alike. findVia fills it.
type unlinked struct {
	Parent uint64 // next class in the tree, on the way to the representative's class
	verdict
}

func unlinkedKey(k table.Key, u *unlinked) table.Key { return k.Uint(u.Parent) }

// viaPage is a page whose URL may become the via of other pages of its cluster.
type viaPage struct {
	Class  uint64
	Sealed bool
	Order  int64 // position in the order of choice.key
	URL    string
}

// viaPageKey orders the pages of a class by preference: pages of this round come before sealed
// representatives.
func viaPageKey(k table.Key, p *viaPage) table.Key {
	return k.Uint(p.Class).Bool(p.Sealed).Int(p.Order)
}

func newChoice(scratch string, sources []source, cfg Config) (ch *choice, err error) {
	ch = &choice{sources: sources, cfg: cfg}
	if ch.candidates, err = table.NewSorter(scratch, ch.key, sortMemory); err != nil {
		return nil, err
	}
	if ch.verdicts, err = table.NewSorter(scratch, verdictKey, sortMemory); err != nil {
		return nil, err
	}
	if ch.unlinked, err = table.NewSorter(scratch, unlinkedKey, sortMemory); err != nil {
		return nil, err
	}
	ch.viaPages, err = table.NewSorter(scratch, viaPageKey, sortMemory)
	return ch, err
}

func (ch *choice) close() {
	closeSorter(&ch.candidates)
	closeSorter(&ch.verdicts)
	closeSorter(&ch.unlinked)
	closeSorter(&ch.viaPages)
}

// key sorts candidates by cluster. In a cluster, the representative comes first: a sealed
// representative of the oldest round, then a page that names no other page as canonical, then the
// shortest URL, then the least URL.
func (ch *choice) key(k table.Key, c *candidate) table.Key {
	return k.Uint(c.Cluster).Int(int64(ch.sources[c.Source].age)).Bool(c.Elsewhere).Int(int64(len(c.URL))).Text(c.URL).Uint(c.Page)
}

// collect reads the sources again to get the URLs of the members.
func (ch *choice) collect(ctx context.Context, b store.Bucket, members *table.Sorter[member]) error {
	at := table.Pull(members.Sorted(ctx))
	defer at.Close()
	for i := range ch.sources {
		s := &ch.sources[i]
		page := s.first
		m, err := at.Peek()
		if err != nil {
			return err
		}
		if m == nil || m.Page >= s.end() {
			continue // no page of the source is a member
		}
		for r, err := range s.rows(ctx, b) {
			if err != nil {
				return err
			}
			m, err := at.Peek()
			if err != nil {
				return err
			}
			if m != nil && m.Page == page {
				if err := ch.add(m, int32(i), &r); err != nil {
					return err
				}
				if _, err := at.Next(); err != nil {
					return err
				}
			}
			page++
		}
	}
	return nil
}

func (ch *choice) add(m *member, source int32, r *row) error {
	d, err := digestOf(r.TextDigest)
	if err != nil {
		return fmt.Errorf("page %q: %w", r.URL, err)
	}
	return ch.candidates.Add(&candidate{member: *m, digest: d, Source: source, Elsewhere: namesAnother(r), SURT: r.SURT, URL: r.URL})
}

// choose gives a verdict on each page of this round that is in a cluster.
func (ch *choice) choose(ctx context.Context) error {
	if err := ch.judgeClusters(ctx); err != nil {
		return err
	}
	closeSorter(&ch.candidates)
	ch.trees = nil
	return ch.findVia(ctx)
}

// judgeClusters goes through the clusters with two cursors over the same pages. The first cursor finds
// the representative and the size of a cluster. Then the second goes through the pages of this cluster.
// So the pages of a cluster, which may be many, are never in memory together.
func (ch *choice) judgeClusters(ctx context.Context) error {
	ahead, pages := table.Pull(ch.candidates.Sorted(ctx)), table.Pull(ch.candidates.Sorted(ctx))
	defer ahead.Close()
	defer pages.Close()
	for {
		first, err := ahead.Peek()
		if first == nil || err != nil {
			return err
		}
		c := &cluster{choice: ch, representative: *first}
		if err := c.look(ahead); err != nil {
			return err
		}
		if err := c.judge(pages); err != nil {
			return err
		}
	}
}

// findVia sets the column via of the unlinked verdicts to a page of the class Parent: to the first page
// of this round in the class, or else to the first sealed representative.
func (ch *choice) findVia(ctx context.Context) error {
	viaPages := table.Pull(ch.viaPages.Sorted(ctx))
	defer viaPages.Close()
	for u, err := range ch.unlinked.Sorted(ctx) {
		if err != nil {
			return err
		}
		s, err := viaPages.Find(func(s *viaPage) int { return cmp.Compare(s.Class, u.Parent) })
		if err != nil {
			return err
		}
		if s == nil {
			return fmt.Errorf("page %q resembles class %d, which has no page: %w", u.URL, u.Parent, stages.ErrPermanent)
		}
		u.Via = s.URL
		if err := ch.verdicts.Add(&u.verdict); err != nil {
			return err
		}
	}
	return nil
}

// cluster holds the state of one cluster while its pages are judged.
type cluster struct {
	*choice
	representative candidate
	total          int  // number of pages and sealed representatives
	size           int  // number of pages of this round
	chained        bool // at least one page of this round is not alike to the representative
}

// look counts the pages of the cluster and sets chained. If the cluster is chained, look makes the
// representative's class the root of the cluster's tree, so that parents lead to the representative.
func (c *cluster) look(ahead *table.Cursor[candidate]) error {
	for {
		p, err := ahead.Peek()
		if err != nil {
			return err
		}
		if p == nil || p.Cluster != c.representative.Cluster {
			break
		}
		c.total++
		if !c.sources[p.Source].sealed {
			c.size++
			c.chained = c.chained || !c.alike(p, &c.representative)
		}
		if _, err := ahead.Next(); err != nil {
			return err
		}
	}
	if c.chained {
		c.trees.reroot(c.representative.Class)
	}
	return nil
}

// judge gives a verdict on each page of this round.
func (c *cluster) judge(pages *table.Cursor[candidate]) error {
	counted := false
	for range c.total {
		p, err := pages.Next()
		if err != nil {
			return err
		}
		s := &c.sources[p.Source]
		if c.chained {
			c.order++
			if err := c.viaPages.Add(&viaPage{Class: p.Class, Sealed: s.sealed, Order: c.order, URL: p.URL}); err != nil {
				return err
			}
		}
		if s.sealed {
			continue
		}
		v := verdict{Bucket: int32(s.bucket), Represents: p.Page == c.representative.Page, Duplicate: c.row(p)}
		// A page gets no row if its cluster has only this page and an earlier version of it.
		v.Row = v.Kind != schema.DupRepresentative || c.size > 1 || !c.sources[c.representative.Source].sealed
		if v.Row {
			if !counted {
				c.clusters++
				counted = true
			}
		}
		if v.Kind != schema.DupRepresentative && v.Via == "" {
			err = c.unlinked.Add(&unlinked{c.trees.parent(p.Class), v})
		} else {
			err = c.verdicts.Add(&v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// row returns the row of the duplicates dataset for a page. The column via is empty if the page and
// the representative are not alike.
func (c *cluster) row(p *candidate) schema.Duplicate {
	r := &c.representative
	s := &c.sources[r.Source]
	d := schema.Duplicate{
		SURT: p.SURT, URL: p.URL, Representative: r.URL, Kind: schema.DupNear,
		Distance:            int32(simhash.Distance(p.Fingerprint, r.Fingerprint)),
		RepresentativeCrawl: s.crawl, RepresentativeRound: int32(s.round),
		ClusterSize: int32(min(c.size, math.MaxInt32)),
	}
	switch {
	case r.URL == p.URL:
		d.Kind = schema.DupRepresentative
		return d
	case p.digest == r.digest:
		d.Kind = schema.DupExact
	}
	if c.alike(p, r) {
		d.Via = r.URL
	}
	return d
}

// alike reports whether the texts of two pages are equal or near.
func (c *cluster) alike(a, b *candidate) bool {
	return a.digest == b.digest || a.Long && b.Long && simhash.Distance(a.Fingerprint, b.Fingerprint) <= c.cfg.MaxDistance
}
