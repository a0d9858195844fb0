package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/challenge"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/request"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/retries"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/sitemaps"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// robotsTask requests the robots.txt of one origin. It belongs to the goroutine that has the grant
// for its item; the fetcher's mutex guards some fields.
type robotsTask struct {
	id      int64 // ID of the task's items; negative
	entry   *robotscache.Entry
	next    string // URL to send next: the origin's robots.txt or a redirect's target
	nextAt  string // host of the URL to request next
	hops    int
	tries   int32
	retries manifest.RetryCounts
	met     []manifest.Hop     // hops that set cookies
	cookies response.Cookies   // cookies that the redirects have set
	why     error              // reason why the redirect of the last response is not followed; nil if it may be followed
	record  segments.Record    // requests and captures that are not recorded yet
	answer  robotscache.Record // WARC record of the last response

	// The fetcher's mutex guards the next two fields.
	kept *manifest.OriginRetry // state of the task for a checkpoint; nil if it has none
	due  time.Time             // when the task's next try is due
}

var (
	errCutOff   = errors.New("the answer broke off")
	errRefused  = errors.New("a service in front of the site refused the request")
	errLater    = errors.New("it is to be asked for later")
	errOptedOut = errors.New("it redirects to a URL of the opt-out list")
)

// newRobotsTask makes the robots task for an entry without rules.
func (f *fetcher) newRobotsTask(e *robotscache.Entry) *robotsTask {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastRobotsTask--
	rt := &robotsTask{id: f.lastRobotsTask, entry: e, next: e.URL(), nextAt: e.Host}
	f.robotsTasks[rt.id] = rt
	return rt
}

func (f *fetcher) robotsTaskOf(id int64) *robotsTask {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.robotsTasks[id]
}

// askRobots uses a grant for the next request of a robots task.
func (f *fetcher) askRobots(ctx context.Context, g *polite.Grant, rt *robotsTask) {
	rt.tries++
	key, sent, err := f.canon.Sent(rt.next, "")
	if err != nil { // never, because it was made of a key
		f.fail(err)
		g.Done(polite.Result{})
		return
	}
	ask := request.Ask{Purpose: schema.ForRobots, URL: key.URL, Sent: sent, Attempt: rt.tries}
	if rt.hops > 0 {
		ask.RobotsFor = rt.entry.URL()
	}
	ask.Carry(&rt.cookies)
	s := f.requests.Send(ctx, g, ask)
	defer s.Exchange.Release()
	if isLater(s) {
		s.Row.Error, s.Row.ErrorClass = errLater.Error(), string(schema.RateLimited)
	}
	if s.Recorded() {
		rt.record.Requests = append(rt.record.Requests, s.Row)
	}
	item := &polite.Item{ID: rt.id, Urgent: true}
	if s.Aborted() {
		rt.tries-- // an aborted request does not count as a try
		item.NotBefore = f.afterAbort(s)
		g.Done(polite.Result{Requeue: item})
		return
	}
	rt.answer = robotscache.Record{At: s.At}
	if s.Exchange.Status != 0 {
		f.captureRobots(rt, key, s)
	}
	if s.Err == nil && response.IsRedirect(s.Exchange) {
		if target, sent, err := response.Location(f.canon, s.Exchange, rt.next); err == nil && f.optedOut(target.URL, sent) {
			rt.why = errOptedOut
		} else if err == nil && challenge.Gate(target.URL) != "" {
			rt.why = errRefused
		} else if err == nil && rt.hops < robots.MaxRedirects {
			rt.hops++
			hop := manifest.Hop{URL: key.URL, Sent: ask.Sent, Certificate: s.Exchange.Certificate}
			if hop.Set = rt.cookies.Take(rt.next, hop.Certificate, s.Exchange.Header); len(hop.Set) > 0 {
				rt.met = append(rt.met, hop)
			}
			rt.next, rt.nextAt = cmp.Or(sent, target.URL), target.Host
			rt.tries = 0
			f.passOn(g, target.Host, item)
			return
		}
	}
	f.handleRobots(g, rt, s, item)
}

// isLater reports whether a 403 in place of a robots.txt asks for a later request, so that it does not say that there is
// no file.
func isLater(s *request.Sent) bool {
	return s.Err == nil && s.Exchange.Status == http.StatusForbidden && s.RetryAfter > 0
}

// captureRobots archives a response to a robots.txt request.
func (f *fetcher) captureRobots(rt *robotsTask, key urlkey.Key, s *request.Sent) {
	if cp, ok := f.archive(s, key, schema.SubsetRobots, nil); ok {
		rt.record.Captures = append(rt.record.Captures, cp)
		rt.answer.File, rt.answer.Offset, rt.answer.Length = cp.WARCFilename, cp.WARCRecordOffset, cp.WARCRecordLength
	}
}

// passOn ends a grant whose response was a redirect. It queues the next request (item) for the
// target's host.
func (f *fetcher) passOn(g *polite.Grant, host string, item *polite.Item) {
	r := polite.Result{Class: polite.Success}
	if host == g.Host {
		r.Requeue = item
	} else {
		f.sched.Push(host, *item)
	}
	g.Done(r)
}

// handleRobots handles the end of a robots.txt request: a response whose redirect is not followed,
// or an error.
func (f *fetcher) handleRobots(g *polite.Grant, rt *robotsTask, s *request.Sent, item *polite.Item) {
	err, why := s.Err, s.Failure()
	if cut := s.Exchange.BodyTruncated; err == nil && (cut == http1.TruncTime || cut == http1.TruncDisconnect) && robots.CutOffFails(s.Exchange.Status) {
		err = errCutOff
		why = response.Failed("it broke off", "%s: what it forbids further on is not known", cut)
	}
	if isLater(s) {
		err, why = errLater, response.Failure{Phrase: errLater.Error()}
	}
	if s.Service != "" {
		err, why = errRefused, response.RefusedBy(s.Service)
	}
	if rt.why != nil {
		err, why = rt.why, response.Failure{Phrase: rt.why.Error()}
	}
	var text []byte
	if err == nil && robots.FetchClass(s.Exchange.Status, nil) == robots.Rules {
		if text, err = response.RobotsText(s.Exchange); err != nil {
			why = response.Failed("it cannot be decoded", "%q: what it forbids is not known", s.Exchange.Header.Get("Content-Encoding"))
		}
	}
	switch robots.FetchClass(s.Exchange.Status, err) {
	case robots.Rules:
		file := robots.Parse(text)
		rules := &robotscache.Rules{
			Group: file.GroupFor(f.token), Digest: response.DigestValue(s.Exchange.PayloadDigest), Record: rt.answer,
		}
		f.learnRobots(rt, rules, bytes.Clone(text)) // a copy, because the exchange's memory is reused
		f.sitemaps.NameAll(rt.entry.URL(), file)
		g.Done(polite.Result{Class: polite.Success})
	case robots.NoFile:
		f.learnRobots(rt, &robotscache.Rules{Group: robots.AllowAll(), Record: rt.answer}, nil)
		g.Done(polite.Result{Class: response.OfStatus(s.Exchange.Status, false).Health})
	case robots.Unreachable:
		v := response.Verdict{Outcome: schema.RobotsUnreachable, Retry: response.AfterTimeout, Health: polite.Failure}
		switch {
		case rt.why == errRefused:
			v.Retry, v.Health = response.Never, polite.Refused
		case rt.why != nil:
			v.Retry, v.Health = response.Never, polite.Success
		case s.Err != nil:
			v = response.OfError(s.Err)
		case err == nil, response.LimitsRate(s.Exchange.Status, s.RetryAfter > 0):
			v = response.OfStatus(s.Exchange.Status, s.RetryAfter > 0)
		}
		if err == nil {
			why.Phrase = fmt.Sprintf("HTTP status %d", s.Exchange.Status)
		}
		f.retryOrFailRobots(g, rt, s, v, why, item)
	}
}

// learnRobots applies the rules of a robots.txt and records them with its text.
func (f *fetcher) learnRobots(rt *robotsTask, rules *robotscache.Rules, text []byte) {
	row, err := f.robots.Learn(rt.entry, rules)
	if err != nil {
		f.fail(err)
	}
	row.Body = text
	f.recordRobots(rt, row)
}

// retryOrFailRobots schedules a new request for a robots.txt that could not be fetched, or ends the
// URLs of its origin.
func (f *fetcher) retryOrFailRobots(g *polite.Grant, rt *robotsTask, s *request.Sent, v response.Verdict, why response.Failure, item *polite.Item) {
	r := polite.Result{Class: v.Health, NoAnswer: v.NoAnswer, RetryAfter: s.RetryAfter}
	own := g.Host == rt.entry.Host
	outcome := unreachableOutcome(s.Err, v.Outcome, own)
	told := s.How(v.Outcome)
	f.failures.Note(v.Outcome, rt.entry.Host, "robots.txt "+told, f.clock.Now())
	stale := rt.why != errOptedOut && f.robots.Stale(rt.entry)
	if f.retry(&rt.retries, v.Retry, told, g.Host, item, &r) ||
		!stale && outcome == schema.RobotsUnreachable && v.Retry != response.Never && f.retry(&rt.retries, response.ForRobots, told, g.Host, item, &r) ||
		!stale && rt.retries.Later == 0 && f.retryLate(&rt.retries, v, told, g.Host, item, &r) {
		b := rt.record
		b.OnRecorded = func() { f.keepRobotsTask(rt, g.Host, told, item.NotBefore) }
		rt.record = segments.Record{}
		f.record(&b)
		g.Done(r)
		return
	}
	if stale {
		f.robots.Extend(rt.entry)
		f.recordRobots(rt, nil)
		g.Done(r)
		return
	}
	f.recordRobots(rt, f.robots.Fail(rt.entry, robotscache.Failure{Outcome: outcome, Why: why}))
	if own {
		f.finishFailed(g)
	}
	g.Done(r)
}

// recordRobots ends a robots task and records its requests. row tells other attempts the state of
// the robots.txt. If row is nil, they request the file again.
func (f *fetcher) recordRobots(rt *robotsTask, row *schema.RobotsFile) {
	b := rt.record
	b.Robots = row
	b.OnRecorded = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.robotsTasks, rt.id)
	}
	f.record(&b)
}

// finishFailed ends the URLs of a host whose robots.txt could not be fetched. One grant is enough
// for all these URLs, because they need no request.
func (f *fetcher) finishFailed(g *polite.Grant) {
	for it, ok := g.Another(); ok; it, ok = g.Another() {
		if it.ID < 0 || it.ID >= sitemaps.FirstID {
			g.PutBack(it)
			return
		}
		u, err := f.urlTask(it.ID)
		if err != nil {
			f.fail(err)
			return
		}
		failure, failed := f.robots.Failed(f.robots.Entry(u.key))
		if !failed {
			g.PutBack(it)
			return
		}
		f.finish(u, failure.Outcome, failure.Why)
	}
}

// unreachableOutcome returns the outcome of URLs whose robots.txt could not be fetched. It is that
// of the request if the cause affects these URLs too, such as a host name without an address. If
// own is false, the request failed on another host, the target of a redirect.
func unreachableOutcome(err error, request schema.Outcome, own bool) schema.Outcome {
	if !own && request != schema.AddressBlocked {
		return schema.RobotsUnreachable
	}
	switch request {
	case schema.DNSError, schema.TLSError, schema.AddressBlocked, schema.InternalError:
		return request
	case schema.ConnectError:
		if errors.Is(err, wire.ErrConnect) {
			return request
		}
	}
	return schema.RobotsUnreachable
}

// keepRobotsTask stores the state of a robots task that waits for another request, so that the next
// checkpoint holds it.
func (f *fetcher) keepRobotsTask(rt *robotsTask, host, why string, due time.Time) {
	kept := &manifest.OriginRetry{
		Origin: rt.entry.Root, Next: rt.next, Host: host, Hops: rt.hops, Met: slices.Clone(rt.met), Tries: rt.tries, Why: why, RetryCounts: rt.retries,
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	rt.kept, rt.due = kept, due
}

// latestRobots returns the origin whose robots.txt may be tried longest if it goes on failing, and when
// its last try ends, at most closes. It returns nil if no robots.txt waits for another try, and none is
// likely to fail because all tries of an earlier round did.
func (f *fetcher) latestRobots(closes time.Time) *stages.Wait {
	f.mu.Lock()
	var waiting []robotsTask
	for _, rt := range f.robotsTasks {
		if rt.kept != nil && rt.kept.Why != "" {
			waiting = append(waiting, robotsTask{entry: rt.entry, kept: rt.kept, due: rt.due})
		}
	}
	f.mu.Unlock()
	var last *stages.Wait
	c := &f.cfg
	if host, limited, until := f.sched.Carried(1 + c.Retries.RateLimited + c.Retries.Robots); host != "" {
		next := until.Add(polite.Longest(polite.PauseAfter(limited+1, c.Pauses.RateLimited)))
		at := retries.LastTry(&c.Retries, &c.Pauses, manifest.RetryCounts{Limited: 1}, limited+1, next, c.RobotsTimeout)
		last = &stages.Wait{Host: host, Why: "answered 429 or 503 in the round before", Until: at}
	}
	for _, rt := range waiting {
		next := slices.MaxFunc([]time.Time{rt.due, f.clock.Now(), f.sched.NotBefore(rt.kept.Host)}, time.Time.Compare)
		at := retries.LastTry(&f.cfg.Retries, &f.cfg.Pauses, rt.kept.RetryCounts, f.sched.Limited(rt.kept.Host), next, f.cfg.RobotsTimeout)
		if last == nil || at.After(last.Until) || at.Equal(last.Until) && rt.entry.Host < last.Host {
			last = &stages.Wait{Host: rt.entry.Host, Why: rt.kept.Why, Until: at}
		}
	}
	if last != nil && !closes.IsZero() && last.Until.After(closes) {
		last.Until = closes
	}
	return last
}
