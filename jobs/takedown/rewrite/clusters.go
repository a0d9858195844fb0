package rewrite

import (
	"cmp"
	"context"
	"iter"
	"math/bits"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/stages"
)

// Round is a round whose clusters may lose their representatives.
type Round struct {
	Crawl string
	Round int
	Files []manifest.File // at least the published parts of duplicates and pages
}

// Clusters has the new representatives of the clusters whose representative goes. A cluster goes on
// under the member that package dedup would have chosen: one of the oldest round, then one that names no
// other page as canonical, then the one with the shortest URL, then the least URL.
type Clusters struct {
	heirs map[string]*heir // by the URL of the representative that goes
}

// heir is the new representative of a cluster.
type heir struct {
	page    schema.Representative
	crawl   string
	round   int
	part    int // number of the part of duplicates with its row
	members map[string]*schema.Representative
}

// place orders the members of a cluster by the rounds in which they joined it.
type place struct {
	age  int // index of the round
	part int
}

// FindClusters looks for clusters whose representative goes. The rounds must be in their order, and
// include every round with a member. It takes some 200 bytes of memory for each member of such a cluster.
func FindClusters(ctx context.Context, b store.Bucket, m *takedown.Matcher, rounds []Round) (*Clusters, error) {
	joined := map[string]map[string]place{} // by representative and member
	wanted := map[string]*schema.Representative{}
	for age, r := range rounds {
		for d, part := range rowsOf[schema.Duplicate](ctx, b, r.Files, stages.FileDuplicates) {
			if part.err != nil {
				return nil, part.err
			}
			if !m.URL(d.Representative) || m.URL(d.URL) {
				continue
			}
			if joined[d.Representative] == nil {
				joined[d.Representative] = map[string]place{}
			}
			if _, known := joined[d.Representative][d.URL]; !known {
				joined[d.Representative][d.URL] = place{age, part.number}
				wanted[d.URL] = nil
			}
		}
	}
	c := &Clusters{heirs: map[string]*heir{}}
	if len(joined) == 0 {
		return c, nil
	}
	for _, r := range rounds {
		for p, part := range rowsOf[schema.Page](ctx, b, r.Files, stages.FilePages) {
			if part.err != nil {
				return nil, part.err
			}
			if known, ok := wanted[p.URL]; ok && known == nil {
				wanted[p.URL] = &schema.Representative{SURT: p.SURT, URL: p.URL, CanonicalURL: p.CanonicalURL,
					WordCount: p.WordCount, TextDigest: p.TextDigest, SimHash: p.SimHash}
			}
		}
	}
	for old, members := range joined {
		h := &heir{members: map[string]*schema.Representative{}}
		var best *schema.Representative
		for url, at := range members {
			p := wanted[url]
			if p == nil {
				continue // its page was pruned, or is damaged; verify reports it
			}
			h.members[url] = p
			if best == nil || precedes(p, at, best, members[best.URL]) {
				best, h.part = p, at.part
				h.crawl, h.round = rounds[at.age].Crawl, rounds[at.age].Round
			}
		}
		if best != nil {
			h.page = *best
			if m.URL(best.CanonicalURL) {
				h.page.CanonicalURL = ""
			}
			c.heirs[old] = h
		}
	}
	return c, nil
}

func precedes(a *schema.Representative, atA place, b *schema.Representative, atB place) bool {
	elsewhere := func(p *schema.Representative) int {
		if p.CanonicalURL != "" && p.CanonicalURL != p.URL {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(atA.age, atB.age), cmp.Compare(elsewhere(a), elsewhere(b)), cmp.Compare(len(a.URL), len(b.URL)),
		strings.Compare(a.URL, b.URL)) < 0
}

// source is the part of a row, or an error.
type source struct {
	number int
	err    error
}

// rowsOf yields the rows of the published parts of a dataset.
func rowsOf[T any](ctx context.Context, b store.Bucket, files []manifest.File, dataset string) iter.Seq2[*T, source] {
	return func(yield func(*T, source) bool) {
		for _, f := range files {
			if f.Dataset != dataset || strings.Contains(f.Key, "/work/") || strings.Contains(f.Key, "/segments/") {
				continue
			}
			number, err := layout.PartOf(f.Key)
			if err != nil {
				yield(nil, source{0, err})
				return
			}
			for row, err := range table.Concat[T](ctx, b, []string{f.Key}) {
				if !yield(&row, source{number, err}) || err != nil {
					return
				}
			}
		}
	}
}

// duplicate gives a row the new representative of its cluster, and reports whether it changed.
func (c *Clusters) duplicate(m *takedown.Matcher, d *schema.Duplicate) bool {
	h := c.heirs[d.Representative]
	if h == nil || m.URL(d.URL) {
		return false
	}
	exact := false
	if p := h.members[d.URL]; p != nil {
		d.Distance = int32(bits.OnesCount64(uint64(p.SimHash) ^ uint64(h.page.SimHash)))
		exact = p.TextDigest == h.page.TextDigest
	}
	d.Representative, d.RepresentativeCrawl, d.RepresentativeRound = h.page.URL, h.crawl, int32(h.round)
	switch {
	case d.URL == h.page.URL:
		d.Kind, d.Via = schema.DupRepresentative, ""
	case exact:
		d.Kind, d.Via = schema.DupExact, h.page.URL
	default:
		d.Kind = schema.DupNear
	}
	return true
}

// page gives a page the new representative of its cluster, and reports whether it changed.
func (c *Clusters) page(m *takedown.Matcher, p *schema.PageColumns) bool {
	h := c.heirs[p.DuplicateOf]
	switch {
	case h == nil || m.URL(p.URL):
		return false
	case p.URL == h.page.URL:
		p.DuplicateOf, p.DuplicateKind = "", ""
	default:
		p.DuplicateOf, p.DuplicateKind = h.page.URL, string(schema.DupNear)
		if p.TextDigest == h.page.TextDigest {
			p.DuplicateKind = string(schema.DupExact)
		}
	}
	return true
}

// added returns the new representatives that a part of representatives lacks, in the part's order.
func (c *Clusters) added(crawl string, round, part int) []schema.Representative {
	var rows []schema.Representative
	for _, h := range c.heirs {
		if h.crawl == crawl && h.round == round && h.part == part {
			rows = append(rows, h.page)
		}
	}
	slices.SortFunc(rows, func(a, b schema.Representative) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) })
	return rows
}
