package jobs

import (
	"context"
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/longest"
	"crawlbatch.io/crawlbatch/stages"
)

// The first Read reads everything from the store. A later Read reads only what may have changed
// since then. It does not read sealed rounds and finished tasks again, look for the checkpoints of
// partitions that nobody has taken, or list the objects of stages that wait for an earlier stage.

// readsPerLease is how often a checkpoint is read during one lease. The lease holder writes it
// three times in this time.
const readsPerLease = 9

// lossesEvery is the time after which a Read looks again for lost objects if the ledger is unchanged.
const lossesEvery = time.Minute

// stageKey names a stage of a round of a crawl.
type stageKey struct {
	crawl string
	round int
	stage stages.Stage
}

// known holds what a StatusReader keeps between two Reads, besides results and attempts.
type known struct {
	sealed      map[stageKey]*sealedStatus               // the stage of these keys is ""
	idle        map[stageKey]bool                        // stages without a result and without an attempt
	done        map[stageKey]map[int][]*manifest.Attempt // attempts at finished stages (see keepDone)
	checkpoints map[stages.Task]*knownCheckpoint
	taken       map[stageKey]map[int]bool // the partitions that are taken, as this Read listed them
	longest     map[stageKey]*longest.Round
	ledger      string    // digest of the ledger's newest entry; "" if the last search found a lost object
	looked      time.Time // time of the last search for lost objects
}

// sealedStatus is the status of a sealed round of which no result is missing.
type sealedStatus struct {
	seal   string // digest of the entry of the seal
	status RoundStatus
	plan   *manifest.Plan
	used   cost.Usages
}

// knownCheckpoint is what a checkpoint said. status is nil if there was no checkpoint.
type knownCheckpoint struct {
	status *FetchStatus
	until  time.Time // no Read before this time reads the checkpoint again; zero: each Read does
}

// now returns the time, or the zero time if the reader has no clock.
func (r *StatusReader) now() time.Time {
	if r.Clock == nil {
		return time.Time{}
	}
	return r.Clock.Now()
}

// sealedBefore returns the status of a round that an earlier Read found sealed and complete, or nil. It
// adds the round to past.
func (r *StatusReader) sealedBefore(l *ledger.Ledger, round int, past *cost.Past) *RoundStatus {
	k := r.known.sealed[stageKey{crawl: l.Crawl, round: round}]
	e := l.Newest(manifest.EntrySealed, round)
	if k == nil || e == nil || e.Digest != k.seal {
		return nil
	}
	if k.used != nil {
		r.Costs.Learn(past, k.plan, k.used)
	}
	rs := k.status
	return &rs
}

// keepSealed keeps the status of a sealed round for later Reads.
func (r *StatusReader) keepSealed(l *ledger.Ledger, p *manifest.Plan, rs *RoundStatus) {
	e := l.Newest(manifest.EntrySealed, rs.Round)
	if e == nil || rs.Counts == nil {
		return
	}
	k := &sealedStatus{seal: e.Digest, status: *rs, plan: p}
	if rs.Prices != "" {
		k.used = cost.Usages{}
		for _, st := range rs.Stages {
			k.used[st.Stage] = st.Usage
		}
	}
	if r.known.sealed == nil {
		r.known.sealed = map[stageKey]*sealedStatus{}
	}
	r.known.sealed[stageKey{crawl: l.Crawl, round: rs.Round}] = k
}

// keepIdle notes whether a stage has neither a result nor an ended attempt.
func (r *StatusReader) keepIdle(p *manifest.Plan, st *StageStatus) {
	if r.known.idle == nil {
		r.known.idle = map[stageKey]bool{}
	}
	r.known.idle[stageKey{p.Crawl, p.Round, st.Stage}] = st.Done == 0 && st.Attempts == 0
}

// allDone reports whether an earlier Read found the stage finished. If so, this StatusReader does not
// look for records that attempts have written since that Read.
func (r *StatusReader) allDone(p *manifest.Plan, stage stages.Stage) bool {
	return r.known.done[stageKey{p.Crawl, p.Round, stage}] != nil
}

// keepDone keeps the attempts at a finished stage: each task has a result and the record of a
// successful attempt.
func (r *StatusReader) keepDone(p *manifest.Plan, stage stages.Stage, missing int, attempts map[int][]*manifest.Attempt) {
	for n := range stage.Tasks(p) {
		recorded := false
		for _, a := range attempts[n] {
			recorded = recorded || a.Class == manifest.ClassDone
		}
		if missing > 0 || !recorded {
			return
		}
	}
	if r.known.done == nil {
		r.known.done = map[stageKey]map[int][]*manifest.Attempt{}
	}
	r.known.done[stageKey{p.Crawl, p.Round, stage}] = attempts
}

// mayHaveChanged returns those fetch tasks whose checkpoint may have changed since the last Read.
// tasks are fetch tasks without a result. A task has no checkpoint before an attempt takes its
// partition.
func (r *StatusReader) mayHaveChanged(ctx context.Context, p *manifest.Plan, tasks []stages.Task) ([]stages.Task, error) {
	now := r.now()
	var again []stages.Task
	for _, t := range tasks {
		k := r.known.checkpoints[t]
		ask := k == nil || k.status != nil && !now.Before(k.until)
		if !ask && k.status == nil {
			taken, err := r.taken(ctx, p)
			if err != nil {
				return nil, err
			}
			ask = taken[t.Partition]
		}
		if ask {
			again = append(again, t)
		}
	}
	return again, nil
}

// taken returns the partitions of a round that an attempt has taken. It lists them at most once in
// each Read.
func (r *StatusReader) taken(ctx context.Context, p *manifest.Plan) (map[int]bool, error) {
	key := stageKey{crawl: p.Crawl, round: p.Round}
	if all, ok := r.known.taken[key]; ok {
		return all, nil
	}
	all := map[int]bool{}
	for o, err := range r.Bucket.List(ctx, layout.TakenDir(p.Crawl, p.Round)) {
		if err != nil {
			return nil, fmt.Errorf("list the taken partitions of %s.%d: %w", p.Crawl, p.Round, err)
		}
		if n, err := layout.PartOf(o.Key); err == nil {
			all[n] = true
		}
	}
	if r.known.taken == nil {
		r.known.taken = map[stageKey]map[int]bool{}
	}
	r.known.taken[key] = all
	return all, nil
}

// keepCheckpoint keeps what a checkpoint said. f is nil if there is none.
func (r *StatusReader) keepCheckpoint(t stages.Task, f *FetchStatus, lease time.Duration) {
	k := &knownCheckpoint{status: f}
	if f != nil && !f.Released && !f.Complete && r.Clock != nil {
		k.until = r.now().Add(lease / readsPerLease)
	}
	if r.known.checkpoints == nil {
		r.known.checkpoints = map[stages.Task]*knownCheckpoint{}
	}
	r.known.checkpoints[t] = k
}

// mayHaveResult reports whether a task may have a result that no earlier Read found. A fetch task
// whose partition is not taken, or whose checkpoint is not complete, has none. (Fetch tasks of a
// reparse take no partition, so for them it returns true.)
func (r *StatusReader) mayHaveResult(ctx context.Context, p *manifest.Plan, t stages.Task) (bool, error) {
	k := r.known.checkpoints[t]
	if t.Stage != stages.Fetch || k == nil || layout.IsReparse(t.Crawl) {
		return true, nil
	}
	if k.status != nil {
		return k.status.Complete, nil
	}
	taken, err := r.taken(ctx, p)
	return taken[t.Partition], err
}

// lookedForLosses reports whether a Read within the last minute searched this ledger and found no
// lost object.
func (r *StatusReader) lookedForLosses(l *ledger.Ledger) bool {
	return r.Clock != nil && r.known.ledger != "" && r.known.ledger == digestOf(l) && r.now().Sub(r.known.looked) < lossesEvery
}

// keepLosses notes the time and the outcome of a search for lost objects.
func (r *StatusReader) keepLosses(s *Status, l *ledger.Ledger) {
	r.known.ledger, r.known.looked = "", r.now()
	if len(s.Lost) == 0 {
		r.known.ledger = digestOf(l)
	}
}

// digestOf returns the digest of a ledger's newest entry.
func digestOf(l *ledger.Ledger) string {
	if all := l.Entries(); len(all) > 0 {
		return all[len(all)-1].Digest
	}
	return ""
}
