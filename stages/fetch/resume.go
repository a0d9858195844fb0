package fetch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// Between taking a partition and fetching it an attempt reads what those before it
// left. No host is asked anything meanwhile.

// resume gives the crawl what earlier attempts left: which rows are recorded, the
// URLs that redirects led to and those that wait for another try, and what is
// known of hosts.
func (a *attempt) resume(ctx context.Context, before lease.Predecessor) error {
	f, doc := a.fetcher, a.lease.Checkpoint()
	a.revision.Store(int64(max(a.in.Politeness, doc.Politeness)))
	recorded := before.Recorded
	if recorded == nil {
		recorded = roaring.New()
	}
	a.queue(int64(f.index.Len()) - int64(recorded.GetCardinality()))
	settled := recorded.Clone()
	for _, k := range killers(&doc) {
		if k.Origin == "" && k.Row >= 0 {
			settled.Add(uint32(k.Row))
		}
	}
	begun := roaring.Or(settled, retried(&doc))
	var suspects []int64 // are tried first
	for _, k := range doc.Suspects {
		if k.Origin == "" && k.Row >= 0 && k.Row < int64(f.index.Len()) && !begun.Contains(uint32(k.Row)) {
			begun.Add(uint32(k.Row))
			suspects = append(suspects, k.Row)
		}
	}
	for _, h := range f.index.Hosts() {
		if q := h.Queue(begun); q.Len() > 0 {
			if err := f.sched.Add(h.Name, q); err != nil {
				return err
			}
		}
	}
	for _, row := range suspects {
		u, err := f.urlTask(row)
		if err != nil {
			return err
		}
		f.sched.Push(u.key.Host, polite.Item{ID: row})
	}
	// Attempts that ended before they fetched have left the hosts as they were.
	first := doc.ElapsedMS == 0 && len(doc.Files) == 0 && len(doc.Hosts) == 0
	if first && len(a.in.Before) > 0 {
		planned := map[string]bool{}
		for _, h := range f.index.Hosts() {
			planned[h.Name] = true
		}
		a.takeHosts(planned)
		if err := a.takeRobots(ctx, planned); err != nil {
			return err
		}
	}
	if before.Exists {
		if err := a.takeState(ctx, before, settled); err != nil {
			return err
		}
	}
	if before.Exists {
		f.sched.Resumed()
	}
	switch {
	case before.Exists && !before.Released || first && a.in.Task.Round > 0:
		// The attempt before may have sent requests after its last checkpoint, the
		// round before may have asked these hosts a moment ago.
		f.sched.HoldAll()
	case before.Exists:
		f.sched.HoldAddresses()
	}
	if a.in.GiveUp {
		f.sched.Close()
	}
	suspected := f.suspicious(doc.Suspects, recorded)
	alone := doc.Stalled > maxStalled || suspected
	if err := a.convict(ctx, recorded); err != nil {
		return err
	}
	if alone {
		a.enterSerial(suspected)
	}
	if before.Exists {
		a.env.Log.Info("resumed", "epoch", doc.Epoch, "recorded", recorded.GetCardinality(), "released", before.Released)
		segments.SweepBelow(ctx, a.env.Bucket, a.env.Log, a.in.Task, a.in.Plan.ID, doc.Files, doc.Epoch, func() error { return a.lease.RenewIfDue(ctx) })
	}
	return nil
}

// takeState restores what lies in the checkpoint and in the files that it lists.
func (a *attempt) takeState(ctx context.Context, before lease.Predecessor, settled *roaring.Bitmap) error {
	f, doc := a.fetcher, a.lease.Checkpoint()
	waited := a.env.Clock.Now().Sub(before.Seen)
	f.restoreClocks(&doc, waited, a.in.Politeness > doc.Politeness)
	if err := robotscache.Each(ctx, a.env.Bucket, doc.Files, func() error { return a.lease.RenewIfDue(ctx) }, func(row *schema.RobotsFile) error {
		_, err := f.robots.Restore(row)
		return err
	}); err != nil {
		return err
	}
	if err := f.restoreRetries(&doc, settled, waited); err != nil {
		return fmt.Errorf("%q: %w", a.lease.Key(), err)
	}
	if err := f.restoreOriginRetries(&doc, waited); err != nil {
		return fmt.Errorf("%q: %w", a.lease.Key(), err)
	}
	return a.claims(ctx)
}

// hop are the columns that say where an answer redirected to.
type hop struct {
	URL    string `parquet:"url"`
	Target string `parquet:"fetch_redirect,optional"`
}

// claims remembers the URLs that recorded redirects led to within their domain: those
// that were sent, as the end of a chain or on its way, and those that robots.txt denied.
// A target that was one redirect too many is among them; the frontier takes it over
// from the next chain that leads to it.
func (a *attempt) claims(ctx context.Context) error {
	for _, f := range a.lease.Checkpoint().Files {
		if f.Dataset != stages.FileCaptures || f.Subset != schema.SubsetDiagnostics {
			continue
		}
		if err := a.lease.RenewIfDue(ctx); err != nil {
			return err
		}
		r, err := table.Open[hop](ctx, a.env.Bucket, f.Key)
		if err != nil {
			return err
		}
		for row, err := range r.All(ctx) {
			if err != nil {
				return errors.Join(err, r.Close())
			}
			if row.Target != "" && sameDomain(row.URL, row.Target) {
				a.fetcher.claims[xxh3.HashString(row.Target)] = struct{}{}
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

func sameDomain(a, b string) bool {
	k, err := urlkey.KeyOf(a)
	if err != nil {
		return false
	}
	l, err := urlkey.KeyOf(b)
	return err == nil && k.Domain == l.Domain
}

// handBack ends, for a reason, an attempt that has asked no host anything: the next
// may begin at once, as this one could have. It returns the reason.
func handBack(ctx context.Context, env *stages.Env, cfg *Config, l *lease.Lease, before lease.Predecessor, reason error) error {
	if errors.Is(reason, stages.ErrTaken) {
		return reason
	}
	excused := ctx.Err() != nil || segments.NoRoom(reason)
	for _, e := range []error{stages.ErrInterrupted, store.ErrUnavailable, store.ErrFull} {
		excused = excused || errors.Is(reason, e)
	}
	if ctx.Err() != nil && !errors.Is(reason, stages.ErrPermanent) {
		reason = fmt.Errorf("%w: %w", reason, stages.ErrInterrupted)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Pauses.Grace)
	defer cancel()
	var paused atomic.Pointer[stages.Wait] // nobody looks any more
	err := patiently(ctx, env, &paused, func() error {
		return l.Swap(ctx, func(d *manifest.Checkpoint) error {
			// What the attempt before it sent last is not known, if that did not
			// release the partition: the next has to wait for that as well.
			d.Released = !before.Exists || before.Released
			if excused && d.Stalled > 0 {
				d.Stalled--
			}
			return nil
		})
	})
	if err != nil {
		env.Log.Warn("the partition could not be handed back", "error", err)
	}
	return reason
}
