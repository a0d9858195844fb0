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
	var streams []*stream
	for _, s := range sorters {
		own := append(openRuns(s.runs.All), &stream{from: s})
		if len(sorters) > 1 {
			p, all := newPipe(within), own
			merging.Go(func() { p.close(writeMerged(within, all, p)) })
			own = []*stream{{run: NewReader(p)}}
		}
		streams = append(streams, own...)
	}
	if err := merge(ctx, streams, visit); err != ErrStop {
		return err
	}
	return nil
}

// writeMerged writes the records of all streams, in order.
func writeMerged(ctx context.Context, streams []*stream, out io.Writer) error {
	w := NewWriter(out)
	if err := merge(ctx, streams, w.Write); err != nil {
		return err
	}
	return w.Flush()
}

// stream yields records in the order of their keys, from memory or from a run.
type stream struct {
	key, rest []byte // the current record
	prefix    uint64 // of the key
	ended     bool

	from  *Sorter // in memory
	parts int     // number of parts from which items were taken
	items []item  // the other items of the last of these parts

	run *Reader
}

// next moves to the next record.
func (s *stream) next() error {
	if s.run != nil {
		if err := s.run.Next(); err == io.EOF {
			s.ended = true
		} else if err != nil {
			return err
		}
		s.key, s.rest = s.run.Key, s.run.Rest
	} else {
		for ; len(s.items) == 0; s.parts++ {
			if s.parts == len(s.from.parts) {
				s.ended = true
				return nil
			}
			p := &s.from.parts[s.parts]
			p.sort()
			s.items = p.items
		}
		s.key, s.rest = s.from.parts[s.parts-1].at(s.items[0])
		s.items = s.items[1:]
	}
	s.prefix = prefixOf(s.key)
	return nil
}

// merger merges streams with a tree of losers (Knuth, The Art of Computer Programming, volume 3, 5.4.1). Stream i is leaf
// len(streams) + i of a binary tree whose root is node 1 and in which the children of node n are 2n and 2n+1. At each
// inner node, the least streams of its two children have met, and losers holds the one that was greater. So a record
// costs one comparison for each level of the tree. A heap needs two.
type merger struct {
	streams []*stream // of equal records, the one of the first stream comes first
	losers  []int     // for each inner node, the number of a stream
	least   int       // stream with the least record
}

// merge calls visit with the records of all streams, in order. Records with equal keys keep the order of the streams.
func merge(ctx context.Context, streams []*stream, visit func(key, rest []byte) error) error {
	if len(streams) == 0 {
		return nil
	}
	m := merger{streams: streams}
	if err := m.start(); err != nil {
		return err
	}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		s := streams[m.least]
		if s.ended {
			return nil
		}
		if err := visit(s.key, s.rest); err != nil {
			return err
		}
		if err := s.next(); err != nil {
			return err
		}
		for node := (len(streams) + m.least) / 2; node > 0; node /= 2 {
			if m.less(m.losers[node], m.least) {
				m.losers[node], m.least = m.least, m.losers[node]
			}
		}
	}
}

// start reads the first record of each stream.
func (m *merger) start() error {
	n := len(m.streams)
	winners := make([]int, 2*n)
	for i, s := range m.streams {
		if err := s.next(); err != nil {
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

// less reports whether the record of stream a comes before that of stream b. Ended streams come last.
func (m *merger) less(a, b int) bool {
	s, t := m.streams[a], m.streams[b]
	switch {
	case s.ended || t.ended:
		return !s.ended || t.ended && a < b
	case s.prefix != t.prefix:
		return s.prefix < t.prefix
	}
	c := bytes.Compare(s.key, t.key)
	return c < 0 || c == 0 && a < b
}
