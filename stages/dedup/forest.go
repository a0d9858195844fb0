package dedup

import (
	"cmp"
	"context"
	"math/bits"

	"crawlbatch.io/crawlbatch/formats/table"
)

// forest joins classes whose pages are alike.
//
// The search reports the pairs of each shard's spanning forest. The forest keeps the pairs and marks
// their classes. Once all pairs are known, the marked classes get consecutive
// numbers, and only these classes are in the union-find. The pairs are joined in the order of the
// search, so the result does not depend on the shards.
type forest struct {
	scratch string
	pairs   *table.Sorter[pair] // in the order of the search

	marks  []uint64 // one bit for each class; set if the class is near another class
	before []uint64 // element i is the number of marked classes before marks[i*markWords]
	parent []uint64 // parent of each marked class in the union-find; the root is the lowest class
}

// pair holds the numbers of two alike classes.
type pair struct{ A, B uint64 }

// inOrder makes a sorter yield pairs in the order in which they were added.
func inOrder(_, _ *pair) int { return 0 }

// treeEdge is a pair of alike classes. The edges of a cluster form a tree.
type treeEdge struct {
	Cluster uint64
	pair
}

func compareEdges(a, b *treeEdge) int { return cmp.Compare(a.Cluster, b.Cluster) }

// markWords is the number of elements of forest.marks for each element of forest.before.
const markWords = 8

func newForest(scratch string) (*forest, error) {
	pairs, err := table.NewSorter(scratch, inOrder, sortMemory)
	return &forest{scratch: scratch, pairs: pairs}, err
}

// close removes the scratch files and frees the memory. Later calls do nothing.
func (f *forest) close() {
	closeSorter(&f.pairs)
	f.marks, f.before, f.parent = nil, nil, nil
}

// begin prepares the forest for count classes.
func (f *forest) begin(count uint64) { f.marks = make([]uint64, (count+63)/64) }

// add adds a pair of alike classes.
func (f *forest) add(a, b uint64) error {
	f.marks[a/64] |= 1 << (a % 64)
	f.marks[b/64] |= 1 << (b % 64)
	return f.pairs.Add(&pair{a, b})
}

// join joins the classes of all pairs. If a pair connects two trees of the forest, join adds the
// pair to edges.
func (f *forest) join(ctx context.Context, edges *table.Sorter[treeEdge]) error {
	marked := uint64(0)
	for i, word := range f.marks {
		if i%markWords == 0 {
			f.before = append(f.before, marked)
		}
		marked += uint64(bits.OnesCount64(word))
	}
	f.parent = make([]uint64, marked)
	for i := range f.parent {
		f.parent[i] = uint64(i)
	}
	kept, err := table.NewSorter(f.scratch, inOrder, sortMemory)
	if err != nil {
		return err
	}
	defer closeSorter(&kept)
	for p, err := range f.pairs.Sorted(ctx) {
		if err != nil {
			return err
		}
		a, b := f.root(f.place(p.A)), f.root(f.place(p.B))
		if a == b {
			continue
		}
		f.parent[max(a, b)] = min(a, b)
		if err := kept.Add(&p); err != nil {
			return err
		}
	}
	closeSorter(&f.pairs)
	for p, err := range kept.Sorted(ctx) {
		if err != nil {
			return err
		}
		if err := edges.Add(&treeEdge{f.cluster(p.A), p}); err != nil {
			return err
		}
	}
	return nil
}

// place returns the number of a marked class among the marked classes.
func (f *forest) place(class uint64) uint64 {
	word := class / 64
	n := f.before[word/markWords]
	for _, w := range f.marks[word/markWords*markWords : word] {
		n += uint64(bits.OnesCount64(w))
	}
	return n + uint64(bits.OnesCount64(f.marks[word]&(1<<(class%64)-1)))
}

func (f *forest) root(i uint64) uint64 {
	for f.parent[i] != i {
		f.parent[i] = f.parent[f.parent[i]]
		i = f.parent[i]
	}
	return i
}

// alike reports whether a class is near another class.
func (f *forest) alike(class uint64) bool { return f.marks[class/64]&(1<<(class%64)) != 0 }

// cluster returns the number of the cluster that contains a class of long pages. The lowest bits of
// the number tell three kinds of clusters apart: of classes that are near another class, of other
// long pages, and of short pages.
func (f *forest) cluster(class uint64) uint64 {
	if !f.alike(class) {
		return class<<2 | loneClass
	}
	return f.root(f.place(class)) << 2
}

// If a cluster has only one class, the two lowest bits of its number have one of these values.
const (
	shortClass = 1
	loneClass  = 2
)
