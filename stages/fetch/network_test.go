package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
	"crawlbatch.io/crawlbatch/stages/fetch/witness"
)

// fault is what look-ups and connections meet while the network is away.
type fault struct {
	look, conn error // their errors; nil if they work
	silent     bool  // whether connections are not answered in place of failing
}

// outage takes the network of a lab away.
type outage struct {
	*web
	fault
	dead  string      // a host whose port is closed
	away  atomic.Bool // whether the network is away
	asked atomic.Int64
}

func (o *outage) Lookup(ctx context.Context, host string) (dns.Answer, error) {
	o.asked.Add(1)
	if o.away.Load() && o.look != nil {
		return dns.Answer{}, o.look
	}
	a, err := o.web.Lookup(ctx, host)
	if strings.HasSuffix(host, "5.example") && err == nil { // these have an address of a family that this machine lacks
		a.Addrs = append(a.Addrs, netip.MustParseAddr("2606:2800:220:1::1"))
	}
	return a, err
}

func (o *outage) connect(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	o.asked.Add(1)
	if addr.Addr().Is6() {
		return nil, errno("connect", syscall.ENETUNREACH)
	}
	if o.away.Load() && o.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if o.away.Load() && o.conn != nil {
		return nil, o.conn
	}
	if o.nameOf(addr.Addr()) == o.dead {
		return nil, errno("connect", syscall.ECONNREFUSED)
	}
	c, err := o.web.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &outageConn{c, o}, nil
}

// outageConn is a connection that breaks while the network is away.
type outageConn struct {
	net.Conn
	o *outage
}

func (c *outageConn) Write(b []byte) (int, error) {
	if c.o.away.Load() && c.o.look == nil {
		return 0, syscall.ECONNRESET
	}
	return c.Conn.Write(b)
}

func (c *outageConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.o.away.Load() && c.o.look == nil {
		return 0, syscall.ECONNRESET
	}
	return n, err
}

// slowPage sends some pages in two parts.
func slowPage(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "3") {
		fmt.Fprint(w, "<p>the first part")
		w.(http.Flusher).Flush()
		time.Sleep(3 * time.Second)
	}
	page(w, r)
}

func (o *outage) tune(c *wire.Config) { c.Resolver, c.Dial = o, o.connect }

// between takes the network away for a time.
func (o *outage) between(from, to time.Duration) {
	time.AfterFunc(from, func() { o.away.Store(true) })
	time.AfterFunc(to, func() { o.away.Store(false) })
}

func errno(call string, e syscall.Errno) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", call, e)}
}

// outages are the faults of a network or of a machine that were seen to end URLs. With -short, tests choose among
// them: the race detector breaks off after too many events of one process (tsan_rtl.cpp, kEpochLast).
var outages = map[string]fault{
	"no route":             {conn: errno("connect", syscall.ENETUNREACH)},
	"refused":              {conn: errno("connect", syscall.ECONNREFUSED)},
	"no answer":            {silent: true},
	"closed at once":       {conn: io.EOF},
	"no name server":       {look: fmt.Errorf("%w: %w", dns.ErrSilent, &net.DNSError{Err: "i/o timeout", IsTimeout: true})},
	"name servers fail":    {look: &net.DNSError{Err: "server misbehaving", IsTemporary: true}},
	"too many open files":  {conn: errno("socket", syscall.EMFILE), look: fmt.Errorf("%w: %w: %w", dns.ErrSilent, &net.DNSError{Err: "dial udp"}, errno("socket", syscall.EMFILE))},
	"no port is free":      {conn: errno("connect", syscall.EADDRNOTAVAIL)},
	"no memory for socket": {conn: errno("socket", syscall.ENOBUFS)},
}

// newOutage makes a lab of many hosts, 2 of them dead, behind a network that may be taken away.
func newOutage(t *testing.T, name string) (*lab, *outage) {
	var all []string
	for h := range 30 {
		all = append(all, urls(fmt.Sprintf("h%d.example", h), 8)...)
	}
	l := newLab(t, noRobots(slowPage), all...)
	l.web.down["h4.example"] = &net.DNSError{Err: "no such host", IsNotFound: true}
	o := &outage{web: l.web, fault: outages[name], dead: "h3.example"}
	l.hooks.tune = o.tune
	return l, o
}

// witnessed returns an input with a witness.
func (l *lab) witnessed(before ...*manifest.Result) *Input {
	return &Input{Before: before, Witness: witness.New(stages.SystemClock{}, slog.New(slog.NewTextHandler(testLog{l.t}, nil)))}
}

// checkOutcomes checks that each URL has the outcome of an undisturbed crawl at the end of the next round,
// which makes the late tries of this one.
func (l *lab) checkOutcomes(r *manifest.Result) {
	l.t.Helper()
	var again []string
	for u, f := range l.outcomes(r) {
		want := schema.OK
		switch {
		case f.Outcome == schema.Deferred && l.task.Round == 0:
			again = append(again, u)
			continue
		case f.Host == "h3.example":
			want = schema.ConnectError
		case f.Host == "h4.example":
			want = schema.DNSError
		}
		if f.Outcome != want || f.Truncated != "" {
			l.t.Errorf("round %d: %s: %s (%s; %s), want %s", l.task.Round, u, f.Outcome, f.Error, f.ErrorDetail, want)
		}
	}
	if len(again) == 0 {
		return
	}
	l.task.Round++
	l.setPlanAt(planRows(l.t, again), "p2")
	r, err := l.run(l.t.Context(), nil, l.witnessed(r))
	if err != nil {
		l.t.Fatal(err)
	}
	l.checkOutcomes(r)
}

func TestNoURLEndsBecauseTheNetworkWasAway(t *testing.T) {
	lengths := map[string][2]time.Duration{
		"for a moment": {5 * time.Second, 6 * time.Second}, "for 25 s": {5 * time.Second, 30 * time.Second},
		"for 20 minutes": {5 * time.Second, 20 * time.Minute}, "from the start": {0, time.Minute},
	}
	whens := slices.Sorted(maps.Keys(lengths))
	for i, name := range slices.Sorted(maps.Keys(outages)) {
		for j, when := range whens {
			if testing.Short() && i%len(whens) != j {
				continue
			}
			o := lengths[when]
			t.Run(name+" "+when, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					l, web := newOutage(t, name)
					web.between(o[0], o[1])
					if o[0] == 0 {
						web.away.Store(true)
					}
					r, err := l.run(t.Context(), nil, l.witnessed())
					if err != nil {
						t.Fatal(err)
					}
					l.checkPace(r)
					l.checkOutcomes(r)
				})
			})
		}
	}
}

// While the network is away, a machine that no longer hears anything sends little.
func TestAnAwayNetworkEndsTheAttemptAfterLongPatience(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(outages)) {
		if testing.Short() && i%3 != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l, web := newOutage(t, name)
				web.between(5*time.Second, 3*time.Hour)
				in := l.witnessed()
				var said stages.Wait
				time.AfterFunc(10*time.Minute, func() { said, _ = in.Witness.Away() })
				r, err := l.run(t.Context(), nil, in)
				if err == nil && web.look != nil { // kept connections need no look-up
					web.away.Store(false)
					l.checkOutcomes(r)
					return
				}
				if !errors.Is(err, witness.ErrAway) || !errors.Is(err, stages.ErrInterrupted) {
					t.Fatalf("error %v", err)
				}
				if said.Why == "" || time.Until(said.Until).Abs() > time.Minute {
					t.Errorf("said %+v; now it is %v", said, time.Now())
				}
				if n := web.asked.Load(); n > 30*60*20 {
					t.Errorf("%d look-ups and connections", n)
				}
				t.Log(err, web.asked.Load())
				web.away.Store(false)
				if r, err = l.run(t.Context(), nil, l.witnessed()); err != nil {
					t.Fatal(err)
				}
				l.checkOutcomes(r)
			})
		})
	}
}

// A host without an answer gets a late try: in the round, if the round has other work, otherwise in the
// next one.
func TestADeadHostEndsAfterItsLateTry(t *testing.T) {
	for name, pages := range map[string]int{"in the same round": 200, "in the next round": 2} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLab(t, noRobots(page), append(urls("good.example", pages), urls("dead.example", 3)...)...)
				l.hooks.tune = (&outage{web: l.web, dead: "dead.example"}).tune
				begun := time.Now()
				r, err := l.run(t.Context(), nil, l.witnessed())
				if err != nil {
					t.Fatal(err)
				}
				want := schema.ConnectError
				if pages < 100 {
					want = schema.Deferred
					if d := time.Since(begun); d > time.Minute {
						t.Errorf("the round took %v, although only a late try was left", d)
					}
				}
				var first time.Time
				check := func() {
					for u, f := range l.outcomes(r) {
						if f.Host == "dead.example" && f.Outcome != want || f.Host == "good.example" && f.Outcome != schema.OK {
							t.Errorf("%s: %s (%s; %s), want %s", u, f.Outcome, f.Error, f.ErrorDetail, want)
						}
					}
					var last time.Time
					for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
						if q.Host == "dead.example" {
							last = q.Start.Time()
							if first.IsZero() {
								first = last
							}
						}
					}
					if d := last.Sub(first); want == schema.ConnectError && d < 2*time.Minute {
						t.Errorf("the last try came %v after the first", d)
					}
				}
				check()
				if want == schema.Deferred {
					l.task.Round = 1
					l.setPlanAt(planRows(t, urls("dead.example", 3)), "p2")
					if r, err = l.run(t.Context(), nil, l.witnessed(r)); err != nil {
						t.Fatal(err)
					}
					want = schema.ConnectError
					check()
				}
			})
		})
	}
}

// A wait for the network does not outlast the fetch window.
func TestTheWindowClosesWhileTheNetworkIsAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, web := newOutage(t, "refused")
		l.cfg.Window = 10 * time.Minute
		web.between(5*time.Second, 3*time.Hour)
		begun := time.Now()
		r, err := l.run(t.Context(), nil, l.witnessed())
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begun); d > 11*time.Minute {
			t.Errorf("the task ended after %v", d)
		}
		count := map[schema.Outcome]int{}
		for _, f := range l.outcomes(r) {
			count[f.Outcome]++
		}
		if count[schema.OK] == 0 || count[schema.Deferred] == 0 || len(count) != 2 && count[schema.DNSError] == 0 {
			t.Errorf("%v", count)
		}
	})
}
