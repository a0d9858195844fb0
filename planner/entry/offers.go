package entry

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// FewOffers is the number of offers that stay in memory. Most groups have fewer.
const FewOffers = 4096

// Offers holds the new URLs of the current group, if the config has budgets by host. Package budget decides
// about them after the group's last record, because only then the counts of all hosts are known.
type Offers struct {
	Scratch string
	Memory  int64
	few     []*offer
	many    *table.Sorter[offer] // holds all offers if there are more than FewOffers; otherwise nil
}

// offer is a new URL. Offers of equal priority are in the order of the URLs' hashes.
type offer struct {
	Record
	Tie uint64 // hash of the URL
}

func compareOffers(a, b *offer) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Tie, b.Tie), strings.Compare(a.URL, b.URL))
}

// offerKey appends a key that compares like compareOffers.
func offerKey(k table.Key, o *offer) table.Key {
	return append(k.Int(^int64(o.Priority)).Uint(o.Tie), o.URL...)
}

// Add adds a URL.
func (o *Offers) Add(u *Record) (err error) {
	one := &offer{*u, urlkey.Hash(u.URL)}
	if o.many == nil {
		if o.few = append(o.few, one); len(o.few) <= FewOffers {
			return nil
		}
		if o.many, err = table.NewSorter(o.Scratch, offerKey, o.Memory); err != nil {
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

// Each calls visit with every offer, the best first, and forgets the offers.
func (o *Offers) Each(ctx context.Context, visit func(*Record) error) error {
	slices.SortFunc(o.few, compareOffers)
	for _, one := range o.few {
		if err := visit(&one.Record); err != nil {
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
			err = visit(&one.Record)
		}
		if err != nil {
			return err
		}
	}
	err := o.many.Close()
	o.many = nil
	return err
}

// Close removes the scratch files.
func (o *Offers) Close() (err error) {
	if o.many != nil {
		err = o.many.Close()
	}
	return err
}
