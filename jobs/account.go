package jobs

import (
	"context"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/accounts"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// learned holds the resource usage of a crawl's rounds, so that a driver reads the records of a
// round only once.
type learned struct {
	crawl  string
	rounds int // number of rounds of the crawl
	past   cost.Past
}

// account writes a round's parts of the datasets stages and runs, before the round is sealed.
func (d *Driver) account(ctx context.Context, p *manifest.Plan, counts []manifest.Count) error {
	r := &accounts.Round{Bucket: d.Bucket, Plan: p, Counts: counts, Costs: d.Costs, Version: d.Version, Scratch: d.Scratch, Log: d.Log}
	if done, err := r.Written(ctx); err != nil || done {
		return err
	}
	if d.Costs == nil || layout.IsReparse(p.Crawl) {
		_, err := r.Write(ctx, nil)
		return err
	}
	if err := d.learn(ctx, p); err != nil {
		return err
	}
	used, err := r.Write(ctx, d.Costs.Predict(p, d.learned.past))
	if err == nil {
		d.Costs.Learn(&d.learned.past, p, used)
		d.learned.rounds++
	}
	return err
}

// learn reads the resource usage of the rounds before the round of p.
func (d *Driver) learn(ctx context.Context, p *manifest.Plan) error {
	if d.learned.crawl == p.Crawl && d.learned.rounds == p.Round {
		return nil
	}
	l, err := ledger.Load(ctx, d.Bucket, p.Crawl)
	if err != nil {
		return err
	}
	m, err := l.ReadCrawl(ctx, d.Bucket)
	if err != nil {
		return err
	}
	past, err := Past(ctx, d.Bucket, d.Costs, p.Crawl, p.Round, m.Continued)
	d.learned = learned{p.Crawl, p.Round, past}
	return err
}
