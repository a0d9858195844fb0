package frontier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/urlstate"
	"crawlbatch.io/crawlbatch/stages"
)

// Run decides about the URLs of one reduce bucket. The result counts the rows of each dataset (urls,
// skips), rows by state (state.found …), rows by reason (skip.budget …), and the URLs that are found or
// deferred after the round (waiting).
func Run(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (_ *manifest.Result, err error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	inputs, err := open(ctx, env, in, &cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, inputs.Close()) }()
	d := &decider{cfg: &cfg, round: fmt.Sprintf("%s.%d", in.Task.Crawl, in.Task.Round), created: in.Created, counts: map[string]int64{}}
	if in.Listed {
		d.crawl = in.Task.Crawl + "."
	}
	if d.planned, err = inputs.plannedHosts(ctx); err != nil {
		return nil, err
	}
	if d.ranks, d.hosts, err = stages.HostRanks(ctx, env, in, inputs.bucket); err != nil {
		return nil, err
	}
	if d.traps, err = inputs.learn(ctx); err != nil {
		return nil, err
	}
	t := in.Task
	urlsKey := layout.Table(stages.FileURLs, t.Crawl, t.Round, t.Partition)
	skipsKey := layout.Table(stages.FileSkips, t.Crawl, t.Round, t.Partition)
	if d.urls, err = stages.NewWriter[schema.URLRecord](ctx, env, stages.FileURLs, urlsKey, stages.ByURL); err != nil {
		return nil, err
	}
	defer d.urls.Abort()
	if d.skips, err = stages.NewWriter[schema.Skip](ctx, env, stages.FileSkips, skipsKey, stages.ByURL); err != nil {
		return nil, err
	}
	defer d.skips.Abort()
	baseKey := layout.Working(t.Crawl, t.Round, string(stages.Frontier), urlstate.BaseName(len(in.Earlier)), t.Partition)
	if inputs.prior.Long() {
		if d.base, err = stages.NewWriter[schema.URLRecord](ctx, env, stages.FileURLsBase, baseKey, stages.ByURL); err != nil {
			return nil, err
		}
		defer d.base.Abort()
	}
	if d.filter, err = urlfilter.NewWriter(filepath.Join(env.Scratch, "known")); err != nil {
		return nil, err
	}
	defer d.filter.Abort()
	if err := d.decideAll(ctx, inputs, env.Progress); err != nil {
		return nil, err
	}
	urls, err := table.Finish(ctx, d.urls, env.Bucket, stages.FileURLs, urlsKey)
	if err != nil {
		return nil, err
	}
	skips, err := table.Finish(ctx, d.skips, env.Bucket, stages.FileSkips, skipsKey)
	if err != nil {
		return nil, err
	}
	filter, err := d.filter.Finish(ctx, env.Bucket, stages.FileURLFilter, layout.URLFilter(t.Crawl, t.Round, t.Partition))
	if err != nil {
		return nil, err
	}
	files := []manifest.File{urls, skips, filter}
	if d.base != nil {
		base, err := table.Finish(ctx, d.base, env.Bucket, stages.FileURLsBase, baseKey)
		if err != nil {
			return nil, err
		}
		files = append(files, base)
	}
	return &manifest.Result{Counts: d.sorted(urls.Rows, skips.Rows), Files: files}, nil
}

// group holds the rows of all inputs about one URL.
type group struct {
	surt, url string
	prior     *schema.URLRecord // state of the URL after the last earlier round
	own       bool              // whether prior is from a part of urls of this crawl, not from a base
	outcome   *outcome          // set if the URL was planned in this round
	response  *response         // set if a planned URL redirected to the URL, and the URL gave the last response
	page      *page             // set if the round has a page of the URL
	hop       *hop              // set if the URL has a capture that is not a document; most of these are redirects
	hops      []string          // forms in which the round got a response that is no document
	sitemap   *schema.Sitemap   // set if the URL was requested without a plan, because robots.txt names it
	redirect  *schema.Redirect  // set if a planned URL redirects to the URL and the fetcher did not follow
	inlink    *schema.Inlink
	needed    bool // a URL with a parameter that changes nothing, and no other URL stands for its page
	refused   []*schema.Refused
	form      schema.Form // form of the URL after the round; set when all rows are there
}

// addItem adds an item to the group. Prior states come in order, the oldest first, so each replaces the
// one before. Of several responses or redirects, addItem keeps the first, with the first form of all redirects.
func (g *group) addItem(i *item) {
	switch row := i.row.(type) {
	case *schema.URLRecord:
		g.prior, g.own = row, i.own
	case *outcome:
		g.outcome = row
	case *response:
		g.response = cmp.Or(g.response, row)
	case *page:
		g.page = row
	case *hop:
		g.hops = append(g.hops, row.Sent)
		if g.hop == nil || row.Status/100 == 3 && g.hop.Status/100 != 3 {
			g.hop = row
		}
	case *schema.Sitemap:
		g.sitemap = row
	case *schema.Redirect:
		if g.redirect == nil {
			g.redirect = row
		} else {
			g.redirect.Offer(row.Form)
		}
	case *needed:
		g.needed = true
	case *schema.Inlink:
		g.inlink = row
	case *schema.Refused:
		g.refused = append(g.refused, row)
	}
}

// decideAll merges the inputs and decides about each URL. It collects the URLs of a host, at most window of
// them, before it decides about the first, because the known pages of a host say how often a new one changes.
func (d *decider) decideAll(ctx context.Context, in *inputs, progress stages.Progress) error {
	groups, n := make([]group, window), -1 // groups[:n+1] are in use
	decide := func() error {
		d.peers.settle(d.cfg)
		for i := range groups[:n+1] {
			if err := d.decideURL(&groups[i]); err != nil {
				return err
			}
		}
		progress.Add(stages.CountRows, int64(n+1))
		n = -1
		return nil
	}
	for i, err := range table.Merge(ctx, itemKey, in.streams...) {
		if err != nil {
			return err
		}
		if n < 0 || i.surt != groups[n].surt || i.url != groups[n].url {
			if n >= 0 {
				d.complete(&groups[n])
			}
			host := hostOf(i.surt)
			if n == window-1 || n >= 0 && host != d.peers.host {
				if err := decide(); err != nil {
					return err
				}
			}
			if host != d.peers.host {
				d.peers.begin(d.cfg, host)
			}
			n++
			groups[n] = group{surt: i.surt, url: i.url, refused: groups[n].refused[:0], hops: groups[n].hops[:0]}
		}
		groups[n].addItem(&i)
	}
	if n >= 0 {
		d.complete(&groups[n])
	}
	return decide()
}

// complete notes that a group has all its rows.
func (d *decider) complete(g *group) {
	g.form = d.newForm(g)
	d.peers.add(d.cfg, g)
}

// sorted lists the counts of the result.
func (d *decider) sorted(urls, skips int64) []manifest.Count {
	d.counts["skips"], d.counts["urls"], d.counts["waiting"] = skips, urls, d.waiting
	return manifest.SortedCounts(d.counts)
}
