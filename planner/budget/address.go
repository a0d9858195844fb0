package budget

import "fmt"

// Addresses bounds the new URLs at each IP address, whatever their domains. The caller first counts all
// domains, then calls Bound. If an address has too many URLs, the caller passes each new URL at such an
// address to Admit, the best first, and then asks Take about each of them.
type Addresses struct {
	limit int64
	at    map[uint64]*address
}

// address counts the URLs of an address.
type address struct {
	spent, chosen int64 // planned by earlier rounds of the crawl, and allowed by the other budgets now
	admitted      int64
	last          place // last admitted URL
}

// place orders URLs, by priority, highest first, then by hash.
type place struct {
	priority int32
	tie      uint64
}

// NewAddresses returns Addresses without URLs.
func (r *Rules) NewAddresses() *Addresses {
	return &Addresses{limit: r.Address, at: map[uint64]*address{}}
}

// Count adds the URLs of a domain, after Take has decided about all of them.
func (a *Addresses) Count(d *Domain) {
	if a.limit == 0 {
		return
	}
	for _, h := range d.hosts {
		if h.address == 0 || h.spent+h.taken == 0 {
			continue
		}
		of := a.at[h.address]
		if of == nil {
			of = &address{}
			a.at[h.address] = of
		}
		of.spent, of.chosen = of.spent+h.spent, of.chosen+h.taken
	}
}

// Bound forgets the addresses that ignored holds or that do not have too many URLs. It reports whether
// any address is left.
func (a *Addresses) Bound(ignored map[uint64]bool) bool {
	for hash, of := range a.at {
		if ignored[hash] || of.chosen <= a.left(of) {
			delete(a.at, hash)
		}
	}
	return len(a.at) > 0
}

// left returns the number of new URLs that an address may have.
func (a *Addresses) left(of *address) int64 { return max(a.limit-of.spent, 0) }

// Has reports whether an address has too many URLs.
func (a *Addresses) Has(hash uint64) bool { return a.at[hash] != nil }

// Admit admits a URL if its address may have one more.
func (a *Addresses) Admit(hash uint64, priority int32, tie uint64) {
	if of := a.at[hash]; of.admitted < a.left(of) {
		of.admitted, of.last = of.admitted+1, place{priority, tie}
	}
}

// Take reports whether a URL of an address that has too many was admitted.
func (a *Addresses) Take(hash uint64, priority int32, tie uint64) bool {
	of := a.at[hash]
	return of.admitted > 0 && (priority > of.last.priority || priority == of.last.priority && tie <= of.last.tie)
}

// Numbers says why a URL at an address does not fit.
func (a *Addresses) Numbers(hash uint64, text string, priority int32) string {
	of := a.at[hash]
	q := quota{spent: of.spent, taken: of.admitted, last: of.last.priority}
	return fmt.Sprintf("%s of %s a crawl%s", urls(a.limit), text, q.numbers(priority))
}
