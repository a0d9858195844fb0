package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/http1"
)

// origin is a scheme, name and port, with its robots.txt. Its fields are guarded
// by the crawl's mutex, but those of the download under way, which the holder of
// its item has.
type origin struct {
	id   int64  // of its items, negative
	url  string // of its robots.txt
	host string // what is paced

	state   robotsState
	known   *inForce // where state is robotsKnown; its rules may be in the rulebook only
	page    rulebookPage
	until   time.Time      // it holds
	outcome schema.Outcome // of the origin's URLs when robots.txt could not be had
	failure response.Failure

	*download // under way; nil: none is
}

// download is what is known of an origin's robots.txt while it is asked for.
type download struct {
	next    string // URL to ask for: the origin's, or where it redirects
	nextAt  string // host of that
	hops    int
	tries   int32
	retries [response.RetryClasses]int
	asked   segments.Record // what was sent and answered since it was last recorded: the hops of a redirect
	answer  record          // the last of them

	kept *manifest.OriginRetry // what a checkpoint says of it; nil: nothing
	due  time.Time             // of its next try, where it waits for one
}

// inForce is what is known of an origin's robots.txt, with the evidence. It does not
// change.
type inForce struct {
	rules  *robots.Group
	digest string // of the file; "" if there is none
	answer record
}

// record is where the answer to a request lies, and when that was written.
type record struct {
	file           string // "": it was not archived
	offset, length int32
	at             time.Time
}

type robotsState uint8

const (
	robotsUnknown robotsState = iota
	robotsPending             // being asked for; the host is blocked
	robotsKnown
	robotsFailed // could not be had
)

var errCutOff = errors.New("the answer broke off")

const robotsPath = "/robots.txt"

// originOf finds or makes the origin of a canonical URL.
func (c *crawl) originOf(key urlkey.Key) *origin {
	scheme, rest, _ := strings.Cut(key.URL, "://")
	authority, _, _ := strings.Cut(rest, "/")
	if i := strings.IndexAny(authority, "?#"); i >= 0 {
		authority = authority[:i]
	}
	root := scheme + "://" + authority
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.origins[root]
	if o == nil {
		o = &origin{id: -int64(len(c.byID) + 1), url: root + robotsPath, host: key.Host}
		c.origins[root] = o
		c.byID = append(c.byID, o)
	}
	return o
}

func (c *crawl) originByID(id int64) *origin {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[-id-1]
}

// rulesOf gives what is known of an origin's robots.txt. When that is nothing, or
// has become too old, the caller gets robotsUnknown and the duty to ask for it;
// its host is blocked until settleRobots.
func (c *crawl) rulesOf(o *origin) (robotsState, *inForce) {
	now := c.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.state == robotsKnown && now.After(o.until) {
		o.state, o.known = robotsUnknown, nil
		c.rules.drop(o)
	}
	switch o.state {
	case robotsKnown:
		known, err := c.rules.rules(o)
		if err != nil {
			c.fail(err)
			return robotsPending, nil
		}
		return robotsKnown, known
	case robotsPending, robotsFailed:
		return o.state, nil
	}
	o.state = robotsPending
	o.download = &download{next: o.url, nextAt: o.host}
	c.pending[o.host]++
	c.sched.Block(o.host)
	return robotsUnknown, nil
}

// settleRobots ends a download. The Crawl-delay is in force before anything else
// is asked of the host. It returns what the next attempt should know of it.
func (c *crawl) settleRobots(o *origin, set func(*origin)) *schema.RobotsFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	set(o)
	row := o.row()
	if o.state == robotsKnown {
		c.keepRules(o)
	} else {
		c.rules.drop(o)
	}
	if c.pending[o.host]--; c.pending[o.host] == 0 {
		delete(c.pending, o.host)
		c.sched.Unblock(o.host)
	}
	return row
}

// keepRules has the rules of an origin that became known paced and kept. The caller
// holds mu.
func (c *crawl) keepRules(o *origin) {
	if d, ok := o.known.rules.Delay(); ok {
		c.sched.SetCrawlDelay(o.host, d)
	}
	if err := c.rules.put(o); err != nil {
		c.fail(err)
	}
}

func (c *crawl) robotsFailed(o *origin, outcome schema.Outcome, why response.Failure) *schema.RobotsFile {
	why.Phrase = "robots.txt: " + why.Phrase
	return c.settleRobots(o, func(o *origin) {
		o.state, o.known, o.outcome, o.failure = robotsFailed, nil, outcome, why
	})
}

// askRobots spends a turn on an origin's robots.txt, or on where it redirects.
func (c *crawl) askRobots(ctx context.Context, t *polite.Turn, o *origin) {
	o.tries++
	s := c.send(ctx, t, ask{purpose: schema.ForRobots, url: o.next, attempt: o.tries})
	defer s.x.Release()
	if s.recorded() {
		o.asked.Requests = append(o.asked.Requests, s.row)
	}
	again := &polite.Item{ID: o.id, Urgent: true}
	if s.aborted() {
		o.tries-- // the same try, once more
		again.NotBefore = c.afterAbort(s)
		t.Done(polite.Result{Again: again})
		return
	}
	o.answer = record{at: s.at}
	if s.x.Status != 0 {
		// A robots.txt that redirects lies under a URL that need not be canonical.
		if key, err := c.canon.Canonical(o.next, ""); err == nil {
			if cp, ok := c.archive(s, key, schema.SubsetRobots, nil); ok {
				o.asked.Captures = append(o.asked.Captures, cp)
				o.answer.file, o.answer.offset, o.answer.length = cp.WARCFilename, cp.WARCRecordOffset, cp.WARCRecordLength
			}
		}
	}
	if s.err == nil && response.IsRedirect(s.x) {
		if target, _, err := response.Location(c.canon, s.x, o.next); err == nil && o.hops < robots.MaxRedirects {
			o.hops++
			o.next, o.nextAt = target.URL, target.Host
			o.tries = 0
			if target.Host == t.Host {
				t.Done(polite.Result{Class: polite.Success, Again: again})
				return
			}
			c.sched.Push(target.Host, *again)
			t.Done(polite.Result{Class: polite.Success})
			return
		}
	}
	c.robotsAnswered(t, o, s, again)
}

// robotsAnswered takes the last answer to a robots.txt request.
func (c *crawl) robotsAnswered(t *polite.Turn, o *origin, s *sent, again *polite.Item) {
	err, why := s.err, failureOf(s.err)
	if err == nil && (s.x.BodyTruncated == http1.TruncTime || s.x.BodyTruncated == http1.TruncDisconnect) {
		err = errCutOff
		why = response.Failed("it broke off", "%s: what it forbids further on is not known", s.x.BodyTruncated)
	}
	switch robots.FetchClass(s.x.Status, err) {
	case robots.Rules:
		rules := robots.Parse(s.x.Body).For(c.token)
		digest := response.DigestValue(s.x.PayloadDigest)
		row := c.settleRobots(o, func(o *origin) { o.know(&inForce{rules, digest, o.answer}, c.clock.Now().Add(c.robotsTTL())) })
		row.Body = bytes.Clone(s.x.Body[:min(len(s.x.Body), robots.MaxBytes)]) // the exchange is reused
		c.recordRobots(o, row)
		t.Done(polite.Result{Class: polite.Success})
	case robots.NoFile:
		row := c.settleRobots(o, func(o *origin) {
			o.know(&inForce{robots.AllowAll(), "", o.answer}, c.clock.Now().Add(c.robotsTTL()))
		})
		c.recordRobots(o, row)
		t.Done(polite.Result{Class: response.OfStatus(s.x.Status, false).Health})
	case robots.Unreachable:
		v := response.Verdict{Outcome: schema.RobotsUnreachable, Retry: response.AfterTimeout, Health: polite.Failure}
		switch {
		case s.err != nil:
			v = response.OfError(s.err)
			if v.Outcome == schema.ConnectError {
				v.Retry = response.AfterTimeout // all URLs of the origin hang on this one request
			}
		case err == nil:
			v = response.OfStatus(s.x.Status, s.retryAfter > 0)
			why.Phrase = fmt.Sprintf("HTTP status %d", s.x.Status)
		}
		r := polite.Result{Class: v.Health, RetryAfter: s.retryAfter}
		outcome := unreachable(s.err, v.Outcome, t.Host == o.host)
		told := s.what(v.Outcome)
		if c.retry(&o.retries, v.Retry, told, t.Host, again, &r) ||
			outcome == schema.RobotsUnreachable && v.Retry != response.Never && c.retry(&o.retries, response.ForRobots, told, t.Host, again, &r) {
			b := o.asked
			b.OnRecorded = func() { c.keepOrigin(o, t.Host, told, again.NotBefore) }
			c.failures.note(schema.RobotsUnreachable, o.host, "robots.txt "+told, c.clock.Now())
			o.asked = segments.Record{}
			c.record(&b)
			t.Done(r)
			return
		}
		c.recordRobots(o, c.robotsFailed(o, outcome, why))
		if t.Host == o.host {
			c.finishFailed(t)
		}
		t.Done(r)
	}
}

// recordRobots records what became known of an origin, nil if that is not to be
// known to others, with what it was learned from. The download is over.
func (c *crawl) recordRobots(o *origin, row *schema.RobotsFile) {
	d := o.download
	b := d.asked
	b.Robots = row
	b.OnRecorded = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if o.download == d {
			o.download = nil
		}
	}
	c.record(&b)
}

// finishFailed ends, within the turn in which that became certain, the URLs whose
// robots.txt could not be had: they need no request and no wait for one.
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
		o := c.originOf(v.key)
		c.mu.Lock()
		failed := o.state == robotsFailed
		c.mu.Unlock()
		if !failed {
			t.PutBack(it)
			return
		}
		c.finish(v, o.outcome, o.failure)
	}
}

// know takes what holds until a time.
func (o *origin) know(known *inForce, until time.Time) {
	o.state, o.known, o.until = robotsKnown, known, until
}

// unreachable is the outcome of URLs whose robots.txt could not be had: where not
// even a connection could be made to their own host, they would have failed the same way.
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

func (c *crawl) robotsTTL() time.Duration {
	if d := c.ttl.Load(); d > 0 {
		return time.Duration(d)
	}
	return c.cfg.Politeness.RobotsTTL
}
