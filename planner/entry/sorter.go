package entry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/runfiles"
)

// Sorters sort any number of records in bounded memory, with one Sorter for each goroutine.
//
// A record in memory is its key and the encoding of its other fields, about a third of the size of a Record and
// without pointers. When a Sorter has as much of them as its memory allows, it writes them to a scratch file in the
// order of the keys. A file tells of each key only where it differs from the key before it. Compression would cost
// more than it saves.
type Sorters struct {
	Dir string // directory of the scratch files
	Order
	all []*Sorter
}

// Sorter sorts the records of one goroutine. It divides them by the first byte of their keys: what belongs to one
// byte fits into the cache of a CPU, where sorting reads it in any order.
type Sorter struct {
	of     *Sorters
	memory int64
	parts  [256]part
	free   [][]byte // empty chunks of mostChunk bytes, for any part
	held   int64
	runs   runfiles.Files
	key    []byte
	rest   []byte
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
	writeBytes    = 256 << 10
)

// Sorter adds a Sorter, which writes a scratch file when its records take about memory bytes.
func (s *Sorters) Sorter(memory int64) *Sorter {
	one := &Sorter{of: s, memory: memory}
	s.all = append(s.all, one)
	return one
}

// Close removes the scratch files.
func (s *Sorters) Close() (err error) {
	for _, one := range s.all {
		err = errors.Join(err, one.runs.Close())
	}
	s.all = nil
	return err
}

// Add adds a copy of a record.
func (s *Sorter) Add(r *Record) error {
	s.key, s.rest = s.of.appendKey(s.key[:0], r), appendRest(s.rest[:0], r)
	return s.add(s.key, s.rest)
}

func (s *Sorter) add(key, rest []byte) error {
	n := 2*binary.MaxVarintLen32 + len(key) + len(rest)
	p := &s.parts[key[0]]
	for p.filled < len(p.chunks) && len(p.chunks[p.filled])+n > cap(p.chunks[p.filled]) {
		p.filled++
	}
	if p.filled == len(p.chunks) {
		p.chunks = append(p.chunks, s.chunk(len(p.chunks), n))
	}
	c := p.chunks[p.filled]
	p.items = append(p.items, item{prefixOf(key), uint64(p.filled)<<32 | uint64(len(c))})
	c = append(binary.AppendUvarint(c, uint64(len(key))), key...)
	p.chunks[p.filled] = append(binary.AppendUvarint(c, uint64(len(rest))), rest...)
	if s.held += int64(n + itemBytes); s.held < s.memory {
		return nil
	}
	return s.spill()
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

// AddGroups adds the records of some groups of a list. The indices must be in ascending order.
func (s *Sorter) AddGroups(ctx context.Context, l *List, indices iter.Seq[int32]) error {
	return l.read(ctx, indices, func(key, rest []byte) (err error) {
		if s.key, err = s.of.rekey(s.key[:0], key, rest); err == nil {
			err = s.add(s.key, rest)
		}
		return err
	})
}

// at returns the key and the other fields of a record.
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

// sortedItems returns the items in the order of their keys.
func (p *part) sortedItems() []item {
	if !p.sorted {
		p.sort(p.items, 0)
		p.sorted = true
	}
	return p.items
}

// few is the number of items from which comparing prefixes is faster than comparing keys.
const few = 8

// sort sorts items whose keys have the first depth bytes in common, and whose prefixes are the bytes after them.
func (p *part) sort(items []item, depth int) {
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

// sortEqual sorts items whose keys have the first depth bytes in common, or end before.
func (p *part) sortEqual(items []item, depth int) {
	first, _ := p.at(items[0])
	if len(first) <= depth { // all keys are equal
		return
	}
	if len(items) < few {
		slices.SortFunc(items, func(a, b item) int {
			k, _ := p.at(a)
			l, _ := p.at(b)
			return cmp.Or(bytes.Compare(k[depth:], l[depth:]), cmp.Compare(a.place, b.place))
		})
		return
	}
	common := len(first)
	for _, i := range items[1:] {
		key, _ := p.at(i)
		common = depth + commonPrefix(first[depth:common], key[depth:])
	}
	for i := range items {
		key, _ := p.at(items[i])
		items[i].prefix = prefixOf(key[common:])
	}
	p.sort(items, common)
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

// spill writes the records in memory to a scratch file.
func (s *Sorter) spill() error {
	if err := s.runs.Compact(func(runs []*os.File) (*os.File, error) { return s.write(openRuns(runs, nil)) }); err != nil {
		return err
	}
	f, err := s.write([]*stream{{from: s}})
	if err != nil {
		return err
	}
	s.runs.Add(f)
	s.held = 0
	for i := range s.parts {
		s.empty(&s.parts[i])
	}
	return nil
}

// empty empties a part. It keeps little memory for the part, and none for a part that was empty before, because the next
// records may belong to other parts: the frontier comes bucket by bucket, which is the order of the first bytes of its keys.
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

// write merges streams into a scratch file.
func (s *Sorter) write(streams []*stream) (_ *os.File, err error) {
	f, err := os.CreateTemp(s.of.Dir, "records-*")
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	w := runWriter{out: f}
	err = merge(context.Background(), streams, w.write)
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// openRuns appends streams of scratch files.
func openRuns(runs []*os.File, streams []*stream) []*stream {
	for _, f := range runs {
		streams = append(streams, &stream{in: io.NewSectionReader(f, 0, 1<<62)})
	}
	return streams
}

// Sorted yields all records in order. Records with equal keys keep the order of the Sorters. An error ends the
// sequence.
func (s *Sorters) Sorted(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		var streams []*stream
		for _, one := range s.all {
			streams = append(openRuns(one.runs.All, streams), &stream{from: one})
		}
		var r Record
		var buf []byte
		err := merge(ctx, streams, func(key, rest []byte) (err error) {
			if buf, err = s.decode(buf, key, rest, &r); err == nil && !yield(r, nil) {
				err = errStopped
			}
			return err
		})
		if err != nil && err != errStopped {
			yield(Record{}, err)
		}
	}
}

var errStopped = errors.New("the caller has what it wants")

// runWriter writes records. It tells of each key only where it differs from the last one.
type runWriter struct {
	out     io.Writer
	buf     []byte
	last    []byte // key of the last record, or empty to write the next key whole
	written int64  // number of bytes, with those of buf
}

func (w *runWriter) write(key, rest []byte) error {
	same, before := commonPrefix(w.last, key), len(w.buf)
	w.last = append(w.last[:same], key[same:]...)
	w.buf = binary.AppendUvarint(w.buf, uint64(same))
	w.buf = append(binary.AppendUvarint(w.buf, uint64(len(key)-same)), key[same:]...)
	w.buf = append(binary.AppendUvarint(w.buf, uint64(len(rest))), rest...)
	if w.written += int64(len(w.buf) - before); len(w.buf) < writeBytes {
		return nil
	}
	return w.flush()
}

func (w *runWriter) flush() error {
	if _, err := w.out.Write(w.buf); err != nil {
		return fmt.Errorf("write scratch file: %w", err)
	}
	w.buf = w.buf[:0]
	return nil
}

// stream yields records in the order of their keys, from memory or from a scratch file.
type stream struct {
	key, rest []byte // of the current record
	prefix    uint64 // of the key
	order     int    // number among the merged streams

	from  *Sorter // in memory
	parts int     // number of parts from which items were taken
	items []item  // the other items of the last of these parts

	in  io.Reader // scratch file
	buf []byte    // read from in, but not used yet
	mem []byte    // memory of buf
}

// next moves to the next record. The error is io.EOF after the last one.
func (s *stream) next() error {
	if s.in == nil {
		for ; len(s.items) == 0; s.parts++ {
			if s.parts == len(s.from.parts) {
				return io.EOF
			}
			s.items = s.from.parts[s.parts].sortedItems()
		}
		s.key, s.rest = s.from.parts[s.parts-1].at(s.items[0])
		s.items = s.items[1:]
	} else if err := s.read(); err != nil {
		return err
	}
	s.prefix = prefixOf(s.key)
	return nil
}

// read reads the next record of the scratch file.
func (s *stream) read() error {
	for {
		b := s.buf
		same, k := binary.Uvarint(b)
		n, l := binary.Uvarint(b[max(k, 0):])
		if k > 0 && l > 0 && n <= uint64(len(b)-k-l) {
			end := k + l + int(n)
			m, o := binary.Uvarint(b[end:])
			if o > 0 && m <= uint64(len(b)-end-o) {
				if same > uint64(len(s.key)) {
					return fmt.Errorf("read scratch file: %w", table.ErrScratch)
				}
				s.key = append(s.key[:same], b[k+l:end]...)
				s.rest, s.buf = b[end+o:][:m], b[end+o+int(m):]
				return nil
			}
		}
		if err := s.fill(); err != nil {
			return err
		}
	}
}

// fill reads more of the scratch file.
func (s *stream) fill() error {
	if len(s.buf) == len(s.mem) {
		s.mem = make([]byte, max(readAhead, 2*len(s.mem)))
	}
	left := copy(s.mem, s.buf)
	n, err := s.in.Read(s.mem[left:])
	s.buf = s.mem[:left+n]
	switch {
	case n > 0:
		return nil
	case err == io.EOF && left == 0:
		return io.EOF
	case err == io.EOF:
		err = table.ErrScratch
	}
	return fmt.Errorf("read scratch file: %w", err)
}

// merge calls visit with the records of all streams, in order. Records with equal keys keep the order of the
// streams.
func merge(ctx context.Context, streams []*stream, visit func(key, rest []byte) error) error {
	var heap []*stream // the stream with the lowest record is on top
	for i, s := range streams {
		s.order = i
		if err := s.next(); err == nil {
			heap = append(heap, s)
		} else if err != io.EOF {
			return err
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		down(heap, i)
	}
	for n := 0; len(heap) > 0; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := visit(heap[0].key, heap[0].rest); err != nil {
			return err
		}
		if err := heap[0].next(); err == io.EOF {
			last := len(heap) - 1
			heap[0], heap = heap[last], heap[:last]
		} else if err != nil {
			return err
		}
		down(heap, 0)
	}
	return nil
}

// down moves a stream of a heap to its place below.
func down(heap []*stream, i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if heap[child].less(heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

func (s *stream) less(t *stream) bool {
	if s.prefix != t.prefix {
		return s.prefix < t.prefix
	}
	c := bytes.Compare(s.key, t.key)
	return c < 0 || c == 0 && s.order < t.order
}
