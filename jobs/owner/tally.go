package owner

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
)

// tally collects a summary.
type tally struct {
	Summary
	purposes, statuses, outcomes map[string]int64
	known                        bool
	lastHost                     string
	hosts                        map[string]bool        // hosts with a request, unless there are more than mostHosts
	sent                         map[string]schema.Time // start of the last request to each host, unless there are more than mostHosts
	robots                       robotsReads
	pruned                       map[string]pruning // by crawl
	external                     bool               // whether the responses of the present crawl are in the WARC files of another store
}

// robotsReads sums up all reads of robots.txt. Summary.Robots lists only some of them.
type robotsReads struct {
	host, at    string // the newest read that got an answer; "" if there was none
	unreachable bool   // whether a robots.txt was unreachable in some round
}

// add adds a read that got an answer.
func (r *robotsReads) add(host, at string) {
	if at > r.at {
		r.host, r.at = strings.Clone(host), at
	}
}

// request adds a request to the summary. It returns the number of requests that were sent: 0 or 1.
func (t *tally) request(r *schema.Request) int64 {
	t.known = true
	t.purposes[string(r.Purpose)]++
	switch {
	case r.Status != 0:
		t.statuses[fmt.Sprint(r.Status)]++
	default:
		t.statuses[cmp.Or(r.ErrorClass, "aborted")]++
	}
	if r.BytesSent == 0 {
		t.Unconnected++
		return 0
	}
	if r.Host != t.lastHost && t.countHost(r.Host) {
		t.Hosts++
	}
	t.lastHost = r.Host
	t.Requests++
	t.BytesSent += r.BytesSent
	t.BytesReceived += r.BytesReceived
	if at := r.Start.String(); t.First == "" || at < t.First {
		t.First = at
	}
	t.Last = max(t.Last, r.Start.String())
	if r.GapMS != nil && (t.SmallestGapMS == nil || *r.GapMS < *t.SmallestGapMS) {
		t.SmallestGapMS, t.DelayThenMS = r.GapMS, r.DelayMS
	}
	delay := r.DelayMS
	if t.SmallestDelay == nil || delay < *t.SmallestDelay {
		t.SmallestDelay = &delay
	}
	if t.LargestDelay == nil || delay > *t.LargestDelay {
		t.LargestDelay = &delay
	}
	return 1
}

// completeGap computes the gap before the first request of an attempt to a host. The table lacks it,
// because the attempt does not know when the attempt before sent its last request. If the clocks of two
// machines contradict the order of the requests, the gap stays unknown.
func (t *tally) completeGap(r *schema.Request) {
	if r.BytesSent == 0 {
		return
	}
	last, known := t.sent[r.Host]
	if gap := r.Start.Sub(last).Milliseconds(); known && r.GapMS == nil && gap >= 0 {
		r.GapMS = &gap
	}
	if t.sent == nil {
		t.sent = map[string]schema.Time{}
	}
	if known || len(t.sent) < mostHosts {
		t.sent[strings.Clone(r.Host)] = r.Start
	}
}

// mostHosts bounds the memory for the names of a domain's hosts.
const mostHosts = 100_000

// countHost reports whether a host is new.
func (t *tally) countHost(host string) bool {
	if t.hosts == nil {
		t.hosts = map[string]bool{}
	}
	if t.hosts[host] || len(t.hosts) == mostHosts {
		return false
	}
	t.hosts[host] = true
	return true
}

// robotsOf records what a finished round read as the robots.txt of a host.
func (t *tally) robotsOf(round string, h *schema.Host) {
	switch at := h.RobotsAt.String(); {
	case h.RobotsState == "":
		return
	case h.RobotsState == stateUnreachable:
		t.robots.unreachable = true
	default:
		t.robots.add(h.Host, at)
	}
	if len(t.Robots) < mostRobots {
		t.Robots = append(t.Robots, RobotsRead{round, h.Host, h.RobotsState, h.RobotsDigest, h.RobotsAt.String()})
	}
}

// stateUnreachable is the state of a robots.txt that could not be read.
const stateUnreachable = "unreachable"

// readRobots records when an unfinished round last read the robots.txt of a host, and the digest of
// the file. Only later requests to the host name this digest. The round's entries are
// t.Robots[from:].
func (t *tally) readRobots(round string, r *schema.Request, from int) {
	if r.Purpose == schema.ForRobots && conclusive(r.Status) {
		t.robots.add(r.Host, r.Start.String())
	}
	at := slices.IndexFunc(t.Robots[from:], func(e RobotsRead) bool { return e.Host == r.Host })
	switch {
	case at >= 0 && r.Purpose == schema.ForRobots && conclusive(r.Status):
		t.Robots[from+at].ReadAt = r.Start.String()
	case at >= 0 && r.RobotsDigest != "":
		t.Robots[from+at].Digest = r.RobotsDigest
	case at < 0 && len(t.Robots) < mostRobots && r.Purpose == schema.ForRobots && conclusive(r.Status):
		t.Robots = append(t.Robots, RobotsRead{Round: round, Host: r.Host, ReadAt: r.Start.String()})
	}
}

// conclusive reports whether a response to a request for robots.txt says what the file allows. After 429
// or 5xx, the crawler asks again and requests no page meanwhile.
func conclusive(status int16) bool {
	return status > 0 && status < 500 && status != http.StatusTooManyRequests
}

// capture adds a response to the summary, as stored or as deleted.
func (t *tally) capture(ctx context.Context, b store.Bucket, subset string, c *capture) error {
	if deleted, err := t.deleted(ctx, b, c); deleted || err != nil {
		return err
	}
	switch subset {
	case schema.SubsetWARC:
		t.Stored.Documents++
	case schema.SubsetDiagnostics:
		t.Stored.Diagnostics++
	case schema.SubsetRobots:
		t.Stored.RobotsFiles++
	}
	t.Stored.Bytes += int64(c.Length)
	t.Stored.WARCFiles = addOnce(t.Stored.WARCFiles, c.File, mostFiles)
	return nil
}
