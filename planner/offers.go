package planner

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// fewOffers is the number of offers that stay in memory. Most groups have fewer.
const fewOffers = 4096

// offers holds the new URLs of the current group, if the config has budgets by host. Package budget decides
// about them after the group's last record, because only then the counts of all hosts are known.
type offers struct {
	scratch  string
	memory   int64
	few      []*record
	many     *table.Sorter[record]      // holds all offers if there are more than fewOffers; otherwise nil
	observed *table.Cursor[observation] // observations of hosts in earlier rounds; nil if there are none
}

// compareOffers compares offers by priority, highest first, then by hash.
func compareOffers(a, b *record) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Tie, b.Tie), strings.Compare(a.URL, b.URL))
}

func (o *offers) add(u *record) (err error) {
	u.Tie = urlkey.Hash(u.URL)
	if o.many == nil {
		if o.few = append(o.few, u); len(o.few) <= fewOffers {
			return nil
		}
		if o.many, err = table.NewSorter(o.scratch, compareOffers, o.memory); err != nil {
			return err
		}
		for _, u := range o.few {
			if err := o.many.Add(u); err != nil {
				return err
			}
		}
		o.few = o.few[:0]
		return nil
	}
	return o.many.Add(u)
}

// each calls visit with every offer, the best first, and forgets the offers.
func (o *offers) each(ctx context.Context, visit func(*record) error) error {
	slices.SortFunc(o.few, compareOffers)
	for _, u := range o.few {
		if err := visit(u); err != nil {
			return err
		}
	}
	clear(o.few)
	o.few = o.few[:0]
	if o.many == nil {
		return nil
	}
	for u, err := range o.many.Sorted(ctx) {
		if err == nil {
			err = visit(&u)
		}
		if err != nil {
			return err
		}
	}
	err := o.many.Close()
	o.many = nil
	return err
}

func (o *offers) close() (err error) {
	if o.many != nil {
		err = o.many.Close()
	}
	if o.observed != nil {
		err = errors.Join(err, o.observed.Close())
	}
	return err
}

// decideOffers writes the offers of the current group that fit the budgets.
func (c *chooser) decideOffers(ctx context.Context) error {
	if c.offers.observed != nil {
		if err := newest(c.offers.observed, c.out.cur.hash, func(o *observation) {
			for _, d := range c.domains {
				d.byHost.Observe(o.Host, o.Limited)
			}
		}); err != nil {
			return err
		}
	}
	for _, d := range c.domains {
		d.byHost.EndCount()
	}
	return c.offers.each(ctx, func(u *record) error {
		d := c.domainOf(u.Domain)
		if detail := d.byHost.Take(u.Host, u.URL, u.Priority); detail != "" {
			return c.refuseRecord(c.left, u, schema.SkipBudget, detail)
		}
		u.NewHost = d.byHost.New(u.Host)
		c.round.Add(u.Priority, u.NewHost)
		return c.out.add(u)
	})
}
