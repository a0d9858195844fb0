//go:build lab

package lab

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
)

// networkKeep is the environment variable that names a directory for the output of all processes.
const networkKeep = "CRAWLBATCH_NETWORK_KEEP"

const (
	networkDelay = 400 * time.Millisecond
	networkSlack = 240 * time.Millisecond
	networkRuns  = 270 * time.Second // longest time for all rounds
)

// networkConfig makes a late try come 75 s after the first failure, later than each outage ends. The breaker
// has the same proportion to it as by default.
const networkConfig = `
user_agent: "networkbot/1.0 (+https://example.org/bot)"
politeness: {delay: %s, per_address_delay: 0s}
fetch:
  slots: 200
  timeout: {connect: 3s, first_byte: 3s, total: 6s, robots: 4s}
  checkpoint: {every: 2s, lease: 20s}
  retries: {robots: %d}
  pauses: {rate_limited: 1s, server_error: 6250ms, timeout: 1s, dns: 2s, breaker: 75s}
  resolvers: ["%s"]
  allow_private_networks: true
%s
plan: {partition_urls: 400}
`

// networkOutage is something that is away for a time.
type networkOutage struct {
	// at is when the outage begins: after the first request, or after the outage before. A negative outage
	// begins before the crawl.
	at, length time.Duration
	down, up   func()
	kill       bool // whether the crawl is killed meanwhile, and started again
}

// networkScenario is a way to take things away.
type networkScenario struct {
	name  string
	proxy bool
	files int              // limit of open files; 0: that of the test
	kind  func(int) string // kinds of hosts; nil: a tenth is dead
	late  bool             // whether outages delay packets
	take  func(c *networkCrawl) []networkOutage
}

// networkCrawl is a crawl of a scenario.
type networkCrawl struct {
	*networkScenario
	t      *testing.T
	random *rand.Rand
	web    *networkWeb
	dir    string
	run    atomic.Pointer[exec.Cmd]
	killed atomic.Bool
	delays [][2]time.Time // when packets may come late
	number atomic.Int32   // of processes
	cut    int            // of documents whose connection broke
}

// networkOutcome is what is compared of a URL. A document whose connection broke has the outcome ok, and is
// not requested again.
type networkOutcome struct {
	Outcome   schema.Outcome
	Status    int16
	Redirects int32
}

// between draws a duration.
func (c *networkCrawl) between(least, most time.Duration) time.Duration {
	return least + time.Duration(c.random.Int64N(int64(most-least)))
}

// long is the length of an outage.
func (c *networkCrawl) long() time.Duration {
	if c.random.IntN(2) == 0 {
		return c.between(5*time.Second, 15*time.Second)
	}
	return c.between(5*time.Second, 60*time.Second)
}

// start is when an outage begins.
func (c *networkCrawl) start() time.Duration { return c.between(0, 7*time.Second) }

// once is an outage at a random time.
func (c *networkCrawl) once(down, up func()) []networkOutage {
	return []networkOutage{{at: c.start(), length: c.long(), down: down, up: up}}
}

// several are up to four outages.
func (c *networkCrawl) several(down, up func()) (all []networkOutage) {
	for range 2 + c.random.IntN(3) {
		all = append(all, networkOutage{at: c.between(500*time.Millisecond, 4*time.Second), length: c.between(time.Second, 15*time.Second), down: down, up: up})
	}
	return all
}

// first is an outage before the first request.
func (c *networkCrawl) first(down, up func()) []networkOutage {
	return []networkOutage{{at: -1, length: c.long(), down: down, up: up}}
}

// The ways in which a network is away, by what a connection meets.
func (c *networkCrawl) interfaceDown() (down, up func()) {
	return func() { c.web.ns.ip(c.t, "link set lo down") }, func() {
		c.web.ns.ip(c.t, "link set lo up")
		c.web.swallow()
	}
}

// routeGone sends packets where nobody is: with the kind unicast they vanish.
func (c *networkCrawl) routeGone(kind string) (down, up func()) {
	route := kind + " 127.0.0.0/8"
	if kind == "unicast" {
		route += " dev lo"
	}
	return func() { c.web.ns.ip(c.t, "route add "+route, "route del local 127.0.0.0/8 dev lo table local") },
		func() { c.web.ns.ip(c.t, "route add local 127.0.0.0/8 dev lo table local", "route del "+route) }
}

// portsClosed closes the ports of the hosts that are chosen.
func (c *networkCrawl) portsClosed(chosen func(i int) bool) (down, up func()) {
	each := func(f func(*networkHost)) func() {
		return func() {
			for i, h := range c.web.hosts {
				if h.kind == living && chosen(i) {
					f(h)
				}
			}
		}
	}
	return each(c.web.close), each(c.web.open)
}

func everyHost(int) bool { return true }

// namesAre sets the mode of the name server.
func (c *networkCrawl) namesAre(mode string) (down, up func()) {
	if mode == "away" {
		return c.web.closeNames, c.web.openNames
	}
	return func() { c.web.names.Store(mode) }, func() { c.web.names.Store("") }
}

// proxyIs sets the mode of the proxy.
func (c *networkCrawl) proxyIs(mode string) (down, up func()) {
	if mode == "away" {
		return c.web.closeProxy, c.web.openProxy
	}
	return func() { c.web.through.Store(mode) }, func() { c.web.through.Store("") }
}

// portsTaken leaves few ports for connections. If all is true, something else uses those too.
func (c *networkCrawl) portsTaken(all bool) (down, up func()) {
	var taken []net.Listener
	var names []net.PacketConn
	return func() {
			c.web.server.SetKeepAlivesEnabled(false)
			c.web.ns.ports(c.t, 30000, 30019)
			for port := 30000; all && port < 30020; port++ {
				if ln, err := c.web.ns.listen(fmt.Sprintf("0.0.0.0:%d", port)); err == nil {
					taken = append(taken, ln)
				}
				c.web.ns.do(func() {
					if pc, err := net.ListenPacket("udp4", fmt.Sprintf("0.0.0.0:%d", port)); err == nil {
						names = append(names, pc)
					}
				})
			}
		}, func() {
			c.web.server.SetKeepAlivesEnabled(true)
			c.web.ns.ports(c.t, 32768, 60999)
			for _, ln := range taken {
				ln.Close()
			}
			for _, pc := range names {
				pc.Close()
			}
		}
}

// thirdClosed closes the ports of a third of the hosts for most of the time to their late tries.
func (c *networkCrawl) thirdClosed() []networkOutage {
	down, up := c.portsClosed(func(i int) bool { return i%3 == 1 })
	return []networkOutage{{at: c.start(), length: c.between(50*time.Second, 60*time.Second), down: down, up: up}}
}

// restarts closes the port of each host for 1 to 2 s.
func (c *networkCrawl) restarts() (all []networkOutage) {
	for _, i := range c.random.Perm(len(c.web.hosts)) {
		down, up := c.portsClosed(func(n int) bool { return n == i })
		length := c.between(time.Second, 2*time.Second)
		all = append(all, networkOutage{at: c.between(0, 250*time.Millisecond), down: down, up: func() { time.AfterFunc(length, up) }})
	}
	return all
}

// tenth makes a tenth of the hosts dead.
func tenth(i int) string {
	if i%10 == 3 {
		return deadKinds[i/10%len(deadKinds)]
	}
	return living
}

func networkScenarios() []networkScenario {
	nothing := func(*networkCrawl) []networkOutage { return nil }
	all := []networkScenario{
		{name: "undisturbed", take: nothing},
		{name: "undisturbed, proxy", proxy: true, take: nothing},
		{name: "half is dead", kind: func(i int) string {
			if i%2 == 1 {
				return deadKinds[i/2%len(deadKinds)]
			}
			return living
		}, take: nothing},
		{name: "all is dead", kind: func(i int) string { return deadKinds[i%len(deadKinds)] }, take: nothing},
		{name: "all is closed", kind: func(int) string { return closed }, take: nothing},
		{name: "all names fail", kind: func(int) string { return servFail }, take: nothing},
		{name: "interface down, at the start", late: true, take: func(c *networkCrawl) []networkOutage { return c.first(c.interfaceDown()) }},
		{name: "interface down", late: true, take: func(c *networkCrawl) []networkOutage { return c.once(c.interfaceDown()) }},
		{name: "interface down several times", late: true, take: func(c *networkCrawl) []networkOutage { return c.several(c.interfaceDown()) }},
		{name: "hosts unreachable", late: true, take: func(c *networkCrawl) []networkOutage { return c.once(c.routeGone("unreachable")) }},
		{name: "packets vanish", late: true, take: func(c *networkCrawl) []networkOutage { return c.once(c.routeGone("unicast")) }},
		{name: "packets vanish several times", late: true, take: func(c *networkCrawl) []networkOutage { return c.several(c.routeGone("unicast")) }},
		{name: "packets vanish, at the start", late: true, take: func(c *networkCrawl) []networkOutage { return c.first(c.routeGone("unicast")) }},
		{name: "all ports closed, at the start", take: func(c *networkCrawl) []networkOutage { return c.first(c.portsClosed(everyHost)) }},
		{name: "all ports closed", take: func(c *networkCrawl) []networkOutage { return c.once(c.portsClosed(everyHost)) }},
		{name: "all ports closed several times", take: func(c *networkCrawl) []networkOutage { return c.several(c.portsClosed(everyHost)) }},
		{name: "ports of a third closed", take: func(c *networkCrawl) []networkOutage {
			return c.once(c.portsClosed(func(i int) bool { return i%3 == 1 }))
		}},
		{name: "ports of a third closed, at the start", take: func(c *networkCrawl) []networkOutage {
			return c.first(c.portsClosed(func(i int) bool { return i%3 == 1 }))
		}},
		{name: "servers restart", take: (*networkCrawl).restarts},
		{name: "balancer closes connections", take: func(c *networkCrawl) []networkOutage {
			return c.first(func() { c.web.flaky.Store(true) }, func() { c.web.flaky.Store(false) })
		}},
		{name: "few ports", take: func(c *networkCrawl) []networkOutage { return c.first(c.portsTaken(false)) }},
		{name: "no ports", take: func(c *networkCrawl) []networkOutage { return c.once(c.portsTaken(true)) }},
		{name: "late tries meet an outage", late: true, take: func(c *networkCrawl) []networkOutage {
			down, up := c.interfaceDown()
			switch c.random.IntN(4) {
			case 0:
				down, up = c.routeGone("unicast")
			case 1:
				down, up = c.portsClosed(everyHost)
			case 2:
				down, up = c.namesAre("silent")
			}
			return append(c.thirdClosed(), networkOutage{at: c.between(15*time.Second, 30*time.Second), length: c.between(5*time.Second, 25*time.Second), down: down, up: up})
		}},
		{name: "killed while late tries wait", take: func(c *networkCrawl) []networkOutage {
			return append(c.thirdClosed(), networkOutage{length: 40 * time.Second, down: func() {}, up: func() {}, kill: true})
		}},
		{name: "256 files", files: 256, late: true, take: func(c *networkCrawl) []networkOutage { return c.once(c.routeGone("unicast")) }},
		{name: "1024 files", files: 1024, take: nothing},
		{name: "killed while the interface is down", late: true, take: func(c *networkCrawl) []networkOutage {
			all := c.once(c.interfaceDown())
			all[0].kill = true
			return all
		}},
		{name: "killed while packets vanish", late: true, take: func(c *networkCrawl) []networkOutage {
			all := c.once(c.routeGone("unicast"))
			all[0].kill = true
			return all
		}},
		{name: "killed while all ports are closed", take: func(c *networkCrawl) []networkOutage {
			all := c.once(c.portsClosed(everyHost))
			all[0].kill = true
			return all
		}},
	}
	for _, mode := range []string{"silent", "servfail", "refused", "truncated", "other-id", "away"} {
		all = append(all, networkScenario{name: "name server: " + mode, take: func(c *networkCrawl) []networkOutage {
			if c.random.IntN(3) == 0 {
				return c.first(c.namesAre(mode))
			}
			return c.once(c.namesAre(mode))
		}})
	}
	for _, mode := range []string{"closing", "407", "502", "silent", "away"} {
		all = append(all, networkScenario{name: "proxy: " + mode, proxy: true, take: func(c *networkCrawl) []networkOutage {
			if c.random.IntN(3) == 0 {
				return c.first(c.proxyIs(mode))
			}
			return c.once(c.proxyIs(mode))
		}})
	}
	return all
}

// TestNetwork takes away networks, hosts, name servers, proxies and resources of this machine while the
// program crawls. At the end, each URL must have the outcome that it has in an undisturbed crawl.
func TestNetwork(t *testing.T) {
	seed := uint64(time.Now().UnixNano()) % 1_000_000
	if text := os.Getenv(chaosSeed); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatalf("%s: %v", chaosSeed, err)
		}
		seed = n
	}
	t.Logf("%s=%d", chaosSeed, seed)
	watchStalls(t)
	// The outcomes of undisturbed crawls without and with a proxy, by kind of host and path.
	type expected struct {
		made chan struct{}
		of   map[string]networkOutcome
	}
	undisturbed := map[bool]*expected{}
	for n, s := range networkScenarios() {
		t.Run(s.name, func(t *testing.T) {
			own := strings.HasPrefix(s.name, "undisturbed")
			if own {
				e := &expected{made: make(chan struct{}), of: map[string]networkOutcome{}}
				undisturbed[s.proxy] = e
				defer close(e.made)
			}
			t.Parallel()
			kind := tenth
			if s.kind != nil {
				kind = s.kind
			}
			random := rand.New(rand.NewPCG(seed, uint64(n)))
			c := &networkCrawl{networkScenario: &s, t: t, random: random, dir: t.TempDir()}
			c.web = newNetworkWeb(t, networkHosts(kind), rand.New(rand.NewPCG(seed, uint64(n+1000))))
			got := c.crawl()
			e := undisturbed[s.proxy]
			switch {
			case e == nil:
				t.Fatal("the undisturbed crawl was not made: choose its name too")
			case own:
				for url, o := range got {
					key := c.key(url)
					if other, ok := e.of[key]; ok && other != o {
						t.Errorf("%s: %+v, but another host %+v", url, o, other)
					}
					e.of[key] = o
				}
				return
			}
			<-e.made
			c.compare(got, e.of)
		})
	}
}

// key is the kind of a URL's host, and its path.
func (c *networkCrawl) key(url string) string {
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	return c.web.hostOf(host).kind + " /" + path
}

// compare compares the outcomes with those of the undisturbed crawl.
func (c *networkCrawl) compare(got, want map[string]networkOutcome) {
	different := 0
	for _, url := range slices.Sorted(maps.Keys(got)) {
		w, ok := want[c.key(url)]
		if !ok || got[url] == w {
			continue
		}
		if different++; different <= 20 {
			c.t.Errorf("%s (%s): %+v, undisturbed %+v", url, c.key(url), got[url], w)
		}
	}
	if different > 20 {
		c.t.Errorf("%d URLs have other outcomes", different)
	}
}

// planned returns the planned URLs.
func (c *networkCrawl) planned() (urls []string) {
	for _, h := range c.web.hosts {
		for _, p := range networkPaths() {
			urls = append(urls, "http://"+h.name+p)
		}
	}
	return urls
}

// crawl makes the crawl and returns the last outcome of each URL.
func (c *networkCrawl) crawl() map[string]networkOutcome {
	t := c.t
	source, conf := filepath.Join(c.dir, "urls.txt"), filepath.Join(c.dir, "c.yaml")
	crawltest.Write(t, source, strings.Join(c.planned(), "\n"))
	more := ""
	if c.proxy {
		more = fmt.Sprintf("  proxy: %q", "http://"+networkProxy)
	}
	time.Sleep(c.between(0, 20*time.Second)) // not all crawls begin at the same time
	crawltest.Write(t, conf, fmt.Sprintf(networkConfig, networkDelay, c.random.IntN(2), networkNames, more))
	if code, out := c.command(time.Minute, "plan", "--source", source, "--config", conf); code != exitDone {
		t.Fatalf("plan: exit %d\n%s", code, out)
	}
	outages := c.take(c)
	ended, done := make(chan struct{}), make(chan struct{})
	if len(outages) > 0 && outages[0].at < 0 {
		outages[0].down()
	}
	begun := time.Now()
	go func() {
		defer close(done)
		c.disturb(outages, begun, ended)
	}()
	var got map[string]networkOutcome
	last := "" // what is not final
	for rounds := 2; rounds <= 3; rounds++ {
		code, out := c.command(networkRuns-time.Since(begun), "run", "--rounds", fmt.Sprint(rounds))
		for c.killed.CompareAndSwap(true, false) {
			code, out = c.command(networkRuns-time.Since(begun), "run", "--rounds", fmt.Sprint(rounds))
		}
		if code != exitDone && code != exitMostFailed {
			t.Errorf("run: exit %d after %v\n%s", code, time.Since(begun), out)
		}
		if got, last = c.outcomes(); last == "" {
			break
		}
	}
	took := time.Since(begun)
	close(ended)
	<-done
	t.Logf("took %v; %d documents lack their end", took.Round(time.Second), c.cut)
	if code, out := c.command(time.Minute, "verify", "--one-clock"); code != exitDone {
		t.Errorf("verify: exit %d\n%s", code, out)
	}
	if last != "" {
		t.Errorf("after 3 rounds, the outcome is not final: %s", last)
	}
	c.web.checkPace(func(at time.Time) bool {
		return slices.ContainsFunc(c.delays, func(d [2]time.Time) bool { return at.After(d[0]) && at.Before(d[1]) })
	})
	return got
}

// disturb makes the outages. They end early if the crawl ends.
func (c *networkCrawl) disturb(outages []networkOutage, begun time.Time, ended chan struct{}) {
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ended:
		}
	}
	for n, o := range outages {
		if o.at >= 0 {
			if n == 0 {
				select {
				case <-c.web.first:
				case <-ended:
				}
			}
			wait(o.at)
			o.down()
		}
		from := time.Now()
		if len(outages) < 10 {
			c.t.Logf("away from %v for %v", from.Sub(begun).Round(time.Millisecond), o.length.Round(time.Millisecond))
		}
		left := o.length
		switch {
		case o.kill:
			before := c.between(0, o.length)
			left -= before
			wait(before)
			if cmd := c.run.Load(); cmd != nil {
				c.killed.Store(true)
				_ = cmd.Process.Kill()
			}
		case os.Getenv(networkKeep) != "" && o.length > 4*time.Second:
			wait(o.length - 2*time.Second)
			left = 2 * time.Second
			c.command(time.Minute, "status")
		}
		wait(left)
		o.up()
		if c.late { // TCP sends again after up to as long as nothing came through
			to := time.Now()
			c.delays = append(c.delays, [2]time.Time{from, to.Add(to.Sub(from) + 5*time.Second)})
		}
	}
	if len(outages) >= 10 {
		time.Sleep(3 * time.Second) // the last of them ends
	}
}

// noteworthy are the lines of the program about the network, and its warnings.
var noteworthy = regexp.MustCompile(`(?m)^.*(level=WARN|level=ERROR|fetching goes on|panic).*$`)

// command runs a command of the crawl in its namespace. It returns the exit code, -1 if it was killed, and
// the end of the output.
func (c *networkCrawl) command(limit time.Duration, args ...string) (code int, out string) {
	args = append(args, "--month", demo.Crawl, "--store", filepath.Join(c.dir, "store"))
	// The web's log says when requests came, so the crawls must not delay it.
	all := append([]string{"-n", "10", program}, args...)
	if c.files > 0 && args[0] == "run" {
		all = append([]string{"-n", "10", "prlimit", fmt.Sprintf("--nofile=%d", c.files), program}, args...)
	}
	cmd := exec.Command("nice", all...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	var err error
	c.web.ns.do(func() { err = cmd.Start() })
	if err != nil {
		c.t.Error(err)
		return exitInternal, ""
	}
	if args[0] == "run" {
		c.run.Store(cmd)
		defer c.run.Store(nil)
	}
	timer := time.AfterFunc(max(limit, time.Second), func() {
		c.t.Errorf("%s does not end", args[0])
		_ = cmd.Process.Signal(syscall.SIGQUIT) // prints the goroutines
	})
	_ = cmd.Wait()
	timer.Stop()
	if dir := os.Getenv(networkKeep); dir != "" {
		name := strings.NewReplacer(" ", "_", ":", "", ",", "").Replace(c.name)
		file := fmt.Sprintf("%s-%02d-%s.txt", name, c.number.Add(1), args[0])
		if err := os.WriteFile(filepath.Join(dir, file), said.Bytes(), 0o644); err != nil {
			c.t.Error(err)
		}
	}
	if args[0] == "run" {
		if lines := noteworthy.FindAllString(said.String(), 12); len(lines) > 0 {
			c.t.Logf("run said:\n%s", strings.Join(lines, "\n"))
		}
	}
	text := said.String()
	return cmd.ProcessState.ExitCode(), text[max(0, len(text)-6000):]
}

// outcomes returns the last outcome of each planned URL, and a URL whose last outcome is not final.
func (c *networkCrawl) outcomes() (got map[string]networkOutcome, last string) {
	b := crawltest.OpenDir(c.t, filepath.Join(c.dir, "store"))
	sealed, err := crawltest.SealedFiles(c.t.Context(), b, demo.Crawl)
	if err != nil {
		c.t.Fatal(err)
	}
	rows := map[string]schema.Fetch{}
	for _, s := range sealed {
		for _, f := range tabletest.ReadFiles[schema.Fetch](c.t, b, s.FilesOf("fetches")) {
			rows[f.URL] = f
		}
	}
	got, c.cut = map[string]networkOutcome{}, 0
	for _, url := range c.planned() {
		f := rows[url]
		if f.Outcome == schema.Redirected { // the target failed, so the next round fetched it for itself
			f = rows[f.RedirectTarget]
			f.Redirects++
		}
		got[url] = networkOutcome{f.Outcome, f.HTTPStatus, f.Redirects}
		if f.Truncated != "" {
			c.cut++
		}
		if f.Outcome == schema.Deferred || f.Outcome == schema.HostSuspended {
			last = fmt.Sprintf("%s: %s (%s; %s)", url, f.Outcome, f.Error, f.ErrorDetail)
		}
	}
	return got, last
}
