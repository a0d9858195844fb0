package budget

import (
	"cmp"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// Domain decides about the URLs of one domain. The caller passes all URLs to Spend or Offer, and what
// earlier rounds observed of their hosts to Observe. It then calls EndCount once, and Take for each
// offered URL, the highest priority first.
type Domain struct {
	rules    *Rules
	name     string
	all      quota
	own      bool             // whether the config has a budget for this very domain
	rank     float64          // highest rank of a host, as a multiple of the mean; 0 if none is known
	hosts    map[uint64]*host // by hash of the name, since a domain may have millions of hosts
	patterns map[patternKey]*quota
	worst    *host // the last host that HostsPerDomain allows; nil if it allows all
}

// quota counts the URLs that one budget allows.
type quota struct {
	limit int64 // largest number of URLs in the crawl; negative: any number
	spent int64 // URLs that earlier rounds of the crawl planned
	taken int64 // URLs that Take has taken
	last  int32 // priority of the last of them
}

func (q *quota) full() bool { return q.limit >= 0 && q.spent+q.taken >= q.limit }

func (q *quota) take(priority int32) { q.taken, q.last = q.taken+1, priority }

// numbers says how many URLs earlier rounds planned, and why a URL of this priority does not fit.
func (q *quota) numbers(priority int32) (text string) {
	if q.spent > 0 {
		text = fmt.Sprintf(", of which earlier rounds planned %d", q.spent)
	}
	text += fmt.Sprintf("; this URL has priority %d", priority)
	if q.taken > 0 {
		text += fmt.Sprintf(", the last one taken %d", q.last)
	}
	return text
}

// host holds what is known of one host.
type host struct {
	quota
	hash    uint64
	offered int64
	best    int32 // highest priority of the offered URLs
	known   bool  // an earlier round has requested the host
	limited bool  // the newest such round was limited in its rate
	dropped bool  // HostsPerDomain refuses the host

	address uint64 // hash of the address at which the newest such round found the host; 0 if unknown
}

type patternKey struct {
	host    uint64
	pattern int
}

// NewDomain returns a Domain without URLs. Its limit is the domain's budget, where 0 means no bound. If own
// is set, the domain's rank does not change this budget.
func (r *Rules) NewDomain(name string, limit int64, own bool) *Domain {
	return &Domain{rules: r, name: name, all: quota{limit: orAny(limit)}, own: own, hosts: map[uint64]*host{}, patterns: map[patternKey]*quota{}}
}

// orAny turns a limit of 0, which means no bound, into that of a quota.
func orAny(limit int64) int64 {
	if limit == 0 {
		return -1
	}
	return limit
}

func (d *Domain) host(name string) *host {
	hash := urlkey.Hash(name)
	h := d.hosts[hash]
	if h == nil {
		h = &host{hash: hash, quota: quota{limit: orAny(d.rules.Host)}}
		d.hosts[hash] = h
	}
	return h
}

// ofPattern returns the quota of the pattern of a URL, and the pattern's index. They are nil and -1 if no
// pattern matches.
func (d *Domain) ofPattern(h *host, url string) (*quota, int) {
	i := d.rules.pattern(url)
	if i < 0 {
		return nil, i
	}
	key := patternKey{h.hash, i}
	q := d.patterns[key]
	if q == nil {
		q = &quota{limit: d.rules.Patterns[i].URLs}
		d.patterns[key] = q
	}
	return q, i
}

// Spend counts a URL that an earlier round of the crawl planned.
func (d *Domain) Spend(hostName, url string) {
	h := d.host(hostName)
	d.all.spent++
	h.spent++
	if q, _ := d.ofPattern(h, url); q != nil {
		q.spent++
	}
}

// Offer counts a URL that Take decides about later. A URL of a pattern without any URLs does not speak for
// its host.
func (d *Domain) Offer(hostName, url string, priority int32) {
	h := d.host(hostName)
	if d.rules.HostsPerDomain > 0 {
		if q, _ := d.ofPattern(h, url); q != nil && q.limit == 0 {
			return
		}
	}
	h.offered++
	h.best = max(h.best, priority)
}

// Observe notes that an earlier round requested a host, whether the newest such round was limited in its
// rate, and the hash of the host's address. It ignores hosts without URLs.
func (d *Domain) Observe(hostName string, limited bool, address uint64) {
	if h := d.hosts[urlkey.Hash(hostName)]; h != nil {
		h.known, h.limited, h.address = true, limited, address
	}
}

// Ranked notes the newest rank of a host, as a multiple of the mean.
func (d *Domain) Ranked(rank float64) { d.rank = max(d.rank, rank) }

// New reports whether no earlier round has requested the host.
func (d *Domain) New(hostName string) bool { return !d.host(hostName).known }

// EndCount ends the counting of URLs and sets the limits of hosts.
func (d *Domain) EndCount() {
	if d.rules.Ranked > 0 && d.rank > 0 && d.all.limit > 0 && !d.own {
		ranked := int64(min(float64(d.all.limit)*d.rank, float64(d.rules.Ranked))) // the product may exceed an int64
		d.all.limit = max(ranked, min(d.all.limit, leastRanked))
	} else {
		d.rank = 0
	}
	if share := d.rules.RateLimited; share > 0 && share < 1 {
		for _, h := range d.hosts {
			if whole := d.hostLimit(); h.limited && whole > 0 {
				h.limit = max(1, part(share, whole))
			}
		}
	}
	if d.rules.HostsPerDomain > 0 {
		d.dropHosts()
	}
}

// hostLimit returns the number of URLs that a host may have in a crawl. It is -1 without a bound.
func (d *Domain) hostLimit() int64 {
	if d.rules.Host == 0 || d.all.limit >= 0 && d.all.limit < d.rules.Host {
		return d.all.limit
	}
	return d.rules.Host
}

// dropHosts drops the worst hosts of a domain with too many. Hosts with URLs of earlier rounds stay.
func (d *Domain) dropHosts() {
	left := d.rules.HostsPerDomain
	var fresh []*host
	for _, h := range d.hosts {
		if h.spent > 0 {
			left--
		} else if h.offered > 0 {
			fresh = append(fresh, h)
		}
	}
	left = max(left, 0)
	if int64(len(fresh)) <= left {
		return
	}
	slices.SortFunc(fresh, func(a, b *host) int {
		return cmp.Or(cmp.Compare(b.best, a.best), cmp.Compare(b.offered, a.offered), cmp.Compare(a.hash, b.hash))
	})
	for _, h := range fresh[left:] {
		h.dropped = true
	}
	if left > 0 {
		d.worst = fresh[left-1]
	}
}

// Take takes a URL and returns "", or returns the key in plan.budgets of the budget that refuses the URL,
// and the numbers of this budget.
func (d *Domain) Take(hostName, url string, priority int32) (key, numbers string) {
	h := d.host(hostName)
	pattern, i := d.ofPattern(h, url)
	switch {
	case h.dropped:
		return "hosts_per_domain", d.droppedText(hostName, h)
	case pattern != nil && pattern.full():
		p := &d.rules.Patterns[i]
		return "patterns", fmt.Sprintf("%s of %s a crawl that match %q%s", urls(p.URLs), hostName, p.Name, pattern.numbers(priority))
	case h.full() && h.limited && h.limit != d.rules.Host:
		return "rate_limited", fmt.Sprintf("%s of %s a crawl instead of %d, because it limited the rate of requests%s", urls(h.limit), hostName, d.hostLimit(), h.numbers(priority))
	case h.full():
		return "host", fmt.Sprintf("%s of %s a crawl%s", urls(h.limit), hostName, h.numbers(priority))
	case d.all.full() && d.rank > 0:
		return "ranked", fmt.Sprintf("%s of %s a crawl, by %.3g times the mean rank%s", urls(d.all.limit), d.name, d.rank, d.all.numbers(priority))
	case d.all.full():
		if key = "default"; d.own {
			key = "domains"
		}
		return key, fmt.Sprintf("%s of %s a crawl%s", urls(d.all.limit), d.name, d.all.numbers(priority))
	}
	d.all.take(priority)
	h.take(priority)
	if pattern != nil {
		pattern.take(priority)
	}
	return "", ""
}

func (d *Domain) droppedText(hostName string, h *host) string {
	text := fmt.Sprintf("%d hosts of %s a crawl; %s has %s of priority up to %d", d.rules.HostsPerDomain, d.name, hostName, urls(h.offered), h.best)
	if d.worst == nil {
		return text + ", and earlier rounds planned as many hosts"
	}
	return text + fmt.Sprintf(", the last host taken %s up to %d", urls(d.worst.offered), d.worst.best)
}

// urls writes a number of URLs.
func urls(n int64) string {
	if n == 1 {
		return "1 URL"
	}
	return fmt.Sprintf("%d URLs", n)
}
