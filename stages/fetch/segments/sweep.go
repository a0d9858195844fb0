package segments

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// Sweep deletes the files of a task that its result does not list, because no stage reads them. An
// attempt that has lost its lease may still write such files later.
func Sweep(ctx context.Context, b store.Bucket, log *slog.Logger, t stages.Task, result *manifest.Result) {
	SweepBelow(ctx, b, log, t, result.Plan, result.Files, math.MaxInt, func() error { return nil })
}

// numbersPattern matches epoch and number in the key of a segment or WARC file.
var numbersPattern = regexp.MustCompile(`-e([0-9]+)-([0-9]{5,})[-.]`)

// numbersOf returns the epoch and the number in the key of a segment or WARC file, or false for any
// other key.
func numbersOf(key string) (epoch, number int, ok bool) {
	m := numbersPattern.FindStringSubmatch(key)
	if m == nil {
		return 0, 0, false
	}
	epoch, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, 0, false
	}
	number, err = strconv.Atoi(m[2])
	return epoch, number, err == nil
}

// InOrderWritten compares keys of one partition by the order in which their files were written.
// This order differs from the alphabetical order, because keys contain epochs without leading
// zeros.
func InOrderWritten(a, b string) int {
	epochA, numberA, _ := numbersOf(a)
	epochB, numberB, _ := numbersOf(b)
	return cmp.Or(cmp.Compare(epochA, epochB), cmp.Compare(numberA, numberB), strings.Compare(a, b))
}

// Rows calls yield for every row of a dataset in a task's files, in the order in which the files
// were written. It calls beforeFile before it reads a file. Only one row at a time is in memory.
func Rows[T any](ctx context.Context, b store.Bucket, files []manifest.File, dataset string, beforeFile func() error, yield func(*T) error, opts ...table.ReaderOption) error {
	var written []string
	for _, f := range files {
		if f.Dataset == dataset {
			written = append(written, f.Key)
		}
	}
	slices.SortFunc(written, InOrderWritten)
	for _, key := range written {
		if err := beforeFile(); err != nil {
			return err
		}
		for row, err := range table.Concat[T](ctx, b, []string{key}, opts...) {
			if err == nil {
				err = yield(&row)
			}
			if err != nil {
				return fmt.Errorf("%q: %w", key, err)
			}
		}
	}
	return nil
}

// SweepBelow deletes the task's files with an epoch below the given one, except the listed files.
// It calls beforeDelete before each deletion, and stops if beforeDelete fails.
func SweepBelow(ctx context.Context, b store.Bucket, log *slog.Logger, t stages.Task, plan string, files []manifest.File, below int, beforeDelete func() error) {
	listed := map[string]bool{}
	for _, f := range files {
		listed[f.Key] = true
	}
	for _, prefix := range []string{layout.WARCs(t.Crawl, t.Round, plan, t.Partition), layout.FetchDir(t.Crawl, t.Round, t.Partition) + "segments/"} {
		var old []string
		for o, err := range b.List(ctx, prefix) {
			if err != nil {
				log.Warn("files that no checkpoint lists could not be deleted", "error", err)
				return
			}
			if epoch, _, ok := numbersOf(o.Key); ok && !listed[o.Key] && epoch < below {
				old = append(old, o.Key)
			}
		}
		for _, key := range old {
			if err := beforeDelete(); err != nil {
				log.Warn("files that no checkpoint lists could not be deleted", "error", err)
				return
			}
			if err := b.Delete(ctx, key); err != nil {
				log.Warn("a file that no checkpoint lists could not be deleted", "key", key, "error", err)
				return
			}
		}
	}
}
