package show

import (
	"time"

	"crawlbatch.io/crawlbatch/stages"
)

// rate is how fast URLs get their outcome, over the last minute.
type rate struct {
	samples []sample
}

type sample struct {
	at time.Time
	n  int64
}

const rateSpan = time.Minute

// take notes how many there are now, and gives how many came a second.
func (r *rate) take(now time.Time, n int64) float64 {
	r.samples = append(r.samples, sample{now, n})
	for len(r.samples) > 2 && now.Sub(r.samples[1].at) >= rateSpan {
		r.samples = r.samples[1:]
	}
	first := r.samples[0]
	if d := now.Sub(first.at); d >= time.Second && n > first.n {
		return float64(n-first.n) / d.Seconds()
	}
	return 0
}

// scale is how long tasks really take, compared with what the plan predicts.
type scale struct {
	began          map[int]time.Time
	planned, taken float64 // seconds, of tasks that ran from beginning to end here
}

func (s *scale) begin(partition int, now time.Time) {
	if s.began == nil {
		s.began = map[int]time.Time{}
	}
	if _, ok := s.began[partition]; !ok {
		s.began[partition] = now
	}
}

func (s *scale) learn(partition int, planned float64, now time.Time) {
	if began, ok := s.began[partition]; ok && planned > 0 {
		s.planned += planned
		s.taken += now.Sub(began).Seconds()
	}
}

func (s *scale) of(planned float64) float64 {
	if s.planned == 0 {
		return planned
	}
	return planned * s.taken / s.planned
}

// remaining predicts how long the fetch stage takes from here: the tasks that run, as
// they predict it themselves, then those that have not begun, on the lanes that come
// free. p.mu is held.
func (p *Progress) remaining(running map[int]stages.Activity) time.Duration {
	var lanes []float64
	for _, a := range running {
		lanes = append(lanes, a.Remaining.Seconds())
	}
	at := p.FetchTasks
	if at == 0 {
		at = len(p.start.Missing)
	}
	for len(lanes) < min(at, len(p.start.Missing)) {
		lanes = append(lanes, 0)
	}
	var last float64
	for _, t := range p.start.Missing {
		if _, ok := running[t.Partition]; ok || p.finished[t.Partition] {
			continue
		}
		first := 0
		for i := range lanes {
			if lanes[i] < lanes[first] {
				first = i
			}
		}
		lanes[first] += p.scale.of(p.start.Plan.Partitions[t.Partition].EstimatedSeconds)
	}
	for _, l := range lanes {
		last = max(last, l)
	}
	return time.Duration(last * float64(time.Second))
}
