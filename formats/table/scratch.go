package table

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// maxScratchRow bounds an encoded row. A longer row means damage.
const maxScratchRow = 1 << 30

// RowWriter writes rows to a scratch file: for each row the length of its encoding, then
// the encoding. Only one goroutine may use it.
type RowWriter[T any] struct {
	codec *Codec[T]
	out   io.Writer
	buf   []byte
}

// Writer returns a RowWriter that calls out.Write once per row.
func (c *Codec[T]) Writer(out io.Writer) *RowWriter[T] {
	return &RowWriter[T]{codec: c, out: out, buf: make([]byte, binary.MaxVarintLen64, 256)}
}

// Write writes a row and returns the number of bytes that it takes.
func (w *RowWriter[T]) Write(row *T) (int, error) {
	w.buf = w.codec.Append(w.buf[:binary.MaxVarintLen64], row)
	var head [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(head[:], uint64(len(w.buf)-len(head)))
	record := w.buf[len(head)-n:]
	copy(record, head[:n])
	if _, err := w.out.Write(record); err != nil {
		return 0, fmt.Errorf("write scratch file: %w", err)
	}
	return len(record), nil
}

// RowReader reads what a RowWriter wrote. It is a Stream. Only one goroutine may use it.
type RowReader[T any] struct {
	codec *Codec[T]
	in    *bufio.Reader
	buf   []byte
}

// Reader returns a RowReader.
func (c *Codec[T]) Reader(in *bufio.Reader) *RowReader[T] {
	return &RowReader[T]{codec: c, in: in}
}

// Next reads the next row into row. It returns io.EOF at the end.
func (r *RowReader[T]) Next(row *T) error {
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
		err = r.codec.Decode(string(r.buf), row) // one string holds all text of the row
	}
	if err != nil {
		return fmt.Errorf("read scratch file: %w", err)
	}
	return nil
}

// Read implements Stream.
func (r *RowReader[T]) Read(batch []T) (int, error) {
	for i := range batch {
		if err := r.Next(&batch[i]); err != nil {
			return i, err
		}
	}
	return len(batch), nil
}
