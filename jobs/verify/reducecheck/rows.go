package reducecheck

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// complete reports whether every task of a stage has a result.
func complete(r *audit.Round, s stages.Stage) bool {
	return len(r.Results[s]) == s.Tasks(r.Plan) && !slices.Contains(r.Results[s], nil)
}

// nameOf returns the round's name in tables, such as 2026-11.0.
func nameOf(r *audit.Round) string { return fmt.Sprintf("%s.%d", r.Crawl, r.Number) }

// partitionKeys lists the objects of a dataset that a stage wrote for the partitions of a bucket.
func partitionKeys(r *audit.Round, s stages.Stage, dataset string, bucket int) []string {
	return stages.Keys(stages.OfBucket(r.Plan, r.Results[s], bucket), dataset)
}

// bucketKeys lists the objects of a dataset that all tasks of a stage wrote for a bucket.
func bucketKeys(r *audit.Round, s stages.Stage, dataset string, bucket int) []string {
	return stages.PartKeys(r.Results[s], dataset, bucket)
}

// merged yields the rows of sorted sequences in order.
func merged[T any](ctx context.Context, compare func(a, b *T) int, sequences ...iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		streams := make([]table.Stream[T], len(sequences))
		for i, s := range sequences {
			p := table.Pull(s)
			defer p.Close()
			streams[i] = p
		}
		for row, err := range table.Merge(ctx, compare, streams...) {
			if !yield(row, err) {
				return
			}
		}
	}
}

// convertRows yields the result of the function conv for each row.
func convertRows[T, U any](rows iter.Seq2[T, error], conv func(*T) U) iter.Seq2[U, error] {
	return func(yield func(U, error) bool) {
		for row, err := range rows {
			var u U
			if err == nil {
				u = conv(&row)
			}
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}

// convertObjects yields the result of the function conv for each row of the objects.
func convertObjects[T, U any](ctx context.Context, a *audit.Audit, keys []string, conv func(key string, row *T) U) []iter.Seq2[U, error] {
	var in []iter.Seq2[U, error]
	for _, key := range keys {
		in = append(in, convertRows(audit.Concat[T](ctx, a, []string{key}), func(row *T) U { return conv(key, row) }))
	}
	return in
}
