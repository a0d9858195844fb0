package fetch

import (
	"context"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/sitemaps"
)

// sitemapTools returns what package sitemaps needs of the fetcher.
func (f *fetcher) sitemapTools() sitemaps.Tools {
	return sitemaps.Tools{
		Canon: f.canon, Parser: f.parser, MaxRedirects: f.cfg.MaxRedirects, Clock: f.clock, Log: f.log, Scheduler: f.sched, Sender: &f.requests, CPU: f.cpu,
		Planned: f.index.Has, Claim: f.claim, Ask: f.ask, AfterAbort: f.afterAbort, Archive: f.archive, PassOn: f.passOn, Record: f.record, Fail: f.fail,
	}
}

// stepSitemap does the next step of a sitemap. It returns false if the sitemap ended without a
// request.
func (f *fetcher) stepSitemap(ctx, flight context.Context, g *polite.Grant, t *sitemaps.Task) bool {
	if f.optedOut(t.Key.URL) {
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
	verdict, ok := f.judgeSitemap(t, rules)
	switch {
	case !ok:
		f.sitemaps.EndUnsent(t, schema.RobotsDenied)
		return false
	case !f.sitemaps.Reserve(t): // a redirect chain has requested it
		f.sitemaps.EndUnsent(t, schema.Redirected)
		return false
	}
	if f.begin(ctx, g, manifest.Trying{Sitemap: t.Named}) {
		f.sitemaps.Get(flight, g, t, rules, verdict.Rule)
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

// takeSitemaps takes over what the previous round knew of sitemaps, and records the rows again, so
// that later rounds need not read older rows. The first partition of a bucket also records the rows of
// other partitions' domains.
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
	carrier := f.sitemaps.Carrier(own, func(domain string) bool { return first && urlkey.Bucket(domain, plan.Buckets) == bucket })
	for _, r := range a.in.Before {
		err := segments.Rows(ctx, a.inputs, r.Files, stages.FileSitemaps, func() error { return a.lease.RenewIfDue(ctx) }, func(row *schema.Sitemap) error {
			if keep, err := carrier.Take(row); !keep || err != nil {
				return err
			}
			return a.log.Emit(&segments.Record{Sitemaps: []schema.Sitemap{*row}})
		})
		if err != nil {
			return fmt.Errorf("load sitemaps of the previous round: %w", err)
		}
	}
	return nil
}
