package domains

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
)

// mostNamed is the largest number of languages, addresses and networks that a row names.
const mostNamed = 8

// named is a text with the number of rows that have it.
type named struct {
	text string
	n    int64
}

// frequent keeps the most frequent of the texts that add gets, each once, and counts the others.
type frequent struct {
	top      []named
	distinct int64
	rest     int64 // sum of the numbers of the texts that are not in top
}

func (f *frequent) add(text string, n int64) {
	f.distinct++
	i, _ := slices.BinarySearchFunc(f.top, named{text, n}, func(a, b named) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.text, b.text))
	})
	if f.top = slices.Insert(f.top, i, named{text, n}); len(f.top) > mostNamed {
		f.rest += f.top[mostNamed].n
		f.top = f.top[:mostNamed]
	}
}

func (f *frequent) texts() []string {
	var texts []string
	for _, t := range f.top {
		texts = append(texts, t.text)
	}
	return texts
}

// domain is a row under construction.
type domain struct {
	row       schema.Domain
	partition int32 // partition that the domain belongs to
	counts    [numCounts]int64
	robots    bestHost
	firstByte histogram
	total     histogram
	languages frequent
	blockers  frequent
	addresses frequent
	networks  frequent
}

func newDomain(first *fact) *domain {
	return &domain{row: schema.Domain{Domain: first.Domain}, partition: first.Partition}
}

// addFacts takes the facts of the domain from the cursor, which is at the first of them.
func (d *domain) addFacts(of *table.Cursor[fact]) error {
	var sum fact
	for {
		f, err := of.Peek()
		if err != nil {
			return err
		}
		if f == nil || f.Domain != d.row.Domain {
			break
		}
		foreign := f.Kind > firstKindOfRequests && f.Partition != d.partition
		switch {
		case foreign:
		case sum.Domain != "" && f.figure() == sum.figure():
			sum.N += f.N
		default:
			d.use(&sum)
			sum = *f
		}
		_, _ = of.Next() // skips the row that Peek returned
	}
	d.use(&sum)
	return nil
}

// use adds the sum of a figure to the row. The sums come in the order of figures.
func (d *domain) use(f *fact) {
	if f.Domain == "" {
		return // no figure came before
	}
	switch f.Kind {
	case outcomes:
		*d.row.Outcomes()[f.Number] += f.N
		d.row.Planned += f.N
	case counts, requestCounts:
		d.counts[f.Number] += f.N
	case languages:
		d.languages.add(f.Text, f.N)
	case blockers:
		d.blockers.add(f.Text, f.N)
	case robotsFiles:
		d.row.RobotsFiles++
	case firstBytes:
		d.firstByte.add(f.Number, f.N)
	case totals:
		d.total.add(f.Number, f.N)
	case delays:
		delay := int64(f.Number)
		if d.row.DelayMinMS == nil {
			d.row.DelayMinMS = &delay
		}
		d.row.DelayMaxMS = &delay
	case addresses:
		d.addresses.add(f.Text, f.N)
	case networks:
		d.networks.add(f.Text, f.N)
	}
}

// bestHost is the host whose robots.txt speaks for the domain.
type bestHost struct {
	row   hostRow
	class int // 0: no host, 1: any host, 2: www, 3: the domain itself
}

// see chooses between the host chosen so far and another one with a robots.txt.
func (b *bestHost) see(h *hostRow) {
	class := 1
	switch h.Host {
	case h.Domain:
		class = 3
	case "www." + h.Domain:
		class = 2
	}
	if class > b.class || class == b.class && h.Planned > b.row.Planned {
		b.row, b.class = *h, class
	}
}

// addHosts takes the hosts of the domain, which come in order.
func (d *domain) addHosts(all *table.Cursor[hostRow]) error {
	r := &d.row
	h, err := all.Find(func(h *hostRow) int { return strings.Compare(h.Domain, r.Domain) })
	for h != nil && h.Domain == r.Domain {
		r.Rank += h.Rank
		r.Harmonic = h.Harmonic
		if h.Planned == 0 && h.DelayMS == nil {
			r.LinkedHosts++
		} else {
			r.Hosts++
		}
		r.BreakerEvents += int64(h.Breaker)
		if h.RobotsState != "" {
			d.robots.see(h)
		}
		if h.DelayMS != nil && (r.DelayMS == nil || *h.DelayMS > *r.DelayMS) {
			delay := *h.DelayMS
			r.DelayMS = &delay
		}
		if h.FirstRequest != 0 && (r.FirstRequest == 0 || h.FirstRequest < r.FirstRequest) {
			r.FirstRequest = h.FirstRequest
		}
		r.LastRequest = max(r.LastRequest, h.LastRequest)
		_, _ = all.Next() // skips the row that Find or Peek returned
		h, err = all.Peek()
	}
	r.RobotsHost, r.RobotsState, r.RobotsDigest = d.robots.row.Host, d.robots.row.RobotsState, d.robots.row.RobotsDigest
	return err
}

// blocker returns the service that refused most URLs of the domain.
func (d *domain) blocker() string {
	if len(d.blockers.top) == 0 {
		return string(schema.Blocked)
	}
	return d.blockers.top[0].text
}

// finish computes the columns that depend on all facts.
func (d *domain) finish() *schema.Domain {
	r, c := &d.row, &d.counts
	r.Pages, r.NewPages, r.ChangedPages, r.IndexablePages = c[pages], c[newPages], c[changedPages], c[indexablePages]
	r.ExactDuplicates, r.NearDuplicates, r.ContentBytes = c[exactDuplicates], c[nearDuplicates], c[contentBytes]
	r.Requests, r.FailedRequests, r.Bytes, r.RequestMS = c[requests], c[failedRequests], c[receivedBytes], c[requestMS]
	if r.Requests > 0 {
		rate := float64(r.FailedRequests) / float64(r.Requests)
		r.ErrorRate = &rate
	}
	if r.FirstRequest != 0 {
		span := r.LastRequest.Sub(r.FirstRequest).Milliseconds()
		r.SpanMS = &span
	}
	r.FirstByteP50, r.FirstByteP90, r.FirstByteP99 = d.firstByte.percentile(50), d.firstByte.percentile(90), d.firstByte.percentile(99)
	r.TotalP50, r.TotalP90, r.TotalP99 = d.total.percentile(50), d.total.percentile(90), d.total.percentile(99)
	r.Languages, r.OtherLanguages = d.languages.texts(), d.languages.rest
	for _, l := range d.languages.top {
		r.LanguagePages = append(r.LanguagePages, int32(min(l.n, math.MaxInt32)))
	}
	r.Addresses, r.AddressCount = d.addresses.texts(), d.addresses.distinct
	r.Networks, r.NetworkCount = d.networks.texts(), d.networks.distinct
	most := int64(0)
	for _, why := range []named{
		{string(schema.RobotsDenied), r.RobotsDenied}, {string(schema.RobotsUnreachable), r.RobotsUnreachable}, {string(schema.Stopped), r.Stopped},
		{string(schema.AddressBlocked), r.AddressBlocked}, {string(schema.HostSuspended), r.HostSuspended}, {string(schema.RateLimited), r.RateLimited},
		{d.blocker(), r.Refused}, {string(schema.PaymentRequired), r.PaymentRequired}, {"forbidden", c[forbidden]}, {"challenge", c[challenges]},
	} {
		if r.Blocked += why.n; why.n > most {
			r.BlockedBy, most = why.text, why.n
		}
	}
	return r
}
