package truth

import (
	"cmp"
	"slices"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/simhash"
)

// pageInRound is a page and its round. The page is a representative of an earlier round, or a page
// of the current round.
type pageInRound struct {
	page  Page
	round int
}

// comparePages orders the pages of a cluster. Pages that name no other page as canonical come
// first. Among equals, shorter URLs come first, and URLs of equal length are in lexical order. The
// first page becomes the representative, unless an earlier round has one.
func comparePages(a, b *Page) int {
	names := func(p *Page) int {
		if p.CanonicalURL == "" || p.CanonicalURL == p.URL {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(names(a), names(b)), cmp.Compare(len(a.URL), len(b.URL)), cmp.Compare(a.URL, b.URL))
}

// clusterPages groups the pages of a round with each other and with the representatives of earlier
// rounds. It keeps the new representatives for later rounds.
func (c *crawl) clusterPages(pages []Page) []Cluster {
	all := make([]pageInRound, 0, len(c.standing)+len(pages))
	round := c.rounds
	all = append(all, c.standing...)
	for _, p := range pages {
		all = append(all, pageInRound{p, round})
	}
	group := c.connectedComponents(all, len(c.standing))
	members := make(map[int][]int) // indexes of the pages of each component; the key is the lowest index
	for i := range all {
		members[group[i]] = append(members[group[i]], i)
	}
	var clusters []Cluster
	for i := range all { // the order of the map is random, but the order of the pages is not
		if group[i] != i {
			continue
		}
		rep := slices.MinFunc(members[i], func(a, b int) int {
			return cmp.Or(cmp.Compare(all[a].round, all[b].round), comparePages(&all[a].page, &all[b].page))
		})
		if all[rep].round == round {
			c.standing = append(c.standing, all[rep])
		}
		if cl, ok := clusterOf(all, members[i], rep, round); ok {
			clusters = append(clusters, cl)
		}
	}
	slices.SortFunc(clusters, func(a, b Cluster) int { return cmp.Compare(a.Members[0].URL, b.Members[0].URL) })
	return clusters
}

// clusterOf returns the rows of a cluster. It returns false if the cluster has no page of this
// round, or consists of a single page.
func clusterOf(all []pageInRound, members []int, rep, round int) (cl Cluster, ok bool) {
	cl = Cluster{Representative: all[rep].page.URL, Earlier: -1}
	if all[rep].round != round {
		cl.Earlier = all[rep].round
	}
	for _, m := range members {
		p := &all[m].page
		if all[m].round != round {
			continue
		}
		kind := schema.DupNear
		switch {
		case m == rep:
			kind = schema.DupRepresentative
		case p.TextDigest == all[rep].page.TextDigest:
			kind = schema.DupExact
		}
		cl.Members = append(cl.Members, Member{p.URL, kind, int32(simhash.Distance(p.SimHash, all[rep].page.SimHash))})
	}
	slices.SortFunc(cl.Members, func(a, b Member) int { return cmp.Compare(a.URL, b.URL) })
	return cl, len(cl.Members) > 0 && (len(cl.Members) > 1 || cl.Earlier >= 0)
}

// connectedComponents returns, for each page, the lowest index in its connected component. The
// first n pages are representatives of earlier rounds. They are not compared with each other,
// because sealed rounds do not change.
func (c *crawl) connectedComponents(all []pageInRound, n int) []int {
	parent := make([]int, len(all))
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for b := n; b < len(all); b++ {
		for a := range b {
			if c.areAlike(&all[a].page, &all[b].page) {
				ra, rb := root(a), root(b)
				parent[max(ra, rb)] = min(ra, rb)
			}
		}
	}
	for i := range parent {
		parent[i] = root(i)
	}
	return parent
}

// areAlike reports whether two pages belong to one cluster.
func (c *crawl) areAlike(a, b *Page) bool {
	if a.TextDigest == "" || b.TextDigest == "" {
		return false
	}
	if a.WordCount >= minWords && b.WordCount >= minWords &&
		simhash.Distance(a.SimHash, b.SimHash) <= maxDistance {
		return true
	}
	return a.TextDigest == b.TextDigest
}
