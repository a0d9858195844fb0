package fetch

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/fetch/challenge"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/request"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// get uses the grant g to send the next request of a URL task.
func (f *fetcher) get(ctx context.Context, g *polite.Grant, u *urlTask, rules *robotscache.Rules, rule string) {
	if u.passing && u.tries == 0 && f.endsAt(u.key.URL) { // another chain has ended there meanwhile
		u.fetch.Redirects--
		u.fetch.RedirectTarget, u.fetch.RedirectSent = u.key.URL, u.sent
		g.Done(polite.Result{})
		f.finish(u, schema.Redirected, response.Failure{})
		return
	}
	u.tries++
	a := f.ask(schema.ForPage, u.key.URL, u.sent, u.tries, rules, rule, &u.detected)
	a.PlannedURL = u.planned.URL
	if len(u.met) > 0 {
		a.Purpose = schema.ForRedirect
		a.Carry(&u.cookies)
	} else if a.Known = segments.KnownPayload(&u.planned.PlannedURL, f.clock.Now()); a.Known != nil {
		if !u.plain {
			a.Header = conditions(&u.planned.PlannedURL)
		}
	}
	u.rules = rules.Group
	if g.Kind == polite.Probe {
		a.Purpose = schema.ForProbe
	}
	s := f.requests.Send(ctx, g, a)
	defer s.Exchange.Release()
	was := u.fetch
	u.note(s)
	if s.Aborted() {
		u.tries-- // an aborted request does not count as a try
		was.Attempts, was.WireBytes = u.fetch.Attempts, u.fetch.WireBytes
		u.fetch = was
		due := f.afterAbort(s)
		if due.IsZero() {
			f.keep(u, due)
		} else {
			f.record(u.takeRows(func() { f.keepRecorded(u, due) }))
		}
		g.Done(polite.Result{Requeue: &polite.Item{ID: u.row, NotBefore: due}})
		return
	}
	switch {
	case s.Err != nil:
		f.retryOrEnd(g, u, s, response.OfError(s.Err), s.Failure())
	case s.Service != "" && !response.LimitsRate(s.Exchange.Status, s.RetryAfter > 0):
		f.capture(u, s, schema.SubsetDiagnostics)
		g.Done(polite.Result{Class: polite.Refused})
		f.finishBlocked(u, s.Service)
	case response.IsRedirect(s.Exchange):
		f.followRedirect(g, u, s)
	case response.HasDocument(s.Exchange):
		if v, why := response.OfDocument(s.Exchange); v.Outcome != schema.OK {
			f.capture(u, s, schema.SubsetDiagnostics)
			f.retryOrEnd(g, u, s, v, why)
			return
		}
		if len(u.met) > 0 {
			f.noteChain(u.key.URL, false)
		}
		g.Done(polite.Result{Class: polite.Success, Page: true})
		f.handleDocument(u, s)
	case s.ConditionRefused():
		f.capture(u, s, schema.SubsetDiagnostics)
		f.askPlainly(g, u)
	case s.NotModified():
		f.capture(u, s, schema.SubsetDiagnostics)
		g.Done(polite.Result{Class: polite.Success, Page: true})
		f.finish(u, schema.NotModified, response.Failure{})
	default:
		f.capture(u, s, schema.SubsetDiagnostics)
		f.retryOrEnd(g, u, s, response.OfStatus(s.Exchange.Status, s.RetryAfter > 0), response.Failure{})
	}
}

// ask returns the request for a document. The body is read only if the parser wants it. *detected
// becomes the media type of the response when its first bytes arrive; until then it is "".
func (f *fetcher) ask(purpose schema.Purpose, url, sent string, try int32, rules *robotscache.Rules, rule string, detected *string) request.Ask {
	*detected = ""
	return request.Ask{
		Purpose: purpose, URL: url, Sent: sent, Rule: rule, Robots: rules, Attempt: try,
		OnHead: func(x *wire.Exchange) bool { return !response.RefusedByName(f.parser, x) },
		OnPrefix: func(x *wire.Exchange, prefix []byte) bool {
			if !response.HasDocument(x) || len(prefix) == 0 {
				return true
			}
			*detected = f.parser.Sniff(x.Header.Get("Content-Type"), prefix)
			return f.parser.Wants(*detected, prefix)
		},
		Allow: func(x *wire.Exchange, prefix []byte) int64 { return f.cfg.Allowance(f.parser, x, *detected, prefix) },
	}
}

// afterAbort returns when an aborted request may be repeated. The zero time means as soon as the
// host is due. If there was no memory for the response, the request waits longer, because other
// responses may still hold the memory. If this machine or its network failed, it waits until failed look-ups
// are no longer in the cache, and not all requests come together.
func (f *fetcher) afterAbort(s *request.Sent) time.Time {
	var pause time.Duration
	switch {
	case errors.Is(s.Err, wire.ErrNoRoom):
		pause = noRoomPause
	case errors.Is(s.Err, request.ErrOurs):
		pause = oursPause
	default:
		return time.Time{}
	}
	return f.clock.Now().Add(pause + time.Duration(rand.Int64N(int64(pause))))
}

// An aborted request is repeated after one of these pauses and a random time of up to the same length.
const (
	noRoomPause = 30 * time.Second // there was no memory for a document
	oursPause   = 6 * time.Second  // this machine or its network failed
)

// conditions returns the header fields that make a request conditional. The server then sends the
// document only if it has changed.
func conditions(p *schema.PlannedURL) http1.Header {
	var h http1.Header
	if p.ETag != "" {
		h = append(h, http1.Field{Name: "If-None-Match", Value: p.ETag})
	}
	if p.LastModified != "" {
		h = append(h, http1.Field{Name: "If-Modified-Since", Value: p.LastModified})
	}
	return h
}

// askPlainly repeats a request whose condition the server refused, without the condition, as soon as the host is
// due. The repetition tells what the host does; this answer tells nothing. The validators of the response are not
// stored, so the next round asks without a condition too.
func (f *fetcher) askPlainly(g *polite.Grant, u *urlTask) {
	u.plain = true
	f.record(u.takeRows(func() { f.keepRecorded(u, time.Time{}) }))
	g.Done(polite.Result{Class: polite.Unsent, Requeue: &polite.Item{ID: u.row}})
}

// retryOrEnd retries or ends a URL task whose request brought no document.
func (f *fetcher) retryOrEnd(g *polite.Grant, u *urlTask, s *request.Sent, verdict response.Verdict, why response.Failure) {
	r := polite.Result{Class: verdict.Health, NoAnswer: verdict.NoAnswer, RetryAfter: s.RetryAfter}
	told, item := s.How(verdict.Outcome), &polite.Item{ID: u.row}
	if f.retry(&u.retries, verdict.Retry, told, g.Host, item, &r) || f.retryLate(&u.retries, verdict, told, g.Host, item, &r) {
		due := r.Requeue.NotBefore
		u.why = r.Requeue.Why
		f.failures.Note(verdict.Outcome, g.Host, r.Requeue.Why, f.clock.Now())
		f.record(u.takeRows(func() { f.keepRecorded(u, due) }))
		g.Done(r)
		return
	}
	g.Done(r)
	if len(u.met) > 0 {
		f.noteChain(u.key.URL, false)
	}
	if s.Service != "" {
		f.finishBlocked(u, s.Service)
		return
	}
	if verdict.Outcome == schema.ProtocolError && why == (response.Failure{}) {
		why = response.NoDocument(s.Exchange.Status)
	}
	f.finish(u, verdict.Outcome, why)
}

// followRedirect follows a redirect, or ends the URL task if it must not be followed.
func (f *fetcher) followRedirect(g *polite.Grant, u *urlTask, s *request.Sent) {
	end := func(o schema.Outcome, why response.Failure) {
		g.Done(polite.Result{Class: polite.Success})
		f.finish(u, o, why)
	}
	target, sent, err := response.Location(f.canon, s.Exchange, u.asked())
	if err == nil {
		target, sent = response.CloneKey(target), strings.Clone(sent)
		s.Redirect = target.URL
	}
	f.capture(u, s, schema.SubsetDiagnostics)
	if err != nil {
		end(schema.ProtocolError, response.NoTarget(err))
		return
	}
	asked := cmp.Or(sent, target.URL)
	f.noteChain(u.key.URL, true)
	u.links = append(u.links, schema.Link{
		SourceSURT: u.key.SURT, Source: strings.Clone(u.key.URL), Target: target.URL, Kind: schema.KindRedirect,
		Sent: sent,
	})
	hop := manifest.Hop{URL: u.key.URL, Sent: u.sent, Cookie: u.cookies.Field(u.asked()), Certificate: s.Exchange.Certificate}
	hop.Set = u.cookies.Take(u.asked(), s.Exchange.Certificate, s.Exchange.Header)
	u.met = append(u.met, hop)
	if service := challenge.Gate(asked); service != "" {
		g.Done(polite.Result{Class: polite.Refused})
		f.finishBlocked(u, service)
		return
	}
	here, err := f.index.Has(target.URL)
	before, alike := u.requested(target.URL, asked)
	passes := u.cookies.Field(asked) != "" && f.mayPass(target.URL, u.asked(), asked, here)
	switch {
	case err != nil:
		g.Done(polite.Result{Class: polite.Success})
		f.fail(err)
	case f.optedOut(target.URL, sent):
		u.fetch.RedirectTarget, u.fetch.RedirectSent = target.URL, sent
		end(schema.Redirected, response.Failure{})
	case alike:
		end(schema.RedirectLimit, response.Failure{Phrase: "redirect loop", Detail: asked})
	case target.Domain != u.planned.Domain || here && !before && !passes:
		u.fetch.RedirectTarget, u.fetch.RedirectSent = target.URL, sent
		end(schema.Redirected, response.Failure{})
	case int(u.fetch.Redirects) >= f.cfg.MaxRedirects:
		end(schema.RedirectLimit, response.Failed("too many redirects", "more than %d", f.cfg.MaxRedirects))
	case !before && !f.claim(target.URL) && !passes:
		u.fetch.RedirectTarget, u.fetch.RedirectSent = target.URL, sent
		end(schema.Redirected, response.Failure{})
	default:
		u.fetch.Redirects++
		u.passing = passes && !before
		u.key, u.sent, u.tries, u.retries, u.why = target, sent, 0, manifest.RetryCounts{}, ""
		f.keep(u, time.Time{})
		f.passOn(g, target.Host, &polite.Item{ID: u.row})
	}
}

// handleDocument parses, archives and records a 2xx response, unless a filter excludes it.
func (f *fetcher) handleDocument(u *urlTask, s *request.Sent) {
	if u.detected == "" { // the body is empty
		u.detected = mediatype.Essence(s.Exchange.Header.Get("Content-Type"))
	}
	u.fetch.MimeDetected = u.detected
	if s.Exchange.Filtered || len(s.Exchange.Body) == 0 && u.detected != "" && !f.parser.Wants(u.detected, nil) {
		f.finish(u, schema.MIMEFiltered, response.Failure{})
		return
	}
	f.cpu <- struct{}{}
	defer func() { <-f.cpu }()
	parsed, err := document.Parse(f.parser, response.Document(u.key.URL, u.sent, s.Exchange, u.planned.Depth, s.At))
	if err != nil {
		f.log.Error("a document could not be parsed", "url", u.key.URL, "error", err)
		f.captureInSlot(u, s, schema.SubsetWARC)
		f.finish(u, schema.InternalError, response.Failure{Phrase: "document could not be parsed", Detail: err.Error()})
		return
	}
	if parsed.Refused {
		f.captureInSlot(u, s, schema.SubsetDiagnostics)
		f.finishBlocked(u, challenge.Other)
		return
	}
	cp, ok := f.archive(s, u.key, schema.SubsetWARC, parsed)
	if !ok {
		f.finish(u, schema.InternalError, response.Failure{Phrase: segments.ErrUnarchivable.Error()})
		return
	}
	u.captures = append(u.captures, cp)
	u.setPlace(cp)
	u.fetch.MimeDetected = cmp.Or(cp.MimeDetected, u.detected)
	u.fetch.ContentBytes = int64(len(s.Exchange.Body))

	from := document.Capture{
		URLColumns: cp.URLColumns, CaptureColumns: cp.CaptureColumns, PlannedURL: u.planned.URL, Certificate: s.Exchange.Certificate,
		ETag: u.fetch.ETag, LastModified: u.fetch.LastModified, Signals: u.rules.Signals(u.asked()),
	}
	if cp.Revisit != "" { // the row of pages names the record that has the payload
		from.WARCFilename, from.WARCRecordOffset, from.WARCRecordLength = cp.PayloadFilename, cp.PayloadRecordOff, cp.PayloadRecordLen
	}
	if u.planned.ContentDigest != "" {
		changed := u.planned.ContentDigest != cp.ContentDigest
		from.Changed = &changed
	}
	parsed.Complete(&from)
	f.finish(u, schema.OK, response.Failure{}, func(b *segments.Record) {
		b.Page, b.Terms, b.Text = &parsed.Page, parsed.Terms, &parsed.Text
		if len(b.Links) == 0 { // a page may have thousands of links, so they are not copied
			b.Links = parsed.Links
		} else {
			b.Links = append(b.Links, parsed.Links...)
		}
		if parsed.Page.DocumentKind == "sitemap" {
			b.Sitemaps = f.sitemaps.Fetched(&u.planned.PlannedURL, u.key)
		}
	})
}

// finishBlocked ends a URL task that a service in front of the site refused.
func (f *fetcher) finishBlocked(u *urlTask, service string) {
	u.fetch.BlockedBy = service
	f.mu.Lock()
	f.refusers[strings.Clone(u.key.Host)] = service
	f.mu.Unlock()
	f.finish(u, schema.Blocked, response.RefusedBy(service))
}

// capture archives a response that is not a document.
func (f *fetcher) capture(u *urlTask, s *request.Sent, subset string) {
	f.cpu <- struct{}{}
	defer func() { <-f.cpu }()
	f.captureInSlot(u, s, subset)
}

// captureInSlot is capture for a caller that already holds a slot of f.cpu. If all callers waited
// for a second slot, no slot would ever become free.
func (f *fetcher) captureInSlot(u *urlTask, s *request.Sent, subset string) {
	if cp, ok := f.archive(s, u.key, subset, nil); ok {
		u.captures = append(u.captures, cp)
		u.setPlace(cp)
	}
}

// setPlace writes the place and the digest of the last capture into the row of fetches.
func (u *urlTask) setPlace(cp segments.Capture) {
	u.fetch.WARCFilename, u.fetch.WARCRecordOff, u.fetch.WARCRecordLen = cp.WARCFilename, cp.WARCRecordOffset, cp.WARCRecordLength
	u.fetch.ContentDigest, u.fetch.Revisit = cp.ContentDigest, cp.Revisit
	if cp.Truncated == schema.TruncatedUnspecified {
		u.fetch.Truncated = cp.Truncated
	}
}
