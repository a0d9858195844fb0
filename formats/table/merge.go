package table

import (
	"context"
	"io"
	"iter"
)

// mergeRows is the number of rows of each stream that Merge holds.
const mergeRows = 32

// Merge yields the rows of several streams as one sorted sequence. Each stream must be sorted by
// compare. Equal rows keep the order of their streams. Merge holds a batch of rows per stream and
// does not close the streams. An error ends the sequence.
func Merge[T any](ctx context.Context, compare func(a, b *T) int, streams ...Stream[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		m := merger[T]{compare: compare}
		fail := func(err error) {
			var zero T
			yield(zero, err)
		}
		for i, s := range streams {
			c := &mergeInput[T]{stream: s, order: i, batch: make([]T, mergeRows)}
			ok, err := c.advance()
			if err != nil {
				fail(err)
				return
			}
			if ok {
				m.heap = append(m.heap, c)
			}
		}
		for i := len(m.heap)/2 - 1; i >= 0; i-- {
			m.down(i)
		}
		for n := 0; len(m.heap) > 0; n++ {
			if n%1024 == 0 && ctx.Err() != nil {
				fail(ctx.Err())
				return
			}
			c := m.heap[0]
			if !yield(c.batch[c.at], nil) {
				return
			}
			ok, err := c.advance()
			if err != nil {
				fail(err)
				return
			}
			if !ok {
				last := len(m.heap) - 1
				m.heap[0], m.heap[last] = m.heap[last], nil
				m.heap = m.heap[:last]
			}
			m.down(0)
		}
	}
}

// mergeInput is a stream with its current batch. The lowest remaining row of the stream is
// batch[at].
type mergeInput[T any] struct {
	stream Stream[T]
	order  int
	batch  []T
	at, n  int
	ended  bool
}

// advance moves to the next row and returns false at the end of the stream.
func (c *mergeInput[T]) advance() (bool, error) {
	if c.at+1 < c.n {
		c.at++
		return true, nil
	}
	if c.ended {
		return false, nil
	}
	n, err := c.stream.Read(c.batch)
	if err == io.EOF {
		c.ended = true
	} else if err != nil {
		return false, err
	}
	c.at, c.n = 0, n
	return n > 0, nil
}

// merger is a binary heap of inputs with the lowest row on top. A loser tree would save one
// comparison per level, but comparisons take much less time than decoding the rows.
type merger[T any] struct {
	compare func(a, b *T) int
	heap    []*mergeInput[T]
}

func (m *merger[T]) less(a, b *mergeInput[T]) bool {
	if c := m.compare(&a.batch[a.at], &b.batch[b.at]); c != 0 {
		return c < 0
	}
	return a.order < b.order
}

func (m *merger[T]) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.heap); child++ {
			if m.less(m.heap[child], m.heap[least]) {
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
