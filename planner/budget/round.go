package budget

import "fmt"

// scores counts URLs by priority, 0 to 1000.
type scores [1001]int64

// total returns the number of URLs.
func (s *scores) total() (n int64) {
	for _, urls := range s {
		n += urls
	}
	return n
}

// cut takes the n best URLs: all above a threshold, and some of those at the threshold.
func (s *scores) cut(n int64) cut {
	threshold := len(s) - 1
	for threshold >= 0 && s[threshold] <= n {
		n -= s[threshold]
		threshold--
	}
	return cut{threshold, n}
}

// cut is a threshold.
type cut struct {
	threshold int   // URLs of a higher priority are taken
	some      int64 // number of URLs with the priority threshold that are taken, too
}

// Round cuts the URLs of a round to a number. With a share for new hosts, their URLs have a threshold of
// their own.
type Round struct {
	share float64 // share for new hosts
	known scores  // of all hosts, if there is no share
	fresh scores  // of new hosts
	cuts  [2]cut  // of known and of new hosts
	kept  int64   // number of URLs that the share keeps for new hosts
}

// NewRound returns a Round without URLs.
func (r *Rules) NewRound() *Round { return &Round{share: r.Exploration} }

// Add counts a URL.
func (r *Round) Add(priority int32, newHost bool) {
	if newHost && r.share > 0 {
		r.fresh[priority]++
	} else {
		r.known[priority]++
	}
}

// Total returns the number of URLs.
func (r *Round) Total() int64 { return r.known.total() + r.fresh.total() }

// Cut sets the number of URLs that Take may take, of at most Total.
func (r *Round) Cut(n int64) {
	var all scores
	for p := range all {
		all[p] = r.known[p] + r.fresh[p]
	}
	// Without the share, new hosts have what is above the common threshold. At the threshold, known hosts
	// go first.
	common := all.cut(n)
	fresh := int64(0)
	for p := common.threshold + 1; p < len(all); p++ {
		fresh += r.fresh[p]
	}
	if common.threshold >= 0 {
		fresh += max(0, common.some-r.known[common.threshold])
	}
	if r.kept = part(r.share, n); n > 0 && r.share > 0 {
		r.kept = max(r.kept, 1)
	}
	fresh = max(fresh, min(r.kept, r.fresh.total()))
	r.cuts = [2]cut{r.known.cut(n - fresh), r.fresh.cut(fresh)}
}

// Take reports whether a URL is taken. The caller asks once for each counted URL, always in the same order.
func (r *Round) Take(priority int32, newHost bool) bool {
	c := r.cutOf(newHost)
	if int(priority) == c.threshold && c.some > 0 {
		c.some--
		return true
	}
	return int(priority) > c.threshold
}

func (r *Round) cutOf(newHost bool) *cut {
	if newHost && r.share > 0 {
		return &r.cuts[1]
	}
	return &r.cuts[0]
}

// Numbers says why a URL of this priority does not fit.
func (r *Round) Numbers(priority int32, newHost bool) string {
	text := fmt.Sprintf("; this URL has priority %d, the threshold is %d", priority, r.cutOf(newHost).threshold)
	switch {
	case r.share == 0:
		return text
	case newHost:
		return text + fmt.Sprintf(" for new hosts, for which plan.budgets.exploration keeps %s", urls(r.kept))
	}
	return text + fmt.Sprintf(" for known hosts, since plan.budgets.exploration keeps %s for new hosts", urls(r.kept))
}
