package dedup

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
)

// candidate is a member of a cluster, with the columns that decide which member represents the
// cluster.
type candidate struct {
	member
	digest
	Source    int32 // index of the source
	Elsewhere bool  // the page names another page as canonical
	SURT, URL string
}

// choice finds the representative of every cluster.
type choice struct {
	sources    []source
	cfg        Config
	candidates *table.Sorter[candidate]
	verdicts   *table.Sorter[verdict]

	clusters, exact, near, representatives int64 // for the result's counts
}

// verdict says what dedup writes about a clustered page of this round.
type verdict struct {
	Bucket     int32
	Represents bool // the page is the representative, and will be sealed
	Row        bool // the page has a row of duplicates
	schema.Duplicate
}

// compareVerdicts compares verdicts in the order in which the pages are written.
func compareVerdicts(a, b *verdict) int {
	return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL))
}

func newChoice(scratch string, sources []source, cfg Config) (ch *choice, err error) {
	ch = &choice{sources: sources, cfg: cfg}
	if ch.candidates, err = table.NewSorter(scratch, ch.compare, sortMemory); err != nil {
		return nil, err
	}
	ch.verdicts, err = table.NewSorter(scratch, compareVerdicts, sortMemory)
	return ch, err
}

func (ch *choice) close() {
	closeSorter(&ch.candidates)
	closeSorter(&ch.verdicts)
}

// compare puts the best representative of each cluster first. It prefers a sealed representative of
// the oldest round, then a page that names no other page as canonical, then the shortest URL, then
// the URL that sorts first.
func (ch *choice) compare(a, b *candidate) int {
	return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(ch.sources[a.Source].age, ch.sources[b.Source].age),
		boolCompare(a.Elsewhere, b.Elsewhere), cmp.Compare(len(a.URL), len(b.URL)), strings.Compare(a.URL, b.URL), cmp.Compare(a.Page, b.Page))
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
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
		if m == nil || m.Page >= s.end {
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
	d, err := digestOf(r)
	if err != nil {
		return err
	}
	return ch.candidates.Add(&candidate{member: *m, digest: d, Source: source, Elsewhere: namesAnother(r), SURT: r.SURT, URL: r.URL})
}

// choose goes through the clusters, and gives a verdict on each page of this round. Two cursors
// follow each other: the first finds the representative and the size of a cluster, the second goes
// through its pages. The pages of a cluster are therefore never in memory together.
func (ch *choice) choose(ctx context.Context, edges *table.Sorter[treeEdge]) error {
	ahead, pages, tree := table.Pull(ch.candidates.Sorted(ctx)), table.Pull(ch.candidates.Sorted(ctx)), table.Pull(edges.Sorted(ctx))
	defer ahead.Close()
	defer pages.Close()
	defer tree.Close()
	for {
		first, err := ahead.Peek()
		if first == nil || err != nil {
			return err
		}
		c := &cluster{choice: ch, representative: *first}
		if err := errors.Join(c.readTree(tree), c.look(ahead)); err != nil {
			return err
		}
		if err := c.judge(pages); err != nil {
			return err
		}
	}
}

// cluster holds the state of one cluster while its pages are judged.
type cluster struct {
	*choice
	representative candidate
	total          int // number of pages and sealed representatives
	size           int // number of pages of this round

	// The following lists have an entry for each class, in the order of the classes' numbers. If
	// the cluster consists of a single class, the lists are empty.
	classes []uint64
	parent  []uint32 // index of the next class on the way to the representative's class
	// A class's speaker is the page that stands for the class in the column via. speakers holds the
	// URL of each class's speaker. If a page and its representative are not alike, via is the URL
	// of the parent class's speaker.
	speakers []string
	current  []bool // the speaker is a page of this round
}

// readTree reads the edges of the cluster and finds the parent of each class.
func (c *cluster) readTree(tree *table.Cursor[treeEdge]) error {
	var edges []treeEdge
	for {
		e, err := tree.Peek()
		if err != nil {
			return err
		}
		if e == nil || e.Cluster != c.representative.Cluster {
			break
		}
		edges = append(edges, *e)
		c.classes = append(c.classes, e.A, e.B)
		if _, err := tree.Next(); err != nil {
			return err
		}
	}
	if len(edges) == 0 {
		return nil
	}
	slices.Sort(c.classes)
	c.classes = slices.Compact(c.classes)
	c.speakers, c.current = make([]string, len(c.classes)), make([]bool, len(c.classes))
	c.findParents(edges)
	return nil
}

// findParents goes through the tree from the class of the representative.
func (c *cluster) findParents(edges []treeEdge) {
	// near holds the neighbours of each class. The neighbours of class i are
	// near[start[i]:start[i+1]].
	start := make([]uint32, len(c.classes)+1)
	for _, e := range edges {
		start[c.index(e.A)+1]++
		start[c.index(e.B)+1]++
	}
	for i := range c.classes {
		start[i+1] += start[i]
	}
	near, fill := make([]uint32, 2*len(edges)), slices.Clone(start)
	for _, e := range edges {
		a, b := c.index(e.A), c.index(e.B)
		near[fill[a]], near[fill[b]] = b, a
		fill[a]++
		fill[b]++
	}
	c.parent = fill[:len(c.classes)]
	root := c.index(c.representative.Class)
	c.parent[root] = root
	for stack := []uint32{root}; len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, next := range near[start[at]:start[at+1]] {
			if next != c.parent[at] {
				c.parent[next] = at
				stack = append(stack, next)
			}
		}
	}
}

// index returns the index of a class in the cluster's lists.
func (c *cluster) index(class uint64) uint32 {
	i, _ := slices.BinarySearch(c.classes, class)
	return uint32(i)
}

// look counts the pages of the cluster and finds the speaker of each class. The speaker is the
// first page of this round, or the first sealed representative if the class has no page of this
// round.
func (c *cluster) look(ahead *table.Cursor[candidate]) error {
	for {
		p, err := ahead.Peek()
		if err != nil {
			return err
		}
		if p == nil || p.Cluster != c.representative.Cluster {
			return nil
		}
		current := !c.sources[p.Source].sealed
		c.total++
		if current {
			c.size++
		}
		if len(c.classes) > 0 {
			if i := c.index(p.Class); c.speakers[i] == "" || current && !c.current[i] {
				c.speakers[i], c.current[i] = strings.Clone(p.URL), current
			}
		}
		if _, err := ahead.Next(); err != nil {
			return err
		}
	}
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
		if s.sealed {
			continue
		}
		v := verdict{Bucket: int32(s.bucket), Represents: p.Page == c.representative.Page, Duplicate: c.row(p)}
		// A page needs no row if the cluster has only the page and its own earlier version.
		v.Row = v.Kind != schema.DupRepresentative || c.size > 1 || !c.sources[c.representative.Source].sealed
		if v.Row {
			switch v.Kind {
			case schema.DupExact:
				c.exact++
			case schema.DupNear:
				c.near++
			}
			if !counted {
				c.clusters++
				counted = true
			}
		}
		if err := c.verdicts.Add(&v); err != nil {
			return err
		}
	}
	return nil
}

// row returns the row of duplicates for a page.
func (c *cluster) row(p *candidate) schema.Duplicate {
	r := &c.representative
	s := &c.sources[r.Source]
	d := schema.Duplicate{
		SURT: p.SURT, URL: p.URL, Representative: r.URL, Kind: schema.DupNear,
		Distance:            int32(simhash.Distance(p.Fingerprint, r.Fingerprint)),
		RepresentativeCrawl: s.crawl, RepresentativeRound: int32(s.round),
		ClusterSize: int32(c.size),
	}
	switch {
	case r.URL == p.URL:
		d.Kind = schema.DupRepresentative
		return d
	case p.digest == r.digest:
		d.Kind = schema.DupExact
	}
	d.Via = r.URL
	if !c.alike(p, r) {
		d.Via = c.speakers[c.parent[c.index(p.Class)]]
	}
	return d
}

// alike reports whether two pages count as exact or near duplicates.
func (c *cluster) alike(a, b *candidate) bool {
	return a.digest == b.digest || a.Long && b.Long && simhash.Distance(a.Fingerprint, b.Fingerprint) <= c.cfg.MaxDistance
}
