package simweb

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// ViolationKind is what a request did wrong.
type ViolationKind string

// The kinds of violations.
const (
	TooSoon         ViolationKind = "too_soon"          // less than the delay in force after the host's previous request
	Denied          ViolationKind = "denied"            // robots.txt denies it
	RobotsNotAsked  ViolationKind = "robots_not_asked"  // before the host's robots.txt was asked for
	RobotsNotServed ViolationKind = "robots_not_served" // although the host's robots.txt had given no answer but 5xx
)

// Violation is a request that no polite crawler sends.
type Violation struct {
	Kind  ViolationKind
	Entry Entry
	Gap   time.Duration // TooSoon: since the host's previous request
	Delay time.Duration // TooSoon: that was in force
	Rule  string        // Denied: the line of robots.txt
}

// String says what was wrong in one line.
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

// Pace is what CheckLog holds a crawl to.
type Pace struct {
	Delay time.Duration // least gap between two requests to a host
	Slack time.Duration // allowed for the network, which may hold one request up longer than the next
	// DelayOf, unless nil, replaces Delay by that of a host.
	DelayOf func(host string) time.Duration
}

// CheckLog audits a whole log, in any order, against what this web's hosts ask
// for. A Crawl-delay is in force for the gap after the request that brought it and
// for all later ones, where it is longer than the delay. What robots.txt denies is
// known from how the web is made; no robots.txt is parsed. Hosts that the web does
// not have are held to the delay alone.
func (w *Web) CheckLog(entries []Entry, pace Pace) []Violation {
	byHost := slices.Clone(entries)
	slices.SortStableFunc(byHost, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Host, b.Host), a.Time.Compare(b.Time)) })
	var found []Violation
	for len(byHost) > 0 {
		n := 1
		for n < len(byHost) && byHost[n].Host == byHost[0].Host {
			n++
		}
		found = append(found, w.checkHost(byHost[:n], pace)...)
		byHost = byHost[n:]
	}
	return found
}

// checkHost audits the requests to one host, in the order of their times.
func (w *Web) checkHost(entries []Entry, pace Pace) []Violation {
	var found []Violation
	delay := pace.Delay
	if pace.DelayOf != nil {
		delay = pace.DelayOf(entries[0].Host)
	}
	host, known := w.HostIndex(entries[0].Host)
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
		if _, robots := w.robotsAnswer(host, e.Path); robots {
			if e.Path == "/robots.txt" {
				asked = true
			}
			if e.Status == 200 {
				delay = max(delay, w.CrawlDelay(host))
			}
			continue
		}
		allowed, rule := w.Verdict(host, untracked(e.Path))
		switch {
		case !asked:
			found = append(found, Violation{Kind: RobotsNotAsked, Entry: e})
		case w.Profile(host) == RobotsUnreachable:
			found = append(found, Violation{Kind: RobotsNotServed, Entry: e})
		case !allowed:
			found = append(found, Violation{Kind: Denied, Entry: e, Rule: rule})
		}
	}
	return found
}
