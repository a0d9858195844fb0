package robots

import (
	"strconv"
	"strings"
	"time"

	"github.com/temoto/robotstxt"
)

// maxCrawlDelay bounds a Crawl-delay, in seconds, so that it fits a Duration.
// What it means for pacing is for the pacer to bound.
const maxCrawlDelay = 1e9

// CrawlDelay is the least pause between two requests that the group asks for,
// and whether it asks for one. Of several lines the longest pause holds.
func (g *Group) CrawlDelay() (time.Duration, bool) { return g.delay, g.hasDelay }

// RequestRate is the least pause between two requests by Request-rate, and whether
// there is one. Of several lines the slowest holds.
func (g *Group) RequestRate() (time.Duration, bool) { return g.rate, g.hasRate }

// Delay is the least pause that the group asks for in any way, by Crawl-delay or by
// Request-rate, and whether it asks for one.
func (g *Group) Delay() (time.Duration, bool) {
	return max(g.delay, g.rate), g.hasDelay || g.hasRate
}

func parseSeconds(value string) (float64, bool) {
	s, err := strconv.ParseFloat(value, 64)
	if err != nil || !(s >= 0) { // NaN is not ≥ 0
		return 0, false
	}
	return min(s, maxCrawlDelay), true
}

// parseRate reads a Request-rate of the extended standard that some robots.txt
// still follow: documents "/" time, as 1/5 or 30/1m, the time in seconds unless s,
// m, h or d says otherwise. Hours of the day for which it holds may come after it;
// it is kept at all hours, which is never faster than asked. The answer is the time
// for each document.
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
	end := 0
	for end < len(span) && (span[end] >= '0' && span[end] <= '9' || span[end] == '.') {
		end++
	}
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

// secondsOf are the seconds of a unit of time.
var secondsOf = map[string]float64{
	"": 1, "s": 1, "sec": 1, "seconds": 1, "m": 60, "min": 60, "minutes": 60, "h": 3600, "hours": 3600, "d": 86400,
}

// isHours reports whether a word can be a time of the day, as 0600-0845.
func isHours(word string) bool {
	for i := range len(word) {
		if c := word[i]; (c < '0' || c > '9') && c != '-' && c != ':' {
			return false
		}
	}
	return true
}

// readDelay has the library read a Crawl-delay from a clean file of that line.
func readDelay(seconds float64) time.Duration {
	clean := "User-agent: *\nCrawl-delay: " + strconv.FormatFloat(seconds, 'f', -1, 64) + "\n"
	data, err := robotstxt.FromString(clean)
	if err != nil {
		return time.Duration(seconds * float64(time.Second))
	}
	return data.FindGroup("*").CrawlDelay
}
