package planner

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/pack"
)

// picked holds the URLs that the budgets allow.
type picked struct {
	chosen *entry.List

	chooser *chooser
	seen    observations
	names   *entry.Names
	dir     string        // directory for scratch files
	scratch []*entry.List // all lists, for closing
}

func (p *picked) close() (err error) {
	for _, l := range p.scratch {
		err = errors.Join(err, l.Close())
	}
	return err
}

// newPicked returns a picked without URLs. The caller closes the result, even after an error.
func newPicked(r *rules, req Request, seen observations, refused *sorters[entry.Refusal], names *entry.Names) (p *picked, err error) {
	p = &picked{names: names, seen: seen, dir: req.Scratch}
	more, err := newRefusals(refused, r.Memory/6)
	if err != nil {
		return p, err
	}
	p.chooser = &chooser{
		rules: r, refused: more,
		files:    func(s entry.Seq) string { return entry.Excerpt(req.sourceAt(s.Source()).Name()) },
		hasLinks: req.HasLinks, pruned: req.Pruned,
		names: names, round: r.budgets.NewRound(), addresses: r.budgets.NewAddresses(), overBudget: map[string]int64{}, mergedBy: map[string]int64{},
	}
	if r.SkipWithin > 0 {
		p.chooser.since = schema.TimeOf(req.Now.Add(-r.SkipWithin))
	}
	return p, nil
}

// list makes the list of chosen URLs, which the function fill writes.
func (p *picked) list(ctx context.Context, suffix string, fill func(out *chosenWriter) error) error {
	out, err := newChosenWriter(p.chooser.rules, p.dir, "chosen"+suffix)
	if err != nil {
		return err
	}
	p.scratch, p.chosen = append(p.scratch, out.list), out.list
	if out.observed = p.seen(ctx); out.observed != nil {
		defer out.observed.Close()
	}
	return cmp.Or(fill(out), out.close())
}

// choose chooses the URLs that the budgets of domains and hosts allow.
func (p *picked) choose(ctx context.Context, records iter.Seq2[entry.Record, error]) (err error) {
	c := p.chooser
	if c.Limits.Any() {
		c.offers = &entry.Offers{Scratch: p.dir, Memory: c.Memory / 6}
		defer func() { err = errors.Join(err, c.offers.Close()) }()
		if c.ranked = p.seen(ctx); c.ranked != nil {
			defer func() { err = errors.Join(err, c.ranked.Close()) }()
		}
	}
	return p.list(ctx, "", func(out *chosenWriter) error {
		c.out = out
		return c.choose(ctx, records)
	})
}

// admit drops the URLs over the budgets of addresses.
func (p *picked) admit(ctx context.Context) error {
	c, all := p.chooser, p.chosen
	if c.Limits.Address == 0 || !c.addresses.Bound(pack.Networks(all.Addresses)) {
		return nil
	}
	return p.list(ctx, "-address", func(out *chosenWriter) error {
		return c.writeAdmitted(ctx, all, p.seen, p.dir, out)
	})
}

// cut drops the URLs that the cut of chooser.round refuses, because of the budget with a key.
func (p *picked) cut(ctx context.Context, key, detail string) error {
	all := p.chosen
	return p.list(ctx, "-cut", func(out *chosenWriter) error {
		return p.chooser.writeLimited(ctx, all, key, detail, out)
	})
}

// pick chooses the URLs that all budgets allow.
func (p *picked) pick(ctx context.Context, records iter.Seq2[entry.Record, error]) error {
	if err := p.choose(ctx, records); err != nil {
		return err
	}
	if err := p.admit(ctx); err != nil {
		return err
	}
	limit, key, detail := p.chooser.roundLimit()
	if limit < 0 {
		return nil
	}
	p.chooser.round.Cut(limit)
	return p.cut(ctx, key, detail)
}

// counts adds the refusals of the chooser to those of its input.
func (p *picked) counts(in *ingested) {
	in.add(p.chooser.refused)
	if n := p.chooser.duplicates; n > 0 {
		in.Counts[schema.SkipDuplicate] += n
	}
}
