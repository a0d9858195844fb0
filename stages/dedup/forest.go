package dedup

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"os"

	"crawlbatch.io/crawlbatch/formats/table"
)

// forest joins classes whose pages are alike.
//
// The search reports the pairs of each shard's spanning forest. The forest writes the pairs to a
// scratch file and marks their classes. Once all pairs are known, the marked classes get consecutive
// numbers, and only these classes are in the union-find. The pairs are joined in the order of the
// search, so the result does not depend on the shards.
type forest struct {
	file  *os.File
	out   *bufio.Writer
	pairs int64

	marks  []uint64 // one bit for each class; set if the class is near another class
	before []uint64 // number of marked classes before each group of markWords words of marks
	parent []uint64 // parent of each marked class in the union-find; the root is the lowest class
}

// treeEdge is a pair of alike classes. The edges of a cluster form a tree.
type treeEdge struct {
	Cluster uint64
	A, B    uint64 // numbers of the classes
}

func compareEdges(a, b *treeEdge) int { return cmp.Compare(a.Cluster, b.Cluster) }

const (
	pairBytes = 16
	markWords = 8 // words of marks for each entry of before
)

func newForest(scratch string) (*forest, error) {
	file, err := os.CreateTemp(scratch, "pairs-*")
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	return &forest{file: file, out: bufio.NewWriterSize(file, 256<<10)}, nil
}

// close removes the scratch file and frees the memory.
func (f *forest) close() {
	_ = f.file.Close()
	_ = os.Remove(f.file.Name())
	f.marks, f.before, f.parent = nil, nil, nil
}

// begin prepares the forest for count classes.
func (f *forest) begin(count uint64) { f.marks = make([]uint64, (count+63)/64) }

// add adds a pair of alike classes.
func (f *forest) add(a, b uint64) error {
	f.marks[a/64] |= 1 << (a % 64)
	f.marks[b/64] |= 1 << (b % 64)
	f.pairs++
	return writePair(f.out, a, b)
}

func writePair(out *bufio.Writer, a, b uint64) error {
	pair := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(make([]byte, 0, pairBytes), a), b)
	if _, err := out.Write(pair); err != nil {
		return fmt.Errorf("write scratch file: %w", err)
	}
	return nil
}

// each calls the function visit with n pairs of the scratch file, in order.
func (f *forest) each(ctx context.Context, n int64, visit func(a, b uint64) error) error {
	if err := f.out.Flush(); err != nil {
		return fmt.Errorf("write scratch file: %w", err)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f.file, 0, n*pairBytes), 256<<10)
	var pair [pairBytes]byte
	for i := range n {
		if i%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := io.ReadFull(in, pair[:]); err != nil {
			return fmt.Errorf("read scratch file: %w", err)
		}
		if err := visit(binary.LittleEndian.Uint64(pair[:]), binary.LittleEndian.Uint64(pair[8:])); err != nil {
			return err
		}
	}
	return nil
}

// join joins all pairs. It adds the pairs that join two trees to the sorter edges.
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
	// The pairs that join two trees go to the beginning of the file, which has already been read.
	trees := int64(0)
	kept := bufio.NewWriterSize(io.NewOffsetWriter(f.file, 0), 256<<10)
	if err := f.each(ctx, f.pairs, func(a, b uint64) error {
		ra, rb := f.root(f.place(a)), f.root(f.place(b))
		if ra == rb {
			return nil
		}
		f.parent[max(ra, rb)] = min(ra, rb)
		trees++
		return writePair(kept, a, b)
	}); err != nil {
		return err
	}
	if err := kept.Flush(); err != nil {
		return fmt.Errorf("write scratch file: %w", err)
	}
	return f.each(ctx, trees, func(a, b uint64) error {
		return edges.Add(&treeEdge{Cluster: f.cluster(a), A: a, B: b})
	})
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

// The number of a cluster of one class has one of these values in its lowest bits.
const (
	shortClass = 1
	loneClass  = 2
)
