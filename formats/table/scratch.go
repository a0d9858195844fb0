package table

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// maxScratchRow is the size of the longest valid encoded row, in bytes. A longer row is damaged.
const maxScratchRow = 1 << 30

// RowWriter writes encoded rows to a scratch file, each row after its length. Only one goroutine
// may use a RowWriter.
type RowWriter[T any] struct {
	codec *Codec[T]
	out   io.Writer
	buf   []byte
}

// Writer returns a RowWriter that calls out.Write once for each row.
func (c *Codec[T]) Writer(out io.Writer) *RowWriter[T] {
	return &RowWriter[T]{codec: c, out: out, buf: make([]byte, binary.MaxVarintLen64, 256)}
}

// Write writes a row and returns the number of written bytes.
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

// RowReader is a Stream of the rows that a RowWriter wrote. Only one goroutine may use a RowReader.
type RowReader[T any] struct {
	codec *Codec[T]
	in    *bufio.Reader
	buf   []byte
}

// Reader returns a RowReader that reads encoded rows from a buffered reader.
func (c *Codec[T]) Reader(in *bufio.Reader) *RowReader[T] {
	return &RowReader[T]{codec: c, in: in}
}

// Next stores the next row in *row. It returns io.EOF at the end.
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
		err = r.codec.Decode(string(r.buf), row) // all texts of the row share this one string
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
