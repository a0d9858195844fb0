package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/http1"
)

// robotsTask asks for the robots.txt of one origin. Whoever has its item has the task,
// but for the fields that the crawl's mutex guards.
type robotsTask struct {
	id      int64 // of its items, negative
	entry   *robotscache.Entry
	next    string // URL to ask for: the origin's, or where that redirects
	nextAt  string // host of next
	hops    int
	tries   int32
	retries manifest.RetryCounts
	record  segments.Record    // requests and captures that are not recorded yet
	answer  robotscache.Record // the last response

	// Guarded by the crawl's mutex:
	kept *manifest.OriginRetry // its state in a checkpoint; nil: none
	due  time.Time             // of its next try
}

var errCutOff = errors.New("the answer broke off")

// newRobotsTask makes the task for an entry that the cache had unknown.
func (c *crawl) newRobotsTask(e *robotscache.Entry) *robotsTask {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastRobotsTask--
	rt := &robotsTask{id: c.lastRobotsTask, entry: e, next: e.URL(), nextAt: e.Host}
	c.robotsTasks[rt.id] = rt
	return rt
}

func (c *crawl) robotsTaskOf(id int64) *robotsTask {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.robotsTasks[id]
}

// askRobots spends a turn on an origin's robots.txt, or on where it redirects.
func (c *crawl) askRobots(ctx context.Context, t *polite.Turn, rt *robotsTask) {
	rt.tries++
	s := c.send(ctx, t, ask{purpose: schema.ForRobots, url: rt.next, attempt: rt.tries})
	defer s.x.Release()
	if s.recorded() {
		rt.record.Requests = append(rt.record.Requests, s.row)
	}
	item := &polite.Item{ID: rt.id, Urgent: true}
	if s.aborted() {
		rt.tries-- // the same try, once more
		item.NotBefore = c.afterAbort(s)
		t.Done(polite.Result{Again: item})
		return
	}
	rt.answer = robotscache.Record{At: s.at}
	if s.x.Status != 0 {
		c.captureRobots(rt, s)
	}
	if s.err == nil && response.IsRedirect(s.x) {
		if target, _, err := response.Location(c.canon, s.x, rt.next); err == nil && rt.hops < robots.MaxRedirects {
			rt.hops++
			rt.next, rt.nextAt = target.URL, target.Host
			rt.tries = 0
			c.passOn(t, target.Host, item)
			return
		}
	}
	c.robotsAnswered(t, rt, s, item)
}

// captureRobots archives a response to a robots.txt request.
func (c *crawl) captureRobots(rt *robotsTask, s *sent) {
	key, err := c.canon.Canonical(rt.next, "") // where a redirect leads need not be canonical
	if err != nil {
		return
	}
	if cp, ok := c.archive(s, key, schema.SubsetRobots, nil); ok {
		rt.record.Captures = append(rt.record.Captures, cp)
		rt.answer.File, rt.answer.Offset, rt.answer.Length = cp.WARCFilename, cp.WARCRecordOffset, cp.WARCRecordLength
	}
}

// passOn ends a turn whose redirect goes on with a request to a host.
func (c *crawl) passOn(t *polite.Turn, host string, item *polite.Item) {
	r := polite.Result{Class: polite.Success}
	if host == t.Host {
		r.Again = item
	} else {
		c.sched.Push(host, *item)
	}
	t.Done(r)
}

// robotsAnswered takes the last response to a robots.txt request.
func (c *crawl) robotsAnswered(t *polite.Turn, rt *robotsTask, s *sent, item *polite.Item) {
	err, why := s.err, failureOf(s.err)
	if err == nil && (s.x.BodyTruncated == http1.TruncTime || s.x.BodyTruncated == http1.TruncDisconnect) {
		err = errCutOff
		why = response.Failed("it broke off", "%s: what it forbids further on is not known", s.x.BodyTruncated)
	}
	switch robots.FetchClass(s.x.Status, err) {
	case robots.Rules:
		rules := &robotscache.Rules{
			Group: robots.Parse(s.x.Body).For(c.token), Digest: response.DigestValue(s.x.PayloadDigest), Record: rt.answer,
		}
		c.robotsLearned(rt, rules, bytes.Clone(s.x.Body[:min(len(s.x.Body), robots.MaxBytes)])) // the exchange is reused
		t.Done(polite.Result{Class: polite.Success})
	case robots.NoFile:
		c.robotsLearned(rt, &robotscache.Rules{Group: robots.AllowAll(), Record: rt.answer}, nil)
		t.Done(polite.Result{Class: response.OfStatus(s.x.Status, false).Health})
	case robots.Unreachable:
		v := response.Verdict{Outcome: schema.RobotsUnreachable, Retry: response.AfterTimeout, Health: polite.Failure}
		switch {
		case s.err != nil:
			v = response.OfError(s.err)
			if v.Outcome == schema.ConnectError {
				v.Retry = response.AfterTimeout // all URLs of the origin depend on this one request
			}
		case err == nil:
			v = response.OfStatus(s.x.Status, s.retryAfter > 0)
			why.Phrase = fmt.Sprintf("HTTP status %d", s.x.Status)
		}
		c.robotsUnreachable(t, rt, s, v, why, item)
	}
}

// robotsLearned puts the rules of a robots.txt in force and records them with the file's
// text.
func (c *crawl) robotsLearned(rt *robotsTask, rules *robotscache.Rules, text []byte) {
	row, err := c.robots.Learn(rt.entry, rules)
	if err != nil {
		c.fail(err)
	}
	row.Body = text
	c.recordRobots(rt, row)
}

// robotsUnreachable has a robots.txt that could not be had asked for again, or ends the
// origin's URLs.
func (c *crawl) robotsUnreachable(t *polite.Turn, rt *robotsTask, s *sent, v response.Verdict, why response.Failure, item *polite.Item) {
	r := polite.Result{Class: v.Health, RetryAfter: s.retryAfter}
	own := t.Host == rt.entry.Host
	outcome := unreachable(s.err, v.Outcome, own)
	told := s.what(v.Outcome)
	if c.retry(&rt.retries, v.Retry, told, t.Host, item, &r) ||
		outcome == schema.RobotsUnreachable && v.Retry != response.Never && c.retry(&rt.retries, response.ForRobots, told, t.Host, item, &r) {
		b := rt.record
		b.OnRecorded = func() { c.keepRobotsTask(rt, t.Host, told, item.NotBefore) }
		c.failures.note(schema.RobotsUnreachable, rt.entry.Host, "robots.txt "+told, c.clock.Now())
		rt.record = segments.Record{}
		c.record(&b)
		t.Done(r)
		return
	}
	c.recordRobots(rt, c.robots.Fail(rt.entry, robotscache.Failure{Outcome: outcome, Why: why}))
	if own {
		c.finishFailed(t)
	}
	t.Done(r)
}

// recordRobots ends a robots task and records its requests with what is known of the
// robots.txt now; nil if other attempts must not know it.
func (c *crawl) recordRobots(rt *robotsTask, row *schema.RobotsFile) {
	b := rt.record
	b.Robots = row
	b.OnRecorded = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.robotsTasks, rt.id)
	}
	c.record(&b)
}

// finishFailed ends the URLs of a host whose robots.txt could not be had, within the turn
// that found out: they need no request and no wait for one.
func (c *crawl) finishFailed(t *polite.Turn) {
	for it, ok := t.Another(); ok; it, ok = t.Another() {
		if it.ID < 0 {
			t.PutBack(it)
			return
		}
		v, err := c.visit(it.ID)
		if err != nil {
			c.fail(err)
			return
		}
		f, failed := c.robots.Failed(c.robots.Entry(v.key))
		if !failed {
			t.PutBack(it)
			return
		}
		c.finish(v, f.Outcome, f.Why)
	}
}

// unreachable is the outcome of URLs whose robots.txt could not be had: if not even a
// connection to their own host could be made, they would have failed the same way.
func unreachable(err error, class schema.Outcome, own bool) schema.Outcome {
	if !own && class != schema.AddressBlocked {
		return schema.RobotsUnreachable
	}
	switch class {
	case schema.DNSError, schema.TLSError, schema.AddressBlocked, schema.InternalError:
		return class
	case schema.ConnectError:
		if errors.Is(err, wire.ErrConnect) {
			return class
		}
	}
	return schema.RobotsUnreachable
}

// keepRobotsTask notes for the next checkpoint that a robots.txt waits to be asked for
// again.
func (c *crawl) keepRobotsTask(rt *robotsTask, host, why string, due time.Time) {
	kept := &manifest.OriginRetry{
		Origin: rt.entry.Root, Next: rt.next, Host: host, Hops: rt.hops, Tries: rt.tries, Why: why, RetryCounts: rt.retries,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	rt.kept, rt.due = kept, due
}
