package simhash

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// MaxDistance is the largest distance at which Pairs searches. Beyond it the
// cost of finding every pair grows towards that of comparing all.
const MaxDistance = 7

// Pair is two fingerprints within the distance that was asked for: their
// positions, A before B, and how far apart they are.
type Pair struct {
	A, B     int
	Distance int
}

// Pairs calls found for every pair of fingerprints at most k apart, each once,
// in an order that depends on the fingerprints alone, until found returns false.
// Fingerprints must be sorted and distinct: whoever has several of a kind keeps
// their list beside.
//
// The 64 bits are cut into blocks, more than k of them. Two fingerprints at most
// k apart agree in all bits of at least (blocks - k) blocks, so for every choice
// of that many blocks the fingerprints are sorted by them, and compared within
// groups that agree. How many blocks is chosen by what it will cost: 10 million
// fingerprints that are spread evenly take seconds for k = 3. A large group, as
// templates and mirrors make, is searched in the same way by the bits in which
// its members differ, so that it costs much only where it has many pairs.
//
// Beside the fingerprints it takes 16 bytes for each.
func Pairs(fingerprints []uint64, k int, found func(Pair) bool) error {
	if k < 0 || k > MaxDistance {
		return fmt.Errorf("simhash: distance %d is not one of 0 to %d", k, MaxDistance)
	}
	for i := 1; i < len(fingerprints); i++ {
		if fingerprints[i-1] >= fingerprints[i] {
			return fmt.Errorf("simhash: fingerprints are not sorted and distinct at %d", i)
		}
	}
	if k == 0 || len(fingerprints) < 2 {
		return nil
	}
	s := &search{
		k:     k,
		spare: make([]uint64, len(fingerprints)),
		found: func(a, b uint64) bool {
			if a > b {
				a, b = b, a
			}
			i, _ := slices.BinarySearch(fingerprints, a)
			j, _ := slices.BinarySearch(fingerprints[i:], b)
			return found(Pair{A: i, B: i + j, Distance: Distance(a, b)})
		},
	}
	s.split(slices.Clone(fingerprints), ^uint64(0), chooseBlocks(len(fingerprints), 64, k), nil)
	return nil
}

// search is one call of Pairs.
type search struct {
	k     int
	spare []uint64 // as long as the fingerprints; what sorting needs
	found func(a, b uint64) bool
	done  bool // found has said so
}

// smallGroup is how many fingerprints are compared each with each rather than
// split further: sorting them once costs about as much.
const smallGroup = 256

// level is a way of cutting a group's bits, and the choice of blocks by which
// its members agree.
type level struct {
	blocks []uint64 // masks
	keep   int      // how many blocks a pair must agree in
	chosen uint64   // union of the chosen blocks
}

// first tells whether the pair whose differing bits are diff is to be found in
// this choice of blocks: it is in the first choice, in the order they are tried,
// of all in which the pair agrees.
func (l *level) first(diff uint64) bool {
	keep, union := l.keep, uint64(0)
	for _, b := range l.blocks {
		if diff&b == 0 {
			union |= b
			if keep--; keep == 0 {
				break
			}
		}
	}
	return union == l.chosen
}

// split finds the pairs of group, whose members differ in the bits of free
// alone, by cutting free into n blocks. It reorders group.
func (s *search) split(group []uint64, free uint64, n int, above []*level) {
	l := &level{blocks: cut(free, n), keep: n - s.k}
	levels := append(slices.Clip(above), l)
	for l.chosen = range l.choices() {
		s.groups(group, free, levels)
		if s.done {
			return
		}
	}
}

// choices gives, for every choice of l.keep blocks in lexicographic order, the
// bits of those chosen.
func (l *level) choices() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		chosen := make([]int, l.keep)
		for i := range chosen {
			chosen[i] = i
		}
		for {
			var mask uint64
			for _, b := range chosen {
				mask |= l.blocks[b]
			}
			if !yield(mask) || !nextChoice(chosen, len(l.blocks)) {
				return
			}
		}
	}
}

// pays tells whether splitting run by n blocks leaves at most half of the
// comparisons that its pairs are. Where all are near all it does not: they would
// meet again in every choice of blocks.
func (s *search) pays(run []uint64, free uint64, n int) bool {
	l := &level{blocks: cut(free, n), keep: n - s.k}
	left := len(run) * len(run) / 2
	for mask := range l.choices() {
		radixSort(run, s.spare[:len(run)], mask)
		for group := range runs(run, mask) {
			left -= len(group) * len(group)
		}
		if left < 0 {
			return false
		}
	}
	return true
}

// groups sorts group by the chosen blocks and searches each run that agrees in them.
func (s *search) groups(group []uint64, free uint64, levels []*level) {
	mask := levels[len(levels)-1].chosen
	radixSort(group, s.spare[:len(group)], mask)
	for run := range runs(group, mask) {
		s.search(run, free&^mask, levels)
		if s.done {
			return
		}
	}
}

// runs cuts sorted into runs that agree in the bits of mask.
func runs(sorted []uint64, mask uint64) iter.Seq[[]uint64] {
	return func(yield func([]uint64) bool) {
		for begin := 0; begin < len(sorted); {
			key := sorted[begin] & mask
			end := begin + 1
			for end < len(sorted) && sorted[end]&mask == key {
				end++
			}
			if !yield(sorted[begin:end]) {
				return
			}
			begin = end
		}
	}
}

// search finds the pairs of a run that agrees in all but the bits of free.
func (s *search) search(run []uint64, free uint64, levels []*level) {
	if len(run) > smallGroup {
		// Bits in which all agree tell nothing apart.
		var differ uint64
		for _, f := range run {
			differ |= f ^ run[0]
		}
		free &= differ
		if width := bits.OnesCount64(free); width > s.k+1 {
			n := chooseBlocks(len(run), width, s.k)
			if s.pays(run, free, n) {
				// Whatever order this leaves run in, the level above sorts anew.
				s.split(run, free, n, levels)
				return
			}
		}
	}
	for i, a := range run {
		for _, b := range run[i+1:] {
			if diff := a ^ b; bits.OnesCount64(diff) <= s.k && inFirst(levels, diff) {
				if !s.found(a, b) {
					s.done = true
					return
				}
			}
		}
	}
}

// inFirst tells whether a pair is to be found where it was: there is one such
// place among all choices of all levels.
func inFirst(levels []*level, diff uint64) bool {
	for _, l := range levels {
		if !l.first(diff) {
			return false
		}
	}
	return true
}

// cut cuts the bits of free into n blocks of about the same number of bits.
func cut(free uint64, n int) []uint64 {
	width := bits.OnesCount64(free)
	blocks := make([]uint64, n)
	for i := range n {
		for range (i+1)*width/n - i*width/n {
			low := free & -free
			blocks[i] |= low
			free ^= low
		}
	}
	return blocks
}

// nextChoice changes chosen, indexes below n that rise, to the next in
// lexicographic order, and tells whether there was one.
func nextChoice(chosen []int, n int) bool {
	for i := len(chosen) - 1; i >= 0; i-- {
		if chosen[i] < n-len(chosen)+i {
			chosen[i]++
			for j := i + 1; j < len(chosen); j++ {
				chosen[j] = chosen[j-1] + 1
			}
			return true
		}
	}
	return false
}

// Costs, in nanoseconds of one core, by which the number of blocks is chosen.
const (
	sortCost    = 4.0 // of a fingerprint in a pass of the sort
	groupCost   = 4.0 // of finding a group's end, a fingerprint
	compareCost = 0.8 // of a pair
)

// chooseBlocks tells into how many blocks to cut width bits, so that the pairs
// at most k apart of n fingerprints are found soonest if they are spread evenly.
func chooseBlocks(n, width, k int) int {
	best, bestCost := k+1, math.Inf(1)
	choices := 1.0 // blocks over (blocks - k)
	for blocks := k + 1; blocks <= min(width, k+8); blocks++ {
		if blocks > k+1 {
			choices *= float64(blocks) / float64(blocks-k)
		} else {
			choices = float64(k + 1)
		}
		key := width * (blocks - k) / blocks
		passes := math.Ceil(float64(key) / digitBits)
		alike := float64(n) / math.Exp2(float64(key))
		cost := choices * float64(n) * (passes*sortCost + groupCost + alike/2*compareCost)
		if cost < bestCost {
			best, bestCost = blocks, cost
		}
	}
	return best
}
