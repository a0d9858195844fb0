package planner

import (
	"cmp"
	"context"
	"errors"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/planner/pack"
)

// picked holds the URLs that the budgets allow.
type picked struct {
	chosen *chosenList
	left   []*chosenList // lists of URLs with spellings that are not planned
	counts map[schema.SkipReason]int64

	refused    *refusals // refusals of the chooser
	overBudget map[string]int64

	names   *fileNames
	scratch []*chosenList // all lists, for closing
}

func (p *picked) close() (err error) {
	for _, l := range p.scratch {
		err = errors.Join(err, l.close())
	}
	return err
}

// pick chooses the URLs that the budgets allow and counts the refused URLs. The caller closes the
// result, even after an error.
func pick(ctx context.Context, r *rules, req Request, records *sorters[record], hosts *sorters[observation], refused *sorters[refusal], names *fileNames) (p *picked, err error) {
	p = &picked{names: names}
	more, err := newRefusals(refused, r.Memory/6)
	if err != nil {
		return p, err
	}
	c := &chooser{
		rules: r, refused: more,
		files:    func(s seq) string { return excerpt(req.sourceAt(s.source()).Name()) },
		hasLinks: req.HasLinks, pruned: req.Pruned,
		names: names, round: r.budgets.NewRound(), addresses: r.budgets.NewAddresses(), overBudget: map[string]int64{},
	}
	if r.Limits.Any() {
		c.offers = &offers{scratch: req.Scratch, memory: r.Memory / 6, observed: observed(ctx, hosts)}
		defer func() { err = errors.Join(err, c.offers.close()) }()
	}
	if r.SkipWithin > 0 {
		c.since = req.Now.Add(-r.SkipWithin).UnixMilli()
	}
	// lists makes two lists, one of chosen URLs and one of the other URLs. It calls the function
	// fill to write both lists.
	lists := func(suffix string, fill func(out, left *chosenWriter) error) error {
		out, err := newChosenWriter(r, req.Scratch, "chosen"+suffix)
		if err != nil {
			return err
		}
		p.scratch, p.chosen = append(p.scratch, out.list), out.list
		if out.observed = observed(ctx, hosts); out.observed != nil {
			defer out.observed.Close()
		}
		left, err := newChosenWriter(r, req.Scratch, "left"+suffix)
		if err != nil {
			return err
		}
		p.scratch, p.left = append(p.scratch, left.list), append(p.left, left.list)
		return cmp.Or(fill(out, left), out.close(), left.close())
	}
	if err := lists("", func(out, left *chosenWriter) error {
		c.out, c.left = out, left
		return c.choose(ctx, records)
	}); err != nil {
		return p, err
	}
	if r.Limits.Address > 0 && c.addresses.Bound(pack.Networks(p.chosen.addresses)) {
		all := p.chosen
		if err := lists("-address", func(out, left *chosenWriter) error {
			return c.writeAdmitted(ctx, all, hosts, req.Scratch, out, left)
		}); err != nil {
			return p, err
		}
	}
	if limit, key, detail := c.roundLimit(); limit >= 0 {
		all := p.chosen
		if err := lists("-cut", func(out, left *chosenWriter) error {
			return c.writeLimited(ctx, all, limit, key, detail, out, left)
		}); err != nil {
			return p, err
		}
	}
	p.counts, p.refused, p.overBudget = c.refused.counts, c.refused, c.overBudget
	if c.duplicates > 0 {
		p.counts[schema.SkipDuplicate] += c.duplicates
	}
	return p, nil
}
