package simhash

import (
	"cmp"
	"math/bits"
	"slices"
)

const (
	// digitBits is the number of bits by which one pass sorts. The 1<<digitBits counters of a pass
	// fit into the first-level cache.
	digitBits = 10
	// cachedItems is the number of items that fit into the second-level cache together with the
	// buffer of the sort.
	cachedItems = 16 << 10
	// fewItems is the number of items below which a comparison sort is faster.
	fewItems = 64
)

// radixSort sorts a stably by the bits of mask. spare is a buffer as long as a.
func radixSort(a, spare []item, mask uint64) {
	if len(a) <= cachedItems || bits.OnesCount64(mask) <= digitBits {
		sortCached(a, spare, mask)
		return
	}
	// The first pass sorts by the highest digit. The items with the same highest digit then usually
	// fit into the cache for the other passes. If every pass covered all items, every pass would
	// miss the cache.
	high := highest(mask, digitBits)
	counts := scatter(a, spare, high)
	copy(a, spare)
	begin := uint32(0)
	for _, end := range counts { // the items with one value of the digit end at end
		sortCached(a[begin:end], spare[begin:end], mask&^high)
		begin = end
	}
}

// sortCached is like radixSort, but each of its passes covers all items, from the lowest digit to the
// highest. It is fast if the items fit into the cache.
func sortCached(a, spare []item, mask uint64) {
	if len(a) < fewItems {
		slices.SortStableFunc(a, func(x, y item) int { return cmp.Compare(x.fingerprint&mask, y.fingerprint&mask) })
		return
	}
	from, to := a, spare
	for mask != 0 {
		low := mask &^ highest(mask, max(bits.OnesCount64(mask)-digitBits, 0))
		mask &^= low
		scatter(from, to, low)
		from, to = to, from
	}
	if &from[0] != &a[0] {
		copy(a, from)
	}
}

// scatter copies the items of one slice to another slice, sorted by the digit of mask. It returns, for
// each value of the digit, the end of the items with this value.
func scatter(from, to []item, mask uint64) *[1 << digitBits]uint32 {
	d := digitOf(mask)
	var ends [1 << digitBits]uint32
	for i := range from {
		ends[d.valueIn(from[i].fingerprint)]++
	}
	sum := uint32(0)
	for i, n := range ends {
		ends[i] = sum
		sum += n
	}
	for i := range from {
		v := d.valueIn(from[i].fingerprint)
		to[ends[v]] = from[i]
		ends[v]++
	}
	return &ends
}

// highest returns the n highest bits of mask.
func highest(mask uint64, n int) uint64 {
	rest := mask
	for range bits.OnesCount64(mask) - n {
		rest &= rest - 1 // clears the lowest bit
	}
	return rest
}

// digit is a number that is made of up to digitBits bits of a fingerprint. The bits form runs. Most
// digits have at most three runs, because a mask consists of few blocks.
type digit struct {
	first [3]run
	more  []run
}

// run describes a run of bits of a fingerprint x. The value of the run in x is x>>shift & mask.
type run struct {
	shift uint8
	mask  uint64
}

// valueIn returns the value of the digit d in the fingerprint x.
func (d *digit) valueIn(x uint64) uint64 {
	v := x>>(d.first[0].shift&63)&d.first[0].mask | x>>(d.first[1].shift&63)&d.first[1].mask | x>>(d.first[2].shift&63)&d.first[2].mask
	for _, r := range d.more {
		v |= x >> r.shift & r.mask
	}
	return v & (1<<digitBits - 1)
}

// digitOf returns the digit of the bits that are set in mask, at most digitBits of them.
func digitOf(mask uint64) *digit {
	d := &digit{}
	taken := 0
	for n := 0; mask != 0; n++ {
		low := bits.TrailingZeros64(mask)
		width := bits.TrailingZeros64(^(mask >> low))
		r := run{shift: uint8(low - taken), mask: (1<<width - 1) << taken}
		if n < len(d.first) {
			d.first[n] = r
		} else {
			d.more = append(d.more, r)
		}
		taken += width
		mask &^= (1<<width - 1) << low
	}
	return d
}
