package planner

import (
	"context"
	"strings"

	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/pace"
)

// decideOffers writes the offers of the current group that fit the budgets.
func (c *chooser) decideOffers(ctx context.Context) error {
	if err := c.observeOffers(); err != nil {
		return err
	}
	for _, d := range c.domains {
		d.byHost.EndCount()
	}
	err := c.offers.Each(ctx, func(u *entry.Record) error {
		d := c.domainOf(u.Domain)
		if key, numbers := d.byHost.Take(u.Host, u.URL, u.Priority); key != "" {
			return c.refuseBudget(u, key, numbers)
		}
		u.NewHost = d.byHost.New(u.Host)
		c.round.Add(u.Priority, u.NewHost)
		return c.out.add(u)
	})
	for _, d := range c.domains {
		c.addresses.Count(d.byHost)
	}
	return err
}

// observeOffers tells the domains of the current group what earlier rounds observed of their hosts.
func (c *chooser) observeOffers() error {
	if c.ranked == nil {
		return nil
	}
	ranked, requested := "", ""
	return pace.OfGroup(c.ranked, c.out.cur.Hash, func(o *pace.Observation) {
		if o.Host != ranked {
			ranked = strings.Clone(o.Host)
			for _, d := range c.domains {
				d.byHost.Ranked(o.Rank)
			}
		}
		if o.Requested && o.Host != requested {
			requested = ranked
			for _, d := range c.domains {
				d.byHost.Observe(o.Host, o.Limited, pace.AddressOf(o))
			}
		}
	})
}
