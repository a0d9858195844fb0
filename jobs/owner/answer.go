package owner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// NotRequested is the purpose of a row about a URL that got no request: a planned URL, or the target of its
// redirect that robots.txt denied.
const NotRequested = "not_requested"

// Row is a request, or a planned URL that got no request. A nil pointer and an empty text mean that
// the value does not exist.
type Row struct {
	Round         string `json:"round"` // such as 2026-11.0
	Time          string `json:"time"`  // when the request was written or, without a request, when the outcome was decided; RFC 3339 in UTC
	Host          string `json:"host"`
	Purpose       string `json:"purpose"`     // page, redirect, robots, sitemap, probe or not_requested
	URL           string `json:"url"`         // of a request: as it was sent, as the server's log has it
	PlannedURL    string `json:"planned_url"` // planned URL for which the request was sent
	Status        *int16 `json:"http_status"`
	Outcome       string `json:"outcome"`        // for a failed request, its class; for a URL without a request, the reason
	RobotsAllowed *bool  `json:"robots_allowed"` // whether robots.txt allows the URL; nil for requests for robots.txt, and if robots.txt was not consulted
	RobotsRule    string `json:"robots_rule"`    // line of robots.txt that decided; "" if no rule matched
	RobotsDigest  string `json:"robots_digest"`  // SHA-1 of the robots.txt that applied, base 32
	DelayMS       *int64 `json:"delay_ms"`       // delay in force, milliseconds
	GapMS         *int64 `json:"gap_ms"`         // time since the previous request to the host, of whichever attempt and round, milliseconds; nil for the first one
	Address       string `json:"address"`
	BytesSent     int64  `json:"bytes_sent"` // 0: there was no connection
	BytesReceived int64  `json:"bytes_received"`
	TotalMS       *int64 `json:"total_ms"`
	Error         string `json:"error"`
}

// Count is a number with its name.
type Count struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// RobotsRead says what a round read as the robots.txt of a host.
type RobotsRead struct {
	Round  string `json:"round"`
	Host   string `json:"host"`
	State  string `json:"state"`  // rules, none (4xx) or unreachable; "" in an unfinished round
	Digest string `json:"digest"` // SHA-1, base 32
	ReadAt string `json:"read_at"`
}

// Part sums up what one round of the crawl did to the target.
type Part struct {
	Round    string `json:"round"`
	Finished bool   `json:"finished"` // false: the round still runs, and only checkpoints count
	Planned  int64  `json:"planned"`  // planned URLs
	Requests int64  `json:"requests"` // recorded requests that were sent

	Killed []Killed `json:"killed,omitempty"` // attempts that sent requests without recording them; empty if unfinished
}

// Stored counts the stored responses of the target.
type Stored struct {
	Documents   int64     `json:"documents"`   // responses with content, and pages that did not change
	Diagnostics int64     `json:"diagnostics"` // redirects and errors
	RobotsFiles int64     `json:"robots_files"`
	Bytes       int64     `json:"bytes"`             // compressed size of the WARC records
	WARCFiles   []string  `json:"warc_files"`        // keys of at most 1000 WARC files with the records
	Deleted     []Deleted `json:"deleted,omitempty"` // responses that the other fields do not count; by crawl, oldest first
}

// Summary is the answer without the rows.
type Summary struct {
	Month         string       `json:"month"`            // with --all-months, such as 2026-01 to 2026-11
	Pruned        []string     `json:"pruned,omitempty"` // crawls that were deleted by age, so that the answer lacks them
	Host          string       `json:"host"`             // "" for a whole domain
	Domain        string       `json:"domain"`
	Hosts         int64        `json:"hosts"` // hosts with a request
	Rounds        []Part       `json:"rounds"`
	Requests      int64        `json:"requests"`      // requests sent
	Unconnected   int64        `json:"unconnected"`   // attempts that got no connection
	NotRequested  int64        `json:"not_requested"` // planned URLs without a request
	BytesSent     int64        `json:"bytes_sent"`
	BytesReceived int64        `json:"bytes_received"`
	First         string       `json:"first"` // time of the first request; "" if there was none
	Last          string       `json:"last"`
	SmallestGapMS *int64       `json:"smallest_gap_ms"`
	DelayThenMS   int64        `json:"delay_at_smallest_gap_ms"`
	SmallestDelay *int64       `json:"smallest_delay_ms"`
	LargestDelay  *int64       `json:"largest_delay_ms"`
	Purposes      []Count      `json:"purposes"`
	Statuses      []Count      `json:"statuses"` // of requests: HTTP status, or class of failure
	Outcomes      []Count      `json:"outcomes"` // of planned URLs
	BreakerEvents int64        `json:"breaker_events"`
	Robots        []RobotsRead `json:"robots"` // at most 50, of the oldest rounds
	Stored        Stored       `json:"stored"`
	Stops         []Stop       `json:"stops"` // stops by people, ended ones included, by crawl, oldest first
	UserAgent     string       `json:"user_agent"`
	Reply         string       `json:"reply"` // text to reply with
}

// Stop is a stop of the target, or of its domain, by a person. It holds for the rounds of one crawl.
type Stop struct {
	Crawl string `json:"crawl"`
	ledger.Stop
}

// line says what was stopped, and where. newest is the newest crawl of the question: stops of earlier ones
// keep no request away any more.
func (s *Stop) line(newest string) string {
	text := s.Crawl + ": " + s.String()
	if s.Crawl != newest && s.Ended == "" {
		text += " (for this crawl only)"
	}
	return text
}

// stops returns the stops that concern the target.
func (q *Question) stops(ctx context.Context) ([]Stop, error) {
	l, err := ledger.Load(ctx, q.Bucket, q.Crawl)
	if err != nil {
		return nil, err
	}
	var found []Stop
	matches := q.Target.matcher()
	for _, s := range l.Stops() {
		if s.Domain == q.Target.Domain || s.Host != "" && matches(s.Host) {
			found = append(found, Stop{q.Crawl, s})
		}
	}
	return found, nil
}

// mostRobots and mostFiles bound the lists of a summary.
const (
	mostRobots = 50
	mostFiles  = 1000
)

// Answer calls each with every row, in the order of rounds. In a round, requests come first, sorted
// by host and time; the URLs without a request follow. If the crawl does not know the target, Answer
// does not call each, and the error wraps ErrUnknown. The answer about earlier crawls comes first. It needs
// memory for one round at a time, and about 100 bytes for each round.
func (q *Question) Answer(ctx context.Context, each func(*Row) error) (*Summary, error) {
	t := tally{
		Summary:  Summary{Month: q.months(), Host: q.Target.Host, Domain: q.Target.Domain, UserAgent: q.Config.UserAgent},
		purposes: map[string]int64{}, statuses: map[string]int64{}, outcomes: map[string]int64{},
	}
	for _, crawl := range q.Earlier {
		err := q.about(crawl).crawl(ctx, &t, each)
		if errors.Is(err, ledger.ErrPruned) {
			t.Pruned = append(t.Pruned, crawl)
		} else if err != nil {
			return nil, err
		}
	}
	stoppedBefore := len(t.Stops)
	if err := q.crawl(ctx, &t, each); err != nil {
		return nil, err
	}
	if !t.known {
		rounds, err := q.rounds(ctx)
		if err != nil {
			return nil, err
		}
		return nil, q.unknown(ctx, rounds)
	}
	t.Purposes, t.Statuses, t.Outcomes = counts(t.purposes), counts(t.statuses), counts(t.outcomes)
	t.Reply = t.reply(q.Config, q.Crawl, t.Stops[stoppedBefore:])
	return &t.Summary, nil
}

// about returns the question about another crawl.
func (q *Question) about(crawl string) *Question {
	other := *q
	other.Crawl, other.Earlier = crawl, nil
	return &other
}

// months names the crawls of the question.
func (q *Question) months() string {
	if len(q.Earlier) == 0 {
		return q.Crawl
	}
	return q.Earlier[0] + " to " + q.Crawl
}

// crawl adds the rounds and the stops of the question's crawl to the summary.
func (q *Question) crawl(ctx context.Context, t *tally, each func(*Row) error) error {
	rounds, err := q.rounds(ctx)
	if err != nil {
		return err
	}
	of, err := roundstate.ReparseOf(ctx, q.Bucket, q.Crawl)
	if err != nil {
		return err
	}
	t.external = of != nil && of.Of == ""
	for _, r := range rounds {
		if err := q.round(ctx, r, t, each); err != nil {
			return fmt.Errorf("%s in round %s: %w", q.Target, r.name, lost(err))
		}
	}
	stops, err := q.stops(ctx)
	t.Stops = append(t.Stops, stops...)
	return err
}

// round adds one round's requests, outcomes and stored responses to the summary.
func (q *Question) round(ctx context.Context, r *round, t *tally, each func(*Row) error) error {
	part := Part{Round: r.name, Finished: r.finished}
	for h, err := range q.hosts(ctx, r) {
		if err != nil {
			return err
		}
		t.known = true
		part.Planned += h.Planned
		t.BreakerEvents += int64(h.BreakerEvents)
		t.robotsOf(r.name, &h)
	}
	if !r.finished {
		n, err := q.planned(ctx, r)
		if err != nil {
			return err
		}
		part.Planned = n
		t.known = t.known || n > 0
	} else if part.Planned > 0 {
		var err error
		if part.Killed, err = q.killed(ctx, r.number); err != nil {
			return err
		}
	}
	reads := len(t.Robots)
	for request, err := range q.requests(ctx, r) {
		if err != nil {
			return err
		}
		t.completeGap(&request)
		part.Requests += t.request(&request)
		if !r.finished {
			t.readRobots(r.name, &request, reads)
		}
		if err := each(requestRow(r.name, &request)); err != nil {
			return err
		}
	}
	for f, err := range q.fetches(ctx, r) {
		if err != nil {
			return err
		}
		t.known = true
		t.outcomes[string(f.Outcome)]++
		row := notRequested(r.name, &f)
		if row == nil {
			continue
		}
		t.NotRequested += one(f.Attempts == 0)
		if err := each(row); err != nil {
			return err
		}
	}
	t.Rounds = append(t.Rounds, part)
	return q.captures(ctx, r, func(subset string, c *capture) error { return t.capture(ctx, q.Bucket, subset, c) })
}

// requestRow returns the row of a request.
func requestRow(round string, r *schema.Request) *Row {
	row := &Row{
		Round: round, Time: r.Start.String(), Host: r.Host, Purpose: string(r.Purpose), URL: cmp.Or(r.Sent, r.URL), PlannedURL: r.PlannedURL,
		Outcome: r.ErrorClass, RobotsRule: r.RobotsRule, RobotsDigest: r.RobotsDigest, DelayMS: &r.DelayMS, GapMS: r.GapMS,
		Address: r.Address, BytesSent: r.BytesSent, BytesReceived: r.BytesReceived, TotalMS: &r.TotalMS, Error: r.Error,
	}
	if r.Status != 0 {
		row.Status = &r.Status
	}
	if r.Purpose != schema.ForRobots {
		allowed := true // a request that robots.txt denies is never sent
		row.RobotsAllowed = &allowed
	}
	return row
}

// notRequested returns the row of a URL that got no request: a planned URL, or the target of a planned
// URL's redirect that robots.txt denied. It returns nil if all requests for the planned URL were sent.
func notRequested(round string, f *schema.Fetch) *Row {
	row := &Row{
		Round: round, Time: f.RecordedAt.String(), Host: f.Host, Purpose: NotRequested, URL: f.URL, PlannedURL: f.URL,
		Outcome: string(f.Outcome), RobotsAllowed: f.RobotsAllowed, RobotsRule: f.RobotsRule, Error: f.Error,
	}
	if f.Attempts == 0 {
		return row
	}
	target, rule, ok := schema.DeniedRedirect(f.Error, f.ErrorDetail)
	if f.Outcome != schema.RobotsDenied || !ok {
		return nil
	}
	row.URL, row.RobotsAllowed, row.RobotsRule = target, new(bool), rule
	row.Host = cmp.Or(hostOf(target), f.Host)
	return row
}

// one returns 1 if a condition holds, otherwise 0.
func one(condition bool) int64 {
	if condition {
		return 1
	}
	return 0
}

// counts returns the numbers in a map, sorted by name.
func counts(m map[string]int64) []Count {
	list := make([]Count, 0, len(m))
	for name, n := range m {
		list = append(list, Count{name, n})
	}
	slices.SortFunc(list, func(a, b Count) int { return strings.Compare(a.Name, b.Name) })
	return list
}
