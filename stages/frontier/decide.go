package frontier

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/priority"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// decider writes the decision about each URL.
type decider struct {
	cfg     *Config
	round   string      // name of the round, such as 2026-11.0
	crawl   string      // "2026-11.", the prefix of this crawl's rounds, if stages.Input.Listed; otherwise ""
	created schema.Time // time at which this crawl was created
	planned plannedNames
	ranks   map[string]float64
	traps   *traps
	hosts   int64 // number of hosts in all buckets
	peers         // the known pages of the current host

	urls    *table.Writer[schema.URLRecord]
	skips   *table.Writer[schema.Skip]
	base    *table.Writer[schema.URLRecord] // states of all known URLs; nil if the round writes none for the bucket
	newest  *schema.URLRecord               // state of the current URL after the round; nil if it has none
	filter  *urlfilter.Writer               // URL filter of the datasets urls and skips
	waiting int64                           // number of URLs that are found or deferred after the round
	counts  map[string]int64
}

// decideURL writes the rows of one URL.
func (d *decider) decideURL(g *group) error {
	d.newest = g.prior
	if err := d.decide(g); err != nil || d.base == nil || d.newest == nil {
		return err
	}
	return d.base.Append(d.newest)
}

// decide writes the rows of one URL to the datasets urls and skips. A group without a SURT holds
// only refused entries that are not URLs.
func (d *decider) decide(g *group) error {
	reviewed, err := d.reviewTrap(g) // first, because a lookup shows the first reason
	if err != nil {
		return err
	}
	overBudget := false
	for _, r := range g.refused {
		overBudget = overBudget || r.Reason == schema.SkipBudget
		if err := d.skip(schema.Skip{
			SURT: r.SURT, URL: r.URL, Reason: r.Reason, Detail: r.Detail, Source: r.Source, Line: r.Line, Depth: r.Depth,
		}); err != nil {
			return err
		}
	}
	if g.surt == "" || reviewed {
		return nil
	}
	k, err := urlkey.KeyOf(g.url)
	if err != nil {
		return err
	}
	if o, other := g.requested(); o != nil {
		return d.requested(g, &k, o, other)
	}
	if g.prior != nil && g.prior.State != schema.StateSkipped {
		if d.foreign(g.prior) {
			return d.rediscover(g, &k, overBudget)
		}
		if overBudget && d.waitsAgain(g) {
			return d.writeAgain(g, &k, g.refused[0].Depth)
		}
		return d.reconsider(g, &k)
	}
	if overBudget {
		// The URL waits until the budget allows it.
		return d.writeFound(g, &k, g.refused[0].Depth, "")
	}
	return d.decideNew(g, &k)
}

// requested returns the outcome of a request for the URL in this round, or nil if there was none. other
// is true if the URL was requested without a plan: a planned URL redirected to it, or robots.txt names
// it as a sitemap.
func (g *group) requested() (o *outcome, other bool) {
	switch {
	case g.outcome != nil:
		return g.outcome, false
	case g.response != nil:
		o := outcome(*g.response)
		o.FinalURL = ""
		return &o, true
	case g.sitemap != nil && g.sitemap.Outcome != schema.Redirected: // a redirected sitemap has a hop
		s := g.sitemap
		return &outcome{
			Outcome: s.Outcome, HTTPStatus: s.HTTPStatus, FetchedAt: s.FetchedAt, RecordedAt: s.FetchedAt, ContentDigest: s.ContentDigest,
			ETag: s.ETag, LastModified: s.LastModified, Truncated: s.Truncated, Revisit: s.Revisit,
			WARCFilename: s.WARCFilename, WARCRecordOff: s.WARCRecordOff, WARCRecordLen: s.WARCRecordLen,
		}, true
	case g.hop != nil:
		o := outcome{HTTPStatus: g.hop.Status, FetchedAt: g.hop.FetchTime, RecordedAt: g.hop.FetchTime}
		switch {
		case g.hop.Status/100 == 3:
			o.Outcome, o.RedirectTarget = schema.Redirected, g.hop.Redirect
		case g.hop.Status >= 500:
			o.Outcome = schema.HTTP5xx
		case g.hop.Status >= 400:
			o.Outcome = schema.HTTP4xx
		default:
			return nil, false
		}
		if g.redirect != nil {
			o.Depth = g.redirect.Depth
		} else if g.inlink != nil {
			o.Depth = g.inlink.SourceDepth
		}
		return &o, true
	}
	return nil, false
}

// requested records the new state of a URL that was requested.
func (d *decider) requested(g *group, k *urlkey.Key, o *outcome, other bool) error {
	var prior schema.URLRecord
	if g.prior != nil {
		prior = *g.prior
	}
	if other && failedForGood(schema.StateAfter(o.Outcome, o.HTTPStatus, false)) && g.prior != nil && g.prior.Sent != g.sent() && !failedForGood(prior.State) {
		return d.reconsider(g, k) // another form failed than the one that is known
	}
	again := false
	if state := schema.StateAfter(o.Outcome, o.HTTPStatus, !other && moved(o)); failedForGood(state) {
		if again = d.tryForm(g, k, &schema.URLRecord{State: state, Failures: prior.Failures + 1, Depth: o.Depth}, g.sent()); !again {
			g.form = schema.Form{Sent: g.sent()} // no other form counts before its own domain links it
		}
	}
	r := d.record(g, k, o.Depth)
	if g.prior == nil && other && g.response != nil {
		r.FirstSource = g.response.FinalURL // the planned URL that led to this URL
	}
	if !other {
		r.LastPlanned = d.round
	}
	r = d.cfg.recordAfter(r, &prior, o, !other && moved(o), d.rules[depthClass(&r)])
	g.compare(&r, &prior, d.round)
	if g.sitemap != nil && r.LastPlanned == "" {
		r.NextDue, r.DueReason = 0, "" // no plan needs it: each month requests it, because robots.txt names it
	}
	if g.inlink != nil {
		d.cfg.announced(&r, g.inlink.LastMod)
	}
	if again {
		r.NextDue = answered(o) // at once; the state stays that of the outcome
	}
	return d.url(r)
}

// reconsider updates a known URL that was not requested in this round. If the URL waits, links may
// change its depth and priority. If the URL was fetched, a sitemap may announce a change. If the URL failed for good, its
// own domain may link it in another form, which is tried.
func (d *decider) reconsider(g *group, k *urlkey.Key) error {
	p := g.prior
	if d.tryForm(g, k, p, p.Sent) {
		return d.writeAgain(g, k, p.Depth)
	}
	waits := p.State == schema.StateFound || p.State == schema.StateDeferred
	if waits {
		if r, changed := d.updateWaiting(g, k); changed {
			return d.url(r)
		}
	}
	if g.inlink != nil && g.inlink.LastMod > p.LastFetched {
		if r := d.record(g, k, p.Depth); d.cfg.announced(&r, g.inlink.LastMod) {
			return d.url(r)
		}
	}
	if g.form.Sent != p.Sent && !failedForGood(p.State) { // who gave it matters only as long as the URL waits
		return d.url(d.record(g, k, p.Depth))
	}
	if waits || failedForGood(p.State) && p.NextDue != 0 {
		d.waiting++
	}
	return nil
}

// waitsAgain reports whether a known URL that a budget refused becomes found, because otherwise no later
// round would plan it: a source lists the URL in this round, and it is not due without the source.
func (d *decider) waitsAgain(g *group) bool {
	p := g.prior
	if p.State == schema.StateFound || p.State == schema.StateDeferred {
		return false
	}
	if p.NextDue != 0 && p.NextDue <= d.created {
		return false // the plan found it due, and so does the next one
	}
	return slices.ContainsFunc(g.refused, func(r *schema.Refused) bool { return r.ListedLastRound == d.round })
}

// foreign reports whether only earlier crawls know the URL of r. A round of this crawl knows the URL if it
// found, planned or fetched it; it may have fetched the URL as the target of a redirect. If this crawl
// plans all known URLs (stages.Input.Listed is false), foreign returns false.
func (d *decider) foreign(r *schema.URLRecord) bool {
	return d.crawl != "" && !strings.HasPrefix(r.FirstSeen, d.crawl) && !strings.HasPrefix(r.LastPlanned, d.crawl) && (r.LastFetched == 0 || r.LastFetched < d.created)
}

// rediscover decides about a foreign URL that was not requested in this round. If a followed link or a
// redirect leads to the URL, or a budget refused it, the URL is due at once and keeps its history. If
// the plan refused the URL because of a recent fetch, the URL is due according to that fetch. Other
// foreign URLs are not due in this crawl.
func (d *decider) rediscover(g *group, k *urlkey.Key, overBudget bool) error {
	p := g.prior
	if overBudget {
		return d.writeAgain(g, k, g.refused[0].Depth)
	}
	recent := slices.ContainsFunc(g.refused, func(r *schema.Refused) bool { return r.Reason == schema.SkipRecent })
	if recent && g.own && p.State == schema.StateFound {
		return d.leaveAgain(g, k)
	}
	if !recent && (g.redirect != nil || g.inlink != nil) {
		depth, source, followed := g.nearest()
		reason, detail := d.judge(g, k, depth, followed)
		if reason == "" {
			return d.writeAgain(g, k, depth)
		}
		if len(g.refused) == 0 {
			if err := d.skip(schema.Skip{SURT: k.SURT, URL: k.URL, Reason: reason, Detail: detail, Source: source, Depth: depth}); err != nil {
				return err
			}
		}
	}
	r := d.record(g, k, p.Depth)
	announced := g.inlink != nil && d.cfg.announced(&r, g.inlink.LastMod)
	if !announced && g.form == p.Form {
		return nil
	}
	if r.State == schema.StateFound {
		r.State = schema.StateDeferred // with the state found, this crawl would plan the URL
	}
	return d.url(r)
}

// writeAgain writes the record of a URL with a history that waits to be planned. If a round of this crawl has
// written this record already, and no fact has changed much, writeAgain writes nothing.
func (d *decider) writeAgain(g *group, k *urlkey.Key, depth int32) error {
	r := d.record(g, k, depth)
	if p := g.prior; g.own && p.State == schema.StateFound && p.NextDue == 0 && depth >= p.Depth && g.form == p.Form {
		if weight := r.Priority - p.Priority; g.inlink == nil && g.redirect == nil || weight > -50 && weight < 50 {
			d.waiting++
			return nil
		}
	}
	if r.LastFetched > 0 {
		r.RevisitMS = d.cfg.revisit(g.prior).Milliseconds()
	}
	r.State, r.NextDue, r.DueReason = schema.StateFound, 0, ""
	return d.url(r)
}

// leaveAgain ends the wait of a foreign URL that the plan refused because of a recent fetch. The URL
// gets back the state and the due time from its last fetch.
func (d *decider) leaveAgain(g *group, k *urlkey.Key) error {
	r := d.record(g, k, g.prior.Depth)
	r.State = schema.StateAfter(r.Outcome, 0, r.RedirectTo != "")
	if r.State != schema.StateFetched && r.State != schema.StateRedirected {
		return nil // the last request failed after the last fetch
	}
	r.NextDue = r.LastFetched.Add(time.Duration(r.RevisitMS) * time.Millisecond)
	_, r.DueReason = d.rules[depthClass(g.prior)].Interval(d.cfg.history(g.prior), d.cfg.revisit(g.prior))
	return d.url(r)
}

// updateWaiting applies this round's links to the record of a waiting URL. changed is true if the links
// reduce the URL's depth, change its priority by 50 or more, or change its form.
func (d *decider) updateWaiting(g *group, k *urlkey.Key) (r schema.URLRecord, changed bool) {
	if g.inlink == nil && g.redirect == nil {
		return r, false
	}
	p := g.prior
	depth, _, followed := g.nearest()
	if !followed || depth > p.Depth {
		depth = p.Depth
	}
	r = d.record(g, k, depth)
	weight := r.Priority - p.Priority
	return r, depth < p.Depth || weight >= 50 || weight <= -50 || g.form != p.Form
}

// nearest returns the least depth that a link or redirect gives the URL, and the source of that
// link or redirect. followed is true if at least one link or redirect to the URL is followed.
func (g *group) nearest() (depth int32, source string, followed bool) {
	if l := g.inlink; l != nil {
		depth, source, followed = l.SourceDepth+1, l.FirstSource, l.Followed
	}
	if r := g.redirect; r != nil && (!followed || r.Depth+1 < depth) {
		depth, source, followed = r.Depth+1, r.Source, true
	}
	return depth, source, followed
}

// decideNew decides about a URL that is new or was skipped before.
func (d *decider) decideNew(g *group, k *urlkey.Key) error {
	if g.redirect == nil && g.inlink == nil {
		return nil
	}
	depth, source, followed := g.nearest()
	reason, detail := d.judge(g, k, depth, followed)
	if reason == "" {
		return d.writeFound(g, k, depth, source)
	}
	if len(g.refused) == 0 { // a URL that the plan refused has a row already
		if err := d.skip(schema.Skip{SURT: k.SURT, URL: k.URL, Reason: reason, Detail: detail, Source: source, Depth: depth}); err != nil {
			return err
		}
	}
	return nil
}

// judge returns why a new URL must not be planned, or "" if it may be planned.
func (d *decider) judge(g *group, k *urlkey.Key, depth int32, followed bool) (reason schema.SkipReason, detail string) {
	if !followed {
		return schema.SkipNofollow, ""
	}
	if d.cfg.Scope != nil {
		if reason, detail := d.cfg.Scope.Refusal(k.URL, g.form.Sent); reason != "" {
			return reason, detail
		}
	}
	follow := false
	switch d.cfg.Follow {
	case FollowHost:
		follow = d.planned.hosts[k.Host]
	case FollowDomain:
		follow = d.planned.domains[k.Domain]
	case FollowAny:
		follow = true
	}
	if !follow {
		return schema.SkipOutOfScope, "follow: " + string(d.cfg.Follow)
	}
	if depth > d.cfg.MaxDepth {
		return schema.SkipDepth, fmt.Sprintf("max_depth %d", d.cfg.MaxDepth)
	}
	if why := d.trap(g, k); why != "" {
		return schema.SkipTrap, why
	}
	// The target of a redirect belongs to a URL that was relevant enough.
	if least := d.cfg.Threshold; d.cfg.Focus != nil && least != nil && g.redirect == nil {
		if score := d.cfg.Focus.ScoreInlink(k.URL, g.inlink); score < *least {
			return schema.SkipFocus, fmt.Sprintf("score %.4g, frontier.focus.threshold %.4g", score, *least)
		}
	}
	return "", ""
}

// writeFound writes the record of a URL that waits to be planned.
func (d *decider) writeFound(g *group, k *urlkey.Key, depth int32, source string) error {
	r := d.record(g, k, depth)
	r.FirstSource = cmp.Or(r.FirstSource, source)
	return d.url(r)
}

// record returns the URL's record, updated with this round's links. A new record has the state
// found.
func (d *decider) record(g *group, k *urlkey.Key, depth int32) schema.URLRecord {
	r := schema.URLRecord{State: schema.StateFound, FirstSeen: d.round}
	if g.prior != nil {
		r = *g.prior
	}
	if r.State == schema.StateSkipped {
		r.State = schema.StateFound
	}
	if r.Sent != g.form.Sent { // the validators and the record hold for the form that gave them
		r.ETag, r.LastModified = "", ""
		r.ContentAt, r.WARCFilename, r.WARCRecordOff, r.WARCRecordLen = 0, "", 0, 0
	}
	r.Form = g.form
	r.Listing = g.listing(r.Listing)
	r.SURT, r.URL, r.Host, r.Domain, r.Depth = k.SURT, k.URL, k.Host, k.Domain, depth
	facts := priority.Facts{URL: k.URL, Rank: d.ranks[k.Host], Hosts: d.hosts, Hops: depth}
	if g.inlink != nil {
		facts.Inlinks, facts.Anchor, facts.Sitemap = g.inlink.Inlinks, len(g.inlink.Anchors) > 0, g.inlink.Weight
	}
	facts.Focus = d.cfg.Focus.ScoreInlink(k.URL, g.inlink)
	r.Inlinks, r.Priority = facts.Inlinks, priority.Sum(d.cfg.Priority.Parts(facts))
	return r
}

// listing returns the listing of the URL after the round. If a source lists the URL in this round, the
// plan has joined this listing with those of earlier rounds. Otherwise listing returns prior.
func (g *group) listing(prior schema.Listing) schema.Listing {
	if g.outcome != nil && g.outcome.ListedLastRound != "" {
		return g.outcome.Listing
	}
	for _, r := range g.refused {
		if r.ListedLastRound != "" {
			return r.Listing
		}
	}
	return prior
}

// url writes a row to the urls dataset.
func (d *decider) url(r schema.URLRecord) error {
	d.counts["state."+string(r.State)]++
	if r.State == schema.StateFound || r.State == schema.StateDeferred && !d.foreign(&r) || failedForGood(r.State) && r.NextDue != 0 {
		d.waiting++
	}
	if err := d.filter.Add(r.URL); err != nil {
		return err
	}
	d.newest = &r
	return d.urls.Append(&r)
}

func (d *decider) skip(s schema.Skip) error {
	d.counts["skip."+string(s.Reason)]++
	if err := d.filter.Add(s.URL); err != nil {
		return err
	}
	return d.skips.Append(&s)
}
