package fetch

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// What an attempt hands on to the next beside rows: the pace and health of hosts
// and the URLs that wait for another try lie in the checkpoint, since there are
// never many; what is known of robots.txt in a working file of each segment.

// keepClocks writes what is known of hosts into a checkpoint.
func (f *fetcher) keepClocks(d *manifest.Checkpoint) {
	d.Hosts = d.Hosts[:0:0]
	for _, k := range f.sched.Snapshot() {
		h := manifest.HostClock{
			Host: k.Host, DelayMS: roundUp(k.Delay), BaseMS: roundUp(k.Base), RaisedMS: roundUp(k.Raised), Limited: k.Limited, WaitMS: roundUp(k.Wait),
		}
		if b := k.Breaker; b != (polite.BreakerClock{}) {
			h.Breaker = &manifest.HostBreaker{
				OK: b.OK, Failed: b.Failed, Open: b.Open, GaveUp: b.GaveUp, ProbeMS: roundUp(b.Probe), PauseMS: roundUp(b.Pause),
				Probes: b.Probes, Opened: b.Opened,
			}
		}
		d.Hosts = append(d.Hosts, h)
	}
}

func roundUp(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }

// waiting lists the URLs and the robots.txt files that were tried and wait for
// another try, or whose redirects are being followed, as far as that is recorded.
func (f *fetcher) waiting() (out []manifest.URLRetry, origins []manifest.OriginRetry) {
	now := f.clock.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rt := range f.robotsTasks {
		if rt.kept == nil {
			continue
		}
		r := *rt.kept
		r.WaitMS = roundUp(max(rt.due.Sub(now), 0))
		origins = append(origins, r)
	}
	slices.SortFunc(origins, func(a, b manifest.OriginRetry) int { return cmp.Compare(a.Origin, b.Origin) })
	for _, u := range f.urlTasks {
		if u.kept == nil {
			continue
		}
		r := *u.kept
		r.WaitMS = roundUp(max(u.due.Sub(now), 0))
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b manifest.URLRetry) int { return cmp.Compare(a.Row, b.Row) })
	forget(out)
	return out, origins
}

// maxChains bounds what a checkpoint says of chains of redirects, in bytes. A site
// with many hosts can have many of them wait, and a checkpoint must not outgrow what
// is read back (JSON may escape each byte by six); chains beyond it are begun anew by the next attempt.
const maxChains = 4 << 20

func forget(waiting []manifest.URLRetry) {
	total := 0
	for i := range waiting {
		k := waiting[i].Chain
		if k == nil {
			continue
		}
		total += 2<<10 + len(k.Next) + 3*len(k.Fetch.URL) + len(k.Fetch.Error) + len(k.Fetch.ErrorDetail)
		for _, h := range k.Met {
			total += len(h.URL) + len(h.Cookie)
			for _, line := range h.Set {
				total += len(line)
			}
		}
		if total > maxChains {
			waiting[i].Chain = nil
		}
	}
}

// restoreClocks takes the state of hosts over from a checkpoint that was first
// seen so long ago.
func (f *fetcher) restoreClocks(d *manifest.Checkpoint, waited time.Duration, fresh bool) {
	var clocks []polite.Clock
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, h := range d.Hosts {
		k := polite.Clock{
			Host: h.Host, Delay: ms(h.DelayMS), Base: ms(h.BaseMS), Raised: ms(h.RaisedMS), Limited: h.Limited, Wait: ms(h.WaitMS) - waited,
		}
		if b := h.Breaker; b != nil {
			k.Breaker = polite.BreakerClock{
				OK: b.OK, Failed: b.Failed, Open: b.Open, GaveUp: b.GaveUp, Probe: max(ms(b.ProbeMS)-waited, 0), Pause: ms(b.PauseMS),
				Probes: b.Probes, Opened: b.Opened,
			}
		}
		clocks = append(clocks, k)
	}
	f.sched.Restore(clocks, fresh)
}

// takeHosts has the hosts of the partition wait for as long as the round before
// found that they want to be left alone. What the clocks of two machines may differ
// by is waited for too.
func (a *attempt) takeHosts(planned map[string]bool) {
	for _, r := range a.in.Before {
		waited := a.env.Clock.Now().Sub(time.UnixMilli(r.CompletedAt))
		if _, one := store.As[store.Locker](a.env.Bucket); !one {
			waited -= 2 * maxSkew
		}
		var d manifest.Checkpoint
		for _, h := range r.Hosts {
			if planned[h.Host] {
				d.Hosts = append(d.Hosts, h)
			}
		}
		a.fetcher.restoreClocks(&d, max(waited, 0), true)
	}
}

// restoreRetries has the URLs that waited for another try wait on.
func (f *fetcher) restoreRetries(d *manifest.Checkpoint, recorded *roaring.Bitmap, waited time.Duration) error {
	now := f.clock.Now()
	for _, r := range d.Retries {
		if r.Row < 0 || r.Row >= int64(f.index.Len()) {
			return fmt.Errorf("it retries row %d of %d: %w", r.Row, f.index.Len(), manifest.ErrCorrupt)
		}
		if recorded.Contains(uint32(r.Row)) {
			continue
		}
		u, err := f.urlTask(r.Row)
		if err != nil {
			return err
		}
		if err := f.resume(u, &r); err != nil {
			return err
		}
		due := now.Add(time.Duration(r.WaitMS)*time.Millisecond - waited)
		f.keepRecorded(u, due)
		f.sched.Push(u.key.Host, polite.Item{ID: u.row, NotBefore: due, Why: r.Why})
	}
	return nil
}

// restoreOriginRetries has the robots.txt files that waited to be asked for again
// wait on, and their hosts with them; but those that are to be tried no more.
func (f *fetcher) restoreOriginRetries(d *manifest.Checkpoint, waited time.Duration) error {
	now := f.clock.Now()
	convicted := killers(d)
	for _, r := range d.Robots {
		if slices.Contains(convicted, manifest.Trying{Origin: r.Origin}) {
			continue
		}
		entry, err := f.robots.EntryOf(r.Origin)
		if err != nil {
			return fmt.Errorf("it retries robots.txt of %q: %v: %w", r.Origin, err, manifest.ErrCorrupt)
		}
		state, _, _, err := f.robots.Lookup(entry)
		if err != nil {
			return err
		}
		if state != robotscache.Unknown {
			continue
		}
		rt := f.newRobotsTask(entry)
		rt.next, rt.nextAt, rt.hops, rt.tries, rt.retries = r.Next, r.Host, r.Hops, r.Tries, r.RetryCounts
		due := now.Add(time.Duration(r.WaitMS)*time.Millisecond - waited)
		f.keepRobotsTask(rt, r.Host, r.Why, due)
		f.sched.Push(r.Host, polite.Item{ID: rt.id, Urgent: true, NotBefore: due, Why: r.Why})
	}
	return nil
}

// retried are the rows of a checkpoint's retries and of nothing else.
func retried(d *manifest.Checkpoint) *roaring.Bitmap {
	rows := roaring.New()
	for _, r := range d.Retries {
		if r.Row >= 0 {
			rows.Add(uint32(r.Row))
		}
	}
	return rows
}

// takeRobots takes over what the round before knows of the robots.txt files of planned
// hosts, while it is in force. It records the rows again, so that this round's evidence
// is whole and no later round looks further back.
func (a *attempt) takeRobots(ctx context.Context, planned map[string]bool) error {
	f := a.fetcher
	now := f.clock.Now()
	taken := 0
	for _, r := range a.in.Before {
		if time.UnixMilli(r.CompletedAt).Add(a.cfg.Politeness.RobotsTTL).Before(now) {
			continue // all of it is older
		}
		err := robotscache.Each(ctx, a.env.Bucket, r.Files, func() error { return a.lease.RenewIfDue(ctx) }, func(row *schema.RobotsFile) error {
			if !planned[row.Host] || row.Outcome != "" {
				return nil // another round is another try
			}
			known, err := f.robots.Restore(row)
			if err != nil || !known {
				return err
			}
			taken++
			return a.log.Emit(&segments.Record{Robots: row})
		}, table.IntRange("until", now.UnixMilli(), math.MaxInt64))
		if err != nil {
			return fmt.Errorf("take over robots.txt files of the round before: %w", err)
		}
	}
	if taken > 0 {
		a.env.Log.Debug("robots.txt files of the round before still hold", "files", taken)
	}
	return nil
}
