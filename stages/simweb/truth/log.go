package truth

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/stages/simweb"
)

// ViolationKind says which rule a request violates.
type ViolationKind string

const (
	TooSoon         ViolationKind = "too_soon"          // the request came before the host's delay had passed
	Denied          ViolationKind = "denied"            // robots.txt denies the request
	RobotsNotAsked  ViolationKind = "robots_not_asked"  // the host's robots.txt had not been requested before
	RobotsNotServed ViolationKind = "robots_not_served" // the host's robots.txt always returns 5xx
)

// Violation describes a request that no polite crawler sends.
type Violation struct {
	Kind  ViolationKind
	Entry simweb.Entry
	Gap   time.Duration // time since the host's previous request; for TooSoon
	Delay time.Duration // required delay; for TooSoon
	Rule  string        // line of robots.txt that denies the request; for Denied
}

// String describes the violation in one line.
func (v Violation) String() string {
	at := fmt.Sprintf("%s http://%s%s: %s", v.Entry.Time.UTC().Format("15:04:05.000"), v.Entry.Host, v.Entry.Path, v.Kind)
	switch v.Kind {
	case TooSoon:
		return fmt.Sprintf("%s: %v after the request before, the delay is %v", at, v.Gap.Round(time.Microsecond), v.Delay)
	case Denied:
		return fmt.Sprintf("%s by %q", at, v.Rule)
	}
	return at
}

// Pace is the delay that CheckLog requires.
type Pace struct {
	Delay time.Duration // shortest allowed gap between two requests to a host
	Slack time.Duration // how much shorter a gap may be, because the network may delay the earlier request
	// DelayOf, if not nil, returns the delay of a host. It replaces Delay.
	DelayOf func(host string) time.Duration
}

// CheckLog checks the requests of a log, in any order, against the rules of web's hosts. After a
// host has served its robots.txt, the required gap is the longer of its Crawl-delay and pace's
// delay. For a host outside the web, the required gap is pace's delay. CheckLog parses no
// robots.txt, because the generator knows which URLs are denied.
func CheckLog(web *simweb.Web, entries []simweb.Entry, pace Pace) []Violation {
	byHost := slices.Clone(entries)
	slices.SortStableFunc(byHost, func(a, b simweb.Entry) int { return cmp.Or(cmp.Compare(a.Host, b.Host), a.Time.Compare(b.Time)) })
	var found []Violation
	for len(byHost) > 0 {
		n := 1
		for n < len(byHost) && byHost[n].Host == byHost[0].Host {
			n++
		}
		found = append(found, checkHost(web, byHost[:n], pace)...)
		byHost = byHost[n:]
	}
	return found
}

// checkHost checks the requests to one host in the order of their times.
func checkHost(web *simweb.Web, entries []simweb.Entry, pace Pace) []Violation {
	var found []Violation
	delay := pace.Delay
	if pace.DelayOf != nil {
		delay = pace.DelayOf(entries[0].Host)
	}
	host, known := web.HostIndex(entries[0].Host)
	asked := false
	for i, e := range entries {
		if i > 0 {
			if gap := e.Time.Sub(entries[i-1].Time); gap < delay-pace.Slack {
				found = append(found, Violation{Kind: TooSoon, Entry: e, Gap: gap, Delay: delay})
			}
		}
		if !known {
			continue
		}
		if web.IsRobots(host, e.Path) {
			if e.Path == "/robots.txt" {
				asked = true
			}
			if e.Status == 200 {
				delay = max(delay, web.CrawlDelay(host))
			}
			continue
		}
		allowed, rule := web.Verdict(host, simweb.Untracked(e.Path))
		switch {
		case !asked:
			found = append(found, Violation{Kind: RobotsNotAsked, Entry: e})
		case web.Profile(host) == simweb.RobotsUnreachable:
			found = append(found, Violation{Kind: RobotsNotServed, Entry: e})
		case !allowed:
			found = append(found, Violation{Kind: Denied, Entry: e, Rule: rule})
		}
	}
	return found
}
