package fetch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/status"
)

// attempt is the state of one attempt at a fetch task while it holds the lease.
type attempt struct {
	env     *stages.Env
	in      *Input
	cfg     Config
	lease   *lease.Lease
	log     *segments.Log
	fetcher *fetcher
	inputs  *manifest.Checked // the store, for files of earlier attempts and of the previous round
	disk    *segments.Disk
	one     serialMode
	// These say why the whole attempt waits for the store, and for room in scratch space; nil if it does not.
	storeWait, roomWait atomic.Pointer[stages.Wait]

	began    time.Time
	elapsed  time.Duration // part of the fetch window that earlier attempts used
	atBegin  int64         // number of planned URLs without a recorded outcome when the attempt began
	revision atomic.Int64  // revision of the politeness settings that the attempt uses

	cutting sync.Mutex          // held while a checkpoint is made, because only one checkpoint may be made at a time
	waiting []*segments.Segment // finished segments that no checkpoint lists yet
	queued  int64               // number of planned URLs whose outcome no checkpoint lists
}

// fetch runs the fetcher and the background work. It then makes the last checkpoint.
func (a *attempt) fetch(ctx context.Context) error {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	flights := lease.NewFlights(context.WithoutCancel(ctx))
	defer flights.End()

	background, endBackground := context.WithCancel(work)
	var wg sync.WaitGroup
	start := func(f func(context.Context) error) {
		wg.Go(func() {
			if err := f(background); err != nil && background.Err() == nil {
				stop(err)
				flights.End() // no request may outlive the lease
			}
		})
	}
	start(func(ctx context.Context) error { return a.lease.KeepRenewed(ctx, status.FirstReport, a.putActivity) })
	start(a.checkpointLoop)
	start(a.closeWindow)
	start(a.reloadLoop)
	wg.Go(func() { a.lease.WatchExpiry(background, flights) })
	// When the task is told to stop (ctx ends), requests in flight get a quarter of the grace
	// period (Pauses.Grace) to finish. Meanwhile the next goroutine uploads the records that exist.
	wg.Go(func() {
		<-background.Done()
		if ctx.Err() != nil {
			_ = a.env.Clock.Sleep(flights.Base(), a.cfg.Pauses.Grace/4)
			flights.End()
		}
	})
	wg.Go(func() {
		<-background.Done()
		if ctx.Err() == nil {
			return
		}
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.Pauses.Grace)
		defer cancel()
		if err := a.checkpoint(grace, nil); err != nil {
			a.env.Log.Warn("the first upload after the task was told to stop failed", "error", err)
		}
	})
	// The watcher may ask for the activity until fetch returns, because even the last checkpoint
	// may wait for the store.
	defer stages.Watched(a.env.Watcher, a.in.Task, a.activity)()
	err := a.fetcher.loop(work, flights)
	endBackground()
	flights.End()
	wg.Wait()

	if cause := context.Cause(work); ctx.Err() == nil && cause != nil {
		err = cause // the error of the background work
	}
	switch {
	case err == nil:
		// Only the last checkpoint remains, so the task makes it even if it is told to stop now.
		last, cancel := a.graceContext(ctx)
		defer cancel()
		return a.end(last, a.complete)
	case errors.Is(err, stages.ErrTaken), errors.Is(err, stages.ErrFault):
		// After a fault, the next attempt takes this one for dead. So it refetches what no checkpoint
		// lists, as the records may be incomplete, and finds the URL that causes the fault (serialMode).
		return err
	case ctx.Err() != nil:
		return a.interrupt(ctx, true)
	}
	// The task must stop: the store or the scratch directory failed for too long, or the fetcher
	// failed. All complete records are saved for the next attempt.
	excused := errors.Is(err, stages.ErrInterrupted) || segments.NoRoom(err)
	if kept := a.interrupt(ctx, excused); !errors.Is(kept, stages.ErrInterrupted) {
		return errors.Join(err, kept)
	}
	return err
}

// graceContext returns a context that ends one grace period (Pauses.Grace) after ctx.
func (a *attempt) graceContext(ctx context.Context) (context.Context, func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = a.env.Clock.Sleep(longer, a.cfg.Pauses.Grace)
		cancel()
	})
	return longer, func() { stop(); cancel() }
}

// interrupt makes a checkpoint of all records and releases the partition. excused means that no URL
// can be the cause: the task was told to stop, or the store or the disk failed. An excused attempt
// does not count as stalled.
func (a *attempt) interrupt(ctx context.Context, excused bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.Pauses.Grace)
	defer cancel()
	for _, b := range a.fetcher.unfinishedRecords() {
		if err := a.log.Emit(b); err != nil {
			break // the segment could not be written, so its records are lost
		}
	}
	err := a.end(ctx, func(d *manifest.Checkpoint) error {
		d.Released, d.Trying = true, nil
		if excused && d.Stalled > 0 {
			d.Stalled--
		}
		return nil
	})
	if err != nil {
		return err
	}
	return stages.ErrInterrupted
}

// unfinishedRecords returns a record for each URL task or robots task whose requests are not
// recorded yet, because it waits for the next hop of a redirect. When the log appends the record,
// OnRecorded stores the state from which the next attempt continues.
func (f *fetcher) unfinishedRecords() []*segments.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	rows := slices.Sorted(maps.Keys(f.urlTasks))
	var out []*segments.Record
	for _, row := range rows {
		if u := f.urlTasks[row]; len(u.requests) > 0 {
			due := u.due
			out = append(out, u.takeRows(func() { f.keepRecorded(u, due) }))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.robotsTasks)) {
		if rt := f.robotsTasks[id]; len(rt.record.Requests) > 0 {
			b := rt.record
			host, due := rt.nextAt, f.clock.Now()
			b.OnRecorded = func() { f.keepRobotsTask(rt, host, "", due) }
			out = append(out, &b)
		}
	}
	return out
}

// complete marks a checkpoint as the last one, or returns an error if a URL has no outcome.
func (a *attempt) complete(d *manifest.Checkpoint) error {
	rows, err := d.RecordedRows()
	if err != nil {
		return fmt.Errorf("%q: %w", a.lease.Key(), err)
	}
	if n := rows.GetCardinality(); n != uint64(a.fetcher.index.Len()) {
		return fmt.Errorf("%d of %d planned URLs have an outcome: this is a bug in crawlbatch", n, a.fetcher.index.Len())
	}
	d.Complete, d.Released, d.CompletedAt = true, true, a.env.Clock.Now().UnixMilli()
	d.Retries, d.Robots = nil, nil
	// The next round needs to know a host only if 429 or 503 raised its delay, or if it must wait
	// for longer than its configured delay.
	d.Hosts = slices.DeleteFunc(slices.Clone(d.Hosts), func(h manifest.HostClock) bool {
		return !h.Postponed && h.RaisedMS == 0 && h.Limited == 0 && h.WaitMS <= polite.Millis(a.fetcher.sched.Configured(h.Host))
	})
	for i := range d.Hosts {
		// The next round starts hours later without the breakers, because most hosts work again by
		// then. If a host is still down, the next round notices it after five requests.
		d.Hosts[i].Breaker = nil
	}
	d.Trying, d.Suspects, d.Stalled = nil, nil, 0
	return nil
}

// end makes the last checkpoint of the attempt.
func (a *attempt) end(ctx context.Context, set func(*manifest.Checkpoint) error) error {
	err := a.checkpoint(ctx, set)
	if err == nil {
		doc := a.lease.Checkpoint()
		a.env.Log.Debug("checkpoint", "epoch", doc.Epoch, "complete", doc.Complete, "files", len(doc.Files))
	}
	return err
}

// checkpoint uploads the records since the last checkpoint, and makes a new checkpoint for each
// uploaded segment. If set is not nil, it then makes one more checkpoint, which set changes.
func (a *attempt) checkpoint(ctx context.Context, set func(*manifest.Checkpoint) error) error {
	a.cutting.Lock()
	defer a.cutting.Unlock()
	if fatal := a.fetcher.fatal.Load(); fatal != nil && errors.Is(*fatal, stages.ErrFault) {
		return *fatal
	}
	g, cut := a.log.Cut(a.fetcher.waitingTasks)
	if g != nil {
		a.waiting = append(a.waiting, g)
	}
	// Segments are uploaded in order, because a segment's rows may name WARC files of earlier
	// segments. If an earlier call failed, the loop begins with the segments that it left.
	for len(a.waiting) > 0 {
		g := a.waiting[0]
		if err := retryStore(ctx, a.env, &a.storeWait, func() error { return g.Upload(ctx, a.env.Bucket) }); err != nil {
			return err
		}
		if err := a.commit(ctx, g, nil); err != nil {
			return err
		}
		a.log.Uploaded(g)
		a.waiting = a.waiting[1:]
		a.countListed(g)
	}
	if set != nil {
		if err := a.commit(ctx, nil, set); err != nil {
			return err
		}
	}
	return cut
}

// commit swaps in a new checkpoint. If g is not nil, the checkpoint also lists segment g. If set is
// not nil, it changes the checkpoint before the swap.
func (a *attempt) commit(ctx context.Context, g *segments.Segment, set func(*manifest.Checkpoint) error) error {
	return retryStore(ctx, a.env, &a.storeWait, func() error {
		elapsed := a.elapsed + a.env.Clock.Now().Sub(a.began)
		return a.lease.Swap(ctx, func(d *manifest.Checkpoint) (err error) {
			if g != nil {
				if err := g.List(d); err != nil {
					return err
				}
			}
			d.ElapsedMS = elapsed.Milliseconds()
			d.Politeness = int(a.revision.Load())
			d.Hosts = a.fetcher.sched.Snapshot()
			d.Answerers = a.in.Witness.Stored()
			if set != nil {
				err = set(d)
			}
			a.putActivity(d)
			return err
		})
	})
}

// quietFailures is the number of failures in a row after which retryStore reports that it waits.
const quietFailures = 2

// retryStore calls op. While the store does not answer or is full, it calls op again, for at most
// lease.Patience. While it waits, the reason is in currentWait. The method admit holds back new requests
// if the lease has ended or too many bytes wait for upload.
func retryStore(ctx context.Context, env *stages.Env, currentWait *atomic.Pointer[stages.Wait], op func() error) error {
	began := env.Clock.Now()
	defer currentWait.Store(nil)
	for try := 0; ; try++ {
		err := op()
		if err == nil || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrFull) {
			if err == nil && try >= quietFailures {
				env.Log.Info("the store is available again", "away", env.Clock.Now().Sub(began).Round(time.Second))
			}
			return err
		}
		if env.Clock.Now().Sub(began) > lease.Patience {
			return fmt.Errorf("%w: %w", err, stages.ErrInterrupted)
		}
		if try >= quietFailures {
			currentWait.Store(&stages.Wait{Why: status.StoreAway(err), Until: began.Add(lease.Patience)})
		}
		if try == quietFailures {
			env.Log.Warn("the store accepts no writes; fetching waits for it", "error", err)
		}
		if serr := env.Clock.Sleep(ctx, store.Backoff{Max: 5 * time.Second}.Delay(try)); serr != nil {
			return fmt.Errorf("%w: %w", err, serr)
		}
	}
}

// activity describes what the attempt is doing.
func (a *attempt) activity() stages.Activity {
	out := status.Activity(a.fetcher.sched, &a.fetcher.failures, a.fetcher.sitemaps.Left())
	out.Bytes, out.Elapsed = a.fetcher.requests.Received(), a.elapsed+a.env.Clock.Now().Sub(a.began)
	if out.Latest = a.fetcher.latestRobots(out.Closes); out.Latest != nil {
		out.Least = status.Least(&out, a.env.Clock.Now())
	}
	if w, away := a.in.Witness.Away(); away {
		out.Waits = slices.Insert(out.Waits, 0, w)
	}
	for _, w := range []*stages.Wait{a.storeWait.Load(), a.roomWait.Load()} {
		if w != nil {
			out.Waits = slices.Insert(out.Waits, 0, *w)
		}
	}
	return out
}

// putActivity writes the attempt's activity into a checkpoint, where the command `status` reads it.
func (a *attempt) putActivity(d *manifest.Checkpoint) {
	before := d.Activity
	if d.Activity = nil; !d.Complete {
		d.Activity = status.Stored(a.activity(), a.env.Clock.Now())
		if before != nil {
			d.Activity.Began, d.Activity.BeganLeft = before.Began, a.atBegin
		}
	}
}

// addQueued adds n to the number of planned URLs whose outcome no checkpoint lists.
func (a *attempt) addQueued(n int64) {
	a.queued += n
	a.env.Progress.Add(stages.CountQueued, n)
}

// countListed adds the counts of segment g to the progress, after a checkpoint has listed g.
func (a *attempt) countListed(g *segments.Segment) {
	for name, n := range g.Counts() {
		if strings.HasPrefix(name, stages.CountOutcomes) {
			a.env.Progress.Add(name, n)
		}
	}
	a.addQueued(-g.Counts()["urls"])
}
