package planner

import "iter"

const (
	aheadRows    = 256 // number of rows of a batch
	aheadBatches = 16  // number of batches by which the rows may be ahead of their reader
)

// ahead yields what rows yields. Another goroutine runs rows, up to some batches ahead.
func ahead[T any](rows iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		full, free, stop := make(chan []T, aheadBatches), make(chan []T, aheadBatches), make(chan struct{})
		for range aheadBatches {
			free <- make([]T, 0, aheadRows)
		}
		var failed error
		go func() {
			defer close(full)
			batch := <-free
			for row, err := range rows {
				if failed = err; err != nil {
					break
				}
				if batch = append(batch, row); len(batch) < aheadRows {
					continue
				}
				full <- batch // there is room for all batches
				select {
				case batch = <-free:
				case <-stop:
					return
				}
			}
			full <- batch
		}()
		defer func() {
			close(stop)
			for range full {
				continue // until the goroutine has ended
			}
		}()
		for batch := range full {
			for i := range batch {
				if !yield(batch[i], nil) {
					return
				}
			}
			free <- batch[:0]
		}
		if failed != nil {
			var zero T
			yield(zero, failed)
		}
	}
}
