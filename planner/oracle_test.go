package planner

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/budget"
	"crawlbatch.io/crawlbatch/planner/source"
)

// oracle says which URLs a plan takes, and which key refuses each other URL. It counts again for each
// question, in the order in which the documentation names the budgets.
type oracle struct {
	cfg      Config
	urls     map[string]source.Entry
	keys     map[string]urlkey.Key
	newest   map[string]source.Host // newest round that requested a host
	rank     map[string]float64     // of a domain
	taken    map[string]bool
	refusals map[string]string
}

func newOracle(t *testing.T, cfg Config, entries []source.Entry, hosts []source.Host) *oracle {
	o := &oracle{cfg, map[string]source.Entry{}, map[string]urlkey.Key{}, map[string]source.Host{}, map[string]float64{}, map[string]bool{}, map[string]string{}}
	for _, e := range entries {
		k, err := urlkey.KeyOf(e.URL)
		if err != nil {
			t.Fatal(err)
		}
		old := o.urls[e.URL]
		e.Priority, e.Spent, e.Due = max(e.Priority, old.Priority), e.Spent || old.Spent, e.Due || old.Due
		o.urls[e.URL], o.keys[e.URL] = e, k
	}
	ranks := map[string]float64{}
	for _, h := range hosts {
		if ranks[h.Host] = h.Rank; h.Requested() {
			o.newest[h.Host] = h
		}
	}
	for host, rank := range ranks {
		domain := urlkey.Domain(host)
		o.rank[domain] = max(o.rank[domain], rank)
	}
	return o
}

// offered returns the new URLs that no budget has refused so far, the best first.
func (o *oracle) offered(of func(urlkey.Key) bool) (urls []string) {
	for url, e := range o.urls {
		if !e.Spent && e.Due && o.refusals[url] == "" && of(o.keys[url]) {
			urls = append(urls, url)
		}
	}
	slices.SortFunc(urls, func(a, b string) int {
		return cmp.Or(cmp.Compare(o.urls[b].Priority, o.urls[a].Priority), cmp.Compare(urlkey.Hash(a), urlkey.Hash(b)))
	})
	return urls
}

// count counts the URLs that are taken or that earlier rounds planned.
func (o *oracle) count(of func(url string) bool) (n int64) {
	for url, e := range o.urls {
		if (e.Spent || o.taken[url]) && of(url) {
			n++
		}
	}
	return n
}

func (o *oracle) pattern(url string) int {
	return slices.IndexFunc(o.cfg.Limits.Patterns, func(p budget.Pattern) bool { return regexp.MustCompile(p.Match).MatchString(url) })
}

// domainLimit returns the budget of a domain and its key.
func (o *oracle) domainLimit(domain string) (limit int64, key string) {
	if n, ok := o.cfg.DomainBudgets[domain]; ok {
		return int64(n), "domains"
	}
	limit = int64(o.cfg.Budget)
	rank := o.rank[domain]
	if most := o.cfg.Limits.Ranked; most > 0 && limit > 0 && rank > 0 {
		byRank := int64(float64(limit) * rank)
		return min(max(byRank, min(100, limit)), most), "ranked"
	}
	return limit, "default"
}

// hostLimit returns the budget of a host and its key. It is 0 without a budget.
func (o *oracle) hostLimit(host, domain string) (limit int64, key string) {
	limit = o.cfg.Limits.Host
	whole, _ := o.domainLimit(domain)
	if whole == 0 || limit > 0 && limit < whole {
		whole = limit
	}
	h := o.newest[host]
	if share := o.cfg.Limits.RateLimited; share > 0 && share < 1 && whole > 0 && (h.FailedRate > 0 || h.BreakerEvents > 0) {
		if less := max(1, int64(share*float64(whole)+1e-9)); less != limit {
			return less, "rate_limited"
		}
	}
	return limit, "host"
}

// dropHosts refuses the hosts of a domain that are too many.
func (o *oracle) dropHosts(domain string) {
	type candidate struct {
		host string
		best int32
		n    int
	}
	candidates, old := map[string]*candidate{}, map[string]bool{}
	for url, e := range o.urls {
		k := o.keys[url]
		if k.Domain != domain {
			continue
		}
		if e.Spent {
			old[k.Host] = true
		} else if p := o.pattern(url); e.Due && (p < 0 || o.cfg.Limits.Patterns[p].URLs > 0) {
			if candidates[k.Host] == nil {
				candidates[k.Host] = &candidate{host: k.Host}
			}
			c := candidates[k.Host]
			c.best, c.n = max(c.best, e.Priority), c.n+1
		}
	}
	maps.DeleteFunc(candidates, func(host string, _ *candidate) bool { return old[host] })
	order := slices.SortedFunc(maps.Values(candidates), func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.best, a.best), cmp.Compare(b.n, a.n), cmp.Compare(urlkey.Hash(a.host), urlkey.Hash(b.host)))
	})
	for i, c := range order {
		if int64(i) < o.cfg.Limits.HostsPerDomain-int64(len(old)) {
			continue
		}
		for _, url := range o.offered(func(k urlkey.Key) bool { return k.Host == c.host }) {
			o.refusals[url] = "hosts_per_domain"
		}
	}
}

func (o *oracle) chooseDomain(domain string) {
	if o.cfg.Limits.HostsPerDomain > 0 {
		o.dropHosts(domain)
	}
	for _, url := range o.offered(func(k urlkey.Key) bool { return k.Domain == domain }) {
		k, p := o.keys[url], o.pattern(url)
		ofHost := func(u string) bool { return o.keys[u].Host == k.Host }
		host, hostKey := o.hostLimit(k.Host, domain)
		all, allKey := o.domainLimit(domain)
		switch {
		case p >= 0 && o.count(func(u string) bool { return ofHost(u) && o.pattern(u) == p }) >= o.cfg.Limits.Patterns[p].URLs:
			o.refusals[url] = "patterns"
		case host > 0 && o.count(ofHost) >= host:
			o.refusals[url] = hostKey
		case all > 0 && o.count(func(u string) bool { return o.keys[u].Domain == domain }) >= all:
			o.refusals[url] = allKey
		default:
			o.taken[url] = true
		}
	}
}

func (o *oracle) chooseAddresses() {
	if o.cfg.Limits.Address == 0 {
		return
	}
	addresses := map[string]bool{}
	for _, h := range o.newest {
		addresses[h.Address] = true
	}
	delete(addresses, "")
	for address := range addresses {
		at := func(k urlkey.Key) bool { return o.newest[k.Host].Address == address }
		left := o.cfg.Limits.Address
		for url, e := range o.urls {
			if e.Spent && at(o.keys[url]) {
				left--
			}
		}
		for i, url := range o.offered(at) {
			if int64(i) >= left {
				o.refuse(url, "address")
			}
		}
	}
}

func (o *oracle) refuse(url, key string) {
	delete(o.taken, url)
	o.refusals[url] = key
}

func (o *oracle) chooseRound() {
	urls := o.offered(func(urlkey.Key) bool { return true })
	limit, key, spent := int64(-1), "", o.count(func(u string) bool { return o.urls[u].Spent })
	if o.cfg.CrawlURLs > 0 {
		limit, key = max(0, o.cfg.CrawlURLs-spent), "total"
	}
	if o.cfg.RoundURLs > 0 && (limit < 0 || o.cfg.RoundURLs < limit) {
		limit, key = o.cfg.RoundURLs, "per_day"
	}
	if limit < 0 || int64(len(urls)) <= limit {
		return
	}
	isNew := func(url string) bool {
		h := o.newest[o.keys[url].Host]
		return o.cfg.Limits.Exploration > 0 && !h.Requested()
	}
	slices.SortStableFunc(urls, func(a, b string) int { // at equal priority known hosts first, then in the order of the domains
		known := func(url string) int {
			if isNew(url) {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(o.urls[b].Priority, o.urls[a].Priority), cmp.Compare(known(a), known(b)),
			cmp.Compare(urlkey.Hash(o.keys[a].Domain), urlkey.Hash(o.keys[b].Domain)))
	})
	var fresh, others []string
	for _, url := range urls {
		if isNew(url) {
			fresh = append(fresh, url)
		} else {
			others = append(others, url)
		}
	}
	forNew := 0
	for _, url := range urls[:limit] {
		if isNew(url) {
			forNew++
		}
	}
	if share := o.cfg.Limits.Exploration; share > 0 && limit > 0 {
		forNew = max(forNew, min(len(fresh), max(1, int(share*float64(limit)+1e-9))))
	}
	for _, url := range slices.Concat(fresh[forNew:], others[int(limit)-forNew:]) {
		o.refuse(url, key)
	}
}

// choose returns the planned URLs.
func (o *oracle) choose() (urls []string) {
	domains := map[string]bool{}
	for _, k := range o.keys {
		domains[k.Domain] = true
	}
	for domain := range domains {
		o.chooseDomain(domain)
	}
	o.chooseAddresses()
	o.chooseRound()
	for url, e := range o.urls {
		if o.taken[url] || e.Spent && e.Due {
			urls = append(urls, url)
		}
	}
	slices.Sort(urls)
	return urls
}

// randomBudgets returns a config in which each budget is on or off. At least one budget by host is on.
func randomBudgets(random *rand.Rand) Config {
	cfg := Default()
	cfg.Budget, cfg.Memory, cfg.Workers = random.IntN(3)*random.IntN(15), 1<<20, 1+random.IntN(3)
	maybe := func(n int64) int64 { return random.Int64N(2) * (1 + random.Int64N(n)) }
	shares := []float64{0, 0.1, 0.29, 0.5, 1}
	cfg.Limits = budget.Limits{
		Host: maybe(8), HostsPerDomain: maybe(4), Address: maybe(10),
		RateLimited: shares[random.IntN(len(shares))], Exploration: shares[random.IntN(len(shares))],
	}
	if random.IntN(2) == 0 {
		cfg.Limits.Ranked = int64(cfg.Budget) * (1 + random.Int64N(3))
	}
	for range random.IntN(3) {
		match := []string{"/p", "/[pq]", `\d$`, "(a+)+$", "^https"}[random.IntN(5)]
		cfg.Limits.Patterns = append(cfg.Limits.Patterns, budget.Pattern{Match: match, URLs: random.Int64N(4)})
	}
	if !cfg.Limits.Any() {
		cfg.Limits.Host = 2
	}
	if random.IntN(3) == 0 {
		cfg.DomainBudgets = map[string]int{"d1.example": random.IntN(10)}
	}
	cfg.CrawlURLs, cfg.RoundURLs = maybe(60), maybe(40)
	return cfg
}

// randomWeb returns entries of known URLs and what earlier rounds observed of hosts.
func randomWeb(random *rand.Rand) (entries []source.Entry, hosts []source.Host) {
	name := func() string {
		domain := fmt.Sprintf("d%d.example", random.IntN(5))
		return []string{"", "www.", "b.", "c.", "d."}[random.IntN(5)] + domain
	}
	for range 20 + random.IntN(100) {
		scheme := []string{"http", "https"}[random.IntN(2)]
		entries = append(entries, source.Entry{
			URL: fmt.Sprintf("%s://%s/%c%d", scheme, name(), 'o'+rune(random.IntN(3)), random.IntN(60)), Due: random.IntN(10) > 0, Depth: 1,
			Spent: random.IntN(6) == 0, Priority: []int32{0, 400, 500, 500, 1000}[random.IntN(5)],
		})
	}
	delay := int64(2000)
	for range random.IntN(30) {
		h := source.Host{Host: name(), Rank: []float64{0, 0.2, 1, 1.5, 7}[random.IntN(5)]}
		if h.Domain = urlkey.Domain(h.Host); random.IntN(3) > 0 {
			h.Planned, h.DelayMS, h.FailedRate, h.BreakerEvents = 3, &delay, random.Int64N(2), int32(random.IntN(2))
			h.Address = []string{"", "192.0.2.1", "192.0.2.2", "2001:db8::1"}[random.IntN(4)]
		}
		hosts = append(hosts, h)
	}
	return entries, hosts
}

// Random budgets over random webs: whatever the order of the entries, their sources, and the number of
// goroutines, the plan is that of an oracle that knows all URLs at once.
func TestBudgetsTakeWhatAnOracleTakes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	webs := 150
	if testing.Short() {
		webs = 40
	}
	keys := []string{"default", "domains", "ranked", "host", "rate_limited", "patterns", "hosts_per_domain", "address", "total", "per_day"}
	refusedBy := map[string]int{}
	lacking := func() bool {
		return slices.ContainsFunc(keys, func(k string) bool { return refusedBy[k] == 0 })
	}
	for n := 0; n < webs || n < 10*webs && lacking(); n++ { // few webs may lack the refusals of a rare budget
		cfg := randomBudgets(random)
		entries, hosts := randomWeb(random)
		o := newOracle(t, cfg, entries, hosts)
		want := o.choose()
		ids := map[string]bool{}
		for range 2 {
			random.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
			cut := random.IntN(len(entries))
			req := request(t, known(entries[:cut]...), known(entries[cut:]...))
			req.Hosts, cfg.Workers = seen(hosts...), 1+random.IntN(3)
			p, err := Make(t.Context(), cfg, req)
			if errors.Is(err, ErrNothing) && len(want) == 0 {
				continue
			}
			if err != nil {
				t.Fatalf("web %d: %v", n, err)
			}
			ids[p.Manifest().ID] = true
			_, parts, refused := commitAndRead(t, bucket(t), p)
			if got := planned(parts); !slices.Equal(got, want) {
				t.Fatalf("web %d, %+v, budget %d, total %d, round %d: planned\n%s\nwant\n%s", n, cfg.Limits, cfg.Budget, cfg.CrawlURLs, cfg.RoundURLs, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			byKey := map[string]int64{}
			for _, key := range o.refusals {
				byKey[key]++
			}
			if got := p.OverBudget(); !slices.Equal(got, manifest.SortedCounts(byKey)) {
				t.Errorf("web %d: budgets refuse %v, want %v", n, got, byKey)
			}
			if len(refused) != len(o.refusals) {
				t.Errorf("web %d: %d refusals, want %d", n, len(refused), len(o.refusals))
			}
			for _, r := range refused {
				key, numbers, _ := strings.Cut(strings.TrimPrefix(r.Detail, "plan.budgets."), ": ")
				refusedBy[key]++
				if r.Reason != schema.SkipBudget || key != o.refusals[r.URL] || !strings.Contains(numbers, fmt.Sprintf("priority %d", o.urls[r.URL].Priority)) && key != "hosts_per_domain" {
					t.Errorf("web %d, %+v: %s is refused by %q, want %q", n, cfg.Limits, r.URL, r.Detail, o.refusals[r.URL])
				}
			}
		}
		if len(ids) > 1 {
			t.Errorf("web %d: another order of the entries changes the plan", n)
		}
	}
	for _, key := range keys {
		if refusedBy[key] == 0 {
			t.Errorf("plan.budgets.%s refuses no URL", key)
		}
	}
}
