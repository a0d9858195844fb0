package dedup

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"crawlbatch.io/crawlbatch/formats/simhash"
)

// clusters are the connected components of the graph in which alike pages are connected.
//
// The pages of a class are alike to the same other pages. All long pages with equal fingerprints
// are one class; all short pages with equal digests are one class. Components are found among
// classes, so a thousand copies of a page cost a thousand list entries and no pairs. Classes are
// numbered by fingerprint, then by digest, so their numbers do not depend on the order of pages in
// files.
type clusters struct {
	class []uint32 // class of each page
	// root[c] is one class of c's component. All classes of a component have the same root.
	root []uint32
	// tree holds edges between classes. The edges form a spanning tree of each component.
	tree []edge
}

// edge is two classes whose pages are alike.
type edge struct{ a, b uint32 }

// none means no page or no class.
const none = math.MaxUint32

// findClusters finds the components of p.
func findClusters(ctx context.Context, p *pages, maxDistance int) (*clusters, error) {
	c := &clusters{class: make([]uint32, p.count())}
	fingerprints := c.assignClasses(p)
	current := make([]bool, len(c.root)) // whether each class has a page of this round
	for i := p.sealed; i < p.count(); i++ {
		current[c.class[i]] = true
	}
	calls := 0
	err := simhash.Pairs(fingerprints, maxDistance, func(pair simhash.Pair) bool {
		a, b := uint32(pair.A), uint32(pair.B)
		if current[a] || current[b] { // two sealed representatives are never compared
			c.join(a, b)
		}
		calls++
		return calls%(1<<16) != 0 || ctx.Err() == nil
	})
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range c.root {
		c.root[i] = c.find(uint32(i))
	}
	return c, nil
}

// assignClasses puts every page of p into a class. Classes of long pages have the lowest
// numbers, and fingerprints[i] is the fingerprint of class i.
func (c *clusters) assignClasses(p *pages) (fingerprints []uint64) {
	order := make([]uint32, p.count())
	for i := range order {
		order[i] = uint32(i)
	}
	// Pages with equal digests have equal texts, so also equal words and fingerprints. The
	// comparison includes words and fingerprints nevertheless, because a damaged file could put
	// pages that are not alike into one class.
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(bytes.Compare(p.digest[a][:], p.digest[b][:]), cmp.Compare(p.fingerprint[a], p.fingerprint[b]), cmp.Compare(a, b))
	})
	short := uint32(0)
	for begin := 0; begin < len(order); {
		first := order[begin]
		end := begin
		for ; end < len(order) && p.digest[order[end]] == p.digest[first]; end++ {
			i := order[end]
			p.fingerprint[i] = p.fingerprint[first]
			p.flags[i] = p.flags[i]&^long | p.flags[first]&long
			c.class[i] = short // index among the short classes; the number of long classes is added below
		}
		if p.flags[first]&long == 0 {
			short++
		}
		begin = end
	}

	order = slices.DeleteFunc(order, func(i uint32) bool { return p.flags[i]&long == 0 })
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(p.fingerprint[a], p.fingerprint[b]) })
	for _, i := range order {
		if n := len(fingerprints); n == 0 || fingerprints[n-1] != p.fingerprint[i] {
			fingerprints = append(fingerprints, p.fingerprint[i])
		}
		c.class[i] = uint32(len(fingerprints) - 1)
	}
	for i := range c.class {
		if p.flags[i]&long == 0 {
			c.class[i] += uint32(len(fingerprints))
		}
	}
	c.root = make([]uint32, len(fingerprints)+int(short))
	for i := range c.root {
		c.root[i] = uint32(i)
	}
	return fingerprints
}

// find returns the lowest class that is connected with class i (union-find with path halving).
func (c *clusters) find(i uint32) uint32 {
	for c.root[i] != i {
		c.root[i] = c.root[c.root[i]]
		i = c.root[i]
	}
	return i
}

// join connects two classes. If a and b were not connected, join appends their edge to tree.
func (c *clusters) join(a, b uint32) {
	ra, rb := c.find(a), c.find(b)
	if ra == rb {
		return
	}
	c.root[max(ra, rb)] = min(ra, rb)
	c.tree = append(c.tree, edge{a, b})
}

// parents returns the parent of each class: the next class on the path to a class in roots. If a
// component has no class in roots, its classes have the parent none (a constant).
func (c *clusters) parents(roots []uint32) []uint32 {
	// near holds the neighbours of each class in the tree. The neighbours of class i are
	// near[start[i]:start[i+1]].
	start := make([]uint32, len(c.root)+1)
	for _, e := range c.tree {
		start[e.a+1]++
		start[e.b+1]++
	}
	for i := range c.root {
		start[i+1] += start[i]
	}
	near, fill := make([]uint32, start[len(c.root)]), slices.Clone(start)
	for _, e := range c.tree {
		near[fill[e.a]], near[fill[e.b]] = e.b, e.a
		fill[e.a]++
		fill[e.b]++
	}
	parent := fill[:len(c.root)]
	for i := range parent {
		parent[i] = none
	}
	var queue []uint32
	for _, root := range roots {
		queue = append(queue[:0], root)
		for len(queue) > 0 {
			at := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			for _, next := range near[start[at]:start[at+1]] {
				if next != parent[at] {
					parent[next] = at
					queue = append(queue, next)
				}
			}
		}
	}
	return parent
}
