package simhash

import (
	"context"
	"math/bits"
	"slices"
)

// Part says which pairs a Search reports. The zero value reports the pairs of the whole search, in the
// order in which the search finds them.
type Part struct {
	// ByNumber makes the pairs independent of the order of the search. The numbers of fingerprints
	// must then ascend with the fingerprints. Pairs are compared by the lower number, then by the
	// higher number. The reported pairs include the least spanning forest: the forest that
	// Kruskal's algorithm finds if it takes the least pair first. Only one such forest exists, so
	// the reports of all parts together determine it, whatever the number of parts.
	ByNumber bool
	// Index is the number of this part, from 0. Of is the number of parts; 0 and 1 mean that the search
	// is not divided. Parts must have ByNumber.
	Index, Of int
}

func (p Part) divided() bool { return p.Of > 1 }

// spreads is an odd number near 2^64 divided by the golden ratio. A product with it spreads the keys
// of any blocks over its high bits.
const spreads = 0x9e3779b97f4a7c15

// has reports whether the part has the items with a key. Items with equal keys are in the same part.
func (p Part) has(key uint64) bool {
	part, _ := bits.Mul64(key*spreads, uint64(p.Of))
	return part == uint64(p.Index)
}

// masksTogether is the number of choices of blocks whose items searchPart selects in one pass over all
// items. Each of them takes a buffer of spoolBytes. Up to a distance of 3, one pass is enough.
const masksTogether = 128

// searchPart searches the items of the part. For each choice of blocks, these are the items whose
// chosen bits are a key of the part.
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

// selectItems returns a spool for each mask, with those items whose bits of the mask are a key of the
// part.
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
