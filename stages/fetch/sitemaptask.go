package fetch

import (
	"cmp"
	"context"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/sitemaps"
)

// sitemapTools returns the functions of the fetcher that package sitemaps needs.
func (f *fetcher) sitemapTools() sitemaps.Tools {
	return sitemaps.Tools{
		Canon: f.canon, Parser: f.parser, MaxRedirects: f.cfg.MaxRedirects, Clock: f.clock, Log: f.log, Scheduler: f.sched, Sender: &f.requests, CPU: f.cpu,
		Index: f.index,
		Claim: f.claim, Ask: f.ask, AfterAbort: f.afterAbort, Archive: f.archive, PassOn: f.passOn, Record: f.record, Fail: f.fail,
	}
}

// stepSitemap does the next step of a sitemap. It returns false if the sitemap ended without a
// request.
func (f *fetcher) stepSitemap(ctx, flight context.Context, g *polite.Grant, t *sitemaps.Task) bool {
	if f.optedOut(t.Key.URL, t.Sent) {
		f.sitemaps.EndUnsent(t, schema.Stopped)
		return false
	}
	rules, failed, used := f.rulesFor(ctx, flight, g, t.Key)
	if used {
		return true
	}
	if failed != nil {
		f.sitemaps.EndUnsent(t, failed.Outcome)
		return false
	}
	verdict := rules.Verdict(cmp.Or(t.Sent, t.Key.URL))
	switch {
	case !verdict.Allowed:
		f.sitemaps.EndUnsent(t, schema.RobotsDenied)
		return false
	case !f.sitemaps.Reserve(t): // a redirect chain has requested its URL
		f.sitemaps.EndUnsent(t, schema.Redirected)
		return false
	}
	if f.begin(ctx, g, manifest.Trying{Sitemap: t.Named}) {
		f.sitemaps.Get(flight, g, t, rules, verdict.Rule)
	}
	return true
}

// restoreSitemaps takes over the sitemaps of earlier attempts from the files of a checkpoint.
func (a *attempt) restoreSitemaps(ctx context.Context, doc *manifest.Checkpoint, renew func() error) error {
	if !a.fetcher.sitemaps.On() {
		return nil
	}
	return segments.Rows(ctx, a.inputs, doc.Files, stages.FileSitemaps, renew, func(row *schema.Sitemap) error {
		_, err := a.fetcher.sitemaps.Restore(row)
		return err
	})
}

// takeSitemaps takes over the sitemaps that the previous round knew.
func (a *attempt) takeSitemaps(ctx context.Context) error {
	return a.fetcher.sitemaps.TakeOver(a.in.Plan, a.in.Task.Partition, a.in.Before, func(r *manifest.Result, take func(*schema.Sitemap) error) error {
		return segments.Rows(ctx, a.inputs, r.Files, stages.FileSitemaps, func() error { return a.lease.RenewIfDue(ctx) }, take)
	}, func(row *schema.Sitemap) error {
		return a.fetcher.sink.Emit(&segments.Record{Sitemaps: []schema.Sitemap{*row}})
	})
}
