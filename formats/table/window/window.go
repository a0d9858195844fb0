// Package window turns the small reads of a Parquet library into few large reads of an object, and
// panics of the library into errors.
//
// Package window imports formats/store and formats/manifest.
package window

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// ErrCorrupt means that the object is not a Parquet file or is damaged.
var ErrCorrupt = errors.New("not a readable Parquet file: the object is damaged or was cut short; " +
	"restore it or, if a reduce task made it, run `crawlbatch retry --rebuild`")

// These constants decide how many bytes a Window requests from the store at a time. Each request
// costs a round trip, so small objects and small row groups are read in one request.
const (
	WholeBytes  = 1 << 20   // size of the largest object that one request reads whole
	tailBytes   = 128 << 10 // size of the first read of a larger object: its end, which usually holds the whole footer
	indexBytes  = 512 << 10 // size of this read if the page index, which lies before the footer, is needed too
	GroupBytes  = 4 << 20   // size of the largest part of a row group that one request reads whole
	windowBytes = 1 << 20   // size of a read from a column chunk of a larger row group
)

// Window is an io.ReaderAt over an object. It turns the small reads of a Parquet reader into few
// large reads. It holds GroupBytes, or windowBytes for each column. Only one goroutine may use a
// Window.
type Window struct {
	obj    store.Object
	size   int64
	tail   span   // end of the object
	chunks []span // column chunks of the current row group, sorted by start; ReadAt fills their buffers
	group  []byte // buffer for a row group that is read whole
	err    error  // first error of the store; it does not mean that the file is damaged
}

// span is a byte range of the object, from start to end (exclusive). buf holds bytes of the object,
// and at is the offset of the first of them.
type span struct {
	start, end int64
	at         int64
	buf        []byte
}

// Open reads the end of an object, or all of it if its size is at most whole. If indexed is true, it
// reads a longer end, which usually holds the page index. It also checks the magic number and, because
// parquet-go does not, the length of the footer.
func Open(obj store.Object, whole int64, indexed bool) (*Window, error) {
	w := &Window{obj: obj, size: obj.Size()}
	if w.size < 12 {
		return nil, fmt.Errorf("%w (%d bytes)", ErrCorrupt, w.size)
	}
	n := w.size
	switch {
	case n <= whole:
	case indexed:
		n = min(n, indexBytes)
	default:
		n = tailBytes
	}
	if err := w.readTail(n); err != nil {
		return nil, err
	}
	end := w.tail.buf[len(w.tail.buf)-8:]
	if string(end[4:]) != "PAR1" {
		return nil, fmt.Errorf("%w (no magic number at its end)", ErrCorrupt)
	}
	footer := int64(binary.LittleEndian.Uint32(end))
	if footer > w.size-12 {
		return nil, fmt.Errorf("%w (its footer is longer than the object)", ErrCorrupt)
	}
	if footer+8 > n {
		return w, w.readTail(footer + 8)
	}
	return w, nil
}

// Size returns the size of the object in bytes.
func (w *Window) Size() int64 { return w.size }

// Holds reports whether the end of the object that Open has read includes n bytes from off on.
func (w *Window) Holds(off, n int64) bool { return off >= w.tail.start && n >= 0 && n <= w.size-off }

func (w *Window) readTail(n int64) error {
	w.tail = span{start: w.size - n, end: w.size, at: w.size - n, buf: make([]byte, n)}
	return w.fetch(w.tail.buf, w.tail.at)
}

// fetch reads from the object in the store.
func (w *Window) fetch(p []byte, off int64) error {
	n, err := w.obj.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w (it ends early)", ErrCorrupt)
	}
	if w.err == nil {
		w.err = err
	}
	return err
}

// CatchDamage must be deferred. It turns a panic or an error of a Parquet library into ErrCorrupt,
// or into the error of the store if a read failed. The libraries trust most of a file's content, so
// they may panic on damaged files.
func (w *Window) CatchDamage(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%v", p)
	}
	switch {
	case *err == nil || *err == io.EOF || errors.Is(*err, ErrCorrupt):
	case w.err != nil:
		*err = w.err
	default:
		*err = fmt.Errorf("%w (%v)", ErrCorrupt, *err)
	}
}

// Extent is the offset and the length of a column chunk, in bytes.
type Extent struct{ start, size int64 }

// ExtentOf returns the extent of a column chunk. In the footer, data is the offset of its data pages,
// dictionary is that of its dictionary or 0, and size is its compressed size.
func ExtentOf(data, dictionary, size int64) Extent {
	if dictionary > 0 {
		data = min(data, dictionary)
	}
	return Extent{data, size}
}

// Enter prepares the Window for reads of these column chunks, which belong to one row group. If they
// lie within GroupBytes, Enter reads them.
func (w *Window) Enter(chunks []Extent) error {
	w.chunks = w.chunks[:0]
	if w.tail.start == 0 {
		return nil // the whole object is in memory
	}
	lo, hi := w.size, int64(0)
	for _, c := range chunks {
		if c.start < 4 || c.size < 0 || c.start > w.size || c.size > w.size-c.start {
			return fmt.Errorf("%w (a column lies outside it)", ErrCorrupt)
		}
		w.chunks = append(w.chunks, span{start: c.start, end: c.start + c.size})
		lo, hi = min(lo, c.start), max(hi, c.start+c.size)
	}
	if len(w.chunks) > 0 && hi-lo <= GroupBytes {
		w.group = slices.Grow(w.group[:0], int(hi-lo))[:hi-lo]
		w.chunks = append(w.chunks[:0], span{start: lo, end: hi, at: lo, buf: w.group})
		return w.fetch(w.group, lo)
	}
	slices.SortFunc(w.chunks, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return nil
}

// ReadAt implements io.ReaderAt.
func (w *Window) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= w.size {
		return 0, io.EOF
	}
	eof := error(nil)
	if int64(len(p)) > w.size-off {
		p, eof = p[:w.size-off], io.EOF
	}
	if w.tail.copy(p, off) {
		return len(p), eof
	}
	i := sort.Search(len(w.chunks), func(i int) bool { return w.chunks[i].end > off })
	if i == len(w.chunks) || off < w.chunks[i].start || off+int64(len(p)) > w.chunks[i].end {
		if err := w.fetch(p, off); err != nil {
			return 0, err
		}
		return len(p), eof
	}
	c := &w.chunks[i]
	if c.copy(p, off) {
		return len(p), eof
	}
	n := min(max(windowBytes, int64(len(p))), c.end-off)
	if end := (off + n) / manifest.BlockBytes * manifest.BlockBytes; off+n < c.end && end >= off+int64(len(p)) {
		n = end - off // the read ends where a block of manifest.File ends, so that no block is read and checked twice
	}
	if int64(cap(c.buf)) < n {
		c.buf = make([]byte, n)
	}
	c.at, c.buf = off, c.buf[:n]
	if err := w.fetch(c.buf, off); err != nil {
		c.buf = c.buf[:0]
		return 0, err
	}
	c.copy(p, off)
	return len(p), eof
}

// copy fills p from the span's buffer, or returns false if the buffer lacks some of the bytes.
func (s *span) copy(p []byte, off int64) bool {
	if off < s.at || off+int64(len(p)) > s.at+int64(len(s.buf)) {
		return false
	}
	copy(p, s.buf[off-s.at:])
	return true
}
