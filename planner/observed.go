package planner

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/pace"
	"crawlbatch.io/crawlbatch/planner/source"
)

// observation holds the pace and the address of a host in an earlier round.
type observation struct {
	Hash    uint64 // hash of the domain
	Host    string
	Place   int64 // place among all observations; the newest one is the last
	DelayMS int64
	Address string

	Answered  bool    // whether the host answered a request, so that LatencyMS is known
	LatencyMS float64 // mean time until a response begins
	PerURL    float64 // requests for each planned URL, without robots.txt
	Limited   bool    // whether the host limited the rate of requests, or its breaker opened
	Requested bool    // as source.Host.Requested; if false, only Rank is known

	Further     int64   // requests after the first one
	SpanMS      int64   // time from the first to the last request, without pauses of the whole crawl
	Unreachable bool    // whether all tries for robots.txt failed, so that no page was requested
	Rank        float64 // as source.Host.Rank
}

// An observation adds priorURLs URLs, with one request each, to the URLs that were observed. The
// retries of a few URLs therefore say little about many URLs.
const priorURLs = 5

// paceRequests is the least number of requests from which the pace of a host is taken, if so many are
// known. A round of a few requests says little about the pace, and less about that of many requests.
const paceRequests = 50

// retryPause is the mean time for which a failed or repeated request can hold up its host: the pauses
// after 429 and 503 take minutes, all others less. A host whose requests all succeeded has no pauses
// of its own. If its time is longer than its delays, the crawl was paused or interrupted.
const retryPause = time.Minute

// newObservation returns the observation of a host. similar means that the plan has the format fromSimilar or
// a newer one.
func newObservation(h *source.Host, place int64, similar bool) observation {
	o := observation{
		Hash: urlkey.Hash(h.Domain), Host: h.Host, Place: place, Address: h.Address, PerURL: 1,
		Limited: h.FailedRate > 0 || h.BreakerEvents > 0, Requested: h.Requested(), Rank: max(h.Rank, 0),
	}
	if h.DelayMS != nil {
		o.DelayMS = *h.DelayMS
	}
	if h.LatencyMS != nil {
		o.Answered, o.LatencyMS = true, max(*h.LatencyMS, 0)
	}
	if h.Planned > 0 { // otherwise all requests followed redirects from other hosts
		// A planned URL without a request was deferred or denied, and may need one in the next round.
		o.PerURL = max(1, float64(h.Requests-1+priorURLs)/float64(h.Planned+priorURLs))
	}
	o.Unreachable = h.RobotsState == robotsUnreachable
	if o.Further = max(h.Requests-1, 0); h.FirstRequest > 0 {
		each := max(float64(o.DelayMS), o.LatencyMS)
		if similar && o.LatencyMS > float64(pace.SlowFrom.Milliseconds()) { // its delay follows its latest responses (politeness.slow_factor)
			each = max(each, 2*o.LatencyMS)
		}
		usual := float64(o.Further) * each
		failed := h.FailedRate + h.FailedHTTP5xx + h.FailedDNS + h.FailedTimeout + max(o.Further-h.Planned, 0)
		o.SpanMS = h.LastRequest - h.FirstRequest
		if !o.Unreachable {
			o.SpanMS = min(o.SpanMS, int64(usual)+failed*retryPause.Milliseconds())
		}
	}
	return o
}

// robotsUnreachable is the RobotsState of a host whose robots.txt could not be fetched.
const robotsUnreachable = "unreachable"

// means sums up the observations of all hosts.
type means struct {
	urls    int64
	seconds float64 // time of all requests that were answered

	hosts, unreachable int64 // hosts that were requested, and those whose robots.txt could not be fetched
}

// Of hosts that no round has observed, one in priorHosts is taken to have a robots.txt that cannot be
// fetched. The prior counts as much as the observations of priorHosts hosts.
const priorHosts = 50

// unreachableShare returns the expected share of hosts whose robots.txt cannot be fetched.
func (m *means) unreachableShare() float64 {
	return float64(m.unreachable+1) / float64(m.hosts+priorHosts)
}

func (m *means) add(h *source.Host) {
	if h.LatencyMS != nil && h.Planned > 0 {
		m.urls += min(h.Planned, max(h.Requests, 0)) // the others were deferred or denied
		m.seconds += float64(max(h.Requests, 0)) * max(*h.LatencyMS, 0) / 1000
	}
}

// service returns the mean time in which the requests for a URL were answered. If no round has
// observed it, service returns the given time.
func (m *means) service(otherwise time.Duration) time.Duration {
	if m.urls == 0 {
		return otherwise
	}
	return time.Duration(m.seconds / float64(m.urls) * float64(time.Second))
}

// compareObservations compares observations by domain and host. The newest observation of a host
// comes first.
func compareObservations(a, b *observation) int {
	return cmp.Or(cmp.Compare(a.Hash, b.Hash), strings.Compare(a.Host, b.Host), cmp.Compare(b.Place, a.Place))
}

// sortObservations sorts the observations of earlier rounds, and returns their means. It leaves out hosts
// that no round requested, unless a budget needs ranks.
func (r *rules) sortObservations(hosts iter.Seq2[source.Host, error], s *sorters[observation]) (m means, err error) {
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
		o := newObservation(&h, n, r.format() >= fromSimilar)
		m.add(&h)
		if o.Requested {
			m.hosts++
		}
		if o.Unreachable {
			m.unreachable++
		}
		if err := sorted.Add(&o); err != nil {
			return m, err
		}
		n++
	}
	return m, nil
}

// observations returns a cursor over sorted observations, or nil if there are none.
type observations func(ctx context.Context) *table.Cursor[observation]

// observed returns the sorted observations of a sorter.
func observed(s *sorters[observation]) observations {
	return func(ctx context.Context) *table.Cursor[observation] {
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
	err = ofGroup(w.observed, w.cur.Hash, func(o *observation) {
		h := w.hosts[o.Host]
		if h == nil || !o.Requested {
			return
		}
		if newest := !h.observed; newest && h.n > most && o.Address != "" {
			most, address = h.n, urlkey.Hash(o.Address)
		}
		enough := int64(paceRequests)
		if w.rules.format() >= fromSimilar {
			enough = max(enough, int64(float64(h.n)*max(h.perURL, 1)))
		}
		h.observe(o, enough)
	})
	return address, err
}

// observe adds an observation of the host. The newest observation comes first. The pace is taken from the
// newest rounds that have the given number of requests together.
func (h *hostCount) observe(o *observation, enough int64) {
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

// newest visits the newest observation of each host of a group that a round requested, and leaves the
// cursor behind the group.
func newest(observed *table.Cursor[observation], hash uint64, visit func(*observation)) error {
	host := ""
	return ofGroup(observed, hash, func(o *observation) {
		if o.Requested && o.Host != host {
			host = strings.Clone(o.Host)
			visit(o)
		}
	})
}

// ofGroup visits the observations of a group in their order, and leaves the cursor behind the group.
func ofGroup(observed *table.Cursor[observation], hash uint64, visit func(*observation)) error {
	for {
		o, err := observed.Peek()
		if o == nil || o.Hash > hash {
			return err
		}
		if o.Hash == hash {
			visit(o)
		}
		if _, err := observed.Next(); err != nil {
			return err
		}
	}
}
