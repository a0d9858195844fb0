package entry

import (
	"context"
	"errors"
	"iter"

	"crawlbatch.io/crawlbatch/formats/extsort"
)

// Sorters sort any number of records in bounded memory, with one Sorter for each goroutine. A record in memory is its
// key and the encoding of its other fields, which takes about a third of the memory of a Record.
type Sorters struct {
	Dir string // directory of the scratch files
	Order
	all []*extsort.Sorter
}

// Sorter sorts the records of one goroutine.
type Sorter struct {
	order     *Order
	records   *extsort.Sorter
	key, rest []byte
}

// Sorter adds a Sorter, which writes a scratch file when its records take about memory bytes.
func (s *Sorters) Sorter(memory int64) *Sorter {
	one := &Sorter{order: &s.Order, records: extsort.New(s.Dir, memory)}
	s.all = append(s.all, one.records)
	return one
}

// Close removes the scratch files and frees the memory.
func (s *Sorters) Close() (err error) {
	for _, one := range s.all {
		err = errors.Join(err, one.Close())
	}
	s.all = nil
	return err
}

// Add adds a copy of a record.
func (s *Sorter) Add(r *Record) error {
	s.key, s.rest = s.order.appendKey(s.key[:0], r), appendRest(s.rest[:0], r)
	return s.records.Add(s.key, s.rest)
}

// AddGroups adds the records of some groups of a list. The indices must be in ascending order.
func (s *Sorter) AddGroups(ctx context.Context, l *List, indices iter.Seq[int32]) error {
	return l.read(ctx, indices, func(key, rest []byte) (err error) {
		if s.key, err = s.order.rekey(s.key[:0], key, rest); err == nil {
			err = s.records.Add(s.key, rest)
		}
		return err
	})
}

// Sorted yields all records in order. Records with equal keys keep the order of the Sorters. An error ends the
// sequence.
func (s *Sorters) Sorted(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		var r Record
		var buf []byte
		err := extsort.Merge(ctx, s.all, func(key, rest []byte) (err error) {
			if buf, err = s.decode(buf, key, rest, &r); err == nil && !yield(r, nil) {
				err = extsort.ErrStop
			}
			return err
		})
		if err != nil {
			yield(Record{}, err)
		}
	}
}
