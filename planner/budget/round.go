package budget

import "fmt"

// Scores counts URLs by priority, 0 to 1000.
type Scores [1001]int64

// total returns the number of URLs.
func (s *Scores) total() (n int64) {
	for _, urls := range s {
		n += urls
	}
	return n
}

// cut takes the n best URLs: all above a threshold, and some of those at the threshold.
func (s *Scores) cut(n int64) cut {
	threshold := len(s) - 1
	for threshold >= 0 && s[threshold] <= n {
		n -= s[threshold]
		threshold--
	}
	return cut{threshold, n}
}

// cut is a threshold.
type cut struct {
	Threshold int   // URLs of a higher priority are taken
	Some      int64 // number of URLs with the priority Threshold that are taken, too
}

// Round cuts the URLs of a round to a number. With a share for new hosts, their URLs have a threshold of
// their own. A Round can be encoded as JSON.
type Round struct {
	Share float64 // share for new hosts
	Known Scores  // of all hosts, if there is no share
	Fresh Scores  // of new hosts
	Cuts  [2]cut  // of known and of new hosts
	Kept  int64   // number of URLs that the share keeps for new hosts
}

// NewRound returns a Round without URLs.
func (r *Rules) NewRound() *Round { return &Round{Share: r.Exploration} }

// Add counts a URL.
func (r *Round) Add(priority int32, newHost bool) {
	if newHost && r.Share > 0 {
		r.Fresh[priority]++
	} else {
		r.Known[priority]++
	}
}

// Total returns the number of URLs.
func (r *Round) Total() int64 { return r.Known.total() + r.Fresh.total() }

// Cut sets the number of URLs that Take may take, of at most Total.
func (r *Round) Cut(n int64) {
	var all Scores
	for p := range all {
		all[p] = r.Known[p] + r.Fresh[p]
	}
	// Without the share, new hosts have what is above the common threshold. At the threshold, known hosts
	// go first.
	common := all.cut(n)
	fresh := int64(0)
	for p := common.Threshold + 1; p < len(all); p++ {
		fresh += r.Fresh[p]
	}
	if common.Threshold >= 0 {
		fresh += max(0, common.Some-r.Known[common.Threshold])
	}
	if r.Kept = part(r.Share, n); n > 0 && r.Share > 0 {
		r.Kept = max(r.Kept, 1)
	}
	fresh = max(fresh, min(r.Kept, r.Fresh.total()))
	r.Cuts = [2]cut{r.Known.cut(n - fresh), r.Fresh.cut(fresh)}
}

// Join adds the counts of another Round.
func (r *Round) Join(o *Round) {
	for p := range r.Known {
		r.Known[p] += o.Known[p]
		r.Fresh[p] += o.Fresh[p]
	}
}

// Divide passes the cuts on to Rounds that Join has added, so that each takes a part of the URLs. Of the URLs at
// a threshold, those of the first Rounds are taken, as if one Round were asked about all URLs in this order.
func (r *Round) Divide(parts []*Round) {
	cuts := r.Cuts
	for _, part := range parts {
		part.Cuts, part.Kept = cuts, r.Kept
		for i, counts := range []*Scores{&part.Known, &part.Fresh} {
			if at := cuts[i].Threshold; at >= 0 {
				part.Cuts[i].Some = min(cuts[i].Some, counts[at])
				cuts[i].Some -= part.Cuts[i].Some
			}
		}
	}
}

// Take reports whether a URL is taken. The caller asks once for each counted URL, always in the same order.
func (r *Round) Take(priority int32, newHost bool) bool {
	c := r.cutOf(newHost)
	if int(priority) == c.Threshold && c.Some > 0 {
		c.Some--
		return true
	}
	return int(priority) > c.Threshold
}

func (r *Round) cutOf(newHost bool) *cut {
	if newHost && r.Share > 0 {
		return &r.Cuts[1]
	}
	return &r.Cuts[0]
}

// Numbers says why a URL of this priority does not fit.
func (r *Round) Numbers(priority int32, newHost bool) string {
	text := fmt.Sprintf("; this URL has priority %d, the threshold is %d", priority, r.cutOf(newHost).Threshold)
	switch {
	case r.Share == 0:
		return text
	case newHost:
		return text + fmt.Sprintf(" for new hosts, for which plan.budgets.exploration keeps %s", urls(r.Kept))
	}
	return text + fmt.Sprintf(" for known hosts, since plan.budgets.exploration keeps %s for new hosts", urls(r.Kept))
}
