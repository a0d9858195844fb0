package owner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// reply returns the text to reply with. crawl is the newest crawl, and stops are its stops.
func (s *tally) reply(cfg *config.Config, crawl string, stops []Stop) string {
	var b strings.Builder
	name := s.Host
	if name == "" {
		name = s.Domain
	}
	killed := s.killed()
	unfinished := slices.ContainsFunc(s.Rounds, func(p Part) bool { return !p.Finished })
	switch {
	case unfinished && s.Requests == 0:
		fmt.Fprintf(&b, "Our crawler has recorded no request to %s yet in the crawl %s, which still runs.\n", name, s.Month)
	case unfinished:
		fmt.Fprintf(&b, "Our crawler has recorded %s to %s between %s and %s so far, and the crawl still runs.\n", requests(s.Requests), name, s.First, s.Last)
	case len(killed) > 0:
		fmt.Fprintf(&b, "Our crawler has recorded %s to %s in the crawl %s.\n", requests(s.Requests), name, s.Month)
	case s.Requests == 0:
		fmt.Fprintf(&b, "Our crawler sent no request to %s in the crawl %s.\n", name, s.Month)
	default:
		fmt.Fprintf(&b, "Our crawler sent %s to %s between %s and %s.\n", requests(s.Requests), name, s.First, s.Last)
	}
	if cfg.UserAgent != "" {
		fmt.Fprintf(&b, "It says who it is in each request: User-Agent: %s\n", cfg.UserAgent)
	}
	for i := range stops {
		if stop := &stops[i]; stop.Ended == "" {
			fmt.Fprintf(&b, "On %s we stopped our requests to %s, for this reason: %s\nNo later round of the crawl %s requests it.\n", ledger.Moment(stop.Since), stop.Name(), stop.Reason, crawl)
		}
	}
	if s.robots.at != "" {
		fmt.Fprintf(&b, "It obeys robots.txt and last read that of %s at %s.\n", s.robots.host, s.robots.at)
	} else {
		b.WriteString("It obeys robots.txt.\n")
	}
	if s.robots.at == "" && s.robots.unreachable {
		b.WriteString("It could not read robots.txt of the host, so it requested no page there.\n")
	}
	if s.Requests > 0 {
		b.WriteString("The attached list has each of these requests with its time, the rule of robots.txt that matched it, if one did, the delay and the gap.\n")
	}
	if len(killed) > 0 {
		b.WriteString(missing(killed))
	}
	if len(s.Pruned) > 0 {
		fmt.Fprintf(&b, "We have deleted what we knew of these crawls by their age: %s.\n", strings.Join(s.Pruned, ", "))
	}
	b.WriteString(s.Stored.sentences())
	if token := robots.ProductToken(cfg.UserAgent); token != "" {
		fmt.Fprintf(&b, "To keep our crawler away, put these lines into robots.txt of the host:\n\n  User-agent: %s\n  Disallow: /\n\n", token)
	} else {
		b.WriteString("To keep our crawler away, deny it in robots.txt of the host.\n")
	}
	fmt.Fprintf(&b, "It reads robots.txt again within %s. A line such as \"Crawl-delay: 10\" makes it slower instead.\n", inWords(time.Duration(cfg.Politeness.RobotsTTL)))
	b.WriteString("If you ask us, we put the host on our opt-out list. Then no later round and no later crawl requests it.\n")
	if contact := contact(cfg.UserAgent); contact != "" {
		fmt.Fprintf(&b, "You reach us at %s.\n", contact)
	}
	return b.String()
}

// requests writes a number of requests.
func requests(n int64) string {
	if n == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", n)
}

// inWords writes a duration: 24 hours, or as Go writes it if it is no whole number of hours.
func inWords(d time.Duration) string {
	switch {
	case d == time.Hour:
		return "an hour"
	case d%time.Hour == 0:
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
	return d.String()
}

// contact returns the address of a page or a mailbox in a user agent, or "".
func contact(userAgent string) string {
	for _, word := range strings.FieldsFunc(userAgent, func(r rune) bool { return strings.ContainsRune(" ()<>;,", r) }) {
		if word = strings.TrimPrefix(word, "+"); strings.Contains(word, "://") || strings.Contains(word, "@") {
			return strings.TrimPrefix(word, "mailto:")
		}
	}
	return ""
}
