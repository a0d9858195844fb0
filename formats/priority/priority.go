// Package priority computes the priority of a URL: a number from 0 to 1000 that is higher for a URL
// that should be fetched sooner. It also returns the parts of this number, so that a user can see
// why a plan prefers one URL to another.
//
// The frontier computes the parts that follow from a round's results (Facts). A plan adds the parts
// that depend on its time (Timing). Each part is a weight from the config times a count or a share
// from 0 to 1. Package priority imports only package
// logarithm and the standard library.
package priority

import (
	"math"
	"regexp"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/logarithm"
)

const (
	highest = 1000 // highest priority
	base    = 500  // points that every URL has
)

// Weights holds the points of each part. A weight of 0 switches its part off.
type Weights struct {
	HostRank  int `yaml:"host_rank"` // added for a host with the best rank; half of these points for a host of mean or unknown rank
	Directory int `yaml:"directory"` // subtracted for each directory of the path
	Anchor    int `yaml:"anchor"`    // added if a link to the URL has a text
	Sitemap   int `yaml:"sitemap"`   // factor for (sitemap_priority − 0.5), the priority that the host's own sitemaps state
	Inlinks   int `yaml:"inlinks"`   // added if 1,000 pages or more link to the URL; a third of these points for ten pages
	Hop       int `yaml:"hop"`       // subtracted for each link between a listed URL and the URL
	Focus     int `yaml:"-"`         // frontier.focus.points: added for a score of 1 or more, subtracted for -1 or less, in proportion between
	Query     int `yaml:"query"`     // subtracted if the URL has a query

	// Freshness is added for a known URL if a fetch has a hundred times the value at which frontier.recrawl makes
	// it due, and subtracted for a hundredth. A new URL counts as if it had just become due.
	Freshness int `yaml:"freshness"`

	Overdue int `yaml:"overdue"` // added if a known URL has been due for as long as its interval between two fetches
	Change  int `yaml:"change"`  // added for a known URL that a fetch makes as fresh as possible
	News    int `yaml:"news"`    // added if the path holds the date of the plan's day; a seventh less for each day before
}

// Default returns the weights of a crawl whose config sets none. The weight of sitemaps is small,
// because a host may state any priority. It is also too small to make the frontier write a waiting
// URL again. HostRank and Freshness give as many points for a factor of ten: 75. Both are logarithms, so
// their sum orders URLs by the product of rank and value, as the freshest crawl by rank does
// (package recrawl).
func Default() Weights {
	return Weights{HostRank: 300, Directory: 100, Anchor: 100, Sitemap: 80, Freshness: 150}
}

// Part is one summand of a priority.
type Part struct {
	Name   string  `json:"name"` // base, frontier, limit, or the name of the weight in the config
	Points float64 `json:"points"`
}

// Sum returns the priority that consists of the parts: their sum, rounded.
func Sum(parts []Part) int32 {
	sum := 0.0
	for _, p := range parts {
		sum += p.Points
	}
	return int32(math.Round(sum))
}

// limited leaves out parts without points. If the sum is below 0 or above 1000, limited adds a part
// "limit" that corrects it.
func limited(parts []Part) []Part {
	kept, sum := parts[:0], 0.0
	for _, p := range parts {
		if p.Points != 0 {
			kept = append(kept, p)
		}
		sum += p.Points
	}
	if bound := min(max(sum, 0), highest); bound != sum {
		kept = append(kept, Part{"limit", bound - sum})
	}
	return kept
}

// Facts is what a round knows about a URL.
type Facts struct {
	URL     string
	Rank    float64 // the host's share of the ranks of all hosts; 0 if it is unknown
	Hosts   int64   // number of hosts with a rank
	Anchor  bool    // whether a link to the URL has a text
	Sitemap int32   // 100 × (sitemap_priority − 0.5); 0 if no sitemap states a priority
	Inlinks int64   // number of pages that link to the URL
	Hops    int32   // number of links between a listed URL and the URL
	Focus   float64 // score of the URL by frontier.focus; 0 without a model
}

// Parts returns the parts of the priority that the frontier gives a URL after a round.
func (w *Weights) Parts(f Facts) []Part {
	count := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	return limited([]Part{
		{"base", base},
		{"host_rank", float64(w.HostRank) * rankShare(f.Rank, f.Hosts)},
		{"directory", float64(-w.Directory * directories(f.URL))},
		{"anchor", float64(w.Anchor * count(f.Anchor))},
		{"sitemap", float64(w.Sitemap) * float64(f.Sitemap) / 100},
		{"inlinks", float64(w.Inlinks) * min(logarithm.Decimal(float64(max(f.Inlinks, 1)))/3, 1)},
		{"hop", float64(-w.Hop) * float64(f.Hops)},
		{"focus", float64(w.Focus) * min(max(f.Focus, -1), 1)},
		{"query", float64(-w.Query * count(strings.Contains(f.URL, "?")))},
	})
}

// rankShare returns the share of the weight HostRank that a host gets, from 0 to 1. Ranks follow a
// power law, so the share is logarithmic: a hundred times the mean rank gives 1.
func rankShare(rank float64, hosts int64) float64 {
	if rank <= 0 || hosts <= 0 {
		return 0.5
	}
	return min(max(0.5+float64(logarithm.Decimal(rank*float64(hosts))/4), 0), 1)
}

// directories returns the number of directories before the last segment of the path.
func directories(url string) int {
	_, rest, _ := strings.Cut(url, "://")
	rest, _, _ = strings.Cut(rest, "?")
	return max(strings.Count(strings.TrimSuffix(rest, "/"), "/")-1, 0)
}

// Timing is what a plan knows about a URL that is due.
type Timing struct {
	URL      string
	Now      time.Time     // time of the plan
	Due      time.Time     // when the URL became due; zero if it was never fetched
	Interval time.Duration // learned time between two fetches
	Fetches  int32
	Changes  int32   // number of fetches that found changed content
	Worth    float64 // estimated value of a fetch, from -1 to 1 (recrawl.Rule.Worth); 0 for a new URL
	Gain     float64 // estimated value of a fetch, from 0 to 1 (recrawl.Rule.Gain); 0 if the changes were not timed
}

// AtPlan returns the parts that a plan adds to the priority that the frontier gave the URL.
func (w *Weights) AtPlan(priority int32, t Timing) []Part {
	parts := []Part{{"frontier", float64(priority)}}
	if t.Fetches > 0 {
		parts = append(parts, Part{"freshness", float64(w.Freshness) * t.Worth})
		if w.Overdue != 0 && !t.Due.IsZero() && t.Interval > 0 {
			late := min(max(float64(t.Now.Sub(t.Due))/float64(t.Interval), 0), 1)
			parts = append(parts, Part{"overdue", float64(w.Overdue) * late})
		}
		share := t.Gain
		if share == 0 { // the probability of a change by Laplace's rule of succession
			share = float64(t.Changes+1) / float64(t.Fetches+2)
		}
		parts = append(parts, Part{"change", float64(w.Change) * share})
	}
	if w.News != 0 {
		if day, ok := dateIn(t.URL); ok {
			age := math.Floor(t.Now.Sub(day).Hours() / 24)
			if age >= -1 && age < newsDays { // a host may be a day ahead of UTC
				parts = append(parts, Part{"news", float64(w.News) * (1 - max(age, 0)/newsDays)})
			}
		}
	}
	return limited(parts)
}

const newsDays = 7

// date matches a date in a path, such as /2026/11/24/ and /2026-11-24-title.
var date = regexp.MustCompile(`[/_-]((?:19|20)[0-9]{2})[/_-]?([01][0-9])[/_-]?([0-3][0-9])(?:[^0-9]|$)`)

// dateIn returns the date in the path of a URL, and whether there is one.
func dateIn(url string) (time.Time, bool) {
	_, rest, _ := strings.Cut(url, "://")
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return time.Time{}, false
	}
	path, _, _ := strings.Cut(rest[slash:], "?")
	m := date.FindStringSubmatch(path)
	if m == nil {
		return time.Time{}, false
	}
	day, err := time.Parse("20060102", m[1]+m[2]+m[3])
	return day, err == nil
}
