package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// deleting is the number of objects that are deleted at the same time.
const deleting = 16

// overtakenEvery is the number of deletions after which Apply checks whether it still holds
// active.json.
const overtakenEvery = 256

// Apply deletes what Find finds, and returns it. The error is roundstate.ErrBusy if a round is
// unfinished. If nothing can be deleted, Apply also releases the claim of an earlier Apply that
// died. Otherwise an unfinished round, or a repair of the store, would wait for this claim.
func Apply(ctx context.Context, r Request) (f *Found, err error) {
	held, err := r.interrupted(ctx)
	if err != nil {
		return nil, err
	}
	f, err = Find(ctx, r)
	if err == nil && len(f.Busy) > 0 && (held || f.Pending()) {
		err = busy(r.Bucket, f.Busy)
	}
	if err != nil || !f.Pending() {
		if held {
			err = errors.Join(err, r.letGo(ctx))
		}
		return f, err
	}
	h, err := r.hold(ctx, f)
	if err != nil {
		return f, err
	}
	// A reparse may have begun, or a round may have been planned, before active.json was claimed.
	if err = r.writer().Fence(ctx, r.Bucket); err == nil {
		f, err = Find(ctx, r)
	}
	if err == nil && len(f.Busy) > 0 {
		err = busy(r.Bucket, f.Busy)
	}
	if err != nil {
		return f, errors.Join(err, h.Release(ctx))
	}
	for _, c := range inOrder(f.Crawls) {
		if !c.pending() {
			continue
		}
		if err := r.prune(ctx, c, h); err != nil {
			return f, fmt.Errorf("%w; nothing is damaged: continue with `crawlbatch prune --apply`", err)
		}
	}
	return f, h.Release(ctx)
}

func busy(b store.Bucket, why []string) error {
	return fmt.Errorf("%s: nothing is deleted while rounds are unfinished: %s: %w", b, strings.Join(why, "; "), roundstate.ErrBusy)
}

// inOrder orders crawls such that a reparse comes before the month that it parses again.
func inOrder(crawls []*Crawl) []*Crawl {
	crawls = slices.Clone(crawls)
	slices.SortStableFunc(crawls, func(a, b *Crawl) int {
		monthA, _ := layout.MonthOf(a.Name)
		monthB, _ := layout.MonthOf(b.Name)
		if monthA != monthB {
			return strings.Compare(monthA, monthB)
		}
		return len(b.Name) - len(a.Name)
	})
	return crawls
}

// interrupted reports whether an earlier Apply died while it held active.json.
func (r *Request) interrupted(ctx context.Context) (bool, error) {
	a, _, err := ledger.LoadActive(ctx, r.Bucket, "YYYY-MM")
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err == nil && a.Takedown {
		err = roundstate.CheckNoPruning(ctx, r.Bucket, "YYYY-MM")
	}
	return err == nil && roundstate.Pruning(a) && !a.Takedown, err
}

// letGo releases the claim of an earlier Apply that died.
func (r *Request) letGo(ctx context.Context) error {
	a, v, err := ledger.LoadActive(ctx, r.Bucket, "YYYY-MM")
	if err != nil || !roundstate.Pruning(a) || a.Takedown {
		return err
	}
	return roundstate.HoldOf(r.Bucket, a, v).Release(ctx)
}

// hold claims active.json. It also takes over the claim of an earlier Apply that died. If that Apply
// is alive, it stops.
func (r *Request) hold(ctx context.Context, f *Found) (*roundstate.Hold, error) {
	return roundstate.TakeHold(ctx, r.Bucket, &manifest.Active{Header: manifest.Header{Version: r.Version}, Crawl: f.Crawls[0].Name, Prune: true, Nonce: "prune-" + r.now()})
}

func (r *Request) writer() ledger.Writer { return ledger.Writer{Version: r.Version, Clock: r.Clock} }

func (r *Request) now() string { return r.Clock.Now().UTC().Format(time.RFC3339Nano) }

// prune deletes the objects of a crawl that c.list covers.
func (r *Request) prune(ctx context.Context, c *Crawl, h *roundstate.Hold) error {
	if err := h.Check(ctx); err != nil {
		return err
	}
	w := r.writer()
	l, err := w.BeginPruning(ctx, r.Bucket, &c.list)
	if err != nil {
		return fmt.Errorf("prune %s: %w", c.Name, err)
	}
	if c.Policy == manifest.PruneMetadata {
		// Without crawl.json, no listing of crawls shows the crawl any more.
		if err := r.Bucket.Delete(ctx, layout.CrawlManifest(c.Name)); err != nil {
			return err
		}
	}
	group, deletes := errgroup.WithContext(ctx)
	group.SetLimit(deleting)
	found := 0
	err = r.each(deletes, c, func(o store.Info) error {
		if found++; found%overtakenEvery == 0 {
			if err := h.Check(deletes); err != nil {
				return err
			}
		}
		group.Go(func() error { return r.Bucket.Delete(deletes, o.Key) })
		return deletes.Err()
	})
	if failed := group.Wait(); failed != nil {
		err = failed
	}
	if err == nil {
		err = r.removeLists(ctx, l)
	}
	if err != nil {
		return fmt.Errorf("prune %s: %w", c.Name, err)
	}
	return w.EndPruning(ctx, r.Bucket, c.Name)
}

// removeLists deletes the crawl's older lists, which the ledger's newest entry does not name.
func (r *Request) removeLists(ctx context.Context, l *ledger.Ledger) error {
	for o, err := range r.Bucket.List(ctx, layout.PruneDir(l.Crawl)) {
		if err == nil && o.Key != l.Pruning().Object {
			err = r.Bucket.Delete(ctx, o.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
