package fetch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// visit is a planned URL on its way to its outcome. One turn at a time holds it.
type visit struct {
	row     int64
	planned schema.PlannedURL
	key     urlkey.Key       // of the URL to ask for next: the planned one, or a redirect's target
	spelled string           // key, as the redirect to it spells it; "": as key does
	known   schema.Spellings // of key, where it is not planned
	met     []manifest.Hop   // of the chain before it
	cookies response.Cookies // that the chain set
	retries manifest.RetryCounts
	tries   int32         // requests sent for the URL in key
	why     string        // what the next try waits for, for people
	rules   *robots.Group // that allowed the request under way
	// detected is the media type of the answer under way, from its first bytes; "" while
	// they have not come. The exchange's goroutine sets it, send waits for that.
	detected string

	// Guarded by the crawl's mutex:
	due  time.Time          // of its next try, where it waits for one
	kept *manifest.URLRetry // what a checkpoint says of that

	fetch    schema.Fetch // as far as it is known
	requests []schema.Request
	captures []segments.Capture
	links    []schema.Link // redirects that were answered
}

// spellings are the ways other than its canonical form in which its own domain or a
// source names the URL to ask for next: as the plan knows them, be the URL planned or
// not, and as the redirect to it has it.
func (v *visit) spellings() []string {
	all := []string(v.known)
	if v.key.URL == v.planned.URL {
		all = v.planned.Spellings
	}
	if v.spelled != "" && !slices.Contains(all, v.spelled) {
		all = append(slices.Clip(all), v.spelled)
	}
	return all
}

// asked reports whether the chain has asked for a URL before, and whether it would
// do so with the same cookies again.
func (v *visit) asked(url string) (before, alike bool) {
	for _, h := range v.met {
		if h.URL == url {
			before = true
			alike = alike || h.Cookie == v.cookies.Field(url)
		}
	}
	return before, alike
}

// visit gives the visit of a planned row, begun or new. The caller has the row's
// turn, so nobody else asks for it.
func (c *crawl) visit(row int64) (*visit, error) {
	c.mu.Lock()
	v := c.visits[row]
	c.mu.Unlock()
	if v != nil {
		return v, nil
	}
	p, err := c.planned.Row(row)
	if err != nil {
		return nil, err
	}
	return &visit{
		row: row, planned: p, key: urlkey.Key{URL: p.URL, SURT: p.SURT, Host: p.Host, Domain: p.Domain},
		fetch: schema.Fetch{
			SURT: p.SURT, URL: p.URL, Host: p.Host, Domain: p.Domain, Priority: p.Priority, Depth: p.Depth, PlannedRow: int32(row),
		},
	}, nil
}

// keep remembers a visit that goes on at a later turn, at the given time; zero: at
// its host's next.
func (c *crawl) keep(v *visit, due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v.due = due
	c.visits[v.row] = v
}

// keepRecorded is keep for a visit of which everything sent and answered is recorded:
// the next attempt goes on from here.
func (c *crawl) keepRecorded(v *visit, due time.Time) {
	kept := &manifest.URLRetry{
		Row: v.row, Attempts: v.fetch.Attempts, Why: v.why,
		RetryCounts: v.retries,
	}
	if len(v.met) > 0 {
		kept.Chain = &manifest.Chain{Met: slices.Clone(v.met), Next: cmp.Or(v.spelled, v.key.URL), Tries: v.tries, Fetch: v.fetch}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	v.kept, v.due = kept, due
	c.visits[v.row] = v
}

// resume has a visit go on where a checkpoint says that it was.
func (c *crawl) resume(v *visit, r *manifest.URLRetry) error {
	v.tries, v.fetch.Attempts, v.why, v.retries = r.Attempts, r.Attempts, r.Why, r.RetryCounts
	if r.Chain == nil {
		return nil
	}
	key, spelled, err := c.canon.Spelled(r.Chain.Next, "")
	if err != nil || r.Chain.Fetch.URL != v.planned.URL || len(r.Chain.Met) == 0 {
		return fmt.Errorf("it follows %s to %q: %w", v.planned.URL, r.Chain.Next, manifest.ErrCorrupt)
	}
	if v.known, err = c.planned.Spellings(key); err != nil {
		return err
	}
	v.key, v.spelled, v.met, v.tries, v.fetch = key, spelled, r.Chain.Met, r.Chain.Tries, r.Chain.Fetch
	for i, h := range v.met {
		v.cookies.Resume(h)
		if i > 0 {
			c.claim(h.URL)
		}
	}
	c.claim(key.URL)
	return nil
}

// evidence takes what was sent and answered since it was last recorded, to be
// recorded before the visit ends.
func (v *visit) evidence(settle func()) *segments.Record {
	b := &segments.Record{Requests: v.requests, Captures: v.captures, Links: v.links, OnRecorded: settle}
	v.requests, v.captures, v.links = nil, nil, nil
	return b
}

// finish gives a visit its outcome and records it.
func (c *crawl) finish(v *visit, outcome schema.Outcome, why response.Failure, more ...func(*segments.Record)) {
	v.fetch.Outcome = outcome
	v.fetch.Error, v.fetch.ErrorDetail = response.Bounded(why.Phrase), response.Bounded(why.Detail)
	v.fetch.RecordedAt = c.clock.Now().UnixMilli()
	c.failures.of(v, outcome, c.clock.Now())
	b := &segments.Record{Row: v.row, Fetch: &v.fetch, Requests: v.requests, Captures: v.captures, Links: v.links, OnRecorded: func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.visits, v.row)
	}}
	for _, f := range more {
		f(b)
	}
	if err := c.sink.Emit(b); err != nil {
		c.fail(err)
		return
	}
	c.progress.Add(stages.CountURLs, 1)
	c.progress.Add(stages.CountRecorded+string(outcome), 1)
	if b.Page != nil {
		c.progress.Add(stages.CountPages, 1)
	}
}

// judge notes the verdict of robots.txt on the planned URL.
func (v *visit) judge(r robots.Verdict) {
	allowed := r.Allowed
	v.fetch.RobotsAllowed, v.fetch.RobotsRule = &allowed, r.Rule
}

// note takes a request that was made for the visit into its row.
func (v *visit) note(s *sent) {
	if s.recorded() {
		v.requests = append(v.requests, s.row)
	}
	if s.at.IsZero() {
		return
	}
	if len(v.met) == 0 || v.tries > 1 {
		v.fetch.Attempts++ // a redirect's hop is none, its repetition is
	}
	v.fetch.FetchedAt = s.at.UnixMilli()
	total := s.row.TotalMS
	v.fetch.TotalMS, v.fetch.TotalUS = &total, s.row.TotalUS
	v.fetch.WireBytes += s.x.BytesIn
	if s.x.Status == 0 {
		return
	}
	v.fetch.HTTPStatus = int16(s.x.Status)
	v.fetch.FinalURL = v.key.URL
	v.fetch.MimeType = strings.Clone(mediatype.Essence(s.x.Header.Get("Content-Type"))) // a visit that waits must not keep the whole head
	v.fetch.ETag, v.fetch.LastModified = response.Validators(s.x)
	v.fetch.Truncated = response.Truncation(s.x)
	v.fetch.RetryAfterMS = s.retryMS
}

// claim takes a redirect's target for this visit; false if another visit took it
// before, so that it is not fetched twice.
func (c *crawl) claim(url string) bool {
	h := xxh3.HashString(url)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.claims[h]; ok {
		return false
	}
	c.claims[h] = struct{}{}
	return true
}

func millis(d time.Duration) int64 { return d.Milliseconds() }
