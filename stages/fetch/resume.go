package fetch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// resume restores the state that earlier attempts left: recorded rows, URLs that wait for another
// try, targets of redirects, and the state of hosts. It sends no requests.
func (a *attempt) resume(ctx context.Context, before lease.Predecessor) error {
	f, doc := a.fetcher, a.lease.Checkpoint()
	a.revision.Store(int64(max(a.in.Politeness, doc.Politeness)))
	a.atBegin = int64(f.index.Len()) - int64(before.Recorded.GetCardinality())
	a.addQueued(a.atBegin)
	ended := before.Recorded.Clone() // rows that have an outcome or were quarantined
	for _, t := range lease.Quarantined(&doc) {
		if t.IsRow() && t.Row >= 0 {
			ended.Add(uint32(t.Row))
		}
		if t.Sitemap != "" {
			if _, err := f.sitemaps.EndSuspect(t.Sitemap); err != nil {
				return fmt.Errorf("%q: %w", a.lease.Key(), err)
			}
		}
	}
	if err := a.addHosts(&doc, ended.Clone()); err != nil {
		return err
	}
	if err := a.takeState(ctx, &doc, before, ended); err != nil {
		return err
	}
	if a.in.GiveUp {
		f.sched.Close()
	}
	a.one.requested = map[manifest.Trying]bool{}
	a.one.suspected = a.suspicious(&doc, before.Recorded, true)
	if err := a.quarantine(ctx, before.Recorded); err != nil {
		return err
	}
	if doc.Stalled > maxStalled || a.one.suspected {
		a.enterSerial()
	}
	if before.Exists {
		a.env.Log.Info("resumed", "epoch", doc.Epoch, "recorded", before.Recorded.GetCardinality(), "released", before.Released)
		segments.SweepBelow(ctx, a.env.Bucket, a.env.Log, a.in.Task, a.in.Plan.ID, doc.Files, doc.Epoch, func() error { return a.lease.RenewIfDue(ctx) })
	}
	return nil
}

// addHosts adds the hosts with planned rows to the scheduler. Their host queues leave out the rows
// in skip, the retries and the suspects. addHosts pushes the suspects, so each comes before the
// planned rows of its host. restoreRetries pushes the retries later.
func (a *attempt) addHosts(doc *manifest.Checkpoint, skip *roaring.Bitmap) error {
	f := a.fetcher
	for _, r := range doc.Retries {
		if r.Row >= 0 {
			skip.Add(uint32(r.Row))
		}
	}
	var suspects []int64
	for _, s := range doc.Suspects {
		if s.IsRow() && s.Row >= 0 && s.Row < int64(f.index.Len()) && skip.CheckedAdd(uint32(s.Row)) {
			suspects = append(suspects, s.Row)
		}
	}
	for _, h := range f.index.Hosts() {
		if q := h.Queue(skip); q.Len() > 0 {
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
	return nil
}

// takeState restores the state of hosts, robots.txt files and retries from the previous round or
// from earlier attempts. It does not retry the rows in ended.
func (a *attempt) takeState(ctx context.Context, doc *manifest.Checkpoint, before lease.Predecessor, ended *roaring.Bitmap) error {
	f := a.fetcher
	// If no earlier attempt of this round has fetched, the state of hosts at the end of the
	// previous round still applies.
	first := doc.ElapsedMS == 0 && len(doc.Files) == 0 && len(doc.Hosts) == 0
	// The task records the sitemaps and robots.txt files that it takes over from the previous
	// round. While the checkpoint lists no files, none of them is recorded, so this attempt takes
	// them over. An earlier attempt may have fetched all the same: with a full disk, it records
	// nothing.
	if len(doc.Files) == 0 && len(a.in.Before) > 0 {
		planned := map[string]bool{}
		for _, h := range f.index.Hosts() {
			planned[h.Name] = true
		}
		if first {
			a.takeHosts(planned)
		}
		if err := a.takeSitemaps(ctx); err != nil {
			return err
		}
		if err := a.takeRobots(ctx, planned); err != nil {
			return err
		}
	}
	if before.Exists {
		if err := a.takeCheckpoint(ctx, doc, before.Seen, ended); err != nil {
			return err
		}
		f.sched.Resumed()
	}
	f.sitemaps.Resume(doc.Suspects)
	a.in.Witness.Restore(doc.Answerers)
	switch {
	case before.Exists && (!before.Released || a.in.Politeness > doc.Politeness) || first && a.in.Task.Round > 0:
		// Hosts may have received requests a moment ago: from the previous attempt, after its last
		// checkpoint or under a shorter delay than the present one, or from the previous round.
		f.sched.HoldAll()
	case before.Exists:
		f.sched.HoldAddresses()
	}
	return nil
}

// takeCheckpoint restores the state from the checkpoint and the files that it lists. Waits in the
// checkpoint count from the time at which this attempt first saw the checkpoint (seen).
func (a *attempt) takeCheckpoint(ctx context.Context, doc *manifest.Checkpoint, seen time.Time, ended *roaring.Bitmap) error {
	f := a.fetcher
	waited := a.env.Clock.Now().Sub(seen)
	f.sched.Restore(doc.Hosts, waited, a.in.Politeness > doc.Politeness)
	renew := func() error { return a.lease.RenewIfDue(ctx) }
	if err := a.restoreSitemaps(ctx, doc, renew); err != nil {
		return err
	}
	err := segments.Rows(ctx, a.inputs, doc.Files, stages.FileRobots, renew, func(row *schema.RobotsFile) error {
		_, err := f.restoreRobots(row)
		return err
	})
	if err != nil {
		return err
	}
	if err := f.restoreRetries(doc, ended, waited); err != nil {
		return fmt.Errorf("%q: %w", a.lease.Key(), err)
	}
	if err := f.restoreOriginRetries(doc, waited); err != nil {
		return fmt.Errorf("%q: %w", a.lease.Key(), err)
	}
	return a.restoreClaims(ctx, doc)
}

// hop holds two columns: the URL of a response and its redirect target.
type hop struct {
	URL    string `parquet:"url"`
	Target string `parquet:"fetch_redirect,optional"`
}

// ended holds some columns of a fetch.
type ended struct {
	URL       string         `parquet:"url"`
	FinalURL  string         `parquet:"final_url,optional"`
	Outcome   schema.Outcome `parquet:"outcome"`
	BlockedBy string         `parquet:"blocked_by,optional"`
}

// restoreClaims reserves the targets of the recorded redirects that stay within their domain. Some
// were never requested: robots.txt denied them, or the chain was too long. A later chain that leads
// to such a URL ends there, and the frontier decides about the URL. restoreClaims also notes which URLs ended chains and
// which redirect, and which hosts refused requests.
func (a *attempt) restoreClaims(ctx context.Context, doc *manifest.Checkpoint) error {
	for _, file := range doc.Files {
		if err := a.lease.RenewIfDue(ctx); err != nil {
			return err
		}
		if file.Dataset == stages.FileFetches {
			for row, err := range table.Concat[ended](ctx, a.inputs, []string{file.Key}) {
				if err != nil {
					return err
				}
				key, err := urlkey.KeyOf(row.FinalURL)
				switch {
				case err != nil: // there was no answer
				case row.Outcome == schema.Blocked:
					a.fetcher.refusers[key.Host] = row.BlockedBy
				case row.Outcome == schema.NotModified:
					a.fetcher.sched.GavePage(key.Host)
				case row.Outcome == schema.OK, row.Outcome == schema.MIMEFiltered, row.Outcome == schema.InternalError:
					if row.FinalURL != row.URL {
						a.fetcher.noteChain(row.FinalURL, false)
					}
					a.fetcher.sched.GavePage(key.Host)
				}
			}
		}
		if file.Dataset != stages.FileCaptures || file.Subset != schema.SubsetDiagnostics {
			continue
		}
		for row, err := range table.Concat[hop](ctx, a.inputs, []string{file.Key}) {
			if err != nil {
				return err
			}
			if row.Target == "" {
				continue
			}
			a.fetcher.noteChain(row.URL, true)
			from, err := urlkey.KeyOf(row.URL)
			to, noTarget := urlkey.KeyOf(row.Target)
			if err == nil && noTarget == nil && from.Domain == to.Domain {
				a.fetcher.claim(row.Target)
			}
		}
	}
	return nil
}

// handBack releases the partition for an attempt that has sent no requests, so that the next attempt
// can begin immediately. It returns the error with which this attempt ends; reason is its cause.
func handBack(ctx context.Context, env *stages.Env, cfg *Config, l *lease.Lease, before lease.Predecessor, reason error) error {
	if errors.Is(reason, stages.ErrTaken) {
		return reason
	}
	excused := ctx.Err() != nil || segments.NoRoom(reason)
	for _, e := range []error{stages.ErrInterrupted, store.ErrUnavailable, store.ErrFull, store.ErrNotFound, manifest.ErrChanged} {
		excused = excused || errors.Is(reason, e)
	}
	if ctx.Err() != nil && !errors.Is(reason, stages.ErrPermanent) {
		reason = fmt.Errorf("%w: %w", reason, stages.ErrInterrupted)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Pauses.Grace)
	defer cancel()
	var unread atomic.Pointer[stages.Wait] // retryStore needs it
	err := retryStore(ctx, env, &unread, func() error {
		return l.Swap(ctx, func(d *manifest.Checkpoint) error {
			// If the previous attempt did not release the partition, the time of its last requests
			// is unknown, and an attempt must wait first. This attempt may not have waited, so it
			// does not release the partition either.
			d.Released = !before.Exists || before.Released
			if excused && d.Stalled > 0 {
				d.Stalled--
			}
			return nil
		})
	})
	if err != nil {
		env.Log.Warn("the partition could not be released", "error", err)
	}
	return reason
}
