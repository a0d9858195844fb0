package simhash

import (
	"math/bits"
	"slices"
)

// digitBits is how many bits a pass of the sort goes by: as many counters as
// stay in the first cache.
const digitBits = 10

// radixSort sorts a by the bits of mask, lowest first in significance, others
// ignored; spare must be as long. What it leaves in the order of equal keys is
// the order in which they were.
func radixSort(a, spare []uint64, mask uint64) {
	if len(a) < 2*smallGroup { // counting would cost more
		slices.SortStableFunc(a, func(x, y uint64) int {
			switch x, y := x&mask, y&mask; {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
		return
	}
	from, to := a, spare
	for mask != 0 {
		digit, rest := takeDigit(mask)
		mask = rest
		var counts [1 << digitBits]int
		for _, x := range from {
			counts[digit.of(x)]++
		}
		sum := 0
		for i, n := range counts {
			counts[i] = sum
			sum += n
		}
		for _, x := range from {
			d := digit.of(x)
			to[counts[d]] = x
			counts[d]++
		}
		from, to = to, from
	}
	if &from[0] != &a[0] {
		copy(a, from)
	}
}

// digit extracts bits from up to four places of a word, which is all that the
// lowest digitBits of a mask of a few blocks ever lie in, and more if need be.
type digit struct {
	parts [digitBits]part
	n     int
}

// part is a run of bits: those of x>>shift that are in mask.
type part struct {
	shift uint8
	mask  uint64
}

// of gives x's digit.
func (d *digit) of(x uint64) uint64 {
	v := x >> d.parts[0].shift & d.parts[0].mask
	for _, p := range d.parts[1:d.n] {
		v |= x >> p.shift & p.mask
	}
	return v
}

// takeDigit makes a digit of the lowest bits of mask, and tells which are left.
func takeDigit(mask uint64) (digit, uint64) {
	var d digit
	taken := 0
	for taken < digitBits && mask != 0 {
		low := bits.TrailingZeros64(mask)
		run := min(bits.TrailingZeros64(^(mask >> low)), digitBits-taken)
		runMask := uint64(1)<<run - 1
		// The run of the word, moved to where the digit has it.
		d.parts[d.n] = part{shift: uint8(low - taken), mask: runMask << taken}
		d.n++
		taken += run
		mask &^= runMask << low
	}
	return d, mask
}
