package extsort

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrScratch means that a record in a scratch file cannot be read: the disk or the program is faulty.
var ErrScratch = errors.New("damaged scratch file")

// writeBytes is the size of a write to a scratch file.
const writeBytes = 256 << 10

// Writer writes records to a scratch file. It tells of each key only where it differs from the last one. Compression
// would cost more than it saves.
type Writer struct {
	out     io.Writer
	buf     []byte
	last    []byte // key of the last record, or empty to write the next key whole
	written int64  // number of bytes, with those of buf
}

// NewWriter returns a Writer that calls out.Write for about writeBytes bytes of records.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Begin makes the next record readable without the records before it, and returns its offset.
func (w *Writer) Begin() int64 {
	w.last = w.last[:0]
	return w.written
}

// Write writes a record.
func (w *Writer) Write(key, rest []byte) error {
	same, before := commonPrefix(w.last, key), len(w.buf)
	w.last = append(w.last[:same], key[same:]...)
	w.buf = binary.AppendUvarint(w.buf, uint64(same))
	w.buf = append(binary.AppendUvarint(w.buf, uint64(len(key)-same)), key[same:]...)
	w.buf = append(binary.AppendUvarint(w.buf, uint64(len(rest))), rest...)
	if w.written += int64(len(w.buf) - before); len(w.buf) < writeBytes {
		return nil
	}
	return w.Flush()
}

// Flush passes all records to out.
func (w *Writer) Flush() error {
	if _, err := w.out.Write(w.buf); err != nil {
		return fmt.Errorf("write scratch file: %w", err)
	}
	w.buf = w.buf[:0]
	return nil
}

// readAhead is the size of the buffer of a Reader. It grows with the largest record.
const readAhead = 32 << 10

// Reader reads the records that a Writer wrote.
type Reader struct {
	Key, Rest []byte // the current record, valid until the next call of a method

	in  io.Reader
	buf []byte // read from in, but not used yet
	mem []byte // memory of buf
}

// NewReader returns a Reader. The reader in needs no buffer.
func NewReader(in io.Reader) *Reader { return &Reader{in: in} }

// Next reads the next record. It returns io.EOF at the end.
func (r *Reader) Next() error {
	for {
		b := r.buf
		same, k := binary.Uvarint(b)
		n, l := binary.Uvarint(b[max(k, 0):])
		if k > 0 && l > 0 && n <= uint64(len(b)-k-l) {
			end := k + l + int(n)
			m, o := binary.Uvarint(b[end:])
			if o > 0 && m <= uint64(len(b)-end-o) {
				if same > uint64(len(r.Key)) {
					return fmt.Errorf("read scratch file: %w", ErrScratch)
				}
				r.Key = append(r.Key[:same], b[k+l:end]...)
				r.Rest, r.buf = b[end+o:][:m], b[end+o+int(m):]
				return nil
			}
		}
		if err := r.fill(); err != nil {
			return err
		}
	}
}

// fill reads more of the scratch file.
func (r *Reader) fill() error {
	if len(r.buf) == len(r.mem) {
		r.mem = make([]byte, max(readAhead, 2*len(r.mem)))
	}
	left := copy(r.mem, r.buf)
	n, err := r.in.Read(r.mem[left:])
	r.buf = r.mem[:left+n]
	switch {
	case n > 0:
		return nil
	case err == io.EOF && left == 0:
		return io.EOF
	case err == io.EOF:
		return fmt.Errorf("read scratch file: %w", ErrScratch)
	}
	return err
}

// Skip skips n bytes, up to a record at which the Writer began anew, if they are in the buffer. Otherwise it returns
// false, and the caller must move in there and call Reset.
func (r *Reader) Skip(n int64) bool {
	if n > int64(len(r.buf)) {
		return false
	}
	r.buf = r.buf[n:]
	return true
}

// Reset forgets the buffer, after the caller has moved in.
func (r *Reader) Reset() { r.buf = r.mem[:0] }
