package budget

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// ErrLimits means that a value of Limits is not allowed.
var ErrLimits = errors.New("invalid budgets")

// Limits holds the budgets by host. The zero value of each field means that there is no such budget.
type Limits struct {
	Host           int64 // largest number of URLs per host and crawl
	HostsPerDomain int64 // largest number of hosts per domain and crawl
	Patterns       []Pattern
	Ranked         int64   // largest number of URLs per domain and crawl; below it, the domain's rank decides
	Address        int64   // largest number of URLs per IP address and crawl
	RateLimited    float64 // share of its budget for a host that limited the rate of requests, below 1
	Exploration    float64 // share of a round's URLs for hosts that no round has requested
}

// Pattern bounds the URLs of each host in which an expression in RE2's syntax matches any part. Of
// several patterns that match a URL, the first counts.
type Pattern struct {
	Name  string // name of the pattern for people; "pattern N" if missing
	Match string
	URLs  int64 // largest number of URLs per host and crawl; 0 refuses all
}

// Any reports whether there is a budget.
func (l *Limits) Any() bool {
	return l.Host > 0 || l.HostsPerDomain > 0 || len(l.Patterns) > 0 || l.Ranked > 0 || l.Address > 0 || l.RateLimited > 0 || l.Exploration > 0
}

// leastRanked is the least number of URLs that a low rank leaves to a domain, if its budget is not less.
const leastRanked = 100

// part returns a share of a number, rounded down. The share is a decimal number of the config, such as
// 0.29, whose binary form may be a little less: 0.29 of 100 is 29.
func part(share float64, n int64) int64 { return int64(share * float64(n) * (1 + 1e-14)) }

// Rules are checked Limits.
type Rules struct {
	Limits
	expressions []*regexp.Regexp
}

// NewRules checks the limits. Errors wrap ErrLimits.
func NewRules(l Limits) (*Rules, error) {
	for _, share := range []float64{l.RateLimited, l.Exploration} {
		if !(share >= 0 && share <= 1) { // NaN is refused too
			return nil, fmt.Errorf("%w: rate_limited is %v and exploration %v: each has to be 0 to 1", ErrLimits, l.RateLimited, l.Exploration)
		}
	}
	if min(l.Host, l.HostsPerDomain, l.Ranked, l.Address) < 0 || len(l.Patterns) > urlkey.MaxRules {
		return nil, fmt.Errorf("%w: host %d, hosts_per_domain %d, ranked %d, address %d, %d patterns: at least 0, at most %d patterns",
			ErrLimits, l.Host, l.HostsPerDomain, l.Ranked, l.Address, len(l.Patterns), urlkey.MaxRules)
	}
	r := &Rules{Limits: l}
	r.Patterns = nil
	for i, p := range l.Patterns {
		p.Name = cmp.Or(p.Name, fmt.Sprintf("pattern %d", i+1))
		e, err := urlkey.Expression(p.Match)
		if err != nil || p.URLs < 0 {
			return nil, fmt.Errorf("%w: %s with %d URLs: %w", ErrLimits, p.Name, p.URLs, cmp.Or(err, errors.New("it has to be at least 0")))
		}
		r.Patterns, r.expressions = append(r.Patterns, p), append(r.expressions, e)
	}
	return r, nil
}

// pattern returns the index of the first pattern that matches the URL, or -1.
func (r *Rules) pattern(url string) int {
	for i, e := range r.expressions {
		if e.MatchString(url) {
			return i
		}
	}
	return -1
}
