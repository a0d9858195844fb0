package planner

import (
	"context"
	"iter"
	"time"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/pace"
	"crawlbatch.io/crawlbatch/planner/source"
)

// paceRequests is the least number of requests from which the pace of a host is taken, if so many are
// known. A round of a few requests says little about the pace, and less about that of many requests.
const paceRequests = 50

// sortObservations sorts the observations of earlier rounds, and returns their means. It leaves out hosts
// that no round requested, unless a budget needs ranks.
func (r *rules) sortObservations(hosts iter.Seq2[source.Host, error], s *sorters[pace.Observation]) (m pace.Means, err error) {
	if hosts == nil {
		return m, nil
	}
	sorted, err := s.sorter(r.Memory / 6)
	if err != nil {
		return m, err
	}
	n := int64(0)
	for h, err := range hosts {
		if err != nil {
			return m, err
		}
		if r.Limits.Ranked == 0 && !h.Requested() {
			continue
		}
		o := pace.NewObservation(&h, n)
		m.Add(&h)
		if o.Requested {
			m.Hosts++
		}
		if o.Unreachable {
			m.Unreachable++
		}
		if err := sorted.Add(&o); err != nil {
			return m, err
		}
		n++
	}
	return m, nil
}

// observations returns a cursor over sorted observations, or nil if there are none.
type observations func(ctx context.Context) *table.Cursor[pace.Observation]

// observed returns the sorted observations of a sorter.
func observed(s *sorters[pace.Observation]) observations {
	return func(ctx context.Context) *table.Cursor[pace.Observation] {
		if len(s.all) == 0 {
			return nil
		}
		return table.Pull(s.sorted(ctx))
	}
}

// observe sets the observed pace of the current group's hosts. It picks the host with the most URLs and
// returns the hash of its address, or 0 if no round has observed this host.
func (w *chosenWriter) observe() (address uint64, err error) {
	if w.observed == nil {
		return 0, nil
	}
	most := int64(0)
	err = pace.OfGroup(w.observed, w.cur.Hash, func(o *pace.Observation) {
		h := w.hosts[o.Host]
		if h == nil || !o.Requested {
			return
		}
		if newest := !h.observed; newest && h.n > most && o.Address != "" {
			most, address = h.n, urlkey.Hash(o.Address)
		}
		h.observe(o, max(paceRequests, int64(float64(h.n)*max(h.perURL, 1))))
	})
	return address, err
}

// observe adds an observation of the host. The newest observation comes first. The pace is taken from the
// newest rounds that have the given number of requests together.
func (h *hostCount) observe(o *pace.Observation, enough int64) {
	if !h.observed {
		h.observed, h.delay, h.perURL, h.unreachable = true, time.Duration(o.DelayMS)*time.Millisecond, o.PerURL, o.Unreachable
		if o.Answered {
			h.latency, h.answered = time.Duration(o.LatencyMS*float64(time.Millisecond)), true
		}
	}
	if h.requests > 0 && h.unreachable {
		return
	}
	if h.requests < enough && o.Unreachable == h.unreachable && o.SpanMS > 0 {
		h.requests, h.span = h.requests+o.Further, h.span+time.Duration(o.SpanMS)*time.Millisecond
	}
}
