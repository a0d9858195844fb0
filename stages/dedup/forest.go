package dedup

import (
	"context"
	"errors"
	"iter"
	"math/bits"

	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/table"
)

// forest joins classes of long pages whose fingerprints are near. A class holds the pages with one
// fingerprint.
//
// The search reports near pairs of classes. The forest keeps the pairs and marks their classes. When
// all pairs are known, the marked classes get consecutive numbers, and only these classes are in the
// trees. The least pairs are joined first, so the trees are those of the least spanning forest, however
// the search was divided.
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

// pairKey compares pairs by the lower class, then by the higher class.
func pairKey(k table.Key, p *pair) table.Key { return k.Uint(p.A).Uint(p.B) }

// inOrder makes a sorter yield pairs in the order in which they were added.
func inOrder(k table.Key, _ *pair) table.Key { return k }

// markWords is the number of elements of forest.marks for each element of forest.before.
const markWords = 8

func newForest(scratch string) (*forest, error) {
	pairs, err := table.NewSorter(scratch, pairKey, sortMemory)
	return &forest{scratch: scratch, pairs: pairs}, err
}

// close removes the scratch files and frees the memory. Later calls do nothing.
func (f *forest) close() {
	closeSorter(&f.pairs)
	closeSorter(&f.edges)
	f.marks, f.before, f.trees = nil, nil, nil
}

// begin prepares the forest for n classes.
func (f *forest) begin(n uint64) { f.marks = make([]uint64, (n+63)/64) }

// search adds the pairs that the search s finds among the fingerprints of long pages, which come sorted.
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

// join joins the classes of all pairs. For each pair that connects two trees, it calls connect with the
// two classes and with their numbers among the marked classes.
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

// addEdge stores the numbers of a pair that connects two trees. The method plant reads them.
func (f *forest) addEdge(_, numbers pair) (err error) {
	if f.edges == nil {
		if f.edges, err = table.NewSorter(f.scratch, inOrder, sortMemory); err != nil {
			return err
		}
	}
	return f.edges.Add(&numbers)
}

// plant turns the edges into parents and returns the trees. From then on, place must not be called.
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

// number returns how many marked classes precede a marked class.
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
// the class in the trees. The two lowest bits of the cluster's number tell the kind of the cluster:
// 0 if it has several classes, loneClass if it has one class of long pages, and shortClass if it has
// one class of short pages. The classes of the last two kinds are in no tree.
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
