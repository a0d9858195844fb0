package planner

import (
	"context"
	"errors"
	"strings"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/pace"
)

// addressURL is a new URL at an address that has too many of them.
type addressURL struct {
	Address  uint64
	Priority int32
	Tie      uint64 // hash of the URL
}

// addressKey gives the best URLs of an address the lowest keys.
func addressKey(k table.Key, u *addressURL) table.Key {
	return k.Uint(u.Address).Int(^int64(u.Priority)).Uint(u.Tie)
}

// admit finds the best URLs of each address that has too many. The parameter from is the list of chosen
// URLs.
func (c *chooser) admit(ctx context.Context, from *entry.List, seen observations, scratch string) (err error) {
	sorter, err := table.NewSorter(scratch, addressKey, c.Memory/6)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sorter.Close()) }()
	if err := c.eachAddressed(ctx, from, seen, func(u *entry.Record, address string) error {
		hash := urlkey.Hash(address)
		if u.Spent || !c.addresses.Has(hash) {
			return nil
		}
		return sorter.Add(&addressURL{hash, u.Priority, urlkey.Hash(u.URL)})
	}); err != nil {
		return err
	}
	for u, err := range sorter.Sorted(ctx) {
		if err != nil {
			return err
		}
		c.addresses.Admit(u.Address, u.Priority, u.Tie)
	}
	return nil
}

// writeAdmitted writes the URLs of a list to out, except those that their address's budget refuses. It
// counts the URLs of the round again.
func (c *chooser) writeAdmitted(ctx context.Context, from *entry.List, seen observations, scratch string, out *chosenWriter) error {
	if err := c.admit(ctx, from, seen, scratch); err != nil {
		return err
	}
	c.round = c.budgets.NewRound()
	return c.eachAddressed(ctx, from, seen, func(u *entry.Record, address string) error {
		if u.Spent {
			return out.put(u)
		}
		hash := urlkey.Hash(address)
		if c.addresses.Has(hash) && !c.addresses.Take(hash, u.Priority, urlkey.Hash(u.URL)) {
			return c.refuseBudget(u, "address", c.addresses.Numbers(hash, address, u.Priority))
		}
		c.round.Add(u.Priority, u.NewHost)
		return out.put(u)
	})
}

// eachAddressed calls visit with the records of a list, and the address at which the newest round found
// the host of each. The address is "" if it is not known.
func (c *chooser) eachAddressed(ctx context.Context, from *entry.List, seen observations, visit func(u *entry.Record, address string) error) error {
	hosts := seen(ctx)
	defer hosts.Close()
	group, addresses := -1, map[string]string{}
	return from.Read(ctx, from.All(), func(u *entry.Record) error {
		if group < 0 || from.Groups[group].Hash != u.Hash {
			group++
			addresses = map[string]string{}
			if err := pace.Newest(hosts, u.Hash, func(o *pace.Observation) { addresses[strings.Clone(o.Host)] = strings.Clone(o.Address) }); err != nil {
				return err
			}
		}
		return visit(u, addresses[u.Host])
	})
}
