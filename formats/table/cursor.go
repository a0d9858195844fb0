package table

import (
	"io"
	"iter"
)

// Cursor takes the rows of a sequence one at a time. It reads nothing before the caller asks for
// the first row. Only one goroutine may use a Cursor. The caller must close the Cursor.
type Cursor[T any] struct {
	rows iter.Seq2[T, error]
	next func() (T, error, bool)
	stop func()
	row  T
	have bool
	err  error // error that ended the sequence, or io.EOF at the end
}

// Pull returns a cursor before the first row.
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

// Find moves to the first row for which compare returns 0 or more. If compare returned 0, Find
// returns the row, otherwise nil. The next call of Next returns the found row again. Look-ups of
// keys in ascending order thus need only one pass.
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

// Close ends the sequence and always returns nil. The result lets Cursor implement io.Closer.
func (c *Cursor[T]) Close() error {
	if c.stop != nil {
		c.stop()
	}
	c.have, c.err = false, io.EOF
	return nil
}
