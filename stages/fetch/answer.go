package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// get spends a turn on the URL that a visit is at.
func (c *crawl) get(ctx context.Context, t *polite.Turn, v *visit, known *inForce, rule string) {
	v.tries++
	a := ask{
		purpose: schema.ForPage, url: v.key.URL, plannedURL: v.planned.URL, rule: rule, robots: known, attempt: v.tries,
		onHead: func(x *wire.Exchange) bool { return !c.unwantedByName(x) },
		onPrefix: func(x *wire.Exchange, prefix []byte) bool {
			if x.Status < 200 || x.Status > 299 || len(prefix) == 0 {
				return true
			}
			v.detected = c.parser.Sniff(x.Header.Get("Content-Type"), prefix)
			return c.parser.Wants(v.detected, prefix)
		},
		allow: func(x *wire.Exchange, prefix []byte) int64 { return c.cfg.allowance(c.parser, x, v.detected, prefix) },
	}
	if len(v.met) > 0 {
		a.purpose = schema.ForRedirect
		if field := v.cookies.field(v.key.URL); field != "" {
			a.header = wire.Header{{Name: "Cookie", Value: field}}
		}
	} else if a.known = knownPayload(&v.planned, c.clock.Now()); a.known != nil {
		a.header = conditions(&v.planned)
	}
	v.rules, v.detected = known.rules, ""
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
		c.failed(t, v, s, classifyError(s.err), failureOf(s.err))
	case redirects(s.x):
		c.redirect(t, v, s)
	case s.x.Status >= 200 && s.x.Status <= 299:
		t.Done(polite.Result{Class: polite.Success})
		c.document(v, s)
	case s.notModified():
		c.capture(v, s, schema.SubsetDiagnostics)
		t.Done(polite.Result{Class: polite.Success})
		c.finish(v, schema.NotModified, failure{})
	default:
		c.capture(v, s, schema.SubsetDiagnostics)
		_, said := s.x.Header.Lookup("Retry-After")
		c.failed(t, v, s, classifyStatus(s.x.Status, said), failure{})
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
func conditions(p *schema.PlannedURL) wire.Header {
	var h wire.Header
	if p.ETag != "" {
		h = append(h, wire.Field{Name: "If-None-Match", Value: p.ETag})
	}
	if p.LastModified != "" {
		h = append(h, wire.Field{Name: "If-Modified-Since", Value: p.LastModified})
	}
	return h
}

// failed ends a visit whose request gave no document, or has it tried again.
func (c *crawl) failed(t *polite.Turn, v *visit, s *sent, verdict verdictOf, why failure) {
	r := polite.Result{Class: verdict.health, RetryAfter: s.retryAfter}
	if c.retry(&v.retries, verdict.retry, s.what(verdict.outcome), t.Host, &polite.Item{ID: v.row}, &r) {
		// What was sent and answered is evidence, whatever becomes of the URL.
		due := r.Again.NotBefore
		v.why = r.Again.Why
		c.failures.note(verdict.outcome, t.Host, r.Again.Why, c.clock.Now())
		c.record(v.evidence(func() { c.keepRecorded(v, due) }))
		t.Done(r)
		return
	}
	t.Done(r)
	if verdict.outcome == schema.ProtocolError && why == (failure{}) {
		why = leadsNowhere(s.x.Status)
	}
	c.finish(v, verdict.outcome, why)
}

// leadsNowhere is why a status is neither a document nor where to find one.
func leadsNowhere(status int) failure {
	switch {
	case status == http.StatusNotModified:
		return failure{phrase: "HTTP status 304, and nothing was said to be known"}
	case status == http.StatusMultipleChoices:
		return failure{phrase: "HTTP status 300 without a Location that it prefers"}
	case status == http.StatusUseProxy:
		return failure{phrase: "HTTP status 305 asks for a proxy that the server names, which nobody should use"}
	}
	return failed("HTTP status that leads nowhere", "%d", status)
}

// nowhere is the failure of a redirect without a target.
func nowhere(err error) failure {
	if errors.Is(err, errNoLocation) {
		return failure{phrase: errNoLocation.Error()}
	}
	return failure{"redirect to no URL", err.Error()}
}

var errNoLocation = errors.New("redirect without a Location")

// Location is where a redirect leads, canonical and as it spells it (urlkey.Spelled).
func Location(canon *urlkey.Canonicalizer, x *wire.Exchange, base string) (urlkey.Key, string, error) {
	for loc := range x.Header.Values("Location") {
		if strings.TrimSpace(loc) != "" {
			return canon.Spelled(locationText(loc), base)
		}
	}
	return urlkey.Key{}, "", errNoLocation
}

// locationText makes a Location text: octets that are no UTF-8 are meant as they
// stand, so they are percent-encoded one by one, as browsers do.
func locationText(loc string) string {
	if utf8.ValidString(loc) {
		return loc
	}
	var b strings.Builder
	for i := range len(loc) {
		if c := loc[i]; c < utf8.RuneSelf {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// redirect takes a redirect: to its next hop, or to the visit's end.
func (c *crawl) redirect(t *polite.Turn, v *visit, s *sent) {
	end := func(o schema.Outcome, why failure) {
		t.Done(polite.Result{Class: polite.Success})
		c.finish(v, o, why)
	}
	target, spelled, err := Location(c.canon, s.x, v.key.URL)
	if err == nil {
		target = own(target)
		s.redirect = target.URL
	}
	c.capture(v, s, schema.SubsetDiagnostics)
	if err != nil {
		end(schema.ProtocolError, nowhere(err))
		return
	}
	v.links = append(v.links, schema.Link{
		SourceSURT: v.key.SURT, Source: strings.Clone(v.key.URL), Target: target.URL, Kind: schema.KindRedirect,
		Spelling: strings.Clone(spelled),
	})
	v.met = append(v.met, manifest.Hop{URL: v.key.URL, Cookie: v.cookies.field(v.key.URL), Set: v.cookies.take(v.key.URL, s.x.Header)})
	here, err := c.planned.Has(target.URL)
	before, alike := v.asked(target.URL)
	switch {
	case err != nil:
		t.Done(polite.Result{Class: polite.Success})
		c.fail(err)
	case alike:
		end(schema.RedirectLimit, failure{"redirect loop", target.URL})
	case target.Domain != v.planned.Domain || here && !before:
		v.fetch.RedirectTarget = target.URL
		end(schema.Redirected, failure{})
	case int(v.fetch.Redirects) >= c.cfg.MaxRedirects:
		end(schema.RedirectLimit, failed("too many redirects", "more than %d", c.cfg.MaxRedirects))
	case !before && !c.claim(target.URL):
		v.fetch.RedirectTarget = target.URL
		end(schema.Redirected, failure{})
	default:
		known, err := c.planned.Spellings(target)
		if err != nil {
			t.Done(polite.Result{Class: polite.Success})
			c.fail(err)
			return
		}
		v.fetch.Redirects++
		v.key, v.spelled, v.known, v.tries, v.retries = target, strings.Clone(spelled), known, 0, [retryClasses]int{}
		c.keep(v, time.Time{})
		if target.Host == t.Host {
			t.Done(polite.Result{Class: polite.Success, Again: &polite.Item{ID: v.row}})
			return
		}
		c.sched.Push(target.Host, polite.Item{ID: v.row})
		t.Done(polite.Result{Class: polite.Success})
	}
}

// own makes a key independent of the memory that its URL was cut from.
func own(k urlkey.Key) urlkey.Key {
	return urlkey.Key{URL: strings.Clone(k.URL), SURT: strings.Clone(k.SURT), Host: strings.Clone(k.Host), Domain: strings.Clone(k.Domain)}
}

// document takes a 2xx answer: it is filtered, or parsed, archived and recorded.
func (c *crawl) document(v *visit, s *sent) {
	if v.detected == "" { // nothing of the body was looked at
		v.detected = mediatype.Essence(s.x.Header.Get("Content-Type"))
	}
	v.fetch.MimeDetected = v.detected
	if s.x.Filtered || len(s.x.Body) == 0 && v.detected != "" && !c.parser.Wants(v.detected, nil) {
		c.finish(v, schema.MIMEFiltered, failure{})
		return
	}
	c.cpu <- struct{}{}
	defer func() { <-c.cpu }()
	parsed, err := document.Parse(c.parser, documentOf(v.key.URL, s.x, v.planned.Depth, s.at))
	if err != nil {
		c.log.Error("a document could not be parsed", "url", v.key.URL, "error", err)
		c.capture(v, s, schema.SubsetWARC)
		c.finish(v, schema.InternalError, failure{"document could not be parsed", err.Error()})
		return
	}
	cp, ok := c.archive(s, v.key, schema.SubsetWARC, parsed)
	if !ok {
		c.finish(v, schema.InternalError, failure{phrase: errUnarchivable.Error()})
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
	c.finish(v, schema.OK, failure{}, func(b *bundle) {
		b.page, b.terms, b.text = &parsed.Page, parsed.Terms, &parsed.Text
		b.links = append(b.links, parsed.Links...)
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
func (v *visit) point(cp capture) {
	v.fetch.WARCFilename, v.fetch.WARCRecordOff, v.fetch.WARCRecordLen = cp.WARCFilename, cp.WARCRecordOffset, cp.WARCRecordLength
	v.fetch.ContentDigest, v.fetch.Revisit = cp.ContentDigest, cp.Revisit
	if cp.Truncated == schema.TruncatedUnspecified {
		v.fetch.Truncated = cp.Truncated
	}
}
