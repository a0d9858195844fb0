package planner

import (
	"context"
	"errors"
	"iter"

	"crawlbatch.io/crawlbatch/formats/table"
)

// sorters holds one sorter per goroutine. All sorters use the same order.
type sorters[T any] struct {
	dir string
	key func(k table.Key, row *T) table.Key
	all []*table.Sorter[T]
}

// sorter adds a sorter for one goroutine. The new sorter spills to disk when its rows take about
// memory bytes.
func (s *sorters[T]) sorter(memory int64) (*table.Sorter[T], error) {
	one, err := table.NewSorter(s.dir, s.key, memory)
	if err == nil {
		s.all = append(s.all, one)
	}
	return one, err
}

// sorted yields the rows of all sorters in order.
func (s *sorters[T]) sorted(ctx context.Context) iter.Seq2[T, error] {
	return table.MergeSorted(ctx, s.all...)
}

func (s *sorters[T]) close() (err error) {
	for _, one := range s.all {
		err = errors.Join(err, one.Close())
	}
	return err
}
