package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// errFault: a stage panicked.
var errFault = errors.New("fault in the program")

// Bounds of a record: its error's text in bytes, and how long writing it may take.
// A task that was told to stop has little time left.
const (
	maxError       = 8 << 10
	recordWithin   = 30 * time.Second
	recordStopping = 5 * time.Second
)

// createWithin is how long an attempt goes on with one write, its bytes aside, while
// the store is away, before it is told so: it may wait, or leave it to a later one.
const createWithin = 5 * time.Minute

// meter measures one attempt.
type meter struct {
	counter *store.Counter
	clock   stages.Clock
	began   time.Time
}

// metered returns a Runner for one attempt, whose calls to the store are counted.
func (r Runner) metered() (Runner, *meter) {
	m := &meter{counter: store.Count(store.WithLimit(r.Bucket, createWithin)), clock: r.Clock, began: r.Clock.Now()}
	r.Bucket = m.counter
	return r, m
}

func (m *meter) usage() manifest.Usage {
	c := m.counter.Counts()
	return manifest.Usage{
		WallMS: m.clock.Now().Sub(m.began).Milliseconds(),
		Puts:   c.Puts, Gets: c.Gets, Lists: c.Lists, Deletes: c.Deletes, Failed: c.Failed,
		BytesRead: c.BytesIn, BytesWritten: c.BytesOut,
	}
}

// classOf is how an attempt ended that returned err.
func classOf(err error) string {
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	switch {
	case err == nil:
		return manifest.ClassDone
	case is(stages.ErrTaken):
		return manifest.ClassTaken
	// Of an interruption the cause matters more: a full disk, a store that is away.
	case is(store.ErrFull, syscall.ENOSPC, syscall.EDQUOT):
		return manifest.ClassDiskFull
	case is(store.ErrUnavailable):
		return manifest.ClassStoreUnavailable
	case is(stages.ErrInterrupted):
		return manifest.ClassInterrupted
	case is(manifest.ErrCorrupt, manifest.ErrNewer, table.ErrCorrupt):
		return manifest.ClassCorrupt
	case is(store.ErrDenied):
		return manifest.ClassStoreDenied
	case is(stages.ErrPermanent):
		return manifest.ClassPermanent
	case is(errFault):
		return manifest.ClassFault
	}
	return manifest.ClassFailed
}

// record creates the next attempts/part-…-eN.json. An attempt that only waited for
// the stage before, or found the task done, is none.
func (r Runner) record(ctx context.Context, t stages.Task, err error, u manifest.Usage) error {
	if errors.Is(err, ErrNotReady) || err == nil && u.Puts == 0 {
		return nil
	}
	class, within := classOf(err), recordWithin
	if ctx.Err() != nil {
		within = recordStopping
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	machine := r.Machine
	if machine == "" {
		machine, _ = os.Hostname()
	}
	a := manifest.Attempt{
		Header: manifest.Header{Version: r.Version}, Task: t.String(), At: r.Clock.Now().UTC().Format(time.RFC3339Nano), // makes each body unique
		Class: class, Machine: machine, Usage: &u,
	}
	if err != nil {
		a.Error = bounded(err.Error())
	}
	return createAttempt(ctx, r.Bucket, t, &a)
}

// createAttempt stores a under the first number that is free.
func createAttempt(ctx context.Context, b store.Bucket, t stages.Task, a *manifest.Attempt) error {
	for a.Attempt = 1; ; a.Attempt++ {
		_, err := manifest.Create(ctx, b, layout.Attempt(t.Crawl, t.Round, string(t.Stage), t.Partition, a.Attempt), a)
		if !errors.Is(err, store.ErrExists) {
			return err
		}
	}
}

// RecordFor records an attempt at t that was made on another machine, a.Machine, and
// that died without a word of its own: killed, say. Where that machine recorded it
// itself, or it is unknown which it was and the newest record is of a failure, nothing
// is written. Number and time are filled in.
func RecordFor(ctx context.Context, b store.Bucket, clock stages.Clock, t stages.Task, a manifest.Attempt) error {
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
	a.At, a.Error = clock.Now().UTC().Format(time.RFC3339Nano), bounded(a.Error)
	return createAttempt(ctx, b, t, &a)
}

func bounded(text string) string {
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "")
	}
	return text
}
