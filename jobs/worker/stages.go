package worker

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/nat64"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/budget"
	"crawlbatch.io/crawlbatch/planner/scope"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/dedup"
	"crawlbatch.io/crawlbatch/stages/fetch"
	"crawlbatch.io/crawlbatch/stages/fetch/guard"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/retries"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/sitemaps"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/frontier"
	"crawlbatch.io/crawlbatch/stages/merge"
	"crawlbatch.io/crawlbatch/stages/parse"
	"crawlbatch.io/crawlbatch/stages/publish"
	"crawlbatch.io/crawlbatch/stages/rank"
)

// roundBefore returns the results of the previous round's fetch tasks that may hold what task t
// needs: host states, robots files and sitemaps for the hosts of its partition, and the sitemaps of
// buckets without URLs, which it records for later rounds.
func (r Runner) roundBefore(ctx context.Context, l *ledger.Ledger, p *manifest.Plan, t stages.Task) ([]*manifest.Result, error) {
	if t.Round == 0 {
		return nil, nil
	}
	last, _, err := roundstate.PlanIn(ctx, r.Bucket, l, t.Round-1)
	if err != nil {
		return nil, err
	}
	pruned := func(manifest.File) bool { return false }
	if e := l.Pruning(); e != nil {
		before := ledger.NewPruned(l.Crawl, e, nil)
		pruned = func(f manifest.File) bool { return before.Has(f.Key) }
	}
	var results []*manifest.Result
	for n := range last.Partitions {
		if !mayKnow(last, n, p, t.Partition) {
			continue
		}
		before, _, err := roundstate.LoadResult(ctx, r.Bucket, stages.Task{Stage: stages.Fetch, Crawl: t.Crawl, Round: t.Round - 1, Partition: n})
		if err != nil {
			return nil, err
		}
		if before != nil {
			results = append(results, &manifest.Result{
				Task: before.Task, Hosts: before.Hosts, Answerers: before.Answerers, CompletedAt: before.CompletedAt,
				Files: slices.DeleteFunc(slices.Concat(before.FilesOf(stages.FileRobots), before.FilesOf(stages.FileSitemaps)), pruned),
			})
		}
	}
	return results, nil
}

// mayKnow reports whether partition n of the plan last, of the previous round, may have rows that the
// given partition of the plan p needs. Only a partition whose bucket has domains of the same hashes may, or
// partition 0 of a round, which also has the sitemaps of buckets without URLs in the round.
func mayKnow(last *manifest.Plan, n int, p *manifest.Plan, part int) bool {
	there, here := last.Partitions[n].Bucket, p.Partitions[part].Bucket
	if last.Buckets < 1 || p.Buckets < 1 {
		return true
	}
	// lacks reports whether one of the buckets from first to end has no URLs in a plan.
	lacks := func(p *manifest.Plan, first, end int) bool {
		for bucket := first; bucket <= end; bucket++ {
			if !slices.ContainsFunc(p.Partitions, func(q manifest.PlanPartition) bool { return q.Bucket == bucket }) {
				return true
			}
		}
		return false
	}
	before, beforeEnd := urlkey.Overlapping(here, p.Buckets, last.Buckets)
	now, nowEnd := urlkey.Overlapping(there, last.Buckets, p.Buckets)
	return before <= there && there <= beforeEnd || n == 0 && part == 0 ||
		n == 0 && lacks(last, before, beforeEnd) || part == 0 && lacks(p, now, nowEnd)
}

// runReduce runs a task of any stage except fetch.
func (r Runner) runReduce(ctx context.Context, env *stages.Env, in *stages.Input) (*manifest.Result, error) {
	switch in.Task.Stage {
	case stages.Merge:
		model, err := r.Config.Frontier.Focus.Scorer()
		if err != nil {
			return nil, err
		}
		return merge.Run(ctx, env, in, merge.Config{Followed: r.Config.FollowedKinds(), Focus: model})
	case stages.Digest, stages.Similar, stages.Cluster, stages.Dedup:
		return dedup.Run(ctx, env, in, dedup.Config{MaxDistance: r.Config.Dedup.MaxDistance, MinWords: r.Config.Dedup.MinWords, Months: r.Config.Dedup.Months})
	case stages.Rank:
		return rank.Run(ctx, env, in)
	case stages.Frontier:
		limits := PlanConfig(r.Config)
		var err error
		if limits.OptOut, err = scope.LoadOptOut(ctx, env.Bucket, in.Plan, limits.StripParams, limits.Rules); err != nil {
			return nil, err
		}
		scope, err := limits.Scope()
		if err != nil {
			return nil, err
		}
		c := frontierConfig(r.Config)
		c.Scope = scope
		if c.Except, err = exceptions(r.Config.Frontier.Traps.Except); err != nil {
			return nil, err
		}
		if c.Focus, err = r.Config.Frontier.Focus.Scorer(); err != nil {
			return nil, err
		}
		return frontier.Run(ctx, env, in, c)
	case stages.Publish:
		return publish.Run(ctx, env, in)
	}
	return nil, fmt.Errorf("stage %q has no tasks: %w", in.Task.Stage, stages.ErrPermanent)
}

// exceptions reports which URLs match one of some patterns. It returns nil for no patterns.
func exceptions(patterns []string) (func(url string) bool, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	s, err := scope.New(nil, patterns, nil, nil)
	if err != nil {
		return nil, err
	}
	return func(url string) bool {
		allowed, _ := s.Allows(url, "")
		return !allowed
	}, nil
}

// frontierConfig returns the frontier stage's part of the config, without its Scope and its exceptions.
func frontierConfig(c *config.Config) frontier.Config {
	out, again := frontier.Default(), c.Frontier.Recrawl
	out.Follow, out.MaxDepth, out.Priority = frontier.Follow(c.Frontier.Follow), int32(c.Plan.MaxDepth), c.Plan.Priority
	out.Interval, out.MinInterval, out.MaxInterval = time.Duration(again.First), time.Duration(again.Min), time.Duration(again.Max)
	out.RetryAfter = time.Duration(again.RetryAfter)
	out.Priority.Focus, out.Threshold = c.Frontier.Focus.Points, c.Frontier.Focus.Threshold
	return out
}

// followsSitemaps reports whether the crawl may plan URLs that sitemaps list.
func followsSitemaps(c *config.Config) bool {
	listed := slices.ContainsFunc(c.FollowedKinds(), func(k schema.LinkKind) bool { return k == schema.KindSitemap || k == schema.KindSitemapIndex })
	return listed && frontier.Follow(c.Frontier.Follow) != frontier.FollowNone && c.Plan.MaxDepth > 0
}

// FetchConfig returns the fetch stage's part of the config.
func FetchConfig(c *config.Config, version string) fetch.Config {
	f := fetch.Default()
	f.UserAgent = UserAgent(c, version)
	f.Politeness = Politeness(c)
	f.Slots = c.Fetch.Slots
	f.Timeouts = wire.Timeouts{Connect: c.Fetch.Timeout.Connect.Std(), FirstByte: c.Fetch.Timeout.FirstByte.Std(), Total: c.Fetch.Timeout.Total.Std()}
	f.RobotsTimeout = c.Fetch.Timeout.Robots.Std()
	f.MaxBody = int64(c.Fetch.MaxBody)
	f.MaxSitemap = int64(c.Fetch.MaxSitemap)
	f.MaxRedirects, f.KeepNoArchive = c.Fetch.MaxRedirects, c.Store.NoArchive == config.NoArchiveKeep
	f.Sitemaps = sitemaps.Limits{}
	if c.Fetch.Sitemaps == config.SitemapsOfRobots && followsSitemaps(c) {
		of := c.Fetch.SitemapLimits
		f.Sitemaps = sitemaps.Limits{Files: of.Files, URLs: int64(of.URLs), Bytes: int64(of.Bytes)}
	}
	f.Retries.Timeout, f.Retries.ServerError, f.Retries.RateLimited = c.Fetch.Retries.Timeout, c.Fetch.Retries.ServerError, c.Fetch.Retries.RateLimited
	f.Retries.Robots = c.Fetch.Retries.Robots
	f.Pauses.RateLimited, f.Pauses.Timeout = c.Fetch.Pauses.RateLimited.Std(), c.Fetch.Pauses.Timeout.Std()
	f.Pauses.ServerError, f.Pauses.DNS = c.Fetch.Pauses.ServerError.Std(), c.Fetch.Pauses.DNS.Std()
	f.Pauses.Breaker = c.Fetch.Pauses.Breaker.Std()
	f.Window = c.Fetch.Window.Std()
	f.Checkpoint = fetch.Checkpoint{Every: c.Fetch.Checkpoint.Every.Std(), Bytes: int64(c.Fetch.Checkpoint.Bytes), Lease: c.Fetch.Checkpoint.Lease.Std()}
	f.StripParams = c.Plan.StripParams
	f.Tolerant = c.Fetch.Certificates == config.CertificatesTolerant
	f.Proxy = c.Fetch.Proxy
	f.ProxyFilters = c.Fetch.ProxyFilters
	f.Resolvers = c.Fetch.Resolvers
	f.ConnectTo = c.Fetch.ConnectTo
	f.PaceConnectTo = c.Politeness.PerAddressDelay != nil
	f.AllowPrivateNetworks, f.NAT64Prefixes = c.Fetch.AllowPrivateNetworks, c.Fetch.NAT64Prefixes
	return f
}

// UserAgent returns the user agent of requests. If the config has no user agent, UserAgent returns
// the name of the program, which only crawls without public hosts may use.
func UserAgent(c *config.Config, version string) string {
	if c.UserAgent != "" {
		return c.UserAgent
	}
	return "crawlbatch/" + version
}

// Politeness converts the config section politeness for the fetch stage.
func Politeness(c *config.Config) polite.Config {
	p := polite.Default()
	p.Delay = c.Politeness.Delay.Std()
	p.InFlightPerHost = c.Politeness.InFlightPerHost
	if d := c.Politeness.PerAddressDelay; d != nil {
		p.PerAddressDelay = d.Std()
	}
	p.SlowFactor = c.Politeness.SlowFactor
	p.RobotsTTL = c.Politeness.RobotsTTL.Std()
	p.Classes, p.Domains, p.Stops = nil, nil, c.Politeness.Stops
	for name, d := range c.Politeness.Classes {
		if p.Classes == nil {
			p.Classes = maps.Clone(polite.Default().Classes)
		}
		p.Classes[name] = d.Std()
	}
	for name, d := range c.Politeness.Domains {
		if p.Domains == nil {
			p.Domains = map[string]polite.Domain{}
		}
		o := polite.Domain{Class: d.Class, InFlightPerHost: d.InFlightPerHost, Stop: d.Stop}
		if d.Delay != nil {
			delay := d.Delay.Std()
			o.Delay = &delay
		}
		p.Domains[name] = o
	}
	return p
}

// PlanConfig returns the planner's part of the config.
func PlanConfig(c *config.Config) planner.Config {
	p := planner.Default()
	p.BucketURLs = int64(c.Plan.BucketURLs)
	p.PartitionURLs, p.MaxDepth, p.StripParams = c.Plan.PartitionURLs, c.Plan.MaxDepth, c.Plan.StripParams
	p.Rules, p.Include, p.Exclude = c.Plan.URLRules(), c.Plan.Scope.Include, c.Plan.Scope.Exclude
	for _, f := range c.Plan.Filter {
		p.Filters = append(p.Filters, scope.Filter(f))
	}
	p.Budget, p.DomainBudgets = c.Plan.Budgets.Default, c.Plan.Budgets.Domains
	if c.Plan.Budgets.PerDay > 0 {
		p.RoundURLs = max(1, int64(float64(c.Plan.Budgets.PerDay)*c.Fetch.Window.Std().Hours()/24))
	}
	p.CrawlURLs = int64(c.Plan.Budgets.Total)
	p.Limits = budget.Limits{
		Host: int64(c.Plan.Budgets.Host), HostsPerDomain: int64(c.Plan.Budgets.HostsPerDomain),
		Ranked: int64(c.Plan.Budgets.Ranked), Address: int64(c.Plan.Budgets.Address),
		Exploration: c.Plan.Budgets.Exploration, RateLimited: c.Plan.Budgets.RateLimited,
	}
	for _, b := range c.Plan.Budgets.Patterns {
		p.Limits.Patterns = append(p.Limits.Patterns, budget.Pattern{Name: b.Name, Match: b.Match, URLs: int64(b.URLs)})
	}
	p.SkipWithin = c.Plan.SkipWithin.Std()
	pace := Politeness(c)
	p.Pace = pace.PaceOf
	p.Delay, p.Slots, p.Window = c.Politeness.Delay.Std(), c.Fetch.Slots, c.Fetch.Window.Std()
	switch d := c.Politeness.PerAddressDelay; {
	case d != nil:
		p.AddressDelay = d.Std()
	case len(c.Fetch.ConnectTo) > 0:
		p.AddressDelay = 0 // targets of connect_to have no pace per address
	}
	f := FetchConfig(c, "")
	p.Reach = reach(&f)
	p.RobotsTries, p.RobotsAgain = retries.RobotsTries(&f.Retries, &f.Pauses, f.RobotsTimeout), retries.RobotsTriesAgain(&f.Retries, &f.Pauses)
	p.Stops = c.Politeness.Stops
	for name, d := range c.Politeness.Domains {
		if d.Stop != "" {
			if p.Stopped == nil {
				p.Stopped = map[string]string{}
			}
			p.Stopped[name] = d.Stop
		}
	}
	return p
}

// reach returns planner.Config.Reach. Hosts for which a rule of connect_to may hold are neither refused nor named.
func reach(f *fetch.Config) func(host string) (refused, named bool) {
	translated, _ := nat64.Parse(f.NAT64Prefixes) // the config was checked
	addresses := guard.New(f.AllowPrivateNetworks, translated...)
	rules := map[string]bool{} // hosts of the rules that replace the address; "" stands for every host
	for _, text := range f.ConnectTo {
		if rule, err := dial.ParseConnectTo(text); err == nil && rule.Addr != "" {
			rules[rule.Host] = true
		}
	}
	return func(host string) (refused, named bool) {
		name := (&url.URL{Host: host}).Hostname()
		if rules[""] || rules[name] {
			return false, false
		}
		if address, err := netip.ParseAddr(name); err == nil {
			return addresses.CheckAddr(address) != nil, false
		}
		if name == "localhost" || strings.HasSuffix(name, ".localhost") { // RFC 6761, 6.3
			return !addresses.AllowsPrivate(), false
		}
		return false, len(f.Resolvers) == 0 && (f.Proxy == "" || !addresses.AllowsPrivate()) // else the proxy looks names up
	}
}

// NewParser returns the parser that fetch tasks and `crawlbatch inspect page` use.
func NewParser(c *config.Config) (*Parser, error) {
	canonical, err := c.Plan.Canonicalizer()
	if err != nil {
		return nil, err
	}
	pc := parse.Config{
		Canonicalizer: canonical, Agent: robots.ProductToken(UserAgent(c, "")), MaxLinks: c.Parse.MaxLinks, MaxBody: int(c.Fetch.MaxBody),
		Withhold:   c.Parse.Withholds(),
		MaxSitemap: max(int(c.Fetch.MaxSitemap), 1),
		Store:      c.Fetch.Types.Store, Skip: c.Fetch.Types.Skip,
	}
	p, err := parse.New(pc)
	if err != nil {
		return nil, err
	}
	return &Parser{p}, nil
}

// Parser adapts a parse.Parser to the interface document.Parser.
type Parser struct{ *parse.Parser }

// Parse implements document.Parser. The error is always nil.
func (p *Parser) Parse(d *document.Document) (*document.Parsed, error) {
	return &p.Parser.Parse(d).Parsed, nil
}
