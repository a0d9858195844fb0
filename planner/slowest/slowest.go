// Package slowest lists the hosts that decide how long a plan takes.
package slowest

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Host is the slowest planned host of a domain. Its time does not allow for the window.
type Host struct {
	Host, Domain string
	URLs         int64
	Each         time.Duration // predicted time for one URL, with its retries
	Unreachable  time.Duration // predicted time of the tries for a robots.txt that could not be fetched; 0 for other hosts
	New          bool          // no round has requested the host, so Each is only the config's delay or the pace of other hosts
	Tries        time.Duration // of a new host: time of the tries if its robots.txt answers only 503
}

// SlowEach is the time between two requests to a host with a long Crawl-delay or slow answers. A host that
// answers in 5 seconds is requested once in this time (politeness.slow_factor is 2).
const SlowEach = 10 * time.Second

// Unforeseen returns the new host that would take longest at one request each SlowEach, and this time. The time is
// 0 if no host is new.
func Unforeseen(all []Host) (most Host, longest time.Duration) {
	for _, h := range all {
		if t := time.Duration(h.URLs) * max(h.Each, SlowEach); h.New && t > longest {
			most, longest = h, t
		}
	}
	return most, longest
}

// Time returns the predicted time for the host's URLs.
func (h Host) Time() time.Duration {
	if h.Unreachable > 0 {
		return h.Unreachable
	}
	return time.Duration(h.URLs) * h.Each
}

// Domains is the number of domains that a plan names because they decide its length.
const Domains = 10

// List holds the slowest host of each of the slowest domains, slowest first.
type List []Host

func compareSlow(a, b Host) int {
	return cmp.Or(cmp.Compare(b.Time(), a.Time()), strings.Compare(a.Host, b.Host))
}

// Add adds a host if it is slow enough.
func (s *List) Add(h Host) {
	all := *s
	if len(all) == Domains && compareSlow(h, all[len(all)-1]) > 0 {
		return
	}
	if i := slices.IndexFunc(all, func(o Host) bool { return o.Domain == h.Domain }); i >= 0 {
		if compareSlow(h, all[i]) > 0 {
			return
		}
		all = slices.Delete(all, i, i+1)
	}
	h.Host, h.Domain = strings.Clone(h.Host), strings.Clone(h.Domain)
	at, _ := slices.BinarySearchFunc(all, h, compareSlow)
	all = slices.Insert(all, at, h)
	*s = all[:min(len(all), Domains)]
}
