package sitemaps

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/partition"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/request"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// Tools holds the functions of the fetcher that a List needs. All functions are safe for concurrent
// use.
type Tools struct {
	Canon        *urlkey.Canonicalizer
	Parser       document.Parser
	MaxRedirects int
	Clock        stages.Clock
	Log          *slog.Logger
	Scheduler    *polite.Scheduler
	Sender       *request.Sender
	CPU          chan struct{} // a semaphore: each goroutine that compresses or parses holds one of its slots
	Index        *partition.Index

	Claim      func(url string) bool // reserves a URL; returns false if it was reserved before
	Ask        func(purpose schema.Purpose, url, sent string, try int32, rules *robotscache.Rules, rule string, detected *string) request.Ask
	AfterAbort func(*request.Sent) time.Time // returns when an aborted request may be repeated
	Archive    func(s *request.Sent, key urlkey.Key, subset string, parsed *document.Parsed) (segments.Capture, bool)
	PassOn     func(g *polite.Grant, host string, item *polite.Item) // ends a grant and queues the next hop of a redirect
	Record     func(*segments.Record)
	Fail       func(error) // ends the fetcher
}

// Each request is recorded immediately, together with the sitemap's new state, so a checkpoint
// needs no list of sitemaps with requests in flight.

// NameAll queues the sitemaps that a robots.txt names.
func (l *List) NameAll(robotsURL string, file *robots.File) {
	if !l.On() {
		return
	}
	of, err := l.Canon.Canonical(robotsURL, "")
	if err != nil {
		return // cannot happen: the URL was requested
	}
	for _, ref := range file.Sitemaps(robotsURL) {
		t, row, err := l.addNamed(ref, robotsURL, of.Domain)
		switch {
		case err != nil:
			l.Fail(err)
			return
		case t != nil:
			l.push(t, time.Time{})
		case row.Planned:
			l.Record(&segments.Record{Sitemaps: []schema.Sitemap{row}})
		}
	}
}

// push gives the scheduler the next sitemap of the host of t, unless one of its sitemaps is under
// way.
func (l *List) push(t *Task, due time.Time) {
	if next := l.next(t); next != nil {
		l.Scheduler.Push(next.Key.Host, polite.Item{ID: next.ID, NotBefore: due})
	}
}

// Get uses a grant to send the next request of a sitemap.
func (l *List) Get(ctx context.Context, g *polite.Grant, t *Task, rules *robotscache.Rules, rule string) {
	t.Tries++
	detected := ""
	purpose := schema.ForSitemap
	if g.Kind == polite.Probe {
		purpose = schema.ForProbe
	}
	a := l.Ask(purpose, t.Key.URL, t.Sent, t.Tries, rules, rule, &detected)
	a.Carry(&t.cookies)
	s := l.Sender.Send(ctx, g, a)
	defer s.Exchange.Release()
	b := &segments.Record{}
	if s.Recorded() {
		b.Requests = []schema.Request{s.Row}
	}
	if s.Aborted() {
		t.Tries-- // an aborted request does not count as a try
		if len(b.Requests) > 0 {
			b.Sitemaps = []schema.Sitemap{t.row()}
			l.Record(b)
		}
		g.Done(polite.Result{Requeue: &polite.Item{ID: t.ID, NotBefore: l.AfterAbort(s)}})
		return
	}
	switch {
	case s.Err != nil:
		l.endFailed(g, t, s, response.OfError(s.Err), b)
	case s.Service != "" && !response.LimitsRate(s.Exchange.Status, s.RetryAfter > 0):
		l.capture(t, s, b, schema.SubsetDiagnostics, nil)
		l.endFailed(g, t, s, response.Blocked, b)
	case response.IsRedirect(s.Exchange):
		l.followRedirect(g, t, s, b)
	case response.HasDocument(s.Exchange):
		if v, _ := response.OfDocument(s.Exchange); v.Outcome != schema.OK {
			l.capture(t, s, b, schema.SubsetDiagnostics, nil)
			l.endFailed(g, t, s, v, b)
			return
		}
		l.handleDocument(g, t, s, detected, b)
		g.Done(polite.Result{Class: polite.Success})
	default:
		l.capture(t, s, b, schema.SubsetDiagnostics, nil)
		l.endFailed(g, t, s, response.OfStatus(s.Exchange.Status, s.RetryAfter > 0), b)
	}
}

// end records the end of a sitemap that was requested. The next one of the host is due after two
// delays, so that a page may come between them.
func (l *List) end(g *polite.Grant, t *Task, row schema.Sitemap, b *segments.Record) {
	l.endAndPush(t, row, b, l.Clock.Now().Add(2*g.Delay))
}

// endAndPush records the end of a sitemap and pushes the next one of the host, which is due at the
// given time.
func (l *List) endAndPush(t *Task, row schema.Sitemap, b *segments.Record, due time.Time) {
	b.Sitemaps = append(b.Sitemaps, row)
	l.Record(b)
	l.Log.Debug("sitemap", "url", row.URL, "outcome", row.Outcome, "entries", row.Entries)
	l.push(t, due)
}

// endFailed ends a sitemap whose request brought no document. If the failure counts against the host,
// no further sitemap of the host is requested in this round, because further failures would slow
// down or end the requests for its pages.
func (l *List) endFailed(g *polite.Grant, t *Task, s *request.Sent, v response.Verdict, b *segments.Record) {
	switch v.Health {
	case polite.Failure, polite.RateLimited, polite.Unanswered, polite.Refused:
		l.dropHosts(t)
	}
	l.end(g, t, addResponse(l.finish(t, v.Outcome, 0, 0), s, nil), b)
	g.Done(polite.Result{Class: v.Health, NoAnswer: v.NoAnswer, RetryAfter: s.RetryAfter})
}

// followRedirect follows a redirect of a sitemap, or ends the sitemap if it must not be followed.
func (l *List) followRedirect(g *polite.Grant, t *Task, s *request.Sent, b *segments.Record) {
	target, sent, err := response.Location(l.Canon, s.Exchange, t.asked())
	if err == nil {
		target, sent = response.CloneKey(target), strings.Clone(sent)
		s.Redirect = target.URL
	}
	l.capture(t, s, b, schema.SubsetDiagnostics, nil)
	outcome := schema.Redirected
	asked := cmp.Or(sent, target.URL)
	cookie := t.cookies.Field(asked)
	t.cookies.Take(t.asked(), s.Exchange.Certificate, s.Exchange.Header)
	here := false
	if err == nil {
		if here, err = l.Index.Has(target.URL); err != nil {
			l.Fail(err)
		}
	}
	switch {
	case err != nil:
		outcome = schema.ProtocolError
	case target.Domain != t.Key.Domain || here:
	case int(t.Redirects) >= l.MaxRedirects:
		outcome = schema.RedirectLimit
	case l.Claim(target.URL), t.cookies.Field(asked) != cookie, target.URL == t.Key.URL && asked != t.asked(): // a loop leads to a URL that was claimed before, with the same cookies
		t.Key, t.Sent, t.Redirects, t.Tries, t.claimed = target, sent, t.Redirects+1, 0, true
		b.Sitemaps = []schema.Sitemap{t.row()}
		l.Record(b)
		l.PassOn(g, target.Host, &polite.Item{ID: t.ID})
		return
	}
	l.end(g, t, addResponse(l.finish(t, outcome, 0, 0), s, nil), b)
	g.Done(polite.Result{Class: polite.Success})
}

// capture archives a response to the request for a sitemap. It returns nil if there is no row
// of captures.
func (l *List) capture(t *Task, s *request.Sent, b *segments.Record, subset string, parsed *document.Parsed) *segments.Capture {
	cp, ok := l.Archive(s, t.Key, subset, parsed)
	if !ok {
		return nil
	}
	b.Captures = []segments.Capture{cp}
	return &b.Captures[0]
}

// handleDocument handles a 2xx response. It records the links only of sitemaps and feeds. A page may be
// in place of a sitemap; its links do not count, because it was not planned.
func (l *List) handleDocument(g *polite.Grant, t *Task, s *request.Sent, detected string, b *segments.Record) {
	x := s.Exchange
	if x.Filtered || len(x.Body) == 0 {
		l.end(g, t, addResponse(l.finish(t, schema.MIMEFiltered, 0, 0), s, nil), b)
		return
	}
	l.CPU <- struct{}{}
	defer func() { <-l.CPU }()
	parsed, err := document.Parse(l.Parser, response.Document(t.Key.URL, t.Sent, x, 0, s.At))
	if err != nil {
		l.Log.Error("a sitemap could not be parsed", "url", t.Key.URL, "error", err)
		cp := l.capture(t, s, b, schema.SubsetWARC, nil)
		l.end(g, t, addResponse(l.finish(t, schema.InternalError, 0, int64(len(x.Body))), s, cp), b)
		return
	}
	cp := l.capture(t, s, b, schema.SubsetWARC, parsed)
	kind := parsed.Page.DocumentKind
	if cp == nil || kind != "sitemap" && kind != "feed" {
		l.end(g, t, addResponse(l.finish(t, schema.MIMEFiltered, 0, int64(len(x.Body))), s, cp), b)
		return
	}
	links, entries, foreign, beyond := l.take(t, parsed.Links)
	if foreign+beyond > 0 || parsed.Cut {
		over := strconv.FormatInt(beyond, 10)
		if parsed.Cut { // the parser stops at the bounds of sitemaps.org for one file, and does not count the rest
			over = fmt.Sprint("at least ", beyond+1)
		}
		l.Log.Info("entries of a sitemap are left out", "url", t.Key.URL, "of_other_sites", foreign, "beyond_limits", over)
	}
	b.Links = links
	row := addResponse(l.finish(t, schema.OK, entries, int64(len(x.Body))), s, cp)
	var named []*Task
	for i := range links {
		if links[i].Kind != schema.KindSitemapIndex {
			continue
		}
		child, row, err := l.addNamed(cmp.Or(links[i].Sent, links[i].Target), "", t.Key.Domain)
		if err != nil {
			l.Fail(err)
			return
		}
		if child != nil || row.Planned {
			b.Sitemaps = append(b.Sitemaps, row)
		}
		if child != nil {
			named = append(named, child)
		}
	}
	l.end(g, t, row, b)
	for _, child := range named { // has an effect for those of other hosts
		l.push(child, time.Time{})
	}
}

// addResponse adds the columns that describe the last response and its WARC record. If cp is nil, the
// row names no record.
func addResponse(row schema.Sitemap, s *request.Sent, cp *segments.Capture) schema.Sitemap {
	row.HTTPStatus = int16(s.Exchange.Status)
	if !s.At.IsZero() {
		row.FetchedAt = schema.TimeOf(s.At)
	}
	if s.Exchange.Status != 0 {
		row.ETag, row.LastModified = response.Validators(s.Exchange, s.At)
		row.Truncated = response.Truncation(s.Exchange)
	}
	if cp != nil {
		row.ContentDigest, row.Revisit = cp.ContentDigest, cp.Revisit
		row.WARCFilename, row.WARCRecordOff, row.WARCRecordLen = cp.WARCFilename, cp.WARCRecordOffset, cp.WARCRecordLength
		if cp.Truncated == schema.TruncatedUnspecified {
			row.Truncated = cp.Truncated
		}
	}
	return row
}

// Resume pushes the first waiting sitemap of each host. It is called only when all rows are
// restored. Suspects, at which earlier attempts died, come first.
func (l *List) Resume(suspects []manifest.Suspect) {
	l.markSuspects(suspects)
	for _, t := range l.waiting() {
		l.push(t, time.Time{})
	}
}

// EndUnsent ends a task that needs no request. The next sitemap of the host is due immediately.
func (l *List) EndUnsent(t *Task, outcome schema.Outcome) {
	l.endAndPush(t, l.finish(t, outcome, 0, 0), &segments.Record{}, time.Time{})
}
