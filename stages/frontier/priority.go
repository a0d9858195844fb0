package frontier

import (
	"math"
	"strings"
)

// These are the parts of a priority, which is at most 1000 points.
const (
	basePoints   = 500
	rankPoints   = 300 // added for the best host; half of these points are added for an average host
	levelPoints  = 100 // subtracted for each directory of the path
	anchorPoints = 100 // added if links to the URL have a text
	// sitemapPoints is a factor for (sitemap_priority − 0.5), the priority that the host's own
	// sitemaps state. It is small, because hosts may state any priority. It is also less than the
	// change after which the frontier writes a waiting URL again.
	sitemapPoints = 80
)

// priority returns how soon a found URL should be fetched, from 0 to 1000; 1000 is soonest. rank is
// the host's share of all ranks, hosts is the number of hosts, and weight is the Weight of
// schema.Inlink.
func priority(url string, rank float64, hosts int64, anchors []string, weight int32) int32 {
	points := float64(basePoints)
	share := 0.5
	if rank > 0 && hosts > 0 {
		// Ranks follow a power law, so a hundred times the mean counts as the best rank.
		share = min(max(0.5+math.Log10(rank*float64(hosts))/4, 0), 1)
	}
	points += rankPoints * share
	points -= levelPoints * float64(levels(url))
	if len(anchors) > 0 {
		points += anchorPoints
	}
	points += sitemapPoints * float64(weight) / 100
	return int32(min(max(math.Round(points), 0), 1000))
}

// levels returns the number of directories before the last segment of the path.
func levels(url string) int {
	_, rest, _ := strings.Cut(url, "://")
	rest, _, _ = strings.Cut(rest, "?")
	return max(strings.Count(strings.TrimSuffix(rest, "/"), "/")-1, 0)
}
