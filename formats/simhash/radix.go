package simhash

import (
	"cmp"
	"math/bits"
	"slices"
)

// digitBits is the number of bits by which one pass of the sort orders its input. The counters of
// such a pass fit into the first-level cache.
const digitBits = 10

// radixSort sorts a by the bits of mask. The sort is stable. The buffer spare must be as long as a.
func radixSort(a, spare []uint64, mask uint64) {
	if len(a) < 2*smallGroup { // for short inputs a comparison sort is faster
		slices.SortStableFunc(a, func(x, y uint64) int { return cmp.Compare(x&mask, y&mask) })
		return
	}
	from, to := a, spare
	for mask != 0 {
		digit, rest := takeDigit(mask)
		mask = rest
		var counts [1 << digitBits]int
		for _, x := range from {
			counts[digit.valueIn(x)]++
		}
		sum := 0
		for i, n := range counts {
			counts[i] = sum
			sum += n
		}
		for _, x := range from {
			d := digit.valueIn(x)
			to[counts[d]] = x
			counts[d]++
		}
		from, to = to, from
	}
	if &from[0] != &a[0] {
		copy(a, from)
	}
}

// digit describes which bits of a word form a digit. A mask consists of few blocks, so the lowest
// digitBits bits of a mask form at most four runs.
type digit struct {
	parts [digitBits]part
	n     int
}

// part describes a run of bits of a word x. The value of the run is x>>shift & mask.
type part struct {
	shift uint8
	mask  uint64
}

// valueIn returns the value of the digit d in the word x.
func (d *digit) valueIn(x uint64) uint64 {
	v := x >> d.parts[0].shift & d.parts[0].mask
	for _, p := range d.parts[1:d.n] {
		v |= x >> p.shift & p.mask
	}
	return v
}

// takeDigit makes a digit from the lowest bits of mask, and returns the digit and the remaining
// bits.
func takeDigit(mask uint64) (digit, uint64) {
	var d digit
	taken := 0
	for taken < digitBits && mask != 0 {
		low := bits.TrailingZeros64(mask)
		run := min(bits.TrailingZeros64(^(mask >> low)), digitBits-taken)
		runMask := uint64(1)<<run - 1
		// The shift moves the run from its place in the word to its place in the digit.
		d.parts[d.n] = part{shift: uint8(low - taken), mask: runMask << taken}
		d.n++
		taken += run
		mask &^= runMask << low
	}
	return d, mask
}
