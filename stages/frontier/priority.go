package frontier

import (
	"math"
	"strings"
)

// Parts of a priority, in points of 1000.
const (
	basePoints   = 500
	rankPoints   = 300 // of the best host; a mean one gets half
	levelPoints  = 100 // taken for each level of the path
	anchorPoints = 100 // for a target whose links say something
)

// priority is how soon a URL that was found should be fetched, 0 to 1000. rank is
// its host's share of all, hosts their number.
func priority(url string, rank float64, hosts int64, anchors []string) int32 {
	points := float64(basePoints)
	share := 0.5
	if rank > 0 && hosts > 0 {
		// Ranks follow a power law: a hundred times the mean counts as best.
		share = min(max(0.5+math.Log10(rank*float64(hosts))/4, 0), 1)
	}
	points += rankPoints * share
	points -= levelPoints * float64(levels(url))
	if len(anchors) > 0 {
		points += anchorPoints
	}
	return int32(min(max(math.Round(points), 0), 1000))
}

// levels is the number of directories above the last segment of the path.
func levels(url string) int {
	_, rest, _ := strings.Cut(url, "://")
	rest, _, _ = strings.Cut(rest, "?")
	return max(strings.Count(strings.TrimSuffix(rest, "/"), "/")-1, 0)
}
