package merge

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// hostRows makes a row for each host of the partition's domains. A robots.txt may redirect to a host
// of another domain. hostRows ignores requests to such a host, because another partition has its row.
// Callers must add fetches first, then captures of robots.txt, then requests by host and start.
type hostRows struct {
	byName  map[string]*hostState
	domains map[string]bool
}

// hostState is a host's row under construction.
type hostState struct {
	row         schema.Host
	latency     int64        // sum of the times to first byte, in microseconds
	responses   int64        // number of requests that had a first byte
	rules       bool         // whether a robots.txt of the host was read
	unreachable bool         // whether a robots.txt of the host could not be fetched
	asked       bool         // whether this or an earlier round requested a robots.txt of the host
	answered    bool         // whether a request for robots.txt got a response that is neither 429 nor 5xx
	digest      robotsDigest // digest of the robots.txt that the host itself served
	effective   robotsDigest // digest of the rules that applied to the host's pages, even if another host served them
	known       robotsDigest // digest of the robots.txt in the task's robots cache, perhaps from an earlier round
	lastPurpose schema.Purpose
	suspended   bool // whether the breaker was open when the window closed
}

// robotsDigest is the digest of one of a host's robots.txt files. It prefers a file from https to one
// from http. Between two files of one scheme, it prefers the lesser digest, so that the order of
// downloads does not matter.
type robotsDigest struct {
	digest string
	secure bool
}

// see replaces the digest if the new one is preferred. secure says that the file came from https.
func (d *robotsDigest) see(digest string, secure bool) {
	if digest == "" {
		return
	}
	if d.digest == "" || secure && !d.secure || secure == d.secure && digest < d.digest {
		d.digest, d.secure = strings.Clone(digest), secure // a row's texts share their memory
	}
}

func newHosts() *hostRows {
	return &hostRows{byName: map[string]*hostState{}, domains: map[string]bool{}}
}

// stateOf returns the state of a host, or nil if the host's domain is not in the partition.
func (h *hostRows) stateOf(host, domain string) *hostState {
	if s := h.byName[host]; s != nil {
		return s
	}
	if domain == "" {
		k, err := urlkey.KeyOf("http://" + host + "/")
		if err != nil {
			return nil
		}
		domain = k.Domain
	}
	if !h.domains[domain] {
		return nil
	}
	host, domain = strings.Clone(host), strings.Clone(domain)
	s := &hostState{row: schema.Host{Host: host, Domain: domain}}
	h.byName[host] = s
	return s
}

// countFetch counts the outcome of a planned URL.
func (h *hostRows) countFetch(f *schema.Fetch) {
	if !h.domains[f.Domain] {
		h.domains[strings.Clone(f.Domain)] = true
	}
	s := h.stateOf(f.Host, f.Domain)
	r := &s.row
	r.Planned++
	switch f.Outcome {
	case schema.OK, schema.NotModified:
		r.Fetched++
	case schema.Redirected:
		r.Redirected++
	case schema.HTTP4xx:
		r.FailedHTTP4xx++
	case schema.HTTP5xx:
		r.FailedHTTP5xx++
	case schema.RateLimited:
		r.FailedRate++
	case schema.Blocked, schema.PaymentRequired:
		r.Refused++
	case schema.DNSError:
		r.FailedDNS++
	case schema.ConnectError:
		r.FailedConnect++
	case schema.TLSError:
		r.FailedTLS++
	case schema.Timeout:
		r.FailedTimeout++
	case schema.ProtocolError, schema.RedirectLimit:
		r.FailedProtocol++
	case schema.RobotsDenied, schema.RobotsUnreachable:
		r.RobotsDenied++
	default:
		r.Other++
	}
	s.unreachable = s.unreachable || f.Outcome == schema.RobotsUnreachable
	s.rules = s.rules || f.RobotsRule != ""
	s.suspended = s.suspended || f.Outcome == schema.HostSuspended
}

// robots notes the digest of a robots.txt that the host itself served.
func (h *hostRows) robots(c *schema.Capture) {
	if c.FetchStatus < 200 || c.FetchStatus > 299 || c.Path != "/robots.txt" || c.Query != "" {
		return
	}
	k, err := urlkey.KeyOf(c.URL)
	if err != nil {
		return
	}
	if s := h.stateOf(k.Host, k.Domain); s != nil {
		s.rules = true
		s.digest.see(c.ContentDigest, c.Protocol == "https")
	}
}

// requested counts a request. The requests of a host must come in order of time.
func (h *hostRows) requested(q *schema.Request) {
	s := h.stateOf(q.Host, "")
	if s == nil {
		return
	}
	r := &s.row
	if q.BytesSent > 0 {
		r.Requests++
		if r.FirstRequest == 0 {
			r.FirstRequest = q.Start
		}
		r.LastRequest = q.Start
		s.seeRobots(q)
	}
	r.Bytes += q.BytesReceived
	r.DelayMS = new(q.DelayMS)
	if q.Status != 0 {
		if q.FirstByteUS != nil {
			s.latency += *q.FirstByteUS
		}
		s.responses++
	}
	if a, err := netip.ParseAddrPort(q.Address); err == nil {
		r.Address = a.Addr().String()
	}
	// The fetcher sends probes only while the breaker is open. Consecutive probes mean that it opened
	// once, so only the first of them counts.
	if q.Purpose == schema.ForProbe && s.lastPurpose != schema.ForProbe {
		r.BreakerEvents++
	}
	if s.lastPurpose != q.Purpose {
		s.lastPurpose = schema.Purpose(strings.Clone(string(q.Purpose)))
	}
}

// seeRobots notes what a sent request shows about its host's robots.txt.
func (s *hostState) seeRobots(q *schema.Request) {
	if q.Purpose == schema.ForRobots {
		s.asked = true
		s.answered = s.answered || q.Status > 0 && q.Status < 500 && q.Status != http.StatusTooManyRequests
		s.row.RobotsAt = q.Start
	}
	if q.RobotsFile != "" { // a robots.txt of this or an earlier round allowed the request
		s.asked, s.answered = true, true
	}
	if q.RobotsDigest != "" {
		s.rules = true
		s.effective.see(q.RobotsDigest, strings.HasPrefix(q.URL, "https:"))
	}
}

// finish computes the columns that depend on all outcomes and requests.
func (s *hostState) finish() *schema.Host {
	r := &s.row
	r.RobotsDigest = s.robotsDigest()
	switch {
	case s.rules:
		r.RobotsState = "rules"
	case s.unreachable:
		r.RobotsState = "unreachable"
	case s.asked && !s.answered: // every try failed, and no URL waited for the last try
		r.RobotsState = "unreachable"
	case s.asked:
		r.RobotsState = "none"
	}
	if s.responses > 0 {
		r.LatencyMS = float64(s.latency) / 1000 / float64(s.responses)
	}
	if s.suspended && r.BreakerEvents == 0 {
		r.BreakerEvents = 1 // the breaker opened, and the window closed before a probe was sent
	}
	return r
}

// robotsDigest returns the digest for the host's row. Files of both schemes may differ, and some rounds read only one
// of them again. A file from https comes first, from wherever its digest is known, so that the digest stays the same.
func (s *hostState) robotsDigest() string {
	known := []robotsDigest{s.digest, s.effective, s.known}
	if i := slices.IndexFunc(known, func(d robotsDigest) bool { return d.secure }); i >= 0 {
		return known[i].digest
	}
	return cmp.Or(known...).digest
}

// robotsRow holds the columns that merge reads from the working file robots of fetch.
type robotsRow struct {
	Origin string `parquet:"origin"`
	Host   string `parquet:"host"`
	Digest string `parquet:"digest,optional"`
}

// readRobots reads the digests of the robots.txt files that apply. No request shows the digest if a
// robots.txt of an earlier round denies all URLs of its host.
func (m *merger) readRobots(ctx context.Context) error {
	for row, err := range table.Concat[robotsRow](ctx, m.env.Bucket, m.keys(stages.FileRobots, "")) {
		if err != nil {
			return err
		}
		if s := m.hosts.byName[row.Host]; s != nil && s.rules {
			s.known.see(row.Digest, strings.HasPrefix(row.Origin, "https:"))
		}
	}
	return nil
}

// writeHosts writes the working file hosts.
func (m *merger) writeHosts(ctx context.Context) error {
	return keep(ctx, m, stages.FileHosts, []string{"host"}, func(w *table.Writer[schema.Host]) error {
		for _, name := range slices.Sorted(maps.Keys(m.hosts.byName)) {
			if err := w.Append(m.hosts.byName[name].finish()); err != nil {
				return err
			}
		}
		return nil
	})
}
