package lookup

import (
	"context"
	"errors"

	"crawlbatch.io/crawlbatch/formats/focus"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/priority"
	"crawlbatch.io/crawlbatch/formats/recrawl"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// Priority is the priority of a known URL, and how it was made.
type Priority struct {
	// Stored is the priority after the round of the state.
	Stored int32 `json:"stored"`
	// Parts are the parts of Stored. They are empty if the round's working files are gone, so that the
	// parts cannot be computed.
	Parts []priority.Part `json:"parts,omitempty"`
	// Next is the priority in a plan that is made now. It differs from Stored if the URL is due and the
	// crawl has weights for the time of a plan.
	Next int32 `json:"next"`
	// AtPlan are the parts of Next: Stored, with the name frontier, and the parts that a plan adds.
	AtPlan []priority.Part `json:"at_plan,omitempty"`
}

// priority explains the priority in a row of the urls dataset. It computes the parts from the same
// tables as the frontier stage: the dataset hosts and the working file inlinks.
func (c *Crawl) priority(ctx context.Context, s *manifest.Sealed, bucket int, r *schema.URLRecord) (Priority, error) {
	p := Priority{Stored: r.Priority, Next: r.Priority}
	ofPlan, err := c.settingsOf(ctx, c.crawl)
	if err != nil {
		return p, err
	}
	if t := source.TimingOf(r, c.now, ofPlan.Weights, ofPlan.rule); !t.Due.After(t.Now) && nextDue(r) != "never" {
		p.AtPlan = ofPlan.AtPlan(r.Priority, t)
		p.Next = priority.Sum(p.AtPlan)
	}
	if s.Pruned {
		return p, nil
	}
	ofRound, err := c.settingsOf(ctx, s.Crawl)
	if err != nil {
		return p, err
	}
	facts := priority.Facts{URL: r.URL, Hops: r.Depth}
	host, err := firstRow(ctx, c.bucket, partOf(s.FilesOf(stages.FileHosts), bucket), func(h *hostRank) bool { return h.Host == r.Host })
	if err != nil {
		return p, absentIsNil(err)
	}
	if host != nil {
		facts.Rank = host.Rank
	}
	if facts.Hosts, err = c.hosts(ctx, s); err != nil {
		return p, err
	}
	links := layout.Working(s.Crawl, s.Round, string(stages.Rank), stages.FileInlinks, bucket)
	inlink, err := firstRow(ctx, c.bucket, links, func(i *schema.Inlink) bool { return i.URL == r.URL }, table.StringRange("url_surtkey", r.SURT, r.SURT))
	if err != nil {
		return p, absentIsNil(err)
	}
	if inlink != nil {
		facts.Inlinks, facts.Anchor, facts.Sitemap = inlink.Inlinks, len(inlink.Anchors) > 0, inlink.Weight
	}
	facts.Focus = ofRound.focus.ScoreInlink(r.URL, inlink)
	if parts := ofRound.Parts(facts); priority.Sum(parts) == r.Priority {
		p.Parts = parts
	}
	return p, nil
}

// absentIsNil returns nil for the error about an object that is gone.
func absentIsNil(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// hostRank holds the columns of the hosts dataset that a lookup reads.
type hostRank struct {
	Host string  `parquet:"host"`
	Rank float64 `parquet:"rank"`
}

// hosts returns the number of hosts of a round.
func (c *Crawl) hosts(ctx context.Context, s *manifest.Sealed) (n int64, err error) {
	round := roundName(s.Crawl, s.Round)
	if n, ok := c.hostCounts[round]; ok {
		return n, nil
	}
	all, err := roundstate.WithFiles(ctx, c.bucket, []*manifest.Sealed{s}, roundstate.Selection{Dataset: func(d string) bool { return d == stages.FileHosts }})
	if err != nil {
		return 0, err
	}
	for _, f := range all[0].FilesOf(stages.FileHosts) {
		n += f.Rows
	}
	c.hostCounts[round] = n
	return n, nil
}

// settings holds what a crawl has frozen about priorities.
type settings struct {
	priority.Weights
	rule  recrawl.Rule
	focus *focus.Model // nil without frontier.focus
}

// settingsOf returns the settings that a crawl has frozen.
func (c *Crawl) settingsOf(ctx context.Context, crawl string) (settings, error) {
	if s, ok := c.settings[crawl]; ok {
		return s, nil
	}
	// A weight holds no secret, so the variables that hold secrets need not be set.
	_, cfg, err := roundstate.OpenCrawl(ctx, c.bucket, crawl, func(string) (string, bool) { return "unset", true })
	if errors.Is(err, roundstate.ErrNoCrawl) {
		return settings{Weights: priority.Default()}, nil
	}
	if err != nil {
		return settings{}, err
	}
	w := cfg.Plan.Priority
	w.Focus = cfg.Frontier.Focus.Points
	model, err := cfg.Frontier.Focus.Scorer()
	if err != nil {
		return settings{}, err
	}
	c.settings[crawl] = settings{w, cfg.Frontier.Recrawl.Rule(), model}
	return c.settings[crawl], nil
}
