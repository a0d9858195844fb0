package merge

import (
	"cmp"
	"iter"
	"slices"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// inMemory yields the sums in memory in order. Sorting pointers is faster than a sorter.
func (b *targetBuilder) inMemory() iter.Seq2[targetSum, error] {
	return func(yield func(targetSum, error) bool) {
		for _, o := range b.ordered() {
			if row, counts := b.sum(o.target); counts && !yield(row, nil) {
				return
			}
		}
	}
}

// ordered is a target with what its order usually depends on: to sort millions of targets, reading their keys takes
// longer than comparing them.
type ordered struct {
	site   int32 // rank of the target's site
	target *target
	path   uint64 // of the target
}

// ordered returns the sums in memory in the order of bucket, SURT key and URL.
func (b *targetBuilder) ordered() []ordered {
	sites := make([]*target, len(b.sites)) // a target of each site
	order := make([]ordered, 0, len(b.targets))
	for _, t := range b.targets {
		if t.domain == "" {
			continue
		}
		sites[t.site] = t
		order = append(order, ordered{target: t, path: t.path})
	}
	ranks := make([]int32, len(sites))
	slices.SortFunc(sites, func(a, b *target) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), schema.CompareURLs(a.row.SURT, a.row.URL, b.row.SURT, b.row.URL))
	})
	for i, t := range sites {
		ranks[t.site] = int32(i)
	}
	for i := range order {
		order[i].site = ranks[order[i].target.site]
	}
	slices.SortFunc(order, func(a, b ordered) int {
		if a.site != b.site {
			return cmp.Compare(a.site, b.site)
		}
		if a.path != b.path {
			return cmp.Compare(a.path, b.path)
		}
		return schema.CompareURLs(a.target.row.SURT, a.target.row.URL, b.target.row.SURT, b.target.row.URL)
	})
	return order
}
