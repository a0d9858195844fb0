//go:build lab

package lab

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// trap describes an endless web, and how soon and for which reasons a crawl must stop following its
// links.
type trap struct {
	hostileFault
	skips   map[schema.SkipReason]bool // skip reasons that some URLs of the trap must have
	fetched int                        // largest allowed number of fetched URLs of the trap's domain
}

// trapHosts is the number of hosts of one domain in the list of URLs.
const trapHosts = 100_000

func traps() []trap {
	const budget = 200 // the budget of URLs per domain, as in hostileConfig
	number := func(x exchange, name string) int {
		n, _ := strconv.Atoi(x.r.URL.Query().Get(name))
		return n
	}
	made := func(name string, fetched int, reasons []schema.SkipReason, serve func(x exchange)) trap {
		t := trap{hostileFault{name: name, serve: serve}, map[schema.SkipReason]bool{}, fetched}
		for _, r := range reasons {
			t.skips[r] = true
		}
		return t
	}
	return []trap{
		made("trap-relative", budget, []schema.SkipReason{schema.SkipTrap}, func(x exchange) {
			x.page(`<a href="about/">about</a> <a href="contact/">contact</a>`)
		}),
		made("trap-self", 4, []schema.SkipReason{schema.SkipTrap}, func(x exchange) { x.page(`<a href="next/">on</a>`) }),
		made("trap-pair", 6, []schema.SkipReason{schema.SkipDepth}, func(x exchange) {
			if strings.HasSuffix(x.r.URL.Path, "a/") {
				x.page(`<a href="b/">on</a>`)
			} else {
				x.page(`<a href="a/">on</a>`)
			}
		}),
		made("trap-calendar", 6, []schema.SkipReason{schema.SkipDepth}, func(x exchange) {
			x.page(fmt.Sprintf(`<a href="/calendar?month=%d">next month</a>`, number(x, "month")+1))
		}),
		made("trap-calendars", budget, []schema.SkipReason{schema.SkipBudget}, func(x exchange) {
			var days strings.Builder
			for d := range 31 {
				fmt.Fprintf(&days, `<a href="/%d/%d">%d</a> `, len(x.r.URL.Path), d, d)
				fmt.Fprintf(&days, `<a href="%s?d=%d">%d</a> `, x.r.URL.Path, d, d)
			}
			x.page(days.String())
		}),
		made("trap-session", budget, []schema.SkipReason{schema.SkipTrap}, func(x exchange) {
			var links strings.Builder
			for p := range 20 {
				fmt.Fprintf(&links, `<a href="/page%d?sid=%x">page</a> `, p, len(x.r.URL.RequestURI())*1_000_003+x.nth+p*7919+number(x, "n"))
			}
			x.page("<p>Welcome to our shop, which knows you by a number of your own in each and every link of it.</p>" + links.String())
		}),
		made("trap-growing", 6, []schema.SkipReason{schema.SkipTrap}, func(x exchange) {
			x.page(fmt.Sprintf(`<a href="/?q=%s">on</a>`, strings.Repeat("q", 20*len(x.r.URL.RawQuery)+9)))
		}),
		made("trap-hosts", budget, []schema.SkipReason{schema.SkipBudget}, func(x exchange) {
			var links strings.Builder
			for n := range 3000 {
				fmt.Fprintf(&links, `<a href="http://l%d.%s/">host</a> `, n, x.r.Host)
			}
			x.page(links.String())
		}),
	}
}

// TestHostileTraps crawls endless webs for four rounds. One web has 100,000 hosts in a domain.
// Depth, budget or trap detection must stop each web. Every URL that is not followed must have a
// reason, and memory must stay bounded.
func TestHostileTraps(t *testing.T) {
	t.Parallel()
	all := traps()
	var faults []hostileFault
	for i := range all {
		faults = append(faults, all[i].hostileFault)
	}
	w := newHostileWeb(t, faults)
	urls := planned(faults)
	for n := range trapHosts {
		urls = append(urls, fmt.Sprintf("http://h%d.trap-hosts.test/", n))
	}
	rows, peak := runHostile(t, w, hostileRun{urls: urls, rounds: 4, private: true})
	// The peak includes the planner, which may take more than a map task.
	if limit := int64(1 << 30); peak > limit {
		t.Errorf("peak memory %d MiB, want at most %d", peak>>20, limit>>20)
	}
	skips := map[string]map[schema.SkipReason]int{}
	for _, s := range rows.skips {
		name := w.faultName(hostOf(s.URL))
		if skips[name] == nil {
			skips[name] = map[schema.SkipReason]int{}
		}
		skips[name][s.Reason]++
	}
	fetched := map[string]int{}
	for u := range rows.fetches {
		fetched[w.faultName(hostOf(u))]++
	}
	for _, x := range all {
		t.Run(x.name, func(t *testing.T) {
			if n := fetched[x.name]; n < 2 || n > x.fetched {
				t.Errorf("%d URLs were fetched, want 2 to %d", n, x.fetched)
			}
			for reason := range x.skips {
				if skips[x.name][reason] == 0 {
					t.Errorf("no URL was skipped for %s: %v", reason, skips[x.name])
				}
			}
		})
	}
	if n := skips["trap-hosts"][schema.SkipBudget]; n < trapHosts-200 {
		t.Errorf("of %d hosts of a domain, %d were skipped because of the domain's budget", trapHosts, n)
	}
}

func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}
