package budget

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// offer is a URL of a test: its host, its path and its priority.
type offer struct {
	host, path string
	priority   int32
}

func (o offer) url() string { return "http://" + o.host + o.path }

// decide passes offers to a domain. It returns the taken URLs, and the refusals of the others by URL.
func decide(t *testing.T, l Limits, limit int64, spent, offers []offer, observed map[string]bool, rank float64) (taken []string, refused map[string]string) {
	t.Helper()
	r, err := NewRules(l)
	if err != nil {
		t.Fatal(err)
	}
	d := r.NewDomain("a.test", limit, false)
	for _, o := range offers {
		d.Offer(o.host, o.url(), o.priority)
	}
	for _, o := range spent {
		d.Spend(o.host, o.url())
	}
	for host, limited := range observed {
		d.Observe(host, limited, 0)
	}
	d.Ranked(rank / 2) // of another host
	d.Ranked(rank)
	d.EndCount()
	sorted := slices.Clone(offers)
	slices.SortFunc(sorted, func(a, b offer) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), strings.Compare(a.url(), b.url()))
	})
	refused = map[string]string{}
	for _, o := range sorted {
		if key, why := d.Take(o.host, o.url(), o.priority); key != "" {
			refused[o.host+o.path] = key + ": " + why
		} else {
			taken = append(taken, o.host+o.path)
		}
	}
	slices.Sort(taken)
	return taken, refused
}

func TestBudgetsOfADomain(t *testing.T) {
	web := []offer{
		{"www.a.test", "/1", 900}, {"www.a.test", "/2", 800}, {"www.a.test", "/day/3", 700}, {"www.a.test", "/day/4", 600},
		{"b.a.test", "/1", 500}, {"b.a.test", "/2", 400}, {"c.a.test", "/1", 500},
	}
	for _, tc := range []struct {
		name     string
		limits   Limits
		domain   int64
		spent    []offer
		observed map[string]bool
		rank     float64
		taken    string
		url, why string // a refused URL, and why it is
	}{
		{name: "of hosts", limits: Limits{Host: 1}, taken: "b.a.test/1 c.a.test/1 www.a.test/1",
			url: "b.a.test/2", why: "host: 1 URL of b.a.test a crawl; this URL has priority 400, the last one taken 500"},
		{name: "of hosts, after earlier rounds", limits: Limits{Host: 2}, spent: []offer{{"www.a.test", "/x", 0}, {"www.a.test", "/y", 0}, {"b.a.test", "/x", 0}},
			taken: "b.a.test/1 c.a.test/1",
			url:   "www.a.test/1", why: "host: 2 URLs of www.a.test a crawl, of which earlier rounds planned 2; this URL has priority 900"},
		// A host that may not have its URLs leaves room for those of other hosts.
		{name: "of hosts and the domain", limits: Limits{Host: 1}, domain: 3, spent: []offer{{"www.a.test", "/x", 0}}, taken: "b.a.test/1 c.a.test/1",
			url: "b.a.test/2", why: "host: 1 URL of b.a.test a crawl; this URL has priority 400, the last one taken 500"},
		{name: "of the domain", limits: Limits{Host: 3}, domain: 2, taken: "www.a.test/1 www.a.test/2",
			url: "c.a.test/1", why: "default: 2 URLs of a.test a crawl; this URL has priority 500, the last one taken 800"},
		{name: "of a domain of high rank", limits: Limits{Ranked: 9}, domain: 2, rank: 2, taken: "www.a.test/1 www.a.test/2 www.a.test/day/3 www.a.test/day/4",
			url: "b.a.test/1", why: "ranked: 4 URLs of a.test a crawl, by 2 times the mean rank; this URL has priority 500, the last one taken 600"},
		// A host whose URLs are all refused takes no place of another host.
		{name: "of hosts per domain, with a pattern", limits: Limits{HostsPerDomain: 1, Patterns: []Pattern{{Match: "/www"}}}, taken: "b.a.test/1 b.a.test/2",
			url: "www.a.test/1", why: `patterns: 0 URLs of www.a.test a crawl that match "pattern 1"; this URL has priority 900`},
		{name: "of a pattern", limits: Limits{Patterns: []Pattern{{Name: "days", Match: "/day/", URLs: 1}, {Match: "/day/4", URLs: 9}}},
			taken: "b.a.test/1 b.a.test/2 c.a.test/1 www.a.test/1 www.a.test/2 www.a.test/day/3",
			url:   "www.a.test/day/4", why: `patterns: 1 URL of www.a.test a crawl that match "days"; this URL has priority 600, the last one taken 700`},
		{name: "of a pattern, which takes none", limits: Limits{Patterns: []Pattern{{Match: "/[12]$", URLs: 0}}}, taken: "www.a.test/day/3 www.a.test/day/4",
			url: "www.a.test/1", why: `patterns: 0 URLs of www.a.test a crawl that match "pattern 1"; this URL has priority 900`},
		{name: "of hosts per domain", limits: Limits{HostsPerDomain: 2}, taken: "b.a.test/1 b.a.test/2 www.a.test/1 www.a.test/2 www.a.test/day/3 www.a.test/day/4",
			url: "c.a.test/1", why: "hosts_per_domain: 2 hosts of a.test a crawl; c.a.test has 1 URL of priority up to 500, the last host taken 2 URLs up to 500"},
		{name: "of hosts per domain, after earlier rounds", limits: Limits{HostsPerDomain: 2}, spent: []offer{{"c.a.test", "/x", 0}, {"gone.a.test", "/", 0}}, taken: "c.a.test/1",
			url: "b.a.test/1", why: "hosts_per_domain: 2 hosts of a.test a crawl; b.a.test has 2 URLs of priority up to 500, and earlier rounds planned as many hosts"},
		{name: "of a rate-limited host", limits: Limits{Host: 4, RateLimited: 0.5}, observed: map[string]bool{"www.a.test": true, "b.a.test": false},
			taken: "b.a.test/1 b.a.test/2 c.a.test/1 www.a.test/1 www.a.test/2", url: "www.a.test/day/3",
			why: "rate_limited: 2 URLs of www.a.test a crawl instead of 4, because it limited the rate of requests; this URL has priority 700, the last one taken 800"},
		{name: "of a rate-limited host without a budget of hosts", limits: Limits{RateLimited: 0.1}, domain: 10, observed: map[string]bool{"www.a.test": true},
			taken: "b.a.test/1 b.a.test/2 c.a.test/1 www.a.test/1", url: "www.a.test/2",
			why: "rate_limited: 1 URL of www.a.test a crawl instead of 10, because it limited the rate of requests; this URL has priority 800, the last one taken 900"},
		{name: "of a rate-limited host without any budget", limits: Limits{RateLimited: 0.1}, observed: map[string]bool{"www.a.test": true},
			taken: "b.a.test/1 b.a.test/2 c.a.test/1 www.a.test/1 www.a.test/2 www.a.test/day/3 www.a.test/day/4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			taken, refused := decide(t, tc.limits, tc.domain, tc.spent, web, tc.observed, tc.rank)
			if got := strings.Join(taken, " "); got != tc.taken || len(taken)+len(refused) != len(web) {
				t.Errorf("took %q, want %q", got, tc.taken)
			}
			if refused[tc.url] != tc.why {
				t.Errorf("refused %s: %q, want %q", tc.url, refused[tc.url], tc.why)
			}
		})
	}
}

// The budgets take as many of the best URLs as any choice could: at each priority, no refused URL would
// still fit among the taken URLs of at least its priority.
func TestTheBestURLsAreTakenWhateverTheirOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		l := Limits{Host: 1 + random.Int64N(6), HostsPerDomain: random.Int64N(4), Patterns: []Pattern{{Match: "/p", URLs: random.Int64N(4)}}}
		domain := random.Int64N(12)
		var offers, spent []offer
		for i := range 40 {
			o := offer{fmt.Sprintf("h%d.a.test", random.IntN(5)), fmt.Sprintf("/%c%d", 'o'+rune(random.IntN(2)), i), int32(random.IntN(4))}
			if random.IntN(8) == 0 {
				spent = append(spent, o)
			} else {
				offers = append(offers, o)
			}
		}
		taken, _ := decide(t, l, domain, spent, offers, nil, 0)
		random.Shuffle(len(offers), func(i, j int) { offers[i], offers[j] = offers[j], offers[i] })
		if again, _ := decide(t, l, domain, spent, offers, nil, 0); !slices.Equal(taken, again) {
			t.Fatalf("%+v: took %q, in another order %q", l, taken, again)
		}
		checkBest(t, l, domain, spent, offers, taken)
	}
}

// checkBest checks that no budget is exceeded, and that each refused URL meets a full budget.
func checkBest(t *testing.T, l Limits, domain int64, spent, offers []offer, taken []string) {
	t.Helper()
	isTaken := func(o offer) bool { return slices.Contains(taken, o.host+o.path) }
	count := func(matches func(offer) bool, least int32) (n int64) {
		for _, o := range spent {
			if matches(o) {
				n++
			}
		}
		for _, o := range offers {
			if isTaken(o) && o.priority >= least && matches(o) {
				n++
			}
		}
		return n
	}
	hosts, ofSpent := map[string]bool{}, map[string]bool{}
	for _, o := range spent {
		ofSpent[o.host] = true
	}
	for _, o := range offers {
		if isTaken(o) && !ofSpent[o.host] {
			hosts[o.host] = true
		}
	}
	if l.HostsPerDomain > 0 && int64(len(hosts)) > max(0, l.HostsPerDomain-int64(len(ofSpent))) {
		t.Errorf("%d new hosts, %d old ones, %+v", len(hosts), len(ofSpent), l)
	}
	for _, o := range offers {
		sameHost := func(p offer) bool { return p.host == o.host }
		samePattern := func(p offer) bool { return p.host == o.host && p.path[:2] == "/p" }
		least := o.priority
		if isTaken(o) {
			least = 0
		}
		inHost, inPattern, inDomain := count(sameHost, least), count(samePattern, least), count(func(offer) bool { return true }, least)
		isPattern := o.path[:2] == "/p"
		full := inHost >= l.Host || isPattern && inPattern >= l.Patterns[0].URLs || domain > 0 && inDomain >= domain
		switch {
		case isTaken(o) && (inHost > l.Host || isPattern && inPattern > l.Patterns[0].URLs || domain > 0 && inDomain > domain):
			t.Errorf("%v exceeds a budget: %d of the host, %d of the pattern, %d of the domain %d, %+v", o, inHost, inPattern, inDomain, domain, l)
		case !isTaken(o) && !full && (l.HostsPerDomain == 0 || ofSpent[o.host] || hosts[o.host]):
			t.Errorf("%v is refused, but %d of the host, %d of the pattern, %d of the domain %d, %+v", o, inHost, inPattern, inDomain, domain, l)
		}
	}
}

func TestTheRankOfADomainBoundsItsURLs(t *testing.T) {
	for _, tc := range []struct {
		name  string
		limit int64
		own   bool
		rank  float64
		want  int64
	}{
		{"half the mean", 10_000, false, 0.5, 5000}, {"no rank", 10_000, false, 0, 10_000}, {"the best", 10_000, false, 1e12, 50_000},
		{"the worst", 10_000, false, 1e-9, 100}, {"a small budget", 50, false, 0.1, 50}, {"a budget of its own", 10_000, true, 7, 10_000}, {"no budget", 0, false, 7, -1},
	} {
		r, err := NewRules(Limits{Ranked: 50_000})
		if err != nil {
			t.Fatal(err)
		}
		d := r.NewDomain("a.test", tc.limit, tc.own)
		d.Ranked(tc.rank)
		if d.EndCount(); d.all.limit != tc.want {
			t.Errorf("%s: %d URLs, want %d", tc.name, d.all.limit, tc.want)
		}
	}
}

func TestSharesAreDecimalNumbers(t *testing.T) {
	for _, tc := range []struct {
		share   float64
		n, want int64
	}{{0.29, 100, 29}, {0.07, 100, 7}, {0.1, 30, 3}, {0.1, 9, 0}, {0.5, 5, 2}, {1, 1 << 40, 1 << 40}, {0.57, 1e9, 570_000_000}, {0, 7, 0}} {
		if got := part(tc.share, tc.n); got != tc.want {
			t.Errorf("%v of %d is %d, want %d", tc.share, tc.n, got, tc.want)
		}
	}
}

func TestAnAddressHasTheBestOfItsURLs(t *testing.T) {
	r, err := NewRules(Limits{Address: 3})
	if err != nil {
		t.Fatal(err)
	}
	a := r.NewAddresses()
	for domain, address := range map[string]uint64{"a.test": 1, "b.test": 1, "c.test": 2, "cdn.test": 3, "none.test": 0} {
		d := r.NewDomain(domain, 0, false)
		for _, path := range []string{"/1", "/2", "/3", "/4"} {
			d.Offer(domain, "http://"+domain+path, 500)
		}
		if domain == "b.test" || domain == "c.test" {
			d.Spend(domain, "http://"+domain+"/x")
		}
		d.Observe(domain, false, address)
		d.EndCount()
		for _, path := range []string{"/1", "/2"} {
			if key, why := d.Take(domain, "http://"+domain+path, 500); key != "" {
				t.Error(key, why)
			}
		}
		a.Count(d)
	}
	if !a.Bound(map[uint64]bool{0: true, 3: true}) || !a.Has(1) || a.Has(2) || a.Has(3) || a.Has(0) {
		t.Errorf("addresses with too many URLs: %v", a.at)
	}
	for _, u := range []place{{900, 7}, {500, 1}, {500, 2}, {400, 0}} {
		a.Admit(1, u.priority, u.tie)
	}
	if !a.Take(1, 900, 7) || !a.Take(1, 500, 1) || a.Take(1, 500, 2) || a.Take(1, 400, 0) {
		t.Error("the two best URLs are not those taken")
	}
	if why := a.Numbers(1, "192.0.2.1", 400); why != "3 URLs of 192.0.2.1 a crawl, of which earlier rounds planned 1; this URL has priority 400, the last one taken 500" {
		t.Error(why)
	}
}

func TestARoundKeepsAShareForNewHosts(t *testing.T) {
	type urls map[int32]int64 // number of URLs by priority
	for _, tc := range []struct {
		name         string
		share        float64
		known, fresh urls
		n            int64
		want         [2]int64 // taken URLs of known and of new hosts
	}{
		{"no share", 0, urls{500: 10}, urls{400: 10}, 10, [2]int64{10, 0}},
		{"a share", 0.25, urls{500: 10}, urls{400: 10}, 10, [2]int64{8, 2}}, // 2.5 URLs, rounded down
		{"more than the new hosts have", 0.5, urls{500: 10}, urls{400: 2}, 10, [2]int64{8, 2}},
		{"new hosts that are better anyway", 0.1, urls{500: 10}, urls{600: 8}, 10, [2]int64{2, 8}},
		{"equal priorities: known hosts first", 0.1, urls{500: 10}, urls{500: 10}, 10, [2]int64{9, 1}},
		{"few known hosts", 0.1, urls{500: 3}, urls{400: 10}, 10, [2]int64{3, 7}},
		{"all", 1, urls{500: 10}, urls{0: 10}, 10, [2]int64{0, 10}},
		{"none at all", 0.5, urls{500: 10}, urls{500: 10}, 0, [2]int64{0, 0}},
	} {
		r, err := NewRules(Limits{Exploration: tc.share})
		if err != nil {
			t.Fatal(err)
		}
		round := r.NewRound()
		each := func(visit func(priority int32, newHost bool)) {
			for i, of := range []urls{tc.known, tc.fresh} {
				for p, n := range of {
					for range n {
						visit(p, i == 1)
					}
				}
			}
		}
		each(round.Add)
		round.Cut(tc.n)
		var got [2]int64
		each(func(p int32, newHost bool) {
			if round.Take(p, newHost) {
				if newHost {
					got[1]++
				} else {
					got[0]++
				}
			}
		})
		if got != tc.want {
			t.Errorf("%s: took %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestLimitsThatAreNotAllowed(t *testing.T) {
	for name, l := range map[string]Limits{
		"a share above 1": {Exploration: 1.5}, "a negative share": {RateLimited: -0.1}, "not a number": {RateLimited: math.NaN()},
		"a negative host": {Host: -1}, "negative ranks": {Ranked: -1}, "a negative address": {Address: -1}, "negative hosts": {HostsPerDomain: -1}, "many patterns": {Patterns: make([]Pattern, urlkey.MaxRules+1)},
		"a bad expression": {Patterns: []Pattern{{Match: "("}}}, "no expression": {Patterns: []Pattern{{URLs: 1}}},
		"a long expression": {Patterns: []Pattern{{Match: strings.Repeat("a", urlkey.MaxExpression+1)}}}, "repeats of repeats": {Patterns: []Pattern{{Match: "((a{100}){100}){100}"}}},
		"negative URLs": {Patterns: []Pattern{{Match: "x", URLs: -1}}},
	} {
		if _, err := NewRules(l); !errors.Is(err, ErrLimits) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
