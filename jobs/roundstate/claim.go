package roundstate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

// ErrBusy means that another round of the store is being fetched, or that a command holds active.json.
var ErrBusy = errors.New("the store is in use")

// Claim writes a round to active.json. A store runs only one fetch stage at a time, because
// politeness applies only within a round. Drivers and tasks call Claim before they send a request.
// The error is ErrBusy if another round is being fetched, and a ledger.Lost error if active.json or
// the round's fetched data is gone. l is the ledger of the plan's crawl.
func Claim(ctx context.Context, b store.Bucket, l *ledger.Ledger, p *manifest.Plan, w ledger.Writer) error {
	if err := l.CheckFetchedOf(ctx, b, p); err != nil {
		return err
	}
	for {
		a, v, err := ledger.LoadActive(ctx, b, p.Crawl)
		if errors.Is(err, store.ErrNotFound) {
			head, _, err := ledger.LoadHead(ctx, b, p.Crawl)
			if err == nil {
				err = ledger.CheckActive(ctx, b, head, p.Crawl)
			}
			if err != nil {
				return err
			}
			a.Done = true
		} else if err != nil {
			return err
		}
		switch own := a.Crawl == p.Crawl && a.Round == p.Round; {
		case Pruning(a):
			return busyHeld(b, a)
		case holder(a) == holdQuarantine:
			// Nobody knows whether that command is alive. If it is, it stops before it deletes another object.
		case !a.Done && own:
			return nil
		case !a.Done:
			done, err := nothingToFetch(ctx, b, a, p.Crawl)
			if err != nil {
				return err
			}
			if !done {
				return fmt.Errorf("%s: crawl %s round %d is being fetched in this store, and a store fetches only one round at a time, to be polite: finish that round with `crawlbatch run --month %s`: %w",
					b, a.Crawl, a.Round, a.Crawl, ErrBusy)
			}
		}
		next := &manifest.Active{Header: manifest.Header{Version: w.Version}, Crawl: p.Crawl, Round: p.Round, Nonce: nonce(p, w.Clock, "claim")}
		if _, err := manifest.Swap(ctx, b, layout.Active(), next, v); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// Pruning reports whether active.json says that `prune` deletes objects now, or `takedown` changes some, or
// that one of them was interrupted.
func Pruning(a *manifest.Active) bool { return a.Prune && !a.Done }

// CheckNoPruning returns ErrBusy while `prune` deletes objects of the store, or `takedown` changes some.
func CheckNoPruning(ctx context.Context, b store.Bucket, crawl string) error {
	a, _, err := ledger.LoadActive(ctx, b, crawl)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err == nil && Pruning(a) {
		err = busyHeld(b, a)
	}
	return err
}

// nothingToFetch reports whether the round that active.json names has nothing left to fetch. A
// finished round can remain in active.json, because a late task may claim it again while another task
// commits its last result. crawl is the --month of the command that errors recommend.
func nothingToFetch(ctx context.Context, b store.Bucket, a *manifest.Active, crawl string) (bool, error) {
	l, err := ledger.OfActive(ctx, b, a, crawl)
	if err != nil {
		return false, err
	}
	return l.Frozen(a.Round, stages.Merge) != nil || l.Newest(manifest.EntrySealed, a.Round) != nil, nil
}

// Release records in active.json that the round's fetch stage has ended. A command that holds active.json keeps it.
func Release(ctx context.Context, b store.Bucket, p *manifest.Plan, w ledger.Writer) error {
	var a manifest.Active
	v, _, err := manifest.Load(ctx, b, layout.Active(), &a)
	if errors.Is(err, store.ErrNotFound) || err == nil && (a.Done || holder(&a) != "" || a.Crawl != p.Crawl || a.Round != p.Round) {
		return nil
	}
	if err != nil {
		return err
	}
	a.Done, a.Nonce, a.Version = true, nonce(p, w.Clock, "release"), w.Version
	if _, err := manifest.Swap(ctx, b, layout.Active(), &a, v); err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	return nil
}

func nonce(p *manifest.Plan, clock stages.Clock, what string) string {
	return fmt.Sprintf("%s-%s-%d-%s", what, p.Crawl, p.Round, clock.Now().UTC().Format(time.RFC3339Nano))
}

// Fetching wraps the bucket of a fetch task. Each attempt creates its partition's object under
// fetch/taken/ before its first request. Before it passes this Create on, the wrapper appends the
// entry `fetching` to the ledger, unless the ledger has this entry.
func Fetching(b store.Bucket, l *ledger.Ledger, p *manifest.Plan, w ledger.Writer) store.Bucket {
	return &fetching{b, l, p, w}
}

type fetching struct {
	store.Bucket
	ledger *ledger.Ledger
	plan   *manifest.Plan
	writer ledger.Writer
}

// Unwrap returns the wrapped bucket.
func (f *fetching) Unwrap() store.Bucket { return f.Bucket }

// Create implements store.Bucket.
func (f *fetching) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	dir := layout.StageDir(f.plan.Crawl, f.plan.Round, string(stages.Fetch))
	if strings.HasPrefix(key, dir+"taken/") {
		_, err := f.writer.AppendTo(ctx, f.Bucket, f.ledger, func(l *ledger.Ledger) ([]manifest.Entry, error) {
			if l.Newest(manifest.EntryFetching, f.plan.Round) != nil {
				return nil, nil
			}
			return []manifest.Entry{ledger.Named(manifest.EntryFetching, f.plan.Round, dir, "")}, nil
		})
		if err != nil {
			return "", err
		}
	}
	return f.Bucket.Create(ctx, key, body, size)
}

// RecheckResult checks a task for which the caller found no result. The error is nil if the task
// never had a result, and a ledger.Lost error if its result is gone. done is true if an attempt has
// committed a result since the caller looked for it.
func RecheckResult(ctx context.Context, b store.Bucket, l *ledger.Ledger, t stages.Task) (done bool, err error) {
	lost := CheckResult(l, t)
	if lost == nil {
		return false, nil
	}
	r, _, err := LoadResult(ctx, b, t)
	if err == nil && r == nil {
		err = lost
	}
	return r != nil, err
}

// CheckResult checks a task that has no result. If the ledger shows that the task had a result,
// CheckResult returns a ledger.Lost error. The ledger shows this if the round is sealed, or if a
// stage that reads the task's result has frozen its inputs.
func CheckResult(l *ledger.Ledger, t stages.Task) error {
	had := l.Newest(manifest.EntrySealed, t.Round)
	for _, later := range stages.Order {
		for _, from := range feeds[later] {
			if from == t.Stage && had == nil {
				had = l.Frozen(t.Round, later)
			}
		}
	}
	if had == nil {
		return nil
	}
	lost := l.Miss(had, false)
	lost.Object, lost.Was = ResultKey(t), "the result of "+t.String()
	if t.Stage == stages.Fetch && !layout.IsReparse(t.Crawl) {
		lost.Remedy = "restore it from a copy: fetched data cannot be recreated"
	}
	return lost
}
