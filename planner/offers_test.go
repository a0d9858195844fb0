package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/planner/budget"
	"crawlbatch.io/crawlbatch/planner/source"
)

// trap lists 10,000 hosts of a domain, and a domain with a host of many URLs.
func trap() (urls []string) {
	for i := range 10_000 {
		urls = append(urls, fmt.Sprintf("http%s://h%d.trap.example/", []string{"", "s"}[i%2], i))
	}
	urls = append(urls, "http://h7.trap.example/second", "https://h7.trap.example/third")
	for i := range 9000 {
		urls = append(urls, fmt.Sprintf("http%s://www.big.example/%d", []string{"", "s"}[i%2], i))
	}
	return append(urls, "http://blog.big.example/", "http://small.example/")
}

func TestBudgetsByHost(t *testing.T) {
	cfg := Default()
	cfg.Budget, cfg.Memory = 0, 1<<20 // the offers of both domains spill to disk
	cfg.Limits = budget.Limits{Host: 100, HostsPerDomain: 3}
	urls := trap()
	_, parts, refused := commitAndRead(t, bucket(t), plan(t, cfg, lines(urls...)))
	hosts := map[string]int{}
	for _, rows := range parts {
		for _, r := range rows {
			if r.Domain == "trap.example" {
				hosts["trap"]++
			} else {
				hosts[r.Host]++
			}
		}
	}
	// The host with the most URLs is in: three of its URLs and one of each of two other hosts.
	if fmt.Sprint(hosts) != "map[blog.big.example:1 small.example:1 trap:5 www.big.example:100]" {
		t.Errorf("planned %v", hosts)
	}
	for _, r := range refused {
		want := "plan.budgets.host: 100 URLs of www.big.example a crawl; this URL has priority 500, the last one taken 500"
		if r.Domain == "trap.example" {
			want = fmt.Sprintf("plan.budgets.hosts_per_domain: 3 hosts of trap.example a crawl; %s has 1 URL of priority up to 500, the last host taken 1 URL up to 500", hostOfURL(r.URL))
		}
		if r.Reason != schema.SkipBudget || r.Detail != want {
			t.Fatalf("refused %+v, want %q", r, want)
		}
	}
	first := planned(parts)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(urls), func(i, j int) { urls[i], urls[j] = urls[j], urls[i] })
	_, parts, _ = commitAndRead(t, bucket(t), plan(t, cfg, lines(urls[:len(urls)/2]...), lines(urls[len(urls)/2:]...)))
	if again := planned(parts); !slices.Equal(first, again) {
		t.Errorf("in another order of lines and files, %d other URLs are planned", len(again))
	}
}

func hostOfURL(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// A URL that an earlier round planned uses its host's budget. If it is due, it is planned all the same.
func TestEarlierRoundsCountInBudgetsByHost(t *testing.T) {
	cfg := Default()
	cfg.Limits.Host = 2
	due := func(url string) source.Entry { return source.Entry{URL: url, Due: true, Depth: 1} }
	again := source.Entry{URL: "http://a.example/again", Due: true, Spent: true, Fetches: 1}
	before := source.Entry{URL: "https://a.example/before", Spent: true, Fetches: 1}
	_, parts, refused := commitAndRead(t, bucket(t), plan(t, cfg, known(due("http://a.example/new"), due("http://www.a.example/new"), again, before)))
	if got := planned(parts); !slices.Equal(got, []string{"http://a.example/again", "http://www.a.example/new"}) {
		t.Errorf("planned %q", got)
	}
	if len(refused) != 1 || refused[0].Detail != "plan.budgets.host: 2 URLs of a.example a crawl, of which earlier rounds planned 2; this URL has priority 0" {
		t.Errorf("refused %+v", refused)
	}
}

func TestHostsOfEarlierRoundsInBudgetsByHost(t *testing.T) {
	var urls []string
	for i := range 10 {
		for _, host := range []string{"old", "new", "slowed", "cured"} {
			urls = append(urls, fmt.Sprintf("http://%s.example/%d", host, i))
		}
	}
	host := func(name string, refusals int64, breaker int32) source.Host {
		return source.Host{Host: name + ".example", Domain: name + ".example", Address: "192.0.2.1", Planned: 1, FailedRate: refusals, BreakerEvents: breaker}
	}
	hosts := []source.Host{host("cured", 3, 0), host("old", 0, 0), host("slowed", 0, 0), host("slowed", 0, 1), host("cured", 0, 0)}
	for name, tc := range map[string]struct {
		limits budget.Limits
		total  int64
		want   string // number of URLs of each host
		detail string // of a refusal
	}{
		"a rate-limited host": {budget.Limits{Host: 8, RateLimited: 0.25}, 0, "cured 8, new 8, old 8, slowed 2",
			"plan.budgets.rate_limited: 2 URLs of slowed.example a crawl instead of 8, because it limited the rate of requests; this URL has priority 500, the last one taken 500"},
		"a share for new hosts": {budget.Limits{Exploration: 0.5}, 12, "new 6, others 6",
			"plan.budgets.total: 12 URLs a crawl; this URL has priority 500, the threshold is 500 for new hosts, for which plan.budgets.exploration keeps 6 URLs"},
	} {
		cfg := Default()
		cfg.Limits, cfg.CrawlURLs = tc.limits, tc.total
		_, parts, refused := commitAndRead(t, bucket(t), planWith(t, cfg, seen(hosts...), urls...))
		of := map[string]int{}
		for _, url := range planned(parts) {
			name, _, _ := strings.Cut(hostOfURL(url), ".")
			if tc.total > 0 && name != "new" {
				name = "others"
			}
			of[name]++
		}
		var got []string
		for name, n := range of {
			got = append(got, fmt.Sprint(name, " ", n))
		}
		slices.Sort(got)
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: planned %q, want %q", name, got, tc.want)
		}
		if !slices.ContainsFunc(refused, func(r schema.Refused) bool { return r.Detail == tc.detail }) {
			t.Errorf("%s: refused %+v, want %q", name, refused[:1], tc.detail)
		}
	}
}

// The details of refusals are part of a plan, so the plans of crawls without budgets by host keep theirs.
func TestWithoutBudgetsByHostRefusalsStay(t *testing.T) {
	cfg := Default()
	cfg.Budget, cfg.CrawlURLs = 2, 3
	_, _, refused := commitAndRead(t, bucket(t), plan(t, cfg, lines("http://a.example/1", "http://a.example/2", "http://a.example/3", "http://b.example/1", "http://b.example/2")))
	var got []string
	for _, r := range refused {
		got = append(got, r.URL+" "+r.Detail)
	}
	slices.Sort(got)
	if len(got) != 2 || got[0] != "http://a.example/3 2 URLs of a.example a crawl" || !strings.HasSuffix(got[1], " 3 URLs a crawl") {
		t.Errorf("refused %q", got)
	}
}

func TestLimitsOfBudgetsAreChecked(t *testing.T) {
	cfg := Default()
	cfg.Limits.Patterns = []budget.Pattern{{Match: "("}}
	if _, err := Make(t.Context(), cfg, request(t, lines("http://a.example/"))); err == nil || !strings.Contains(err.Error(), ErrConfig.Error()) {
		t.Error(err)
	}
}
