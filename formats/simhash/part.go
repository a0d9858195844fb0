package simhash

import (
	"context"
	"math/bits"
	"slices"
)

// Part says which pairs a Search reports. With the zero value it reports the pairs of the whole
// search. If the numbers of the fingerprints ascend like the fingerprints, the result does not depend
// on the order of the search: order the pairs by their lower number, then by their higher number. The
// reported pairs include the least spanning forest, which Kruskal's algorithm finds if it takes the
// pairs in this order. Only one such forest exists. The caller can compute it from the reports of all
// parts, whatever the number of parts.
type Part struct {
	// Index is the number of this part, from 0. Of is the number of parts; 0 and 1 mean that the search
	// is not divided.
	Index, Of int
}

func (p Part) divided() bool { return p.Of > 1 }

// keyFactor is an odd number near 2^64 divided by the golden ratio. The high bits of a key times
// keyFactor depend on all bits of the key.
const keyFactor = 0x9e3779b97f4a7c15

// has reports whether a key belongs to the part. A key is the chosen bits of a fingerprint.
func (p Part) has(key uint64) bool {
	part, _ := bits.Mul64(key*keyFactor, uint64(p.Of))
	return part == uint64(p.Index)
}

// masksTogether is the number of masks for which searchPart selects items in one pass over all items.
// Each mask takes a buffer of spoolBytes. Up to a distance of 3, one pass is enough.
const masksTogether = 128

// searchPart finds the part's pairs. For each choice of blocks, it compares the items whose keys belong
// to the part.
func (s *Search) searchPart(ctx context.Context, all list, blocks int) error {
	l := &level{blocks: cut(^uint64(0), blocks), keep: blocks - s.k}
	v := s.visitor(ctx, l, ^uint64(0), nil)
	for masks := range slices.Chunk(l.choices(), masksTogether) {
		selected, err := s.selectItems(all, masks)
		if err != nil {
			return err
		}
		for i, mask := range masks {
			p := selected[i]
			s.buffer = slices.Grow(s.buffer[:0], min(p.n, s.memory))
			one := &shards{rest: mask, spools: []*spool{p}}
			if err := s.drain(ctx, one, mask, v, func([]item) error { return nil }); err != nil {
				return err
			}
		}
	}
	return nil
}

// selectItems returns a spool for each mask. It holds the items whose key under the mask belongs to
// the part.
func (s *Search) selectItems(all list, masks []uint64) ([]*spool, error) {
	selected := make([]*spool, len(masks))
	for i := range selected {
		var err error
		if selected[i], err = s.newSpool(); err != nil {
			return nil, err
		}
	}
	return selected, all.each(func(items []item) error {
		for i, mask := range masks {
			for n := range items {
				if s.part.has(items[n].fingerprint & mask) {
					if err := selected[i].append(items[n]); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}
