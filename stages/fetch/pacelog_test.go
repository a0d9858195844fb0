package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
	"crawlbatch.io/crawlbatch/stages/simweb/truth"
)

// mixture is a synthetic web of 1,000 hosts that differ in all settings of config, robots.txt and
// DNS, and in their behaviour. It computes the expected pace without the code under test.
type mixture struct {
	web     *simweb.Web
	server  *simweb.Server
	domains map[string]int // number of each host's domain; domains are numbered in the order of host names

	mu    sync.Mutex
	slept map[string][]bool // whether the response took slowAnswer, by host and number of the request
	busy  map[string]int    // number of requests in flight to each host
	most  map[string]int
}

const (
	mixedHosts   = 1000
	slowAnswer   = 6 * time.Second
	hermitDelay  = time.Hour
	crawlDelay   = 4 * time.Second
	addressDelay = 200 * time.Millisecond
)

func newMixture(t *testing.T, record *simweb.Log) (m *mixture, urls []string) {
	t.Helper()
	cfg := simweb.Default()
	cfg.Hosts, cfg.PagesPerHost, cfg.FaultShare, cfg.SeedShare = mixedHosts, 4, 0.2, 1
	cfg.Faults = faults.Quick | faults.Retried | faults.Slow
	cfg.CrawlDelay, cfg.RetryAfter, cfg.LargeBody = crawlDelay, 40*time.Second, 16<<10
	w, err := simweb.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for u := range w.Seeds() {
		if !seen[u] {
			seen[u] = true
			urls = append(urls, u)
		}
	}
	m = &mixture{
		web: w, server: simweb.NewServer(w, record), domains: map[string]int{},
		slept: map[string][]bool{}, busy: map[string]int{}, most: map[string]int{},
	}
	for i := range mixedHosts {
		if _, ok := m.domains[w.Domain(i)]; !ok {
			m.domains[w.Domain(i)] = len(m.domains)
		}
	}
	return m, urls
}

// politeness returns the settings of all domains, before or after the reload. They depend on the
// domain's number.
func (m *mixture) politeness(reloaded bool) polite.Config {
	p := polite.Default()
	p.Delay, p.PerAddressDelay = 2*time.Second, addressDelay
	p.Domains = map[string]polite.Domain{}
	if reloaded {
		p.Delay, p.Classes["news"] = 3*time.Second, 4*time.Second
	}
	for name, k := range m.domains {
		d, of := m.wanted(k, reloaded), polite.Domain{}
		switch k % 7 {
		case 0:
			of.Class = "news"
		case 1:
			of.Class = "ecommerce"
		case 2, 3:
			of.Delay = &d
		case 4:
			of.Delay, of.InFlightPerHost = &d, 2
		}
		if reloaded && stopped(k) {
			of.Stop = "asked by the owner"
		}
		p.Domains[name] = of
	}
	return p
}

func (m *mixture) wanted(k int, reloaded bool) time.Duration {
	before := [7]time.Duration{3 * time.Second, 5 * time.Second, 500 * time.Millisecond, 7 * time.Second, 300 * time.Millisecond, 2 * time.Second, 2 * time.Second}
	after := [7]time.Duration{4 * time.Second, 5 * time.Second, time.Second, 2 * time.Second, 300 * time.Millisecond, 3 * time.Second, 3 * time.Second}
	if reloaded {
		return after[k%7]
	}
	return before[k%7]
}

func stopped(k int) bool { return k%11 == 5 }

// These functions return how a host behaves, by its number.
func dead(i int) bool    { return i%50 == 7 }  // accepts no connection
func unnamed(i int) bool { return i%50 == 17 } // has no address
func slow(i int) bool    { return i%25 == 9 }  // takes slowAnswer for each response
func crowded(i int) bool { return i%25 == 4 }  // shares one address with all crowded hosts
func (m *mixture) hermit(i int) bool { // has a Crawl-delay of an hour
	return i%10 == 1 && m.web.Profile(i) == simweb.RobotsAllow
}
func (m *mixture) odd(i int) string { // returns the host's Crawl-delay if it is invalid or infinite, else ""
	if i%10 == 3 && m.web.Profile(i) == simweb.RobotsAllow {
		return []string{"-5", "NaN", "1e9"}[i/10%3]
	}
	return ""
}

// Lookup returns the address of a host. All crowded hosts share one address; every other host has
// its own.
func (m *mixture) Lookup(_ context.Context, name string) (dns.Answer, error) {
	i, ok := m.web.HostIndex(name)
	if !ok || unnamed(i) {
		return dns.Answer{}, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	if crowded(i) {
		i = 4
	}
	return dns.Answer{Addrs: []netip.Addr{netip.AddrFrom4([4]byte{93, 184, byte(i >> 8), byte(i)})}}, nil
}

// address returns a string that is equal for all hosts that share an address.
func (m *mixture) address(host string) string {
	if i, _ := m.web.HostIndex(host); crowded(i) {
		return "the crowd's"
	}
	return host
}

func (m *mixture) tune(dial func(context.Context, netip.AddrPort) (net.Conn, error)) func(*wire.Config) {
	return func(c *wire.Config) {
		c.Resolver = m
		c.Dial = func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			if a := addr.Addr().As4(); dead(int(a[2])<<8 | int(a[3])) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dial(ctx, addr)
		}
	}
}

// ServeHTTP answers requests from the synthetic web after a varying time.
func (m *mixture) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	host := r.Host
	i, ok := m.web.HostIndex(host)
	h := fnv.New32()
	_, _ = fmt.Fprint(h, host, r.RequestURI)
	takes := time.Duration(h.Sum32()%1200) * time.Millisecond
	if ok && slow(i) {
		takes = slowAnswer
	}
	m.mu.Lock()
	n := len(m.slept[host])
	m.slept[host] = append(m.slept[host], false)
	m.busy[host]++
	m.most[host] = max(m.most[host], m.busy[host])
	m.mu.Unlock()
	answered := sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.busy[host]--
	})
	defer answered()
	out := &delayed{ResponseWriter: rw, hijacked: answered, wait: func() {
		select {
		case <-time.After(takes):
		case <-r.Context().Done(): // the client has closed the connection
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.slept[host][n] = ok && slow(i)
	}}
	rules := ""
	switch {
	case !ok || r.URL.Path != "/robots.txt":
	case m.hermit(i):
		rules = "3600"
	default:
		rules = m.odd(i)
	}
	if rules == "" {
		m.server.ServeHTTP(out, r)
		return
	}
	m.server.ServeHTTP(httptest.NewRecorder(), r) // makes the server log the request
	out.WriteHeader(http.StatusOK)
	_, _ = fmt.Fprintf(out, "User-agent: *\nDisallow:\nCrawl-delay: %s\n", rules)
}

// delayed is a ResponseWriter that sends the head of a response late.
type delayed struct {
	http.ResponseWriter
	wait     func()
	hijacked func()
}

func (d *delayed) WriteHeader(status int) {
	d.wait()
	d.ResponseWriter.WriteHeader(status)
}

// Hijack is called by the faults of package simweb that break a connection. Such a fault may
// continue after the client has left.
func (d *delayed) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	d.hijacked()
	return http.NewResponseController(d.ResponseWriter).Hijack()
}

// check compares the gaps in the server's log with the settings, which changed at the time reloaded.
// For each rule, it returns the number of gaps for which this rule demanded the longest time.
func (m *mixture) check(t *testing.T, entries []simweb.Entry, reloaded time.Time) map[string]int {
	t.Helper()
	floor := func(host string) time.Duration {
		k := m.number(host)
		return min(m.wanted(k, false), m.wanted(k, true))
	}
	for _, v := range truth.CheckLog(m.web, entries, truth.Pace{DelayOf: floor}) {
		t.Error(v)
	}
	rules := map[string]int{}
	byHost, byAddress := map[string][]simweb.Entry{}, map[string]simweb.Entry{}
	slices.SortStableFunc(entries, func(a, b simweb.Entry) int { return a.Time.Compare(b.Time) })
	for _, e := range entries {
		if before, ok := byAddress[m.address(e.Host)]; ok {
			rules["address"]++
			if gap := e.Time.Sub(before.Time); gap < addressDelay {
				t.Errorf("%v: http://%s%s came %v after http://%s%s, which has the same address", e.Time, e.Host, e.Path, gap, before.Host, before.Path)
			}
		}
		byAddress[m.address(e.Host)] = e
		if all := byHost[e.Host]; len(all) > 0 {
			rule, least := m.leastGap(all, e, reloaded)
			rules[rule]++
			before := all[len(all)-1]
			if gap := e.Time.Sub(before.Time); gap < least {
				t.Errorf("%v: http://%s%s came %v after %s (%d), by %s it may come after %v", e.Time, e.Host, e.Path, gap, before.Path, before.Status, rule, least)
			}
		}
		if stopped(m.number(e.Host)) && e.Time.After(reloaded) {
			t.Errorf("http://%s%s was requested at %v, but its domain was stopped at %v", e.Host, e.Path, e.Time, reloaded)
		}
		byHost[e.Host] = append(byHost[e.Host], e)
	}
	return rules
}

func (m *mixture) number(host string) int {
	i, _ := m.web.HostIndex(host)
	return m.domains[m.web.Domain(i)]
}

// leastGap returns the smallest gap allowed between request e and the previous request to the same
// host, and the rule that demands this gap.
func (m *mixture) leastGap(before []simweb.Entry, e simweb.Entry, reloaded time.Time) (rule string, least time.Duration) {
	take := func(r string, d time.Duration) {
		if d > least {
			rule, least = r, d
		}
	}
	i, _ := m.web.HostIndex(e.Host)
	k := m.number(e.Host)
	last := before[len(before)-1]
	take([]string{"news", "ecommerce", "domain", "domain", "two in flight", "default", "default"}[k%7], m.wanted(k, !e.Time.Before(reloaded)))
	if m.web.CrawlDelay(i) > 0 && before[0].Status == 200 {
		take("Crawl-delay", m.web.CrawlDelay(i))
	}
	switch {
	case m.hermit(i):
		take("Crawl-delay of an hour", hermitDelay)
	case m.odd(i) == "1e9":
		take("Crawl-delay for ever", 1<<62)
	}
	if k%7 == 4 {
		return rule, least // two requests may be in flight, so the last response may have come too late to delay e
	}
	switch last.Status {
	case http.StatusTooManyRequests:
		take("429", 40*time.Second)
	case http.StatusServiceUnavailable:
		take("503", 30*time.Second)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if from := max(least, time.Second); slow(i) && from < slowAnswer && !slices.Contains(m.slept[e.Host][:len(before)], false) {
		take("slow", from+2*(slowAnswer-from))
	}
	return rule, least
}

// bareParser finds nothing in a document.
type bareParser struct{ plainParser }

func (bareParser) Parse(*document.Document) (*document.Parsed, error) { return &document.Parsed{}, nil }

// TestTheServersOwnLogProvesPaceAndRobots crawls 1,000 hosts with mixed settings in virtual time.
// Meanwhile the politeness is reloaded, and the task is stopped and resumed. The server's log must
// show that every setting was respected.
func TestTheServersOwnLogProvesPaceAndRobots(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	bubble(t, func(t *testing.T) {
		record := simweb.NewLog(nil)
		m, urls := newMixture(t, record)
		l := newLab(t, m.ServeHTTP, urls...)
		l.parser, l.cfg.Slots, l.cfg.Window = bareParser{}, 200, 3*time.Hour
		l.cfg.Politeness = m.politeness(false)
		l.hooks.tune = m.tune(l.web.dial)

		began := time.Now()
		var reloaded time.Time
		reload := make(chan Revision)
		time.AfterFunc(time.Minute+123456*time.Microsecond, func() {
			reload <- Revision{1, m.politeness(true)}
			reloaded = time.Now()
		})
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		defer stop()
		if _, err := l.run(ctx, nil, &Input{Reload: reload}); !errors.Is(err, stages.ErrInterrupted) {
			t.Fatalf("got %v, want the attempt interrupted", err)
		}
		l.cfg.Politeness = m.politeness(true)
		r, err := l.run(t.Context(), nil, &Input{Politeness: 1})
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)

		entries := record.Entries()
		rules := m.check(t, entries, reloaded)
		for _, rule := range []string{
			"address", "news", "ecommerce", "domain", "two in flight", "default", "Crawl-delay", "Crawl-delay of an hour", "429", "503", "slow",
		} {
			if rules[rule] < 10 {
				t.Errorf("only %d gaps depended on the rule %q", rules[rule], rule)
			}
		}
		wide := 0
		for host, n := range m.most {
			may := 1
			if m.number(host)%7 == 4 {
				may = 2
			}
			if n > may {
				t.Errorf("%d requests to %s were in flight at a time, %d are allowed", n, host, may)
			}
			if n == 2 {
				wide++
			}
		}
		if wide < 10 {
			t.Errorf("only %d hosts had two requests in flight", wide)
		}
		outcomes := map[schema.Outcome]int{}
		hosts := map[string]bool{}
		for _, f := range l.outcomes(r) {
			outcomes[f.Outcome]++
			if i, _ := m.web.HostIndex(f.Host); f.Outcome == schema.Deferred && !m.hermit(i) && m.odd(i) != "1e9" {
				t.Errorf("%s is deferred, its host had time enough", f.URL)
			}
		}
		for _, e := range entries {
			hosts[e.Host] = true
		}
		for _, o := range []schema.Outcome{
			schema.OK, schema.RobotsDenied, schema.RobotsUnreachable, schema.ConnectError, schema.DNSError, schema.Timeout, schema.RateLimited,
			schema.Deferred, schema.Stopped,
		} {
			if outcomes[o] == 0 {
				t.Errorf("no URL ended as %s", o)
			}
		}
		if len(hosts) < mixedHosts*9/10 {
			t.Errorf("only %d hosts got a request", len(hosts))
		}
		if took > 3*time.Hour {
			t.Errorf("took %v, the window is 3h", took)
		}
		t.Logf("%d requests to %d hosts in %v; gaps by rule %v; outcomes %v", len(entries), len(hosts), took, rules, outcomes)
	})
}
