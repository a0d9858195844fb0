package extsort

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
)

// ErrStop is returned by a visit function that needs no more records. Merge then returns nil.
var ErrStop = errors.New("no more records are needed")

// Merge calls visit with the records of all Sorters in order. Records with equal keys keep the order of the Sorters. The
// memory of a record is valid until visit returns. The caller may call Merge again, but must not add records before.
//
// If there are several Sorters, a goroutine merges the records of each while visit runs. Only one Merge may then use them
// at a time.
func Merge(ctx context.Context, sorters []*Sorter, visit func(key, rest []byte) error) error {
	within, stop := context.WithCancel(ctx)
	var merging sync.WaitGroup
	defer merging.Wait()
	defer stop()
	var streams []stream
	for _, s := range sorters {
		own := []stream{}
		for _, run := range s.Runs() {
			own = append(own, run)
		}
		own = append(own, &memoryRun{from: s})
		if len(sorters) > 1 {
			p, all := newPipe(within), own
			merging.Go(func() { p.close(writeMerged(within, all, p)) })
			own = []stream{&Run{NewReader(p)}}
		}
		streams = append(streams, own...)
	}
	if err := merge(ctx, streams, visit); err != ErrStop {
		return err
	}
	return nil
}

// writeMerged writes the records of all streams, in order.
func writeMerged(ctx context.Context, streams []stream, out io.Writer) error {
	w := NewWriter(out)
	if err := merge(ctx, streams, w.Write); err != nil {
		return err
	}
	return w.Flush()
}

// stream is an Input with the rest of the current record.
type stream interface {
	Input
	rest() []byte
}

// merge calls visit with the records of all streams, in order. Records with equal keys keep the order of the streams.
func merge(ctx context.Context, streams []stream, visit func(key, rest []byte) error) error {
	inputs := make([]Input, len(streams))
	for i, s := range streams {
		inputs[i] = s
	}
	m := NewMerger(inputs)
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		i, err := m.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = visit(m.heads[i].key, streams[i].rest())
		}
		if err != nil {
			return err
		}
	}
}

// Input yields records in the order of their keys.
type Input interface {
	// Next moves to the next record and returns its key, which is valid until the next call. At the end, Next
	// returns io.EOF.
	Next() (key []byte, err error)
}

// Merger merges inputs with a tree of losers (Knuth, The Art of Computer Programming, volume 3, 5.4.1). Input i is leaf
// len(heads) + i of a binary tree whose root is node 1 and in which the children of node n are 2n and 2n+1. At each
// inner node, the least inputs of its two children have met, and losers holds the one that was greater. So a record
// costs one comparison for each level of the tree. A heap needs two.
type Merger struct {
	heads  []head // of equal records, the one of the first input comes first
	losers []int  // for each inner node, the number of an input; nil before the first record was read
	least  int    // input with the least record
}

// head is an input with the key of its current record.
type head struct {
	input  Input
	key    []byte
	prefix uint64 // of the key
	ended  bool
}

// NewMerger returns a Merger of inputs.
func NewMerger(inputs []Input) *Merger {
	m := &Merger{heads: make([]head, len(inputs))}
	for i, input := range inputs {
		m.heads[i].input = input
	}
	return m
}

// Next moves to the next record in order, and returns the number of its input, whose current record it is until the
// next call. At the end, Next returns io.EOF.
func (m *Merger) Next() (int, error) {
	switch {
	case len(m.heads) == 0:
		return 0, io.EOF
	case m.losers == nil:
		if err := m.start(); err != nil {
			return 0, err
		}
	default:
		if err := m.heads[m.least].next(); err != nil {
			return 0, err
		}
		for node := (len(m.heads) + m.least) / 2; node > 0; node /= 2 {
			if m.less(m.losers[node], m.least) {
				m.losers[node], m.least = m.least, m.losers[node]
			}
		}
	}
	if m.heads[m.least].ended {
		return 0, io.EOF
	}
	return m.least, nil
}

// next moves to the next record.
func (h *head) next() (err error) {
	if h.ended {
		return nil
	}
	if h.key, err = h.input.Next(); err == io.EOF {
		h.ended = true
		return nil
	}
	h.prefix = prefixOf(h.key)
	return err
}

// start reads the first record of each input.
func (m *Merger) start() error {
	n := len(m.heads)
	winners := make([]int, 2*n)
	for i := range m.heads {
		if err := m.heads[i].next(); err != nil {
			return err
		}
		winners[n+i] = i
	}
	m.losers = make([]int, n)
	for node := n - 1; node > 0; node-- {
		a, b := winners[2*node], winners[2*node+1]
		if m.less(b, a) {
			a, b = b, a
		}
		winners[node], m.losers[node] = a, b
	}
	m.least = winners[1]
	return nil
}

// less reports whether the record of input a comes before that of input b. Ended inputs come last.
func (m *Merger) less(a, b int) bool {
	s, t := &m.heads[a], &m.heads[b]
	switch {
	case s.ended || t.ended:
		return !s.ended || t.ended && a < b
	case s.prefix != t.prefix:
		return s.prefix < t.prefix
	}
	c := bytes.Compare(s.key, t.key)
	return c < 0 || c == 0 && a < b
}

// memoryRun yields the records in the memory of a Sorter.
type memoryRun struct {
	from  *Sorter
	parts int    // number of parts from which items were taken
	items []item // the other items of the last of these parts
	after []byte // the rest of the current record
}

// Next implements Input.
func (r *memoryRun) Next() (key []byte, err error) {
	for ; len(r.items) == 0; r.parts++ {
		if r.parts == len(r.from.parts) {
			return nil, io.EOF
		}
		p := &r.from.parts[r.parts]
		p.sort()
		r.items = p.items
	}
	key, r.after = r.from.parts[r.parts-1].at(r.items[0])
	r.items = r.items[1:]
	return key, nil
}

func (r *memoryRun) rest() []byte { return r.after }

// Run yields the records of a run.
type Run struct{ *Reader }

// Next implements Input.
func (r *Run) Next() (key []byte, err error) {
	err = r.Reader.Next()
	return r.Key, err
}

func (r *Run) rest() []byte { return r.Rest }
