package robots

import (
	"strconv"
	"strings"
	"time"

	"github.com/temoto/robotstxt"
)

// maxCrawlDelay limits a Crawl-delay, in seconds, so that it fits into a Duration. Package polite
// has its own limit.
const maxCrawlDelay = 1e9

// CrawlDelay returns the group's Crawl-delay, if it has one. If there are several, the longest
// counts.
func (g *Group) CrawlDelay() (time.Duration, bool) { return g.delay, g.hasDelay }

// RequestRate returns the time between two requests by the group's Request-rate, if it has one. If
// there are several, the longest time counts.
func (g *Group) RequestRate() (time.Duration, bool) { return g.rate, g.hasRate }

// Delay returns the longer of CrawlDelay and RequestRate, if the group has either.
func (g *Group) Delay() (time.Duration, bool) {
	return max(g.delay, g.rate), g.hasDelay || g.hasRate
}

func parseSeconds(value string) (float64, bool) {
	s, err := strconv.ParseFloat(value, 64)
	if err != nil || !(s >= 0) { // the condition also refuses NaN
		return 0, false
	}
	return min(s, maxCrawlDelay), true
}

// parseRate parses a Request-rate of an old extended standard: documents "/" time, such as 1/5 or
// 30/1m. The default unit is a second. Hours of the day may follow, but parseRate ignores them, so
// the rate applies all day. It returns the seconds per document.
func parseRate(value string) (float64, bool) {
	documents, rest, ok := strings.Cut(value, "/")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseFloat(trimSpace(documents), 64)
	if err != nil || !(n > 0) {
		return 0, false
	}
	span := trimSpace(rest)
	end := len(span) - len(strings.TrimLeft(span, "0123456789."))
	seconds, ok := parseSeconds(span[:end])
	if !ok {
		return 0, false
	}
	unit := trimSpace(span[end:])
	if i := strings.IndexAny(unit, " \t"); i >= 0 {
		unit = unit[:i]
	}
	unit = strings.ToLower(unit)
	perUnit, ok := secondsOf[unit]
	if !ok {
		if end == len(span) || !isSpace(span[end]) || !isHours(unit) {
			return 0, false
		}
		perUnit = 1
	}
	return min(seconds*perUnit/n, maxCrawlDelay), true
}

// secondsOf maps a unit of time to its length in seconds.
var secondsOf = map[string]float64{
	"": 1, "s": 1, "sec": 1, "seconds": 1, "m": 60, "min": 60, "minutes": 60, "h": 3600, "hours": 3600, "d": 86400,
}

// isHours reports whether a word can be a time of day, such as 0600-0845.
func isHours(word string) bool { return strings.Trim(word, "0123456789-:") == "" }

// readDelay returns the delay that temoto/robotstxt reads from a file with only this Crawl-delay.
func readDelay(seconds float64) time.Duration {
	clean := "User-agent: *\nCrawl-delay: " + strconv.FormatFloat(seconds, 'f', -1, 64) + "\n"
	data, err := robotstxt.FromString(clean)
	if err != nil {
		return time.Duration(seconds * float64(time.Second))
	}
	return data.FindGroup("*").CrawlDelay
}
