package fetch

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/request"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// urlTask is a planned URL on its way to its outcome. Only the goroutine that has the grant for the
// URL uses its urlTask.
type urlTask struct {
	row     int64
	planned schema.PlannedRow
	key     urlkey.Key       // URL to request next: the planned URL or a redirect's target
	sent    string           // that URL as it is sent; "" if canonical
	met     []manifest.Hop   // hops of the redirect chain so far
	cookies response.Cookies // cookies that the chain has received
	retries manifest.RetryCounts
	tries   int32         // number of requests for the URL in key
	plain   bool          // requests have no condition, because the server refused one
	passing bool          // whether that URL is planned or reserved, and the chain passes through it
	why     string        // last failure of that URL, in words for people
	rules   *robots.Group // robots rules that allow the current request
	// detected is the media type of the current response, "" until its first bytes arrive. A
	// callback of the exchange sets it before the request returns.
	detected string

	// The fetcher's mutex guards the next two fields.
	due  time.Time          // time of the task's next try; zero means as soon as its host is due
	kept *manifest.URLRetry // state of the task for a checkpoint; nil if it has none

	fetch    schema.Fetch // row of fetches for the planned URL, filled step by step
	requests []schema.Request
	captures []segments.Capture
	links    []schema.Link // rows of links for the redirects of the chain
}

// asked returns the URL to send next.
func (u *urlTask) asked() string { return cmp.Or(u.sent, u.key.URL) }

// requested reports whether the redirect chain has already requested a URL (before), and whether the next request, for
// the same URL as it is sent, would equal one of the chain, with the same cookies (alike): only then is the chain a loop.
func (u *urlTask) requested(url, asked string) (before, alike bool) {
	for _, h := range u.met {
		before = before || h.URL == url
		alike = alike || h.Asked() == asked && h.Cookie == u.cookies.Field(asked)
	}
	return before, alike
}

// urlTask returns the URL task of a planned row, and makes it if necessary. The caller has the
// grant for the row, so no other goroutine uses it.
func (f *fetcher) urlTask(row int64) (*urlTask, error) {
	f.mu.Lock()
	u := f.urlTasks[row]
	f.mu.Unlock()
	if u != nil {
		return u, nil
	}
	p, err := f.index.Row(row)
	if err != nil {
		return nil, err
	}
	return &urlTask{
		row: row, planned: p, sent: p.Sent, key: urlkey.Key{URL: p.URL, SURT: p.SURT, Host: p.Host, Domain: p.Domain},
		fetch: schema.Fetch{
			SURT: p.SURT, URL: p.URL, Host: p.Host, Domain: p.Domain, Priority: p.Priority, Depth: p.Depth, PlannedRow: int32(row), Form: p.Form, Listing: p.Listing, PlannedFor: p.PlannedFor,
		},
	}, nil
}

// hostOf returns the host of the next request for a planned row or a sitemap.
func (f *fetcher) hostOf(t manifest.Trying) string {
	if t.Sitemap != "" {
		return f.sitemaps.Host(t.Sitemap)
	}
	u, err := f.urlTask(t.Row)
	if err != nil {
		return ""
	}
	return u.key.Host
}

// keep stores a URL task that continues with a later grant. due is the earliest time of that grant;
// zero means as soon as the host is due.
func (f *fetcher) keep(u *urlTask, due time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u.due = due
	f.urlTasks[u.row] = u
}

// keepRecorded is like keep, for a URL task whose requests are all recorded. Checkpoints hold the
// state of such a task, so that the next attempt can continue it.
func (f *fetcher) keepRecorded(u *urlTask, due time.Time) {
	kept := &manifest.URLRetry{
		Row: u.row, Attempts: u.fetch.Attempts, Why: u.why, RetryCounts: u.retries,
	}
	if len(u.met) > 0 {
		kept.Chain = &manifest.Chain{Met: slices.Clone(u.met), Next: u.asked(), Tries: u.tries, Fetch: u.fetch}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	u.kept, u.due = kept, due
	f.urlTasks[u.row] = u
}

// resume restores a URL task from its state in a checkpoint.
func (f *fetcher) resume(u *urlTask, r *manifest.URLRetry) error {
	u.tries, u.fetch.Attempts, u.why, u.retries = r.Attempts, r.Attempts, r.Why, r.RetryCounts
	if r.Chain == nil {
		return nil
	}
	key, sent, err := f.canon.Sent(r.Chain.Next, "")
	if err != nil || r.Chain.Fetch.URL != u.planned.URL || len(r.Chain.Met) == 0 {
		return fmt.Errorf("it holds a redirect chain from %s to the invalid URL %q: %w", u.planned.URL, r.Chain.Next, manifest.ErrCorrupt)
	}
	u.key, u.sent, u.met, u.tries, u.fetch = key, sent, r.Chain.Met, r.Chain.Tries, r.Chain.Fetch
	u.fetch.Listing, u.fetch.PlannedFor = u.planned.Listing, u.planned.PlannedFor
	for i, h := range u.met {
		u.cookies.Resume(h)
		if i > 0 {
			f.claim(h.URL)
		}
	}
	f.claim(key.URL)
	return nil
}

// takeRows moves the rows that are not recorded yet from the URL task to a record. The caller
// records them before the task ends.
func (u *urlTask) takeRows(onRecorded func()) *segments.Record {
	b := &segments.Record{Requests: u.requests, Captures: u.captures, Links: u.links, OnRecorded: onRecorded}
	u.requests, u.captures, u.links = nil, nil, nil
	return b
}

// finish ends a URL task with an outcome and records it. Before that, it lets the functions in more
// change the record.
func (f *fetcher) finish(u *urlTask, outcome schema.Outcome, why response.Failure, more ...func(*segments.Record)) {
	u.fetch.Outcome = outcome
	u.fetch.Error, u.fetch.ErrorDetail = response.Bounded(why.Phrase), response.Bounded(why.Detail)
	u.fetch.RecordedAt = schema.TimeOf(f.clock.Now())
	f.failures.NoteOutcome(&u.fetch, u.key.Host, f.clock.Now())
	if f.trace != nil {
		f.trace(&u.fetch, u.requests)
	}
	b := &segments.Record{Row: u.row, Fetch: &u.fetch, Requests: u.requests, Captures: u.captures, Links: u.links, OnRecorded: func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.urlTasks, u.row)
	}}
	for _, add := range more {
		add(b)
	}
	if err := f.sink.Emit(b); err != nil {
		f.fail(err)
		return
	}
	f.progress.Add(stages.CountURLs, 1)
	f.progress.Add(stages.CountRecorded+string(outcome), 1)
	if b.Page != nil {
		f.progress.Add(stages.CountPages, 1)
	}
}

// noteVerdict writes the verdict of robots.txt on the planned URL into the row of fetches.
func (u *urlTask) noteVerdict(r robots.Verdict) {
	allowed := r.Allowed
	u.fetch.RobotsAllowed, u.fetch.RobotsRule = &allowed, r.Rule
}

// note adds a request to the rows of the URL task.
func (u *urlTask) note(s *request.Sent) {
	if s.Recorded() {
		u.requests = append(u.requests, s.Row)
	}
	if s.At.IsZero() {
		return
	}
	if len(u.met) == 0 || u.tries > 1 {
		u.fetch.Attempts++ // the first request for a redirect's target is not another attempt
	}
	u.fetch.FetchedAt = schema.TimeOf(s.At)
	total := s.Row.TotalMS
	u.fetch.TotalMS, u.fetch.TotalUS = &total, s.Row.TotalUS
	u.fetch.WireBytes += s.Exchange.BytesIn
	if s.Exchange.Status == 0 {
		return
	}
	u.fetch.HTTPStatus = int16(s.Exchange.Status)
	u.fetch.FinalURL = u.key.URL
	u.fetch.MimeType = strings.Clone(mediatype.Essence(s.Exchange.Header.Get("Content-Type"))) // a copy, so that a waiting task does not keep the whole head in memory
	u.fetch.ETag, u.fetch.LastModified = "", ""
	if !u.plain {
		u.fetch.ETag, u.fetch.LastModified = response.Validators(s.Exchange, s.At)
	}
	u.fetch.Truncated = response.Truncation(s.Exchange)
	u.fetch.RetryAfterMS = s.RetryMS
	if u.fetch.Price = ""; s.Exchange.Status == http.StatusPaymentRequired {
		u.fetch.Price = strings.Clone(response.Bounded(s.Exchange.Header.Get("Crawler-Price")))
	}
}

// A gate sets a cookie and redirects back. It is another URL's target, and perhaps planned itself, but not where chains
// end. So a chain with a cookie passes through URLs that are planned or reserved, unless another chain ended there: a
// login page, for example, is fetched once.

// noteChain notes whether a URL redirects, or ended a redirect chain.
func (f *fetcher) noteChain(url string, redirects bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := xxh3.HashString(url); redirects || !f.gates[h] {
		f.gates[h] = redirects
	}
}

// endsAt reports whether a URL ended a redirect chain, and never redirected.
func (f *fetcher) endsAt(url string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	redirects, known := f.gates[xxh3.HashString(url)]
	return known && !redirects
}

// mayPass reports whether a chain with a cookie may pass through a URL on its way. from and to are the last URL and this one,
// as they are sent. A planned URL is perhaps just the new place of the page, which its own task fetches. So it must be known
// to redirect, or only add to the query, as a test for cookies does.
func (f *fetcher) mayPass(url, from, to string, planned bool) bool {
	if f.endsAt(url) {
		return false
	}
	if !planned || strings.HasPrefix(to, from+"?") || strings.HasPrefix(to, from+"&") {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gates[xxh3.HashString(url)]
}

// claim reserves a redirect's target or a sitemap's URL, so that it is not fetched twice. It
// returns false if it was reserved before.
func (f *fetcher) claim(url string) bool {
	h := xxh3.HashString(url)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.claims[h]; ok {
		return false
	}
	f.claims[h] = struct{}{}
	return true
}
