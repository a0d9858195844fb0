package table

import (
	"io"
	"iter"
)

// Cursor reads a sequence of rows one at a time. It reads no row before the first call of a method.
// Only one goroutine may use a Cursor. The caller must close the Cursor.
type Cursor[T any] struct {
	rows iter.Seq2[T, error]
	next func() (T, error, bool)
	stop func()
	row  T
	have bool
	err  error // error that ended the sequence, or io.EOF at the end
}

// Pull returns a cursor whose next row is the first row of the sequence.
func Pull[T any](rows iter.Seq2[T, error]) *Cursor[T] { return &Cursor[T]{rows: rows} }

// Peek returns the row that Next will return, or nil at the end. The row is valid until the cursor
// moves on. After an error, Peek returns the same error again.
func (c *Cursor[T]) Peek() (*T, error) {
	if !c.have && c.err == nil {
		if c.next == nil {
			c.next, c.stop = iter.Pull2(c.rows)
		}
		if c.row, c.err, c.have = c.next(); !c.have {
			c.err = io.EOF
		}
		c.have = c.err == nil
	}
	switch {
	case c.have:
		return &c.row, nil
	case c.err == io.EOF:
		return nil, nil
	}
	return nil, c.err
}

// Next returns the next row, or nil at the end, and moves the cursor on. The row is valid until the
// next call of a method.
func (c *Cursor[T]) Next() (*T, error) {
	row, err := c.Peek()
	c.have = false
	return row, err
}

// Find skips the rows for which compare returns less than 0. If compare returns 0 for the next row,
// Find returns this row, otherwise nil. It does not move past the row: Next returns it again. Several
// keys in ascending order can thus be looked up in one pass.
func (c *Cursor[T]) Find(compare func(*T) int) (*T, error) {
	for {
		row, err := c.Peek()
		if row == nil {
			return nil, err
		}
		switch n := compare(row); {
		case n == 0:
			return row, nil
		case n > 0:
			return nil, nil
		}
		c.have = false
	}
}

// Read implements Stream.
func (c *Cursor[T]) Read(batch []T) (int, error) {
	for i := range batch {
		row, _ := c.Next()
		if row == nil {
			return i, c.err
		}
		batch[i] = *row
	}
	return len(batch), nil
}

// Close ends the sequence. It always returns nil: the result makes Cursor an io.Closer.
func (c *Cursor[T]) Close() error {
	if c.stop != nil {
		c.stop()
	}
	c.have, c.err = false, io.EOF
	return nil
}
