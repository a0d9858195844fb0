package fetch

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/http1"
)

// get spends a turn on the URL that a visit is at.
func (c *crawl) get(ctx context.Context, t *polite.Turn, v *visit, rules *robotscache.Rules, rule string) {
	v.tries++
	a := ask{
		purpose: schema.ForPage, url: v.key.URL, plannedURL: v.planned.URL, rule: rule, robots: rules, attempt: v.tries,
		onHead: func(x *wire.Exchange) bool { return !response.RefusedByName(c.parser, x) },
		onPrefix: func(x *wire.Exchange, prefix []byte) bool {
			if x.Status < 200 || x.Status > 299 || len(prefix) == 0 {
				return true
			}
			v.detected = c.parser.Sniff(x.Header.Get("Content-Type"), prefix)
			return c.parser.Wants(v.detected, prefix)
		},
		allow: func(x *wire.Exchange, prefix []byte) int64 { return c.cfg.Allowance(c.parser, x, v.detected, prefix) },
	}
	if len(v.met) > 0 {
		a.purpose = schema.ForRedirect
		if field := v.cookies.Field(v.key.URL); field != "" {
			a.header = http1.Header{{Name: "Cookie", Value: field}}
		}
	} else if a.known = segments.KnownPayload(&v.planned, c.clock.Now()); a.known != nil {
		a.header = conditions(&v.planned)
	}
	v.rules, v.detected = rules.Group, ""
	if t.Kind == polite.Probe {
		a.purpose = schema.ForProbe
	}
	s := c.send(ctx, t, a)
	defer s.x.Release()
	was := v.fetch
	v.note(s)
	if s.aborted() {
		v.tries-- // the same try, once more
		was.Attempts, was.WireBytes = v.fetch.Attempts, v.fetch.WireBytes
		v.fetch = was
		due := c.afterAbort(s)
		if due.IsZero() {
			c.keep(v, due)
		} else {
			c.record(v.evidence(func() { c.keepRecorded(v, due) }))
		}
		t.Done(polite.Result{Again: &polite.Item{ID: v.row, NotBefore: due}})
		return
	}
	switch {
	case s.err != nil:
		c.failed(t, v, s, response.OfError(s.err), failureOf(s.err))
	case response.IsRedirect(s.x):
		c.redirect(t, v, s)
	case s.x.Status >= 200 && s.x.Status <= 299:
		t.Done(polite.Result{Class: polite.Success})
		c.document(v, s)
	case s.notModified():
		c.capture(v, s, schema.SubsetDiagnostics)
		t.Done(polite.Result{Class: polite.Success})
		c.finish(v, schema.NotModified, response.Failure{})
	default:
		c.capture(v, s, schema.SubsetDiagnostics)
		_, said := s.x.Header.Lookup("Retry-After")
		c.failed(t, v, s, response.OfStatus(s.x.Status, said), response.Failure{})
	}
}

// afterAbort is when to ask again for what was aborted: at the host's next turn, or,
// where there was no memory for it, a while later; else the host would send again what
// there is no memory for still.
func (c *crawl) afterAbort(s *sent) time.Time {
	if !errors.Is(s.err, wire.ErrNoRoom) {
		return time.Time{}
	}
	return c.clock.Now().Add(noRoomPause + time.Duration(rand.Int64N(int64(noRoomPause))))
}

// noRoomPause is how long a document for which there was no memory waits at least; at
// most twice as long.
const noRoomPause = 30 * time.Second

// conditions are the header fields that ask whether a document has changed.
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

// failed ends a visit whose request gave no document, or has it tried again.
func (c *crawl) failed(t *polite.Turn, v *visit, s *sent, verdict response.Verdict, why response.Failure) {
	r := polite.Result{Class: verdict.Health, RetryAfter: s.retryAfter}
	if c.retry(&v.retries, verdict.Retry, s.what(verdict.Outcome), t.Host, &polite.Item{ID: v.row}, &r) {
		// What was sent and answered is evidence, whatever becomes of the URL.
		due := r.Again.NotBefore
		v.why = r.Again.Why
		c.failures.note(verdict.Outcome, t.Host, r.Again.Why, c.clock.Now())
		c.record(v.evidence(func() { c.keepRecorded(v, due) }))
		t.Done(r)
		return
	}
	t.Done(r)
	if verdict.Outcome == schema.ProtocolError && why == (response.Failure{}) {
		why = response.NoDocument(s.x.Status)
	}
	c.finish(v, verdict.Outcome, why)
}

// redirect takes a redirect: to its next hop, or to the visit's end.
func (c *crawl) redirect(t *polite.Turn, v *visit, s *sent) {
	end := func(o schema.Outcome, why response.Failure) {
		t.Done(polite.Result{Class: polite.Success})
		c.finish(v, o, why)
	}
	target, spelled, err := response.Location(c.canon, s.x, v.key.URL)
	if err == nil {
		target = response.CloneKey(target)
		s.redirect = target.URL
	}
	c.capture(v, s, schema.SubsetDiagnostics)
	if err != nil {
		end(schema.ProtocolError, response.NoTarget(err))
		return
	}
	v.links = append(v.links, schema.Link{
		SourceSURT: v.key.SURT, Source: strings.Clone(v.key.URL), Target: target.URL, Kind: schema.KindRedirect,
		Spelling: strings.Clone(spelled),
	})
	v.met = append(v.met, manifest.Hop{URL: v.key.URL, Cookie: v.cookies.Field(v.key.URL), Set: v.cookies.Take(v.key.URL, s.x.Header)})
	here, err := c.planned.Has(target.URL)
	before, alike := v.asked(target.URL)
	switch {
	case err != nil:
		t.Done(polite.Result{Class: polite.Success})
		c.fail(err)
	case alike:
		end(schema.RedirectLimit, response.Failure{Phrase: "redirect loop", Detail: target.URL})
	case target.Domain != v.planned.Domain || here && !before:
		v.fetch.RedirectTarget = target.URL
		end(schema.Redirected, response.Failure{})
	case int(v.fetch.Redirects) >= c.cfg.MaxRedirects:
		end(schema.RedirectLimit, response.Failed("too many redirects", "more than %d", c.cfg.MaxRedirects))
	case !before && !c.claim(target.URL):
		v.fetch.RedirectTarget = target.URL
		end(schema.Redirected, response.Failure{})
	default:
		known, err := c.planned.Spellings(target)
		if err != nil {
			t.Done(polite.Result{Class: polite.Success})
			c.fail(err)
			return
		}
		v.fetch.Redirects++
		v.key, v.spelled, v.known, v.tries, v.retries = target, strings.Clone(spelled), known, 0, manifest.RetryCounts{}
		c.keep(v, time.Time{})
		c.passOn(t, target.Host, &polite.Item{ID: v.row})
	}
}

// document takes a 2xx answer: it is filtered, or parsed, archived and recorded.
func (c *crawl) document(v *visit, s *sent) {
	if v.detected == "" { // nothing of the body was looked at
		v.detected = mediatype.Essence(s.x.Header.Get("Content-Type"))
	}
	v.fetch.MimeDetected = v.detected
	if s.x.Filtered || len(s.x.Body) == 0 && v.detected != "" && !c.parser.Wants(v.detected, nil) {
		c.finish(v, schema.MIMEFiltered, response.Failure{})
		return
	}
	c.cpu <- struct{}{}
	defer func() { <-c.cpu }()
	parsed, err := document.Parse(c.parser, response.Document(v.key.URL, s.x, v.planned.Depth, s.at))
	if err != nil {
		c.log.Error("a document could not be parsed", "url", v.key.URL, "error", err)
		c.capture(v, s, schema.SubsetWARC)
		c.finish(v, schema.InternalError, response.Failure{Phrase: "document could not be parsed", Detail: err.Error()})
		return
	}
	cp, ok := c.archive(s, v.key, schema.SubsetWARC, parsed)
	if !ok {
		c.finish(v, schema.InternalError, response.Failure{Phrase: segments.ErrUnarchivable.Error()})
		return
	}
	v.captures = append(v.captures, cp)
	v.point(cp)
	v.fetch.MimeDetected = cmp.Or(cp.MimeDetected, v.detected)
	v.fetch.ContentBytes = int64(len(s.x.Body))

	from := document.Origin{
		URLColumns: cp.URLColumns, CaptureColumns: cp.CaptureColumns, PlannedURL: v.planned.URL,
		ETag: v.fetch.ETag, LastModified: v.fetch.LastModified, Signals: v.rules.Signals(v.key.URL),
	}
	if cp.Revisit != "" { // a page points to its bytes
		from.WARCFilename, from.WARCRecordOffset, from.WARCRecordLength = cp.PayloadFilename, cp.PayloadRecordOff, cp.PayloadRecordLen
	}
	if v.planned.ContentDigest != "" {
		changed := v.planned.ContentDigest != cp.ContentDigest
		from.Changed = &changed
	}
	parsed.Complete(&from)
	c.finish(v, schema.OK, response.Failure{}, func(b *segments.Record) {
		b.Page, b.Terms, b.Text = &parsed.Page, parsed.Terms, &parsed.Text
		b.Links = append(b.Links, parsed.Links...)
	})
}

// capture archives an answer that is no document for the visit.
func (c *crawl) capture(v *visit, s *sent, subset string) {
	c.cpu <- struct{}{}
	defer func() { <-c.cpu }()
	if cp, ok := c.archive(s, v.key, subset, nil); ok {
		v.captures = append(v.captures, cp)
		v.point(cp)
	}
}

// point has the outcome's row point to the capture of the last answer.
func (v *visit) point(cp segments.Capture) {
	v.fetch.WARCFilename, v.fetch.WARCRecordOff, v.fetch.WARCRecordLen = cp.WARCFilename, cp.WARCRecordOffset, cp.WARCRecordLength
	v.fetch.ContentDigest, v.fetch.Revisit = cp.ContentDigest, cp.Revisit
	if cp.Truncated == schema.TruncatedUnspecified {
		v.fetch.Truncated = cp.Truncated
	}
}
