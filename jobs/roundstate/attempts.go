package roundstate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// maxError bounds the error text of an attempt's record, in bytes.
const maxError = 8 << 10

// CreateAttempt stores the record a under the task's first free attempt number. CreateAttempt cuts
// the error text to maxError bytes.
func CreateAttempt(ctx context.Context, b store.Bucket, t stages.Task, a *manifest.Attempt) error {
	if len(a.Error) > maxError {
		a.Error = strings.ToValidUTF8(a.Error[:maxError], "")
	}
	for a.Attempt = 1; ; a.Attempt++ {
		_, err := manifest.Create(ctx, b, layout.Attempt(t.Crawl, t.Round, string(t.Stage), t.Partition, a.Attempt), a)
		if !errors.Is(err, store.ErrExists) {
			return err
		}
	}
}

// CreateBegun stores the record that an attempt at the task t began, under the task's first free
// number, and returns its key. If the store rejects the record, CreateBegun returns "": the attempt
// can run without it.
func CreateBegun(ctx context.Context, b store.Bucket, t stages.Task, d *manifest.Begun) string {
	for n := 1; ; n++ {
		key := layout.Begun(t.Crawl, t.Round, string(t.Stage), t.Partition, n)
		_, err := manifest.Create(ctx, b, key, d)
		switch {
		case err == nil:
			return key
		case !errors.Is(err, store.ErrExists):
			return ""
		}
	}
}

// RecordLostAttempt records an attempt that could not record its own end, for example because the
// process was killed. The attempt ran the task t on the machine a.Machine. RecordLostAttempt writes
// nothing if the attempt probably recorded itself: the task has a record of this machine, or the
// machine is unknown and the newest record is a failure. The new record gets the first free number
// and the present time.
func RecordLostAttempt(ctx context.Context, b store.Bucket, clock stages.Clock, t stages.Task, a manifest.Attempt) error {
	var newest manifest.Attempt
	dir := layout.AttemptsDir(t.Crawl, t.Round, string(t.Stage))
	for o, err := range b.List(ctx, layout.Attempts(t.Crawl, t.Round, string(t.Stage), t.Partition)) {
		if err != nil {
			return fmt.Errorf("list attempts at %s: %w", t, err)
		}
		if _, _, ok := layout.ParseAttempt(dir, o.Key); !ok {
			continue
		}
		var known manifest.Attempt
		if _, _, err := manifest.Load(ctx, b, o.Key, &known); err != nil {
			return err
		}
		if a.Machine != "" && known.Machine == a.Machine {
			return nil
		}
		if known.Attempt > newest.Attempt {
			newest = known
		}
	}
	if a.Machine == "" && newest.Attempt > 0 && newest.Failure() {
		return nil
	}
	a.At = clock.Now().UTC().Format(time.RFC3339Nano)
	return CreateAttempt(ctx, b, t, &a)
}
