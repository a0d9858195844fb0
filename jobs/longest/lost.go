package longest

import (
	"context"
	"math"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// span is a time from one moment to another.
type span struct{ from, to schema.Time }

// lostTime says when the task of a host could not send requests.
type lostTime struct {
	paused []span                // pauses by people, oldest first; no two of them overlap
	killed []schema.StageAttempt // killed attempts at the task
	began  schema.Time           // when the first attempt at the task began; 0: unknown
}

// spans returns the times of pauses. A pause that is in force has no end yet.
func spans(pauses []ledger.Pause) (all []span) {
	for _, p := range pauses {
		from, err := time.Parse(time.RFC3339Nano, p.Since)
		if err != nil {
			continue // the ledger holds the text as a process wrote it, and only a display needs the time
		}
		s := span{schema.TimeOf(from), math.MaxInt64}
		if to, err := time.Parse(time.RFC3339Nano, p.Ended); err == nil {
			s.to = schema.TimeOf(to)
		}
		all = append(all, s)
	}
	return all
}

// noticedMS is the time within which all fetch tasks notice a pause, as worker.ControlEvery.
const noticedMS = 10_000

// Paused returns how many milliseconds a crawl was paused between two moments. It leaves out
// pauses that tasks may not have noticed before they ended, or before the second moment.
func Paused(pauses []ledger.Pause, from, to schema.Time) (ms int64) {
	return noticed(spans(pauses), from, to)
}

// noticed is overlap without the spans that cover too little of the time for all tasks to notice the pause.
func noticed(all []span, from, to schema.Time) (ms int64) {
	for i := range all {
		if paused := overlap(all[i:i+1], from, to); paused > noticedMS {
			ms += paused
		}
	}
	return ms
}

// overlap returns how many milliseconds of the time between two moments the spans cover.
func overlap(all []span, from, to schema.Time) (ms int64) {
	for _, s := range all {
		if begin, end := max(s.from, from), min(s.to, to); begin < end {
			ms += end.Sub(begin).Milliseconds()
		}
	}
	return ms
}

// readAttempts reads the attempts at the fetch tasks, if the round's accounts have them. It fills in the
// pauses, the number of killed attempts and the partition whose task ended last. It returns the killed
// attempts at this partition, and when the first attempt there began.
func (r *Round) readAttempts(ctx context.Context, b store.Bucket, p *manifest.Plan, paused []span) (lost []schema.StageAttempt, began schema.Time, err error) {
	fetched, last := span{from: math.MaxInt64}, schema.Time(0)
	killed, first := map[int][]schema.StageAttempt{}, map[int]schema.Time{}
	for a, err := range roundstate.FetchAttempts(ctx, b, p) {
		if err != nil {
			return nil, 0, err
		}
		if dead := killed[int(a.Task)]; len(dead) > 0 && dead[len(dead)-1].EndedAt == 0 {
			dead[len(dead)-1].EndedAt = a.BeganAt // it had died by then
		}
		if n := int(a.Task); a.BeganAt > 0 {
			fetched.from = min(fetched.from, a.BeganAt)
			if first[n] == 0 || a.BeganAt < first[n] {
				first[n] = a.BeganAt
			}
		}
		fetched.to = max(fetched.to, a.EndedAt)
		switch {
		case a.Outcome == manifest.ClassKilled:
			r.Killed++
			killed[int(a.Task)] = append(killed[int(a.Task)], a)
		case a.Outcome == manifest.ClassDone && a.EndedAt > last:
			r.Partition, last = int(a.Task), a.EndedAt
		}
	}
	r.PausedMS = noticed(paused, fetched.from, fetched.to)
	return killed[r.Partition], first[r.Partition], nil
}

// before divides the time from the begin of the first attempt at the task to the first request to the host.
func (l *lostTime) before(first schema.Time) []Time {
	if l.began == 0 || first <= l.began {
		return nil
	}
	paused := noticed(l.paused, l.began, first)
	why := onTurn
	for i := range l.killed {
		if l.killed[i].BeganAt < first {
			why = onLost
		}
	}
	return parts(map[string]int64{onPause: paused, why: first.Sub(l.began).Milliseconds() - paused})
}

// why returns why a request came later than the delay after the request before it, pauses by people aside.
func (l *lostTime) why(before, q *sent) string {
	switch {
	case q.Epoch != before.Epoch && l.died(before, q):
		return onKilled
	case q.Epoch != before.Epoch:
		return onAttempts
	case before.Status == 429 || before.Status == 503:
		return onLimited
	case before.Status >= 500:
		return onServer
	case before.Status == 0:
		return onNoAnswer
	}
	return onOther
}

// died reports whether an attempt was killed between two requests. If the epoch of a killed attempt is not
// known, the time of its beginning decides.
func (l *lostTime) died(before, q *sent) bool {
	for i := range l.killed {
		k := &l.killed[i]
		if k.Epoch != nil && *k.Epoch >= before.Epoch && *k.Epoch < q.Epoch {
			return true
		}
		if k.Epoch == nil && k.BeganAt < q.Start && (k.EndedAt == 0 || k.EndedAt > before.Start) {
			return true
		}
	}
	return false
}
