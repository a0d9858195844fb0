package dedup

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math/bits"

	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/table"
)

// forest joins classes whose pages are alike. A class holds pages with the same fingerprint or, if their
// texts are short, with the same text. Pages of two classes are alike if their fingerprints are near.
//
// The search reports the pairs of each shard's spanning forest. The forest keeps the pairs and marks
// their classes. When all pairs are known, the marked classes get consecutive
// numbers, and only these classes are in the trees. The least pairs are joined first, so the trees
// are those of the least spanning forest, whatever the order of the search and its parts. Before
// format 9, the pairs were joined in the order of the search.
type forest struct {
	scratch string
	pairs   *table.Sorter[pair] // classes, in the order in which they are joined
	edges   *table.Sorter[pair] // numbers of marked classes

	marks  []uint64 // one bit for each class; set if the class is near another class
	before []uint64 // element i is the number of marked classes before marks[i*markWords]
	trees  trees    // of the marked classes
}

// pair holds two alike classes.
type pair struct{ A, B uint64 }

// comparePairs compares pairs by the lower class, then by the higher class.
func comparePairs(a, b *pair) int { return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B)) }

// inOrder makes a sorter yield pairs in the order in which they were added.
func inOrder(_, _ *pair) int { return 0 }

// markWords is the number of elements of forest.marks for each element of forest.before.
const markWords = 8

func newForest(scratch string, byNumber bool) (*forest, error) {
	order := inOrder
	if byNumber {
		order = comparePairs
	}
	pairs, err := table.NewSorter(scratch, order, sortMemory)
	return &forest{scratch: scratch, pairs: pairs}, err
}

// close removes the scratch files and frees the memory. Later calls do nothing.
func (f *forest) close() {
	closeSorter(&f.pairs)
	closeSorter(&f.edges)
	f.marks, f.before, f.trees = nil, nil, nil
}

// begin prepares the forest for count classes.
func (f *forest) begin(count uint64) { f.marks = make([]uint64, (count+63)/64) }

// search adds the pairs that a search finds among the fingerprints of sorted long pages.
func (f *forest) search(ctx context.Context, s *simhash.Search, long iter.Seq2[longText, error]) error {
	count, err := addFingerprints(long, s)
	if err != nil {
		return err
	}
	f.begin(count)
	return errors.Join(s.Forest(ctx, f.add), s.Close())
}

// add adds a pair of alike classes.
func (f *forest) add(a, b uint64) error {
	f.marks[a/64] |= 1 << (a % 64)
	f.marks[b/64] |= 1 << (b % 64)
	return f.pairs.Add(&pair{a, b})
}

// join joins the classes of all pairs. It calls connect with each pair that connects two trees, and with
// the numbers of the pair's classes among the marked classes.
func (f *forest) join(ctx context.Context, connect func(classes, numbers pair) error) (err error) {
	marked := uint64(0)
	for i, word := range f.marks {
		if i%markWords == 0 {
			f.before = append(f.before, marked)
		}
		marked += uint64(bits.OnesCount64(word))
	}
	f.trees = newTrees(marked)
	for p, err := range f.pairs.Sorted(ctx) {
		if err != nil {
			return err
		}
		numbers := pair{f.number(p.A), f.number(p.B)}
		if !f.trees.join(numbers.A, numbers.B) {
			continue
		}
		if err := connect(p, numbers); err != nil {
			return err
		}
	}
	closeSorter(&f.pairs)
	return nil
}

// addEdge keeps a pair that connects two trees for plant.
func (f *forest) addEdge(_, numbers pair) (err error) {
	if f.edges == nil {
		if f.edges, err = table.NewSorter(f.scratch, inOrder, sortMemory); err != nil {
			return err
		}
	}
	return f.edges.Add(&numbers)
}

// plant turns the edges into parents and returns the trees. The clusters are then no longer known.
func (f *forest) plant(ctx context.Context) (trees, error) {
	f.marks, f.before = nil, nil
	if f.edges != nil {
		for e, err := range f.edges.Sorted(ctx) {
			if err != nil {
				return nil, err
			}
			f.trees.link(e.A, e.B)
		}
		closeSorter(&f.edges)
	}
	f.trees.plant()
	return f.trees, nil
}

// number returns the number of a marked class among the marked classes.
func (f *forest) number(class uint64) uint64 {
	word := class / 64
	n := f.before[word/markWords]
	for _, w := range f.marks[word/markWords*markWords : word] {
		n += uint64(bits.OnesCount64(w))
	}
	return n + uint64(bits.OnesCount64(f.marks[word]&(1<<(class%64)-1)))
}

// alike reports whether a class is near another class.
func (f *forest) alike(class uint64) bool { return f.marks[class/64]&(1<<(class%64)) != 0 }

// place returns the number of the cluster that contains a class of long pages, and the number of
// the class in the trees. The lowest bits of the cluster's number tell three kinds of clusters
// apart: clusters of classes that are near another class, clusters of other long pages, and clusters
// of short pages. The classes of the last two kinds are in no tree.
func (f *forest) place(class uint64) (cluster, number uint64) {
	if !f.alike(class) {
		return class<<2 | loneClass, 0
	}
	number = f.number(class)
	return f.trees.tree(number) << 2, number
}

// If a cluster has only one class, the two lowest bits of its number have one of these values.
const (
	shortClass = 1
	loneClass  = 2
)
