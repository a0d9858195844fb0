// Package retries says how often a fetch task repeats a failed request, and after which pause.
//
// The input is the limits and pauses of the config, and the number of retries that a URL or a
// robots.txt has used. The output is the next pause, or that no retry is left, and when the tries for
// a robots.txt end at the latest. Package retries imports packages manifest, polite and response.
package retries

import (
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
)

// Limits holds the number of retries of a request, by class of failure.
type Limits struct {
	Timeout     int // retries after a time-out, or if no connection was made or it ended without an answer; default 1
	ServerError int // retries after a 5xx status except 503; default 2
	RateLimited int // retries after 429 or 503; default 3
	DNS         int // retries after a failed name lookup; default 1
	Robots      int // further requests for a robots.txt, minutes apart, after all its other retries have failed; default 2
}

// Pauses are the times before retries. A random part is added to each pause.
type Pauses struct {
	RateLimited time.Duration // pause of the whole host after 429 or 503, doubled for each further 429 or 503 in a row, at most four times; default 30s
	Timeout     time.Duration // pause before a retry after a time-out; default 15s
	ServerError time.Duration // pause before a retry after a 5xx status; default 10s
	DNS         time.Duration // pause of the whole host after a failed name lookup; default 1m
	Breaker     time.Duration // time until a suspended host is probed; default 2m
	Grace       time.Duration // time that an interrupted task has to finish; default 20s
}

// After all usual retries of a robots.txt have failed, late requests follow (Limits.Robots). By
// default, the first comes after 2 minutes. Each further wait is laterGrowth times as long.
const (
	laterPauses = 12 // wait before the first of these requests, in units of Pauses.ServerError
	laterGrowth = 3
	maxLater    = 5 // largest number of times that the wait grows
)

// Late returns the time from a request without an answer to the late try of its host.
func Late(p *Pauses) time.Duration { return laterPauses * p.ServerError }

// Rule returns, for a class of failures, the counter of used retries, the number of allowed retries,
// and the pause of the request before the next retry.
func Rule(l *Limits, p *Pauses, counts *manifest.RetryCounts, class response.RetryClass) (used *int, limit int, pause time.Duration) {
	switch class {
	case response.AfterTimeout:
		return &counts.Timeouts, l.Timeout, p.Timeout
	case response.AfterServerError:
		return &counts.ServerErrors, l.ServerError, p.ServerError
	case response.AfterLimit:
		return &counts.Limited, l.RateLimited, 0 // the scheduler pauses the whole host
	case response.AfterDNS:
		return &counts.DNS, l.DNS, 0 // the fetcher sets Result.Hold, which puts off all requests to the host
	case response.ForRobots:
		pause = laterPauses * p.ServerError
		for range min(counts.Later, maxLater) {
			pause *= laterGrowth
		}
		return &counts.Later, l.Robots, pause
	}
	return new(int), 0, 0
}

// LastTry returns when the last try for a robots.txt ends at the latest, if all tries fail as the
// earlier ones did. next is the time of the next try, counts are the retries so far, the next try
// included, and timeout is how long a try may take without an answer. limited is the number of 429 and
// 503 in a row of the host; it is larger than counts if the host failed in an earlier round.
func LastTry(l *Limits, p *Pauses, counts manifest.RetryCounts, limited int, next time.Time, timeout time.Duration) time.Time {
	class := classOf(&counts)
	failed := max(counts.Timeouts+counts.ServerErrors+counts.Limited+counts.DNS+counts.Later, limited)
	for ; ; failed++ {
		if class == response.AfterTimeout {
			next = next.Add(timeout)
		}
		used, limit, pause := Rule(l, p, &counts, class)
		if *used >= limit && class != response.AfterDNS { // a name that cannot be looked up gets no late tries
			used, limit, pause = Rule(l, p, &counts, response.ForRobots)
		}
		if *used >= limit {
			return next
		}
		*used++
		switch class {
		case response.AfterLimit:
			pause = max(pause, polite.PauseAfter(failed+1, p.RateLimited))
		case response.AfterDNS:
			pause = p.DNS
		}
		next = next.Add(polite.Longest(pause))
	}
}

// RobotsTries returns the mean time of all tries for a robots.txt that answers 503 to each.
func RobotsTries(l *Limits, p *Pauses, timeout time.Duration) time.Duration {
	first := polite.Longest(polite.PauseAfter(1, p.RateLimited))
	longest := LastTry(l, p, manifest.RetryCounts{Limited: 1}, 1, time.Time{}.Add(first), timeout).Sub(time.Time{})
	return longest * 9 / 10 // a random part lengthens each pause by at most a quarter, and by an eighth on average
}

// RobotsTriesAgain is RobotsTries for a host that an earlier round left after such answers. A host keeps
// its pauses between rounds, so each try comes after the longest one.
func RobotsTriesAgain(l *Limits, p *Pauses) time.Duration {
	tries := time.Duration(1 + l.RateLimited + l.Robots)
	return tries * polite.Longest(polite.PauseAfter(manyLimits, p.RateLimited)) * 9 / 10
}

// manyLimits is a number of 429 and 503 in a row after which a pause is as long as it can be.
const manyLimits = 100

// classOf returns the class of the failures that used the retries. If there are several, it returns
// the class with the longest pauses.
func classOf(c *manifest.RetryCounts) response.RetryClass {
	switch {
	case c.Limited > 0:
		return response.AfterLimit
	case c.ServerErrors > 0:
		return response.AfterServerError
	case c.Timeouts > 0:
		return response.AfterTimeout
	case c.DNS > 0:
		return response.AfterDNS
	}
	return response.ForRobots
}
