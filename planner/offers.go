package planner

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

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
	few      []*offer
	many     *table.Sorter[offer]       // holds all offers if there are more than fewOffers; otherwise nil
	observed *table.Cursor[observation] // observations of hosts in earlier rounds; nil if there are none
}

// offer is a new URL. Offers of equal priority are in the order of the URLs' hashes.
type offer struct {
	record
	Tie uint64 // hash of the URL
}

func compareOffers(a, b *offer) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Tie, b.Tie), strings.Compare(a.URL, b.URL))
}

func (o *offers) add(u *record) (err error) {
	one := &offer{*u, urlkey.Hash(u.URL)}
	if o.many == nil {
		if o.few = append(o.few, one); len(o.few) <= fewOffers {
			return nil
		}
		if o.many, err = table.NewSorter(o.scratch, compareOffers, o.memory); err != nil {
			return err
		}
		for _, one := range o.few {
			if err := o.many.Add(one); err != nil {
				return err
			}
		}
		clear(o.few)
		o.few = o.few[:0]
		return nil
	}
	return o.many.Add(one)
}

// each calls visit with every offer, the best first, and forgets the offers.
func (o *offers) each(ctx context.Context, visit func(*record) error) error {
	slices.SortFunc(o.few, compareOffers)
	for _, one := range o.few {
		if err := visit(&one.record); err != nil {
			return err
		}
	}
	clear(o.few)
	o.few = o.few[:0]
	if o.many == nil {
		return nil
	}
	for one, err := range o.many.Sorted(ctx) {
		if err == nil {
			err = visit(&one.record)
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
	if err := c.observeOffers(); err != nil {
		return err
	}
	for _, d := range c.domains {
		d.byHost.EndCount()
	}
	err := c.offers.each(ctx, func(u *record) error {
		d := c.domainOf(u.Domain)
		if key, numbers := d.byHost.Take(u.Host, u.URL, u.Priority); key != "" {
			return c.refuseBudget(c.left, u, key, numbers)
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
	if c.offers.observed == nil {
		return nil
	}
	ranked, requested := "", ""
	return ofGroup(c.offers.observed, c.out.cur.Hash, func(o *observation) {
		if o.Host != ranked {
			ranked = strings.Clone(o.Host)
			for _, d := range c.domains {
				d.byHost.Ranked(o.Rank)
			}
		}
		if o.Requested && o.Host != requested {
			requested = ranked
			for _, d := range c.domains {
				d.byHost.Observe(o.Host, o.Limited, addressOf(o))
			}
		}
	})
}

// addressOf returns the hash of the address at which a round found a host, or 0 if there is none.
func addressOf(o *observation) uint64 {
	if o.Address == "" {
		return 0
	}
	return urlkey.Hash(o.Address)
}
