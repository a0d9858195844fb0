package records

import (
	"context"
	"iter"
	"runtime"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/stages"
)

// Steps are the callbacks of Each.
type Steps[T any] struct {
	// Check makes the Decoders check digests.
	Check bool
	// Places returns the places of the records that a document needs; there may be none.
	Places func(doc *T) []Place
	// Work runs for each document on one of several goroutines, each with its own Decoder. An error
	// or a panic ends Each.
	Work func(d *Decoder, doc *T, raws []Raw) error
	// Emit runs for each document, in order and on one goroutine.
	Emit func(doc *T) error
}

// job is a document that has been read and waits for Work or Emit.
type job[T any] struct {
	doc  *T
	raws []Raw
	done chan error // receives the result of Work
}

// Each runs the steps for all documents. One goroutine reads docs.
func Each[T any](ctx context.Context, a *Archive, docs iter.Seq2[*T, error], s Steps[T]) error {
	workers := runtime.GOMAXPROCS(0)
	g, ctx := errgroup.WithContext(ctx)
	batches := make(chan []*job[T]) // unbuffered, so at most one batch is read ahead
	g.Go(func() error {
		defer close(batches)
		return readBatches(ctx, a, docs, s.Places, batches)
	})
	work := make(chan *job[T])
	order := make(chan *job[T], 4*workers) // jobs that wait for Emit
	g.Go(func() error {
		defer close(work)
		defer close(order)
		for batch := range batches {
			for _, j := range batch {
				for _, to := range []chan *job[T]{order, work} {
					select {
					case to <- j:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			}
		}
		return nil
	})
	for range workers {
		g.Go(func() error {
			d := Decoder{Check: s.Check}
			for j := range work {
				j.done <- s.work(&d, j)
				j.raws = nil
			}
			return nil
		})
	}
	g.Go(func() error {
		for j := range order {
			select {
			case err := <-j.done:
				if err == nil {
					err = s.Emit(j.doc)
				}
				if err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return g.Wait()
}

// work calls Work for a job.
func (s *Steps[T]) work(d *Decoder, j *job[T]) (err error) {
	defer stages.Recover(&err)
	return s.Work(d, j.doc, j.raws)
}

// readBatches loads the records of the documents in batches, and sends each batch to out.
func readBatches[T any](ctx context.Context, a *Archive, docs iter.Seq2[*T, error], of func(*T) []Place, out chan<- []*job[T]) error {
	var batch []*job[T]
	var places []Place
	var counts []int // number of places of each job
	var bytes int64
	flush := func() error {
		raws, err := a.load(ctx, places)
		if err != nil {
			return err
		}
		for i, j := range batch {
			j.raws, raws = raws[:counts[i]:counts[i]], raws[counts[i]:]
		}
		select {
		case out <- batch:
		case <-ctx.Done():
			return ctx.Err()
		}
		batch, places, counts, bytes = nil, places[:0], counts[:0], 0
		return nil
	}
	for doc, err := range docs {
		if err != nil {
			return err
		}
		at := of(doc)
		batch, counts = append(batch, &job[T]{doc: doc, done: make(chan error, 1)}), append(counts, len(at))
		for i := range at {
			bytes += a.length(&at[i])
		}
		places = append(places, at...)
		if len(batch) >= batchRecords || bytes >= batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return flush()
}
