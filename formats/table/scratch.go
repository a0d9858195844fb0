package table

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"unsafe"
)

// maxScratchRow bounds the size of an encoded row, in bytes. A larger size is damage.
const maxScratchRow = 1 << 30

// RowWriter writes encoded rows to a scratch file. The length of each row precedes it. Only one
// goroutine may use a RowWriter.
type RowWriter[T any] struct{ rowWriter }

// Writer returns a RowWriter that calls out.Write once for each row.
func (c *Codec[T]) Writer(out io.Writer) *RowWriter[T] {
	return &RowWriter[T]{c.layout.writer(out)}
}

// Write writes a row and returns the number of written bytes.
func (w *RowWriter[T]) Write(row *T) (int, error) { return w.write(unsafe.Pointer(row)) }

// rowWriter is a RowWriter of rows of any type.
type rowWriter struct {
	layout *rowLayout
	out    io.Writer
	buf    []byte
}

func (l *rowLayout) writer(out io.Writer) rowWriter {
	return rowWriter{layout: l, out: out, buf: make([]byte, binary.MaxVarintLen64, 256)}
}

func (w *rowWriter) write(row unsafe.Pointer) (int, error) {
	w.buf = w.layout.encode(w.buf[:binary.MaxVarintLen64], row)
	var head [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(head[:], uint64(len(w.buf)-len(head)))
	record := w.buf[len(head)-n:]
	copy(record, head[:n])
	if _, err := w.out.Write(record); err != nil {
		return 0, fmt.Errorf("write scratch file: %w", err)
	}
	return len(record), nil
}

// RowReader reads the rows that a RowWriter wrote. Only one goroutine may use a RowReader.
type RowReader[T any] struct{ rowReader }

// Reader returns a RowReader that reads encoded rows from a buffered reader.
func (c *Codec[T]) Reader(in *bufio.Reader) *RowReader[T] {
	return &RowReader[T]{rowReader{layout: c.layout, in: in}}
}

// Next stores the next row in *row. It returns io.EOF at the end.
func (r *RowReader[T]) Next(row *T) error {
	var zero T
	*row = zero
	return r.next(unsafe.Pointer(row))
}

// rowReader is a RowReader of rows of any type.
type rowReader struct {
	layout *rowLayout
	in     *bufio.Reader
	buf    []byte
}

// next decodes the next row. The row must be zero before the call.
func (r *rowReader) next(row unsafe.Pointer) error {
	n, err := binary.ReadUvarint(r.in)
	if err == io.EOF {
		return io.EOF
	}
	if err == nil && n > maxScratchRow {
		err = ErrScratch
	}
	if err == nil {
		r.buf = slices.Grow(r.buf[:0], int(n))[:n]
		_, err = io.ReadFull(r.in, r.buf)
	}
	if err == nil {
		err = r.layout.decode(string(r.buf), row) // all texts of the row share this one string
	}
	if err != nil {
		return fmt.Errorf("read scratch file: %w", err)
	}
	return nil
}
