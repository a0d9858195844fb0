package pace

import (
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// Observation holds the pace and the address of a host in an earlier round.
type Observation struct {
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

// An observation adds PriorURLs URLs, with one request each, to the URLs that were observed. The
// retries of a few URLs therefore say little about many URLs.
const PriorURLs = 5

// RetryPause is the mean time for which a failed or repeated request can hold up its host: the pauses
// after 429 and 503 take minutes, all others less. A host whose requests all succeeded has no pauses
// of its own. If its time is longer than its delays, the crawl was paused or interrupted.
const RetryPause = time.Minute

// NewObservation returns the observation of a host.
func NewObservation(h *source.Host, place int64) Observation {
	o := Observation{
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
		o.PerURL = max(1, float64(h.Requests-1+PriorURLs)/float64(h.Planned+PriorURLs))
	}
	o.Unreachable = h.RobotsState == robotsUnreachable
	if o.Further = max(h.Requests-1, 0); h.FirstRequest > 0 {
		each := max(float64(o.DelayMS), o.LatencyMS)
		if o.LatencyMS > float64(SlowFrom.Milliseconds()) { // its delay follows its latest responses (politeness.slow_factor)
			each = max(each, 2*o.LatencyMS)
		}
		usual := float64(o.Further) * each
		failed := h.FailedRate + h.FailedHTTP5xx + h.FailedDNS + h.FailedTimeout + max(o.Further-h.Planned, 0)
		o.SpanMS = h.LastRequest.Sub(h.FirstRequest).Milliseconds()
		if !o.Unreachable {
			o.SpanMS = min(o.SpanMS, int64(usual)+failed*RetryPause.Milliseconds())
		}
	}
	return o
}

// robotsUnreachable is the RobotsState of a host whose robots.txt could not be fetched.
const robotsUnreachable = "unreachable"

// Means sums up the observations of all hosts.
type Means struct {
	urls    int64
	seconds float64 // time of all requests that were answered

	Hosts, Unreachable int64 // hosts that were requested, and those whose robots.txt could not be fetched
}

// Of hosts that no round has observed, one in PriorHosts is taken to have a robots.txt that cannot be
// fetched. The prior counts as much as the observations of PriorHosts hosts.
const PriorHosts = 50

// UnreachableShare returns the expected share of hosts whose robots.txt cannot be fetched.
func (m *Means) UnreachableShare() float64 {
	return float64(m.Unreachable+1) / float64(m.Hosts+PriorHosts)
}

// Add adds what a round observed of a host.
func (m *Means) Add(h *source.Host) {
	if h.LatencyMS != nil && h.Planned > 0 {
		m.urls += min(h.Planned, max(h.Requests, 0)) // the others were deferred or denied
		m.seconds += float64(max(h.Requests, 0)) * max(*h.LatencyMS, 0) / 1000
	}
}

// Service returns the mean time in which the requests for a URL were answered. If no round has
// observed it, Service returns the given time.
func (m *Means) Service(otherwise time.Duration) time.Duration {
	if m.urls == 0 {
		return otherwise
	}
	return time.Duration(m.seconds / float64(m.urls) * float64(time.Second))
}

// ObservationKey appends a key that orders observations by domain and host. The newest observation of a host
// comes first.
func ObservationKey(k table.Key, o *Observation) table.Key {
	return k.Uint(o.Hash).Text(o.Host).Int(^o.Place)
}

// Newest visits the newest observation of each host of a group that a round requested, and leaves the
// cursor behind the group.
func Newest(observed *table.Cursor[Observation], hash uint64, visit func(*Observation)) error {
	host := ""
	return OfGroup(observed, hash, func(o *Observation) {
		if o.Requested && o.Host != host {
			host = strings.Clone(o.Host)
			visit(o)
		}
	})
}

// OfGroup visits the observations of a group in their order, and leaves the cursor behind the group.
func OfGroup(observed *table.Cursor[Observation], hash uint64, visit func(*Observation)) error {
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

// AddressOf returns the hash of the address at which a round found a host, or 0 if there is none.
func AddressOf(o *Observation) uint64 {
	if o.Address == "" {
		return 0
	}
	return urlkey.Hash(o.Address)
}
