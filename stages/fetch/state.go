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
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/lease"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// An attempt leaves its rows and some state to the next attempt. The few hosts with state and the
// few URLs that wait for another try are in the checkpoint. The state of robots.txt files is in a
// file of each segment.

// waitingTasks lists the URLs and robots.txt files that wait for another try or for the next hop of a
// redirect. It leaves out those whose last requests are not recorded yet.
func (f *fetcher) waitingTasks() (out []manifest.URLRetry, origins []manifest.OriginRetry) {
	now := f.clock.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rt := range f.robotsTasks {
		if rt.kept == nil {
			continue
		}
		r := *rt.kept
		r.WaitMS = polite.Millis(max(rt.due.Sub(now), 0))
		origins = append(origins, r)
	}
	slices.SortFunc(origins, func(a, b manifest.OriginRetry) int { return cmp.Compare(a.Origin, b.Origin) })
	for _, u := range f.urlTasks {
		if u.kept == nil {
			continue
		}
		r := *u.kept
		r.WaitMS = polite.Millis(max(u.due.Sub(now), 0))
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b manifest.URLRetry) int { return cmp.Compare(a.Row, b.Row) })
	dropChains(out)
	return out, origins
}

// maxChains limits the redirect chains in a checkpoint, in bytes. Many hosts may have waiting
// chains, and a checkpoint has at most manifest.MaxBytes. JSON may need six bytes for one byte of
// text.
const maxChains = 4 << 20

// dropChains keeps the first redirect chains, at most maxChains bytes of them, and drops the
// others. The next attempt starts a dropped chain again from its planned URL.
func dropChains(waiting []manifest.URLRetry) {
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

// takeHosts restores the state of planned hosts from the previous round. If several machines share
// the store, two of their clocks may differ by twice maxSkew, so the hosts wait longer by this time.
func (a *attempt) takeHosts(planned map[string]bool) {
	for _, r := range a.in.Before {
		waited := a.env.Clock.Now().Sub(time.UnixMilli(r.CompletedAt))
		if _, one := store.As[store.Locker](a.env.Bucket); !one {
			waited -= 2 * maxSkew
		}
		// A redirect may lead to a host whose late try was postponed, even if it has no planned URL.
		hosts := slices.DeleteFunc(slices.Clone(r.Hosts), func(h manifest.HostClock) bool { return !planned[h.Host] && !h.Postponed })
		a.fetcher.sched.Restore(hosts, max(waited, 0), true)
		a.in.Witness.Restore(r.Answerers)
	}
}

// restoreRetries restores the URL tasks that were waiting for another try.
func (f *fetcher) restoreRetries(d *manifest.Checkpoint, recorded *roaring.Bitmap, waited time.Duration) error {
	now := f.clock.Now()
	for _, r := range d.Retries {
		if r.Row < 0 || r.Row >= int64(f.index.Len()) {
			return fmt.Errorf("it lists a retry of row %d, but the partition has %d rows: %w", r.Row, f.index.Len(), manifest.ErrCorrupt)
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
		f.sched.Push(u.key.Host, polite.Item{ID: u.row, NotBefore: due, Why: r.Why, Late: r.Late > 0})
	}
	return nil
}

// restoreOriginRetries restores the robots tasks that were waiting for another try, except those of
// quarantined robots.txt files. Lookup blocks their hosts again.
func (f *fetcher) restoreOriginRetries(d *manifest.Checkpoint, waited time.Duration) error {
	now := f.clock.Now()
	for _, r := range d.Robots {
		if slices.Contains(lease.Quarantined(d), manifest.Trying{Origin: r.Origin}) {
			continue
		}
		entry, err := f.robots.EntryOf(r.Origin)
		if err != nil {
			return fmt.Errorf("it lists a retry of the robots.txt of %q: %v: %w", r.Origin, err, manifest.ErrCorrupt)
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
		rt.met = r.Met
		for _, h := range r.Met {
			rt.cookies.Resume(h)
		}
		due := now.Add(time.Duration(r.WaitMS)*time.Millisecond - waited)
		f.keepRobotsTask(rt, r.Host, r.Why, due)
		f.sched.Push(r.Host, polite.Item{ID: rt.id, Urgent: true, NotBefore: due, Why: r.Why, Late: r.Late > 0})
	}
	return nil
}

// restoreRobots takes over the row of a robots.txt, and queues the sitemaps that the file names. It
// reports whether the rules are known now.
func (f *fetcher) restoreRobots(row *schema.RobotsFile) (known bool, err error) {
	if known, err = f.robots.Restore(row); known && row.Rules && f.sitemaps.On() {
		f.sitemaps.NameAll(row.Origin+robotscache.Path, robots.Parse(row.Body))
	}
	return known, err
}

// takeRobots takes over the rules of robots.txt files from the previous round, if they may still apply
// (robotscache.MaxStale) and their hosts are planned. It records their rows again, so that this round's rows name
// the rules of all its requests, and later rounds need not read older rows.
func (a *attempt) takeRobots(ctx context.Context, planned map[string]bool) error {
	f := a.fetcher
	now := f.clock.Now()
	taken := 0
	for _, r := range a.in.Before {
		err := segments.Rows(ctx, a.inputs, r.Files, stages.FileRobots, func() error { return a.lease.RenewIfDue(ctx) }, func(row *schema.RobotsFile) error {
			if !planned[row.Host] || row.Outcome != "" {
				return nil // if it failed, this round requests the robots.txt again
			}
			known, err := f.restoreRobots(row)
			if err != nil {
				return err
			}
			if known {
				taken++
			}
			return a.log.Emit(&segments.Record{Robots: row})
		}, table.IntRange("until", int64(schema.TimeOf(now.Add(-robotscache.MaxStale))), math.MaxInt64))
		if err != nil {
			return fmt.Errorf("load robots.txt files of the previous round: %w", err)
		}
	}
	if taken > 0 {
		a.env.Log.Debug("robots.txt files of the previous round still apply", "files", taken)
	}
	return nil
}
