package fetch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/request"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/sitemaps"
)

// This file requests the sitemaps of package sitemaps. Each request is recorded at once, together
// with the sitemap's new state, so a checkpoint needs no list of sitemaps under way.

// nameSitemaps queues the sitemaps that a robots.txt names.
func (f *fetcher) nameSitemaps(robotsURL string, file *robots.File) {
	if !f.sitemaps.On() {
		return
	}
	of, err := f.canon.Canonical(robotsURL, "")
	if err != nil {
		return // cannot happen: the URL was requested
	}
	for _, ref := range file.Sitemaps(robotsURL) {
		t, err := f.sitemaps.Name(ref, robotsURL, of.Domain)
		if err != nil {
			f.fail(err)
			return
		}
		if t != nil {
			f.pushSitemap(t, time.Time{})
		}
	}
}

// pushSitemap queues the next sitemap of the host of t, if none of its sitemaps is queued.
func (f *fetcher) pushSitemap(t *sitemaps.Task, due time.Time) {
	if next := f.sitemaps.Next(t); next != nil {
		f.sched.Push(next.Key.Host, polite.Item{ID: next.ID, NotBefore: due})
	}
}

// stepSitemap does the next step of a sitemap. It returns false if the sitemap ended without a
// request.
func (f *fetcher) stepSitemap(ctx, flight context.Context, g *polite.Grant, t *sitemaps.Task) bool {
	rules, failed, used := f.rulesFor(ctx, flight, g, t.Key)
	if used {
		return true
	}
	if failed != nil {
		f.endSitemap(g, t, f.sitemaps.End(t, failed.Outcome, 0, 0), &segments.Record{})
		return false
	}
	verdict, ok := f.judgeSitemap(t, rules)
	if !ok {
		f.endSitemap(g, t, f.sitemaps.End(t, schema.RobotsDenied, 0, 0), &segments.Record{})
		return false
	}
	if t.Fresh() && !f.claim(t.Key.URL) { // a redirect chain has requested it
		f.endSitemap(g, t, f.sitemaps.End(t, schema.Redirected, 0, 0), &segments.Record{})
		return false
	}
	if f.begin(ctx, g, manifest.Trying{Sitemap: t.Named}) {
		f.getSitemap(flight, g, t, rules, verdict.Rule)
	}
	return true
}

// judgeSitemap returns the verdict of robots.txt on the known spellings of a sitemap's URL. The
// result ok also considers the spelling by which it was named.
func (f *fetcher) judgeSitemap(t *sitemaps.Task, rules *robotscache.Rules) (verdict robots.Verdict, ok bool) {
	known, err := f.index.Spellings(t.Key)
	if err != nil {
		f.fail(err)
		return verdict, false
	}
	verdict = rules.Verdict(f.reading, t.Key.URL, known...)
	ok = verdict.Allowed && !known.Overflow()
	if ok && t.Spelled != "" {
		ok = rules.Verdict(f.reading, t.Key.URL, t.Spelled).Allowed
	}
	return verdict, ok
}

// getSitemap uses a grant to send the next request of a sitemap.
func (f *fetcher) getSitemap(ctx context.Context, g *polite.Grant, t *sitemaps.Task, rules *robotscache.Rules, rule string) {
	t.Tries++
	detected := ""
	purpose := schema.ForSitemap
	if g.Kind == polite.Probe {
		purpose = schema.ForProbe
	}
	s := f.requests.Send(ctx, g, f.ask(purpose, t.Key.URL, t.Tries, rules, rule, &detected))
	defer s.Exchange.Release()
	b := &segments.Record{}
	if s.Recorded() {
		b.Requests = []schema.Request{s.Row}
	}
	if s.Aborted() {
		t.Tries-- // an aborted request does not count as a try
		if len(b.Requests) > 0 {
			b.Sitemaps = []schema.Sitemap{t.Row()}
			f.record(b)
		}
		g.Done(polite.Result{Requeue: &polite.Item{ID: t.ID, NotBefore: f.afterAbort(s)}})
		return
	}
	switch {
	case s.Err != nil:
		f.sitemapFailed(g, t, s, response.OfError(s.Err), b)
	case response.IsRedirect(s.Exchange):
		f.redirectSitemap(g, t, s, b)
	case s.Exchange.Status >= 200 && s.Exchange.Status <= 299:
		f.sitemapDocument(g, t, s, detected, b)
		g.Done(polite.Result{Class: polite.Success})
	default:
		f.captureSitemap(t, s, b, schema.SubsetDiagnostics, nil)
		_, said := s.Exchange.Header.Lookup("Retry-After")
		f.sitemapFailed(g, t, s, response.OfStatus(s.Exchange.Status, said), b)
	}
}

// endSitemap records the end of a sitemap and queues the host's next one, so that a page may come
// between the two.
func (f *fetcher) endSitemap(g *polite.Grant, t *sitemaps.Task, row schema.Sitemap, b *segments.Record) {
	b.Sitemaps = append(b.Sitemaps, row)
	f.record(b)
	f.log.Debug("sitemap", "url", row.URL, "outcome", row.Outcome, "entries", row.Entries)
	f.pushSitemap(t, f.clock.Now().Add(2*g.Delay))
}

// sitemapFailed ends or retries a sitemap whose request brought no document.
func (f *fetcher) sitemapFailed(g *polite.Grant, t *sitemaps.Task, s *request.Sent, v response.Verdict, b *segments.Record) {
	r := polite.Result{Class: v.Health, RetryAfter: s.RetryAfter}
	if f.retry(&t.Retries, v.Retry, s.How(v.Outcome), g.Host, &polite.Item{ID: t.ID}, &r) {
		b.Sitemaps = []schema.Sitemap{t.Row()}
		f.record(b)
	} else {
		f.endSitemap(g, t, described(f.sitemaps.End(t, v.Outcome, 0, 0), s, nil), b)
	}
	g.Done(r)
}

// redirectSitemap follows a redirect of a sitemap, or ends the sitemap if it must not be followed.
func (f *fetcher) redirectSitemap(g *polite.Grant, t *sitemaps.Task, s *request.Sent, b *segments.Record) {
	target, spelled, err := response.Location(f.canon, s.Exchange, t.Key.URL)
	if err == nil {
		target = response.CloneKey(target)
		s.Redirect = target.URL
	}
	f.captureSitemap(t, s, b, schema.SubsetDiagnostics, nil)
	outcome := schema.Redirected
	here := false
	if err == nil {
		if here, err = f.index.Has(target.URL); err != nil {
			f.fail(err)
		}
	}
	switch {
	case err != nil:
		outcome = schema.ProtocolError
	case target.Domain != t.Key.Domain || here:
	case int(t.Redirects) >= f.cfg.MaxRedirects:
		outcome = schema.RedirectLimit
	case f.claim(target.URL): // a loop leads to a URL that was claimed before
		t.Key, t.Spelled, t.Redirects, t.Tries, t.Retries = target, spelled, t.Redirects+1, 0, manifest.RetryCounts{}
		b.Sitemaps = []schema.Sitemap{t.Row()}
		f.record(b)
		f.passOn(g, target.Host, &polite.Item{ID: t.ID})
		return
	}
	f.endSitemap(g, t, described(f.sitemaps.End(t, outcome, 0, 0), s, nil), b)
	g.Done(polite.Result{Class: polite.Success})
}

// captureSitemap archives a response to the request for a sitemap. It returns nil if there is no row
// of captures.
func (f *fetcher) captureSitemap(t *sitemaps.Task, s *request.Sent, b *segments.Record, subset string, parsed *document.Parsed) *segments.Capture {
	cp, ok := f.archive(s, t.Key, subset, parsed)
	if !ok {
		return nil
	}
	b.Captures = []segments.Capture{cp}
	return &b.Captures[0]
}

// sitemapDocument handles a 2xx response. Only sitemaps and feeds have links that count: a page that
// a server sends in place of a sitemap was not planned.
func (f *fetcher) sitemapDocument(g *polite.Grant, t *sitemaps.Task, s *request.Sent, detected string, b *segments.Record) {
	x := s.Exchange
	if x.Filtered || len(x.Body) == 0 {
		f.endSitemap(g, t, described(f.sitemaps.End(t, schema.MIMEFiltered, 0, 0), s, nil), b)
		return
	}
	f.cpu <- struct{}{}
	defer func() { <-f.cpu }()
	parsed, err := document.Parse(f.parser, response.Document(t.Key.URL, x, 0, s.At))
	if err != nil {
		f.log.Error("a sitemap could not be parsed", "url", t.Key.URL, "error", err)
		cp := f.captureSitemap(t, s, b, schema.SubsetWARC, nil)
		f.endSitemap(g, t, described(f.sitemaps.End(t, schema.InternalError, 0, int64(len(x.Body))), s, cp), b)
		return
	}
	cp := f.captureSitemap(t, s, b, schema.SubsetWARC, parsed)
	kind := parsed.Page.DocumentKind
	if cp == nil || kind != "sitemap" && kind != "feed" {
		f.endSitemap(g, t, described(f.sitemaps.End(t, schema.MIMEFiltered, 0, int64(len(x.Body))), s, cp), b)
		return
	}
	links, entries, foreign, beyond := f.sitemaps.Take(t, parsed.Links)
	if foreign+beyond > 0 {
		f.log.Info("entries of a sitemap are left out", "url", t.Key.URL, "of_other_sites", foreign, "beyond_limits", beyond)
	}
	b.Links = links
	row := described(f.sitemaps.End(t, schema.OK, entries, int64(len(x.Body))), s, cp)
	var named []*sitemaps.Task
	for i := range links {
		if links[i].Kind != schema.KindSitemapIndex {
			continue
		}
		ref := links[i].Spelling
		if ref == "" {
			ref = links[i].Target
		}
		child, err := f.sitemaps.Name(ref, "", t.Key.Domain)
		if err != nil {
			f.fail(err)
			return
		}
		if child != nil {
			named = append(named, child)
			b.Sitemaps = append(b.Sitemaps, child.Row())
		}
	}
	f.endSitemap(g, t, row, b)
	for _, child := range named { // those of other hosts
		f.pushSitemap(child, time.Time{})
	}
}

// described adds the columns that describe a sitemap's last response and its record. The parameter cp
// is nil if the frontier need not know the record.
func described(row schema.Sitemap, s *request.Sent, cp *segments.Capture) schema.Sitemap {
	row.HTTPStatus = int16(s.Exchange.Status)
	if !s.At.IsZero() {
		row.FetchedAt = s.At.UnixMilli()
	}
	if s.Exchange.Status != 0 {
		row.ETag, row.LastModified = response.Validators(s.Exchange)
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

// endSuspect ends a sitemap at which several attempts died, before it is queued. The caller records
// the row.
func (f *fetcher) endSuspect(named string) (schema.Sitemap, error) {
	key, err := urlkey.KeyOf(named)
	if err != nil {
		return schema.Sitemap{}, fmt.Errorf("attempts died at the sitemap %q: %v: %w", named, err, manifest.ErrCorrupt)
	}
	row := schema.Sitemap{SURT: key.SURT, URL: key.URL, Host: key.Host, Domain: key.Domain, Outcome: schema.InternalError}
	_, err = f.sitemaps.Restore(&row)
	return row, err
}

// restoreSitemaps takes over the sitemaps of earlier attempts from the files of a checkpoint.
func (a *attempt) restoreSitemaps(ctx context.Context, doc *manifest.Checkpoint, renew func() error) error {
	if !a.fetcher.sitemaps.On() {
		return nil
	}
	return segments.Rows(ctx, a.inputs, doc.Files, stages.FileSitemaps, renew, func(row *schema.Sitemap) error {
		_, err := a.fetcher.restoreSitemap(row)
		return err
	})
}

// restoreSitemap takes over the row of a sitemap. It returns false if the row says nothing new.
func (f *fetcher) restoreSitemap(row *schema.Sitemap) (bool, error) {
	known, err := f.sitemaps.Restore(row)
	if known && row.Outcome != "" {
		f.claim(row.URL)
		f.claim(cmp.Or(row.Named, row.URL))
	}
	return known, err
}

// takeSitemaps takes over what the previous round knew of sitemaps, and records the rows again, so
// that later rounds need not read older rows. Sitemaps of the partition's domains that wait, or failed
// for a moment, are requested in this round. The first partition of a bucket also records the rows of
// other domains, because a later round may plan their URLs.
func (a *attempt) takeSitemaps(ctx context.Context) error {
	f, plan := a.fetcher, a.in.Plan
	if !f.sitemaps.On() {
		return nil
	}
	own := map[string]bool{}
	for _, h := range f.index.Hosts() {
		if k, err := urlkey.KeyOf("http://" + h.Name + "/"); err == nil {
			own[k.Domain] = true
		}
	}
	bucket := plan.Partitions[a.in.Task.Partition].Bucket
	first := a.in.Task.Partition == slices.IndexFunc(plan.Partitions, func(p manifest.PlanPartition) bool { return p.Bucket == bucket })
	others := map[uint64]bool{} // hashes of the recorded rows of other domains
	take := func(row *schema.Sitemap) error {
		named := cmp.Or(row.Named, row.URL)
		if row.Earlier = sitemaps.Final(row.Outcome); !row.Earlier {
			k, err := urlkey.KeyOf(named)
			if err != nil {
				return fmt.Errorf("sitemap %q: %v: %w", named, err, table.ErrCorrupt)
			}
			*row = schema.Sitemap{SURT: k.SURT, URL: k.URL, Host: k.Host, Domain: k.Domain}
		}
		if own[row.Domain] {
			if known, err := f.restoreSitemap(row); !known || err != nil {
				return err
			}
			return a.log.Emit(&segments.Record{Sitemaps: []schema.Sitemap{*row}})
		}
		h := xxh3.HashString(string(row.Outcome) + " " + named)
		if !first || others[h] || urlkey.Bucket(row.Domain, plan.Buckets) != bucket {
			return nil
		}
		others[h] = true
		return a.log.Emit(&segments.Record{Sitemaps: []schema.Sitemap{*row}})
	}
	for _, r := range a.in.Before {
		if err := segments.Rows(ctx, a.inputs, r.Files, stages.FileSitemaps, func() error { return a.lease.RenewIfDue(ctx) }, take); err != nil {
			return fmt.Errorf("load sitemaps of the previous round: %w", err)
		}
	}
	return nil
}
