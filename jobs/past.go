package jobs

import (
	"context"
	"errors"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// Past returns the resource usage of the rounds before a round: the rounds of the newest continued
// crawl, and the earlier rounds of the crawl itself. It skips rounds whose records are gone.
func Past(ctx context.Context, b store.Bucket, m *cost.Model, crawl string, round int, continued []manifest.ContinuedCrawl) (past cost.Past, err error) {
	r := StatusReader{Bucket: b, Costs: m}
	if err := r.learnContinued(ctx, continued, &past); err != nil {
		return past, err
	}
	return past, r.learn(ctx, crawl, round, &past)
}

// pastOf returns the resource usage of one crawl: the newest that the ledger's crawl continues.
// Later calls return the same without reading it again.
func (r *StatusReader) pastOf(ctx context.Context, l *ledger.Ledger) (past cost.Past, err error) {
	if r.Costs == nil || layout.IsReparse(l.Crawl) {
		return past, nil
	}
	if r.before == nil {
		m, err := l.ReadCrawl(ctx, r.Bucket)
		if err == nil {
			err = r.learnContinued(ctx, m.Continued, &past)
		}
		if err = ignoreMissing(err); err != nil {
			return past, err
		}
		r.before = &past
	}
	return r.before.Clone(), nil
}

// learnContinued adds the rounds of the newest continued crawl to past.
func (r *StatusReader) learnContinued(ctx context.Context, continued []manifest.ContinuedCrawl, past *cost.Past) error {
	if len(continued) == 0 {
		return nil
	}
	last := continued[len(continued)-1]
	return r.learn(ctx, last.Crawl, last.Rounds, past)
}

// learn adds the rounds of a crawl with numbers less than the parameter before to past.
func (r *StatusReader) learn(ctx context.Context, crawl string, before int, past *cost.Past) error {
	if before == 0 {
		return nil
	}
	if r.attempts == nil {
		r.attempts = map[string]*manifest.Attempt{}
	}
	l, err := ledger.Load(ctx, r.Bucket, crawl)
	if err != nil {
		return ignoreMissing(err)
	}
	for n := range min(before, l.Rounds()) {
		p, used, err := r.usages(ctx, l, n)
		if err == nil {
			r.Costs.Learn(past, p, used)
		} else if err = ignoreMissing(err); err != nil {
			return err
		}
	}
	return nil
}

// usages returns the plan of a round, and the resource usage of each stage.
func (r *StatusReader) usages(ctx context.Context, l *ledger.Ledger, round int) (*manifest.Plan, cost.Usages, error) {
	p, _, err := roundstate.PlanIn(ctx, r.Bucket, l, round)
	if err != nil {
		return nil, nil, err
	}
	used := cost.Usages{}
	for _, stage := range stages.Of(p) {
		attempts, err := r.readAttempts(ctx, p, stage)
		if err != nil {
			return nil, nil, err
		}
		used[stage] = usageOf(attempts)
	}
	return p, used, nil
}

// ignoreMissing returns nil if err says that a document is missing or damaged, otherwise err. A
// prediction does not need every document, and Read reports the lost ones.
func ignoreMissing(err error) error {
	for _, missing := range []error{ledger.ErrLost, manifest.ErrCorrupt, manifest.ErrFormat, ledger.ErrPruned, store.ErrNotFound, roundstate.ErrNoPlan, roundstate.ErrNoCrawl} {
		if errors.Is(err, missing) {
			return nil
		}
	}
	return err
}

// usageOf returns the sum of the usage of all attempts. The keys of attempts are partitions.
func usageOf(attempts map[int][]*manifest.Attempt) (sum manifest.Usage) {
	for _, all := range attempts {
		for _, a := range all {
			if a.Usage != nil {
				sum = sum.Add(*a.Usage)
			}
		}
	}
	return sum
}

// predict fills the predictions and prices of a round's status.
func (r *StatusReader) predict(rs *RoundStatus, p *manifest.Plan, past *cost.Past) {
	rs.Prices, rs.Learned = r.Costs.Config.Prices.Date, past.Rounds
	predicted, used := r.Costs.Predict(p, *past), cost.Usages{}
	for i := range rs.Stages {
		st := &rs.Stages[i]
		used[st.Stage] = st.Usage
		u := predicted[st.Stage]
		st.Predicted = &PredictedUsage{u, r.Costs.Price(p, st.Stage, u)}
		st.Dollars = r.Costs.Price(p, st.Stage, st.Usage)
	}
	if rs.State == "sealed" {
		r.Costs.Learn(past, p, used)
	}
}
