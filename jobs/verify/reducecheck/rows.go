package reducecheck

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// nameOf returns the round's name in tables, such as 2026-11.0.
func nameOf(r *audit.Round) string { return fmt.Sprintf("%s.%d", r.Crawl, r.Number) }

// partitionKeys lists the objects of a dataset that a stage wrote for the partitions of a bucket.
func partitionKeys(ctx context.Context, r *audit.Round, s stages.Stage, dataset string, bucket int) (keys []string, err error) {
	for n, p := range r.Plan.Partitions {
		if p.Bucket != bucket {
			continue
		}
		result, err := r.Result(ctx, s, n)
		if err != nil {
			return nil, err
		}
		if result != nil {
			keys = append(keys, audit.Keys(result.FilesOf(dataset))...)
		}
	}
	return keys, nil
}

// bucketKeys lists the objects of a dataset that a stage wrote for a bucket. Either the bucket's task
// wrote the objects, or task 0 wrote those of all buckets.
func bucketKeys(ctx context.Context, r *audit.Round, s stages.Stage, dataset string, bucket int) ([]string, error) {
	var results []*manifest.Result
	for _, n := range slices.Compact([]int{0, bucket}) {
		result, err := r.Result(ctx, s, n)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return stages.PartKeys(results, dataset, bucket), nil
}

// merged yields the rows of sorted sequences in order.
func merged[T any](ctx context.Context, key func(table.Key, *T) table.Key, sequences ...iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		streams := make([]table.Stream[T], len(sequences))
		for i, s := range sequences {
			p := table.Pull(s)
			defer p.Close()
			streams[i] = p
		}
		for row, err := range table.Merge(ctx, key, streams...) {
			if !yield(row, err) {
				return
			}
		}
	}
}

// convertRows yields conv(row) for each row.
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

// convertObjects returns one sequence for each object, which yields conv(key, row) for each row of it.
func convertObjects[T, U any](ctx context.Context, a *audit.Audit, keys []string, conv func(key string, row *T) U) []iter.Seq2[U, error] {
	var in []iter.Seq2[U, error]
	for _, key := range keys {
		in = append(in, convertRows(audit.Concat[T](ctx, a, []string{key}), func(row *T) U { return conv(key, row) }))
	}
	return in
}
