package simhash

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// MaxDistance is the largest distance that Pairs accepts. For larger distances, Pairs would cost
// nearly as much as comparing all pairs.
const MaxDistance = 7

// Pair describes two near fingerprints by their positions, A before B, and their distance.
type Pair struct {
	A, B     int
	Distance int
}

// Pairs calls the function report for every pair of fingerprints whose distance is at most k. Pairs
// stops when the function returns false. The order of the pairs depends only on the fingerprints.
// Fingerprints must be sorted and distinct.
//
// Pairs cuts the 64 bits into more than k blocks. Two fingerprints with a distance of at most k
// agree in at least (blocks - k) blocks. For every choice of (blocks - k) blocks, Pairs sorts the
// fingerprints by the chosen blocks and compares fingerprints that agree in them. The number of
// blocks minimizes the cost: 10 million evenly spread fingerprints take seconds for k = 3. If many
// fingerprints agree in the chosen blocks (from templates or mirrors), Pairs also cuts their other
// bits into blocks. A large group is slow only if it has many pairs.
//
// Pairs uses 16 bytes of memory for each fingerprint.
func Pairs(fingerprints []uint64, k int, report func(Pair) bool) error {
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
			return report(Pair{A: i, B: i + j, Distance: Distance(a, b)})
		},
	}
	s.split(slices.Clone(fingerprints), ^uint64(0), chooseBlocks(len(fingerprints), 64, k), nil)
	return nil
}

// search holds the state of one call of Pairs.
type search struct {
	k     int
	spare []uint64 // buffer for sorting, as long as the fingerprints
	found func(a, b uint64) bool
	done  bool // report returned false
}

// smallGroup is the size of the largest group that is compared pair by pair. Comparing all pairs of
// a small group costs about as much as sorting the group once.
const smallGroup = 256

// level describes one cut of a group's bits into blocks, and the chosen blocks in which the group's
// members agree.
type level struct {
	blocks []uint64 // masks of the blocks
	keep   int      // number of blocks in which a pair must agree
	chosen uint64   // union of the chosen blocks
}

// firstAgreement reports whether a pair agrees in the chosen blocks and in no earlier choice of
// blocks. The argument diff holds the bits in which the pair differs. Pairs reports a pair in this
// first choice and in no later choice.
func (l *level) firstAgreement(diff uint64) bool {
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

// split finds the pairs of a group whose members differ only in the bits of the mask free. The
// function cuts these bits into n blocks and reorders the group.
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

// choices yields the bits of every choice of l.keep blocks, in lexicographic order.
func (l *level) choices() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		// choose adds blocks to mask. The argument left is the number of blocks to
		// add, and at is the number of the first candidate. If choose returns false, the iteration
		// stops.
		var choose func(at, left int, mask uint64) bool
		choose = func(at, left int, mask uint64) bool {
			if left == 0 {
				return yield(mask)
			}
			for ; at <= len(l.blocks)-left; at++ {
				if !choose(at+1, left-1, mask|l.blocks[at]) {
					return false
				}
			}
			return true
		}
		choose(0, l.keep, 0)
	}
}

// cutPays reports whether cutting the bits of a run into n blocks saves at least half of the
// comparisons. A cut saves nothing if all members are near each other and agree in every choice of
// blocks.
func (s *search) cutPays(run []uint64, free uint64, n int) bool {
	l := &level{blocks: cut(free, n), keep: n - s.k}
	left := len(run) * len(run) / 2
	for mask := range l.choices() {
		radixSort(run, s.spare[:len(run)], mask)
		for group := range splitRuns(run, mask) {
			left -= len(group) * len(group)
		}
		if left < 0 {
			return false
		}
	}
	return true
}

// groups sorts a group by the chosen blocks and searches each run of members that agree in these
// blocks.
func (s *search) groups(group []uint64, free uint64, levels []*level) {
	mask := levels[len(levels)-1].chosen
	radixSort(group, s.spare[:len(group)], mask)
	for run := range splitRuns(group, mask) {
		s.search(run, free&^mask, levels)
		if s.done {
			return
		}
	}
}

// splitRuns splits a sorted list into runs whose members agree in the bits of mask.
func splitRuns(sorted []uint64, mask uint64) iter.Seq[[]uint64] {
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

// search finds the pairs of a run whose members agree in all bits outside the mask free.
func (s *search) search(run []uint64, free uint64, levels []*level) {
	if len(run) > smallGroup {
		// Only bits in which members differ can split the run.
		var differ uint64
		for _, f := range run {
			differ |= f ^ run[0]
		}
		free &= differ
		if width := bits.OnesCount64(free); width > s.k+1 {
			n := chooseBlocks(len(run), width, s.k)
			if s.cutPays(run, free, n) {
				// split reorders the run. The new order does no harm, because the caller
				// sorts again for the next choice of blocks.
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

// inFirst reports whether the current choice of blocks reports a pair. Several choices find the
// same pair, but exactly one choice reports the pair.
func inFirst(levels []*level, diff uint64) bool {
	for _, l := range levels {
		if !l.firstAgreement(diff) {
			return false
		}
	}
	return true
}

// cut divides the bits of the mask free into n blocks of about equal size.
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

// Costs that decide the number of blocks, in nanoseconds of one core.
const (
	sortCost    = 4.0 // cost of a pass of the sort, per fingerprint
	groupCost   = 4.0 // cost of finding groups, per fingerprint
	compareCost = 0.8 // cost of a comparison, per pair
)

// chooseBlocks returns the cheapest number of blocks into which to cut width bits. The estimated
// cost is the time to find the pairs with a distance of at most k among n evenly spread
// fingerprints.
func chooseBlocks(n, width, k int) int {
	best, bestCost := k+1, math.Inf(1)
	choices := 1.0 // number of ways to choose (blocks - k) of the blocks
	for blocks := k + 1; blocks <= min(width, k+8); blocks++ {
		choices *= float64(blocks) / float64(blocks-k)
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
