package segments

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"regexp"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// Sweep deletes the files of a task that the task's result does not list. No stage reads files that
// are not listed. An attempt that lost its lease may still write more files later.
func Sweep(ctx context.Context, b store.Bucket, log *slog.Logger, t stages.Task, result *manifest.Result) {
	SweepBelow(ctx, b, log, t, result.Plan, result.Files, math.MaxInt, func() error { return nil })
}

// numbered matches epoch and number in the key of a segment or WARC file.
var numbered = regexp.MustCompile(`-e([0-9]+)-([0-9]{5,})[-.]`)

// numbersOf returns the epoch and the number in the key of a segment or WARC file. It returns false
// for any other key.
func numbersOf(key string) (epoch, number int, ok bool) {
	m := numbered.FindStringSubmatch(key)
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

// InOrderWritten compares keys of one partition by the order in which their files were written. The
// order of writing differs from the order of the keys, because keys contain unpadded epochs.
func InOrderWritten(a, b string) int {
	epochA, numberA, _ := numbersOf(a)
	epochB, numberB, _ := numbersOf(b)
	return cmp.Or(cmp.Compare(epochA, epochB), cmp.Compare(numberA, numberB), strings.Compare(a, b))
}

// SweepBelow deletes the task's files whose epoch is less than below, except the files in the list
// files. beforeDelete is called before each deletion. An error of this function ends
// SweepBelow.
func SweepBelow(ctx context.Context, b store.Bucket, log *slog.Logger, t stages.Task, plan string, files []manifest.File, below int, beforeDelete func() error) {
	listed := map[string]bool{}
	for _, f := range files {
		listed[f.Key] = true
	}
	warcs := layout.WARCs(t.Crawl, t.Round, plan, t.Partition)
	for _, prefix := range append(warcs[:], layout.FetchDir(t.Crawl, t.Round, t.Partition)+"segments/") {
		var old []string
		for o, err := range b.List(ctx, prefix) {
			if err != nil {
				log.Warn("leftovers were not deleted", "error", err)
				return
			}
			if epoch, _, ok := numbersOf(o.Key); ok && !listed[o.Key] && epoch < below {
				old = append(old, o.Key)
			}
		}
		for _, key := range old {
			if err := beforeDelete(); err != nil {
				log.Warn("leftovers were not deleted", "error", err)
				return
			}
			if err := b.Delete(ctx, key); err != nil {
				log.Warn("a leftover was not deleted", "key", key, "error", err)
				return
			}
		}
	}
}
