package planner

import (
	"bufio"
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
	"sync"
)

// A runs sorts records, a key and a value of octets each, by their keys outside
// memory. Package table's Sorter does that for any row type; this one is for the one
// sort that sees every entry: it compares eight octets of a key at once, shares
// prefixes on disk, and is filled by several goroutines. Keys have to be distinct,
// so that the order does not depend on who added what.
type runs struct {
	dir string

	mu    sync.Mutex
	files []*os.File
	held  []*builder // what was never spilled
}

// maxRuns are merged at a time: it bounds open files and buffers.
const maxRuns = 128

// runBuffer is the buffer of a run that is read or written, in octets.
const runBuffer = 128 << 10

// builder collects records for one goroutine.
type builder struct {
	runs  *runs
	limit int
	data  []byte
	index []place
}

// place is where a record lies: its lengths, key and value, from off on.
type place struct {
	prefix uint64 // first eight octets of the key
	off    int
}

const placeBytes = 16

// builder returns a new builder that spills at limit octets.
func (r *runs) builder(limit int64) *builder {
	return &builder{runs: r, limit: int(limit)}
}

// prefixOf is the start of a key as a number that orders as the octets do.
func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// add copies a record.
func (b *builder) add(key, value []byte) error {
	if need := len(b.data) + len(key) + len(value) + placeBytes*(len(b.index)+2); need > b.limit && len(b.index) > 0 {
		if err := b.spill(); err != nil {
			return err
		}
	}
	b.index = append(b.index, place{prefixOf(key), len(b.data)})
	b.data = binary.AppendUvarint(b.data, uint64(len(key)))
	b.data = binary.AppendUvarint(b.data, uint64(len(value)))
	b.data = append(append(b.data, key...), value...)
	return nil
}

func (b *builder) record(off int) (key, value []byte) {
	k, n := binary.Uvarint(b.data[off:])
	off += n
	v, n := binary.Uvarint(b.data[off:])
	off += n
	return b.data[off : off+int(k)], b.data[off+int(k) : off+int(k)+int(v)]
}

func (b *builder) sort() {
	slices.SortFunc(b.index, func(p, q place) int {
		if p.prefix != q.prefix {
			return cmp.Compare(p.prefix, q.prefix)
		}
		k, _ := b.record(p.off)
		l, _ := b.record(q.off)
		return bytes.Compare(k, l)
	})
}

// done hands what is left over to the merge.
func (b *builder) done() {
	b.sort()
	b.runs.mu.Lock()
	defer b.runs.mu.Unlock()
	b.runs.held = append(b.runs.held, b)
}

// spill writes the records as a run.
func (b *builder) spill() error {
	b.sort()
	i := 0
	f, err := b.runs.write(func() ([]byte, []byte, error) {
		if i == len(b.index) {
			return nil, nil, io.EOF
		}
		i++
		k, v := b.record(b.index[i-1].off)
		return k, v, nil
	})
	if err != nil {
		return err
	}
	b.data, b.index = b.data[:0], b.index[:0]
	return b.runs.take(f)
}

// take adds a run; when there are too many it merges all into one.
func (r *runs) take(f *os.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files = append(r.files, f)
	if len(r.files) < maxRuns {
		return nil
	}
	m, err := newMerger(r.files, nil)
	if err != nil {
		return err
	}
	merged, err := r.write(m.next)
	if err != nil {
		return err
	}
	err = r.remove()
	r.files = []*os.File{merged}
	return err
}

func (r *runs) remove() error {
	var err error
	for _, f := range r.files {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	r.files = nil
	return err
}

// close removes all runs.
func (r *runs) close() error {
	r.held = nil
	return r.remove()
}

// write makes a run of the records that next gives: what the key shares with the one
// before, what it does not, the value's length; then the rest of the key and the value.
func (r *runs) write(next func() (key, value []byte, err error)) (_ *os.File, err error) {
	f, err := os.CreateTemp(r.dir, "run-*")
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write scratch file: %w", err), f.Close(), os.Remove(f.Name()))
		}
	}()
	out := bufio.NewWriterSize(f, runBuffer)
	var last, head []byte
	for {
		key, value, err := next()
		if err == io.EOF {
			return f, out.Flush()
		}
		if err != nil {
			return nil, err
		}
		shared := 0
		for shared < len(key) && shared < len(last) && key[shared] == last[shared] {
			shared++
		}
		head = binary.AppendUvarint(head[:0], uint64(shared))
		head = binary.AppendUvarint(head, uint64(len(key)-shared))
		head = binary.AppendUvarint(head, uint64(len(value)))
		for _, part := range [][]byte{head, key[shared:], value} {
			if _, err := out.Write(part); err != nil {
				return nil, err
			}
		}
		last = append(last[:shared], key[shared:]...)
	}
}

// sorted yields all records in order of their keys, once all builders are done. Key
// and value are good until the next pair. It may be called again.
func (r *runs) sorted(ctx context.Context) iter.Seq2[[2][]byte, error] {
	return func(yield func([2][]byte, error) bool) {
		m, err := newMerger(r.files, r.held)
		for n := 0; err == nil; n++ {
			if n%4096 == 0 && ctx.Err() != nil {
				err = ctx.Err()
				break
			}
			var key, value []byte
			if key, value, err = m.next(); err == nil && !yield([2][]byte{key, value}, nil) {
				return
			}
		}
		if err != io.EOF {
			yield([2][]byte{}, err)
		}
	}
}

// run is a place in a sorted run: in a file, or in a builder.
type run struct {
	prefix     uint64
	key, value []byte

	in *bufio.Reader
	b  *builder
	at int
}

// advance goes to the next record; io.EOF at the end.
func (r *run) advance() error {
	if r.b != nil {
		if r.at == len(r.b.index) {
			return io.EOF
		}
		r.prefix = r.b.index[r.at].prefix
		r.key, r.value = r.b.record(r.b.index[r.at].off)
		r.at++
		return nil
	}
	shared, err := binary.ReadUvarint(r.in)
	if err == io.EOF {
		return io.EOF
	}
	rest, err2 := binary.ReadUvarint(r.in)
	size, err3 := binary.ReadUvarint(r.in)
	if err := errors.Join(err, err2, err3); err != nil {
		return fmt.Errorf("read scratch file: %w", err)
	}
	if shared > uint64(len(r.key)) || rest > 1<<20 || size > 1<<20 {
		return errors.New("read scratch file: it is damaged")
	}
	r.key = slices.Grow(r.key[:shared], int(rest))[:shared+rest]
	r.value = slices.Grow(r.value[:0], int(size))[:size]
	if _, err := io.ReadFull(r.in, r.key[shared:]); err != nil {
		return fmt.Errorf("read scratch file: %w", err)
	}
	if _, err := io.ReadFull(r.in, r.value); err != nil {
		return fmt.Errorf("read scratch file: %w", err)
	}
	r.prefix = prefixOf(r.key)
	return nil
}

func (r *run) less(o *run) bool {
	if r.prefix != o.prefix {
		return r.prefix < o.prefix
	}
	return bytes.Compare(r.key, o.key) < 0
}

// merger is a binary heap of runs, the least record on top.
type merger struct {
	heap    []*run
	started bool
}

func newMerger(files []*os.File, held []*builder) (*merger, error) {
	m := &merger{}
	for _, f := range files {
		info, err := f.Stat()
		if err != nil {
			return nil, fmt.Errorf("read scratch file: %w", err)
		}
		m.heap = append(m.heap, &run{in: bufio.NewReaderSize(io.NewSectionReader(f, 0, info.Size()), runBuffer)})
	}
	for _, b := range held {
		m.heap = append(m.heap, &run{b: b})
	}
	alive := m.heap[:0]
	for _, r := range m.heap {
		if err := r.advance(); err == nil {
			alive = append(alive, r)
		} else if err != io.EOF {
			return nil, err
		}
	}
	m.heap = alive
	for i := len(alive)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m, nil
}

// next gives the least record, good until the next call; io.EOF at the end.
func (m *merger) next() (key, value []byte, err error) {
	if m.started {
		switch err := m.heap[0].advance(); {
		case err == io.EOF:
			last := len(m.heap) - 1
			m.heap[0], m.heap = m.heap[last], m.heap[:last]
		case err != nil:
			return nil, nil, err
		}
		m.down(0)
	}
	if m.started = len(m.heap) > 0; !m.started {
		return nil, nil, io.EOF
	}
	return m.heap[0].key, m.heap[0].value, nil
}

func (m *merger) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.heap); child++ {
			if m.heap[child].less(m.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}
