package simhash

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"
)

// MaxDistance is the largest distance that a Search accepts. With a larger distance, a Search would
// cost nearly as much as a comparison of all pairs.
const MaxDistance = 7

// memoryItems is the number of items that a Search sorts in memory. Each of them takes 32 bytes, half
// of them in a buffer, so a Search takes up to 384 MiB.
const memoryItems = 12 << 20

// Search finds pairs of near fingerprints. It need not report all pairs: it reports a spanning forest
// of the pairs, which connects the same fingerprints as all pairs do.
//
// A Search for distances of at most k cuts the 64 bits into more than k blocks. Two fingerprints
// within this distance agree in at least (blocks - k) blocks. For every choice of (blocks - k)
// blocks, the Search sorts the fingerprints by the bits of these blocks, called the key, and compares
// fingerprints with the same key. It takes the number of blocks with the least cost. If many
// fingerprints have the same key (from templates or mirrors), the Search also cuts their other bits
// into blocks. A large group is slow only if it has many pairs.
//
// If the fingerprints do not fit into memory, each sort divides them into shards in scratch files.
// Each shard holds a range of the keys. The order in which pairs are reported depends only on the
// fingerprints, and not on the memory.
//
// Several Searches with the same fingerprints can divide the work (Part). Each of them then compares
// only the fingerprints whose keys belong to its part.
//
// Only one goroutine may use a Search. The caller must close the Search.
type Search struct {
	dir    string
	k      int
	part   Part
	memory int // number of items that are sorted in memory

	added  list   // fingerprints in the order of Add
	last   uint64 // the fingerprint that was added last
	spools map[*spool]bool
	buffer []item // buffer for the items of a shard
	spare  []item // buffer for sorting
	trees  trees
	every  bool // true: the search reports all pairs and not a forest; only for tests
	report func(a, b uint64) error
}

// NewSearch returns a Search for pairs whose distance is at most k. Its scratch files are in the
// directory dir.
func NewSearch(dir string, k int, part Part) (*Search, error) {
	if k < 0 || k > MaxDistance {
		return nil, fmt.Errorf("simhash: distance %d is not between 0 and %d", k, MaxDistance)
	}
	return &Search{dir: dir, k: k, part: part, memory: memoryItems, spools: map[*spool]bool{}}, nil
}

// Add adds a fingerprint with a number below 1<<63. Fingerprints must come in ascending order,
// without repeats. A pair of two old fingerprints is not reported.
func (s *Search) Add(fingerprint, number uint64, old bool) error {
	n := s.added.len()
	if n > 0 && fingerprint <= s.last {
		return fmt.Errorf("simhash: fingerprint %d is not greater than the one before it", n)
	}
	s.last = fingerprint
	i := item{fingerprint, number << 1}
	if old {
		i.label |= 1
	}
	if s.added.spool == nil && n < s.memory && !s.part.divided() {
		s.added.items = append(s.added.items, i)
		return nil
	}
	if s.added.spool == nil {
		p, err := s.newSpool()
		if err != nil {
			return err
		}
		if err := p.append(s.added.items...); err != nil {
			return err
		}
		s.added, s.buffer = list{spool: p}, s.added.items
	}
	return s.added.spool.append(i)
}

// Forest calls report with the numbers of both fingerprints of each pair of a spanning forest, and
// perhaps of further pairs. The number of the lower fingerprint comes first. An error of report ends
// the search.
func (s *Search) Forest(ctx context.Context, report func(a, b uint64) error) error {
	n := s.added.len()
	if s.k == 0 || n < 2 {
		return nil
	}
	s.report = report
	s.spare = make([]item, min(n, s.memory))
	l := s.added
	s.added = list{}
	blocks, _ := cheapestBlocks(n, 64, s.k)
	if s.part.divided() {
		return s.searchPart(ctx, l, blocks)
	}
	_, err := s.split(ctx, l, ^uint64(0), blocks, nil)
	return err
}

// Close removes the scratch files.
func (s *Search) Close() error {
	var err error
	for p := range s.spools {
		if failed := s.remove(p); err == nil {
			err = failed
		}
	}
	s.added, s.buffer, s.spare = list{}, nil, nil
	return err
}

// smallGroup is the size of the largest group that is always compared pair by pair. To compare all
// pairs of such a group costs about as much as to sort the group once.
const smallGroup = 256

// level describes one cut of bits into blocks, and the current choice of blocks. The members of the
// current group agree in the chosen blocks.
type level struct {
	blocks []uint64 // masks of the blocks
	keep   int      // number of blocks in a choice
	chosen uint64   // union of the chosen blocks
}

// firstAgreement reports whether a pair agrees in the chosen blocks and in no earlier choice of
// blocks. diff holds the bits in which the two fingerprints differ.
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

// choices returns the union of the blocks of every choice of l.keep blocks, in lexicographic order.
func (l *level) choices() []uint64 {
	var masks []uint64
	// choose adds blocks to mask. left is the number of blocks to add, and at is the number of the
	// first candidate.
	var choose func(at, left int, mask uint64)
	choose = func(at, left int, mask uint64) {
		if left == 0 {
			masks = append(masks, mask)
			return
		}
		for ; at <= len(l.blocks)-left; at++ {
			choose(at+1, left-1, mask|l.blocks[at])
		}
	}
	choose(0, l.keep, 0)
	return masks
}

// split finds the pairs of a group whose members differ only in the free bits. It cuts these bits
// into n blocks. above holds the levels of the cuts that led to this group. split reorders the group.
func (s *Search) split(ctx context.Context, group list, free uint64, n int, above []*level) (list, error) {
	l := &level{blocks: cut(free, n), keep: n - s.k}
	return s.arrange(ctx, group, l.choices(), s.visitor(ctx, l, free, above))
}

// visitor returns a visitor that finds the pairs of each run of items that agree in a choice of the
// blocks of l. All items differ only in the free bits.
func (s *Search) visitor(ctx context.Context, l *level, free uint64, above []*level) visitor {
	levels := append(slices.Clip(above), l)
	return visitor{
		sorted: func(part []item, mask uint64) error {
			l.chosen = mask
			for begin := 0; begin < len(part); {
				end := endOfRun(part, begin, mask)
				if end-begin > 1 {
					if _, err := s.search(ctx, list{items: part[begin:end]}, free&^mask, levels); err != nil {
						return err
					}
				}
				begin = end
			}
			return nil
		},
		large: func(run list, mask uint64) (list, error) {
			l.chosen = mask
			return s.search(ctx, run, free&^mask, levels)
		},
	}
}

// endOfRun returns the index after the run that begins at index begin of a sorted list. The members of
// a run agree in the bits of mask.
func endOfRun(sorted []item, begin int, mask uint64) int {
	end := begin + 1
	for end < len(sorted) && (sorted[end].fingerprint^sorted[begin].fingerprint)&mask == 0 {
		end++
	}
	return end
}

// search finds the pairs of a run whose members agree in all bits except the free bits. It may
// reorder the run, because the caller sorts again for the next choice of blocks.
func (s *Search) search(ctx context.Context, run list, free uint64, levels []*level) (list, error) {
	if run.len() > smallGroup {
		if err := ctx.Err(); err != nil {
			return run, err
		}
		// Only a cut of bits in which members differ can split the run.
		differ, err := differingBits(run)
		if err != nil {
			return run, err
		}
		free &= differ
		if width := bits.OnesCount64(free); width > s.k+1 {
			n, _ := cheapestBlocks(run.len(), width, s.k)
			pays := false
			if run, pays, err = s.cutPays(ctx, run, free, n); err != nil {
				return run, err
			}
			if pays {
				return s.split(ctx, run, free, n, levels)
			}
		}
	}
	if run.spool != nil { // no cut pays, so all members are compared in memory
		items, err := run.spool.load(nil)
		if err != nil {
			return run, err
		}
		return run, s.compare(ctx, items, levels)
	}
	return run, s.compare(ctx, run.items, levels)
}

// differingBits returns the bits in which the members of a run differ.
func differingBits(run list) (differ uint64, err error) {
	var first *item
	err = run.each(func(items []item) error {
		if first == nil && len(items) > 0 {
			first = &item{items[0].fingerprint, 0}
		}
		for _, i := range items {
			differ |= i.fingerprint ^ first.fingerprint
		}
		return nil
	})
	return differ, err
}

// cutPays reports whether a cut of the free bits of a run into n blocks saves at least half of the
// comparisons. A cut saves nothing if, for example, all members are near each other and most of them
// agree in each choice of blocks. cutPays reorders the run.
func (s *Search) cutPays(ctx context.Context, run list, free uint64, n int) (list, bool, error) {
	l := &level{blocks: cut(free, n), keep: n - s.k}
	left := run.len() * run.len() / 2
	for _, mask := range l.choices() {
		var err error
		run, err = s.arrange(ctx, run, []uint64{mask}, visitor{
			sorted: func(part []item, mask uint64) error {
				for begin := 0; begin < len(part); {
					end := endOfRun(part, begin, mask)
					left -= (end - begin) * (end - begin)
					begin = end
				}
				return nil
			},
			large: func(run list, _ uint64) (list, error) {
				left -= run.len() * run.len()
				return run, nil
			},
		})
		if err != nil || left < 0 {
			return run, false, err
		}
	}
	return run, true, nil
}

// compare compares the members of a run with each other and reports the pairs of a spanning forest.
// It takes the pairs in ascending order, as Kruskal's algorithm does: if it omits a pair, smaller pairs
// already connect its two members.
func (s *Search) compare(ctx context.Context, run []item, levels []*level) error {
	if !s.every && !slices.ContainsFunc(run, func(i item) bool { return !i.old() }) {
		return nil
	}
	slices.SortFunc(run, func(a, b item) int { return cmp.Compare(a.fingerprint, b.fingerprint) })
	joined := 0 // number of reported pairs
	for i, a := range run {
		if i%smallGroup == smallGroup-1 && ctx.Err() != nil {
			return ctx.Err()
		}
		for j, b := range run[i+1:] {
			diff := a.fingerprint ^ b.fingerprint
			if bits.OnesCount64(diff) > s.k || a.old() && b.old() || !inFirst(levels, diff) {
				continue
			}
			if joined == 0 {
				s.trees.reset(len(run))
			}
			if !s.trees.join(i, i+1+j) && !s.every {
				continue
			}
			joined++
			if err := s.report(a.number(), b.number()); err != nil {
				return err
			}
			if joined == len(run)-1 && !s.every {
				return nil // all members are joined
			}
		}
	}
	return nil
}

// inFirst reports whether, at each level, the current choice of blocks is the first one in which a
// pair agrees. Several choices may find the same pair. The Search considers it only in the first.
func inFirst(levels []*level, diff uint64) bool {
	for _, l := range levels {
		if !l.firstAgreement(diff) {
			return false
		}
	}
	return true
}

// trees records which members of a run are joined (union-find with path halving).
type trees struct{ parent []int32 }

func (t *trees) reset(n int) {
	t.parent = slices.Grow(t.parent[:0], n)[:n]
	for i := range t.parent {
		t.parent[i] = int32(i)
	}
}

func (t *trees) root(i int32) int32 {
	for t.parent[i] != i {
		t.parent[i] = t.parent[t.parent[i]]
		i = t.parent[i]
	}
	return i
}

// join joins two members. It returns false if the two members were already joined.
func (t *trees) join(a, b int) bool {
	ra, rb := t.root(int32(a)), t.root(int32(b))
	t.parent[max(ra, rb)] = min(ra, rb)
	return ra != rb
}

// cut divides the free bits into n blocks of about equal size.
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

// These costs, in nanoseconds of one core, decide the number of blocks.
const (
	sortCost    = 4.0 // cost of a pass of the sort, per fingerprint
	groupCost   = 4.0 // cost of finding groups, per fingerprint
	compareCost = 0.8 // cost of a comparison, per pair
	sortedBits  = 10  // number of bits by which one pass sorts
)

// memoryCost is the measured time of a search among a hundred million fingerprints, divided by the
// time that cheapestBlocks estimates. The estimate leaves out most of the time for accesses to memory
// and scratch files.
const memoryCost = 4

// EstimatedCost estimates the CPU time of a search among n evenly spread fingerprints for pairs with
// a distance of at most k.
func EstimatedCost(n int64, k int) time.Duration {
	_, cost := cheapestBlocks(int(n), 64, k)
	return time.Duration(cost * memoryCost)
}

// cheapestBlocks returns the number of blocks with which a search over width bits is cheapest, and
// the cost of this search: the estimated time, in nanoseconds, to find the pairs with a distance of at
// most k among n evenly spread fingerprints.
func cheapestBlocks(n, width, k int) (int, float64) {
	best, bestCost := k+1, math.Inf(1)
	choices := 1.0 // number of ways to choose (blocks - k) of the blocks
	for blocks := k + 1; blocks <= min(width, k+8); blocks++ {
		choices *= float64(blocks) / float64(blocks-k)
		key := width * (blocks - k) / blocks
		passes := math.Ceil(float64(key) / sortedBits)
		alike := math.Ldexp(float64(n), -key)
		cost := choices * float64(n) * (float64(passes*sortCost) + groupCost + float64(alike/2*compareCost))
		if cost < bestCost {
			best, bestCost = blocks, cost
		}
	}
	return best, bestCost
}
