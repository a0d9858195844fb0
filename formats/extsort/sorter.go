package extsort

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"crawlbatch.io/crawlbatch/formats/extsort/runfiles"
)

// DefaultMemory is the number of bytes of records that a Sorter holds if its caller names no other.
const DefaultMemory = 64 << 20

// Sorter sorts records. It divides them by the first byte of their keys: what belongs to one byte fits into the cache
// of a CPU, where sorting reads it in any order. Only one goroutine may use a Sorter. The caller must close it.
type Sorter struct {
	dir    string
	memory int64
	parts  [256]part
	free   [][]byte // empty chunks of mostChunk bytes, for any part
	held   int64
	total  int64
	runs   runfiles.Files
}

// part holds the records in memory whose keys have the same first byte.
type part struct {
	chunks [][]byte // encoded records
	filled int      // number of chunks that are full
	items  []item
	sorted bool // the items are in order
}

// item stands for a record of a part.
type item struct {
	prefix uint64 // the eight bytes of the key by which items are compared
	place  uint64 // chunk and offset of the record
}

const (
	leastChunk    = 4 << 10
	mostChunk     = 64 << 10
	growingChunks = 4  // number of chunks of a part before its chunks have mostChunk bytes; each is twice as large as the one before
	itemBytes     = 32 // memory of an item in a growing slice
)

// New returns a Sorter that writes a run to the directory dir when its records take about memory bytes. If memory is
// zero, DefaultMemory applies.
func New(dir string, memory int64) *Sorter {
	return &Sorter{dir: dir, memory: cmp.Or(memory, DefaultMemory)}
}

// Add adds a copy of a record.
func (s *Sorter) Add(key, rest []byte) error {
	n := 2*binary.MaxVarintLen32 + len(key) + len(rest)
	p := &s.parts[0]
	if len(key) > 0 {
		p = &s.parts[key[0]]
	}
	for p.filled < len(p.chunks) && len(p.chunks[p.filled])+n > cap(p.chunks[p.filled]) {
		p.filled++
	}
	if p.filled == len(p.chunks) {
		p.chunks = append(p.chunks, s.chunk(len(p.chunks), n))
	}
	c := p.chunks[p.filled]
	p.items, p.sorted = append(p.items, item{prefixOf(key), uint64(p.filled)<<32 | uint64(len(c))}), false
	c = append(binary.AppendUvarint(c, uint64(len(key))), key...)
	p.chunks[p.filled] = append(binary.AppendUvarint(c, uint64(len(rest))), rest...)
	s.total++
	if s.held += int64(n + itemBytes); s.held < s.memory {
		return nil
	}
	return s.spill()
}

// Len returns the number of added records.
func (s *Sorter) Len() int64 { return s.total }

// Close removes the runs and frees the memory.
func (s *Sorter) Close() error {
	s.parts, s.free, s.held = [256]part{}, nil, 0
	return s.runs.Close()
}

// chunk returns an empty chunk for a part that has so many chunks. It has room for n bytes.
func (s *Sorter) chunk(chunks, n int) []byte {
	size := mostChunk
	if chunks < growingChunks {
		size = leastChunk << chunks
	} else if last := len(s.free) - 1; last >= 0 && n <= mostChunk {
		c := s.free[last]
		s.free = s.free[:last]
		return c
	}
	return make([]byte, 0, max(n, size))
}

// at returns a record.
func (p *part) at(i item) (key, rest []byte) {
	b := p.chunks[i.place>>32][uint32(i.place):]
	n, k := binary.Uvarint(b)
	b = b[k:]
	m, k := binary.Uvarint(b[n:])
	return b[:n:n], b[int(n)+k:][:m]
}

// prefixOf returns the first eight bytes of a key, as a number in the order of such keys.
func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// sort puts the items in the order of their keys.
func (p *part) sort() {
	if !p.sorted {
		p.sortFrom(p.items, 0)
		p.sorted = true
	}
}

// few is the number of items from which comparing prefixes is faster than comparing keys.
const few = 8

// sortFrom sorts items whose keys have the first depth bytes in common, and whose prefixes are the bytes after them.
func (p *part) sortFrom(items []item, depth int) {
	slices.SortFunc(items, func(a, b item) int {
		switch {
		case a.prefix < b.prefix:
			return -1
		case a.prefix > b.prefix:
			return 1
		}
		return cmp.Compare(a.place, b.place)
	})
	for len(items) > 0 {
		n := 1
		for n < len(items) && items[n].prefix == items[0].prefix {
			n++
		}
		if n > 1 {
			p.sortEqual(items[:n], depth+8)
		}
		items = items[n:]
	}
}

// sortEqual sorts items whose keys have the first depth bytes in common, or end before and differ at most in zeros
// at the end.
func (p *part) sortEqual(items []item, depth int) {
	first, _ := p.at(items[0])
	least, common := len(first), len(first)
	for _, i := range items[1:] {
		key, _ := p.at(i)
		least = min(least, len(key))
		if common = min(common, len(key)); common > depth {
			common = depth + commonPrefix(first[depth:common], key[depth:])
		}
	}
	if len(items) < few || least <= depth {
		from := min(depth, least)
		slices.SortFunc(items, func(a, b item) int {
			k, _ := p.at(a)
			l, _ := p.at(b)
			return cmp.Or(bytes.Compare(k[from:], l[from:]), cmp.Compare(a.place, b.place))
		})
		return
	}
	for i := range items {
		key, _ := p.at(items[i])
		items[i].prefix = prefixOf(key[common:])
	}
	p.sortFrom(items, common)
}

// commonPrefix returns the number of bytes at which two texts begin alike.
func commonPrefix(a, b []byte) (n int) {
	most := min(len(a), len(b))
	for n+8 <= most && binary.LittleEndian.Uint64(a[n:]) == binary.LittleEndian.Uint64(b[n:]) {
		n += 8
	}
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}

// spill writes the records in memory to a run.
func (s *Sorter) spill() error {
	err := s.AddSorted(func(add func(key, rest []byte) error) error {
		return merge(context.Background(), []stream{&memoryRun{from: s}}, add)
	})
	if err != nil {
		return err
	}
	s.held = 0
	for i := range s.parts {
		s.empty(&s.parts[i])
	}
	return nil
}

// AddSorted writes the records that each passes to its argument to a run. They must come in the order of their keys.
func (s *Sorter) AddSorted(each func(add func(key, rest []byte) error) error) error {
	if err := s.runs.Compact(func(files []*os.File) (*os.File, error) {
		return s.write(func(add func(key, rest []byte) error) error {
			var streams []stream
			for _, f := range files {
				streams = append(streams, runOf(f))
			}
			return merge(context.Background(), streams, add)
		})
	}); err != nil {
		return err
	}
	f, err := s.write(each)
	if err == nil {
		s.runs.Add(f)
	}
	return err
}

// Runs returns the runs, without the records in memory.
func (s *Sorter) Runs() (runs []*Run) {
	for _, f := range s.runs.All {
		runs = append(runs, runOf(f))
	}
	return runs
}

func runOf(f *os.File) *Run { return &Run{NewReader(io.NewSectionReader(f, 0, 1<<62))} }

// empty empties a part. It keeps little memory for the part, and none for a part that was empty before, because the next
// records may belong to other parts: records often come in the order of the first bytes of their keys.
func (s *Sorter) empty(p *part) {
	kept := 0
	for i, c := range p.chunks {
		switch {
		case i == kept && len(c) > 0 && i < growingChunks && cap(c) == leastChunk<<i:
			p.chunks[i] = c[:0]
			kept++
		case cap(c) == mostChunk:
			s.free = append(s.free, c[:0])
		}
	}
	clear(p.chunks[kept:])
	p.chunks = p.chunks[:kept]
	if len(p.items) < cap(p.items)/4 {
		p.items = nil
	}
	p.items, p.filled, p.sorted = p.items[:0], 0, false
}

// write writes a run.
func (s *Sorter) write(each func(add func(key, rest []byte) error) error) (_ *os.File, err error) {
	f, err := os.CreateTemp(s.dir, "run-*")
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	w := NewWriter(f)
	if err = each(w.Write); err == nil {
		err = w.Flush()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}
