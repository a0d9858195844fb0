package polite

import (
	"container/heap"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// list is a Rows over a slice.
type list []int64

func (l *list) Len() int   { return len(*l) }
func (l *list) Band() Band { return Medium }
func (l *list) Pop() (int64, bool) {
	if len(*l) == 0 {
		return 0, false
	}
	id := (*l)[0]
	*l = (*l)[1:]
	return id, true
}

func rows(from, n int) *list {
	l := make(list, n)
	for i := range l {
		l[i] = int64(from + i)
	}
	return &l
}

// testClock is a clock that tests advance.
type testClock struct{ now time.Time }

func newClock() *testClock               { return &testClock{time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)} }
func (c *testClock) Now() time.Time      { return c.now }
func (c *testClock) add(d time.Duration) { c.now = c.now.Add(d) }
func (c *testClock) Sleep(ctx context.Context, d time.Duration) error {
	c.add(d)
	return ctx.Err()
}

func testConfig(delay time.Duration, inFlight int) Config {
	c := Default()
	c.Delay, c.InFlightPerHost, c.PerAddressDelay = delay, inFlight, 0
	return c
}

func newScheduler(t *testing.T, clock *testClock, cfg Config) *Scheduler {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return New(Options{Config: cfg, Clock: clock})
}

// next advances the clock until a grant is due, and returns the grant.
func next(t *testing.T, s *Scheduler, clock *testClock) *Grant {
	t.Helper()
	for {
		grant, wait, more := s.pick(clock.now)
		if grant != nil {
			return grant
		}
		if !more || wait == idleSleep {
			t.Fatalf("no grant: more=%t wait=%v", more, wait)
		}
		clock.add(wait)
	}
}

var noAddr netip.Addr

func TestDelayIsFromWriteToWrite(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(2*time.Second, 1))
	s.Add("a", rows(0, 3))
	start := clock.now

	first := next(t, s, clock)
	clock.add(700 * time.Millisecond) // the connection is not open yet
	if p, err := first.Written(clock.now, noAddr); err != nil || !p.First {
		t.Errorf("pace of the first request: %+v, %v", p, err)
	}
	clock.add(300 * time.Millisecond)
	first.Done(Result{Class: Success})

	second := next(t, s, clock)
	if got := clock.now.Sub(start); got != 2700*time.Millisecond {
		t.Errorf("second grant at %v, want 2.7s", got)
	}
	p, err := second.Written(clock.now, noAddr)
	if diff := cmp.Diff(Pace{Delay: 2 * time.Second, Gap: 2 * time.Second}, p); diff != "" || err != nil {
		t.Errorf("pace (-want +got), error %v:\n%s", err, diff)
	}
	clock.add(5 * time.Second) // the response takes 5 s
	if grant, _, _ := s.pick(clock.now); grant != nil {
		t.Error("a grant while the only request allowed is in flight")
	}
	second.Done(Result{Class: Success})
	third := next(t, s, clock)
	if got := clock.now.Sub(start); got != 7700*time.Millisecond {
		t.Errorf("third grant at %v, want at once, 7.7s", got)
	}
	third.Done(Result{})
	if grant, _, more := s.pick(clock.now); grant != nil || more {
		t.Errorf("after the last item: grant %v, more %t", grant, more)
	}
}

func TestUnsentTurnCostsNoDelay(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(2*time.Second, 1))
	s.Add("a", rows(0, 4))
	start := clock.now
	grant := next(t, s, clock)
	if it, ok := grant.Another(); !ok || it.ID != 1 {
		t.Errorf("another: %v, %t; want 1", it, ok)
	}
	grant.PutBack(Item{ID: 1})
	grant.Done(Result{})
	grant = next(t, s, clock)
	if grant.Item.ID != 1 || clock.now != start {
		t.Errorf("got item %d after %v, want the one put back at once", grant.Item.ID, clock.now.Sub(start))
	}
	// A failed connection counts as a request, so the next one has to wait.
	grant.Done(Result{Class: Failure})
	next(t, s, clock)
	if got := clock.now.Sub(start); got != 2*time.Second {
		t.Errorf("after a failed try: %v, want 2s", got)
	}
}

func TestRetryComesWhenDueAndBeforeRows(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(time.Second, 1))
	s.Add("a", rows(0, 4))
	var got []int64
	for i := range 5 {
		grant := next(t, s, clock)
		got = append(got, grant.Item.ID)
		grant.Written(clock.now, noAddr)
		r := Result{Class: Success}
		if i == 0 {
			r = Result{Class: Failure, Requeue: &Item{ID: 0, NotBefore: clock.now.Add(1500 * time.Millisecond)}}
		}
		grant.Done(r)
	}
	if diff := cmp.Diff([]int64{0, 1, 0, 2, 3}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestRateLimitSlowsTheHostAlone(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(time.Second, 1))
	s.Add("a", rows(0, 100))
	var at []time.Duration
	last := clock.now
	limit := func(retryAfter time.Duration) {
		grant := next(t, s, clock)
		at = append(at, clock.now.Sub(last).Truncate(time.Second))
		last = clock.now
		grant.Written(clock.now, noAddr)
		grant.Done(Result{Class: RateLimited, RetryAfter: retryAfter})
	}
	limit(0)
	limit(0)
	limit(10 * time.Minute)
	limit(0)
	for i, want := range []time.Duration{0, 30 * time.Second, 60 * time.Second, 10 * time.Minute} {
		if at[i] < want || at[i] > want+want/4 {
			t.Errorf("pause %d: %v, want %v and up to a quarter more", i, at[i], want)
		}
	}
	// The delay stays raised until good responses lower it.
	next(t, s, clock).Done(Result{})
	var delays []time.Duration
	for range 60 {
		grant := next(t, s, clock)
		grant.Written(clock.now, noAddr)
		grant.Done(Result{Class: Success})
		if n := len(delays); n == 0 || delays[n-1] != grant.Delay {
			delays = append(delays, grant.Delay)
		}
	}
	want := []time.Duration{16 * time.Second, 8 * time.Second, 4 * time.Second, 2 * time.Second, time.Second}
	if diff := cmp.Diff(want, delays); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
}

func TestCrawlDelayIsAFloor(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(2*time.Second, 1))
	s.Add("a", rows(0, 3))
	s.SetCrawlDelay("a", time.Second)
	grant := next(t, s, clock)
	if grant.Delay != 2*time.Second {
		t.Errorf("a shorter Crawl-delay: %v", grant.Delay)
	}
	at := clock.now
	grant.Written(at, noAddr)
	s.SetCrawlDelay("a", 10*time.Second) // the host's robots.txt is fetched first and sets this delay
	grant.Done(Result{Class: Success})
	grant = next(t, s, clock)
	if grant.Delay != 10*time.Second || clock.now.Sub(at) != 10*time.Second {
		t.Errorf("delay %v after %v, want 10s", grant.Delay, clock.now.Sub(at))
	}
}

func TestBreakerSuspendsProbesAndGivesUp(t *testing.T) {
	tests := []struct {
		name   string
		probes []Class // result of each probe
		want   Kind    // kind of the next grant
		pauses []time.Duration
	}{
		{"resumed", []Class{Success}, Fetch, []time.Duration{2 * time.Minute}},
		{"resumed at the second probe", []Class{Failure, ClientError}, Fetch, []time.Duration{2 * time.Minute, 4 * time.Minute}},
		{"given up", []Class{Failure, RateLimited, Failure}, Suspended, []time.Duration{2 * time.Minute, 4 * time.Minute, 8 * time.Minute}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := newClock()
			s := newScheduler(t, clock, testConfig(time.Second, 1))
			s.Add("a", rows(0, 50))
			end := func(c Class) Kind {
				grant := next(t, s, clock)
				grant.Written(clock.now, noAddr)
				grant.Done(Result{Class: c})
				return grant.Kind
			}
			for i := range 20 { // 11 of 20 requests fail; a 4xx does not count as a failure
				c := Failure
				if i < 9 {
					c = []Class{ClientError, Success}[i%2]
				}
				if k := end(c); k != Fetch {
					t.Fatalf("request %d: kind %d", i, k)
				}
			}
			for i, c := range tt.probes {
				before := clock.now
				if k := end(c); k != Probe {
					t.Fatalf("probe %d: kind %d", i, k)
				}
				if got := clock.now.Sub(before); got != tt.pauses[i] {
					t.Errorf("pause before probe %d: %v, want %v", i, got, tt.pauses[i])
				}
			}
			if grant := next(t, s, clock); grant.Kind != tt.want {
				t.Errorf("behind the probes: kind %d, want %d", grant.Kind, tt.want)
			}
		})
	}
}

func TestBreakerForgetsOldFailures(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(20*time.Second, 1))
	s.Add("a", rows(0, 100))
	for i := range 60 { // 15 requests fit into 5 minutes, and 14 of them fail
		grant := next(t, s, clock)
		if grant.Kind != Fetch {
			t.Fatalf("suspended for fewer than 20 requests in the window")
		}
		grant.Written(clock.now, noAddr)
		r := Result{Class: Failure}
		if i%15 == 0 {
			r.Class = Success
		}
		grant.Done(r)
	}
}

func drainAll(grant *Grant) []int64 {
	got := []int64{grant.Item.ID}
	for it, ok := grant.Another(); ok; it, ok = grant.Another() {
		got = append(got, it.ID)
	}
	grant.Done(Result{})
	slices.Sort(got)
	return got
}

func TestStopAndCloseGiveBackEveryItem(t *testing.T) {
	clock := newClock()
	cfg := testConfig(time.Second, 1)
	s := newScheduler(t, clock, cfg)
	s.Add("www.a.com:8080", rows(0, 4))
	s.Add("b.org", rows(10, 3))
	a := next(t, s, clock)
	a.Written(clock.now, noAddr)
	b := next(t, s, clock)
	b.Written(clock.now, noAddr)
	if a.Host != "www.a.com:8080" || b.Host != "b.org" {
		t.Fatalf("grants of %s, %s", a.Host, b.Host)
	}

	cfg.Domains = map[string]Domain{"a.com": {Stop: "ticket 17"}}
	s.Reload(cfg)
	stopped, _, _ := s.pick(clock.now)
	if stopped == nil || stopped.Kind != Stopped || stopped.Reason != "ticket 17" {
		t.Fatalf("after a stop: %+v", stopped)
	}
	if diff := cmp.Diff([]int64{1, 2, 3}, drainAll(stopped)); diff != "" {
		t.Errorf("stopped items (-want +got):\n%s", diff)
	}
	// The retry of the request in flight is stopped too.
	a.Done(Result{Class: Failure, Requeue: &Item{ID: 0, NotBefore: clock.now.Add(time.Hour)}})
	again, _, _ := s.pick(clock.now)
	if again == nil || again.Kind != Stopped || again.Item.ID != 0 {
		t.Fatalf("retry on a stopped host: %+v", again)
	}
	again.Done(Result{})

	s.Close()
	closed, _, _ := s.pick(clock.now)
	if closed == nil || closed.Kind != Closed {
		t.Fatalf("after Close: %+v", closed)
	}
	if diff := cmp.Diff([]int64{11, 12}, drainAll(closed)); diff != "" {
		t.Errorf("closed items (-want +got):\n%s", diff)
	}
	if _, _, more := s.pick(clock.now); !more || s.Remaining() != 0 {
		t.Errorf("a grant is out: more %t, left %d", more, s.Remaining())
	}
	b.Done(Result{Class: Success})
	if _, _, more := s.pick(clock.now); more {
		t.Error("more after all is done")
	}
}

func TestSharedAddressIsPaced(t *testing.T) {
	clock := newClock()
	cfg := testConfig(0, 1)
	cfg.PerAddressDelay = 200 * time.Millisecond
	s := newScheduler(t, clock, cfg)
	addr := netip.MustParseAddr("192.0.2.1")
	for i := range 5 {
		s.Add(fmt.Sprintf("h%d", i), rows(10*i, 4))
	}
	s.Add("other", rows(100, 4))
	var grants []*Grant
	for range 6 { // all hosts are due at first, because no address is known yet
		grants = append(grants, next(t, s, clock))
	}
	start := clock.now
	write := func(grant *Grant) time.Duration {
		a := addr
		if grant.Host == "other" {
			a = netip.Addr{}
		}
		at := clock.now.Add(grant.Clear(a))
		grant.Written(at, a)
		return at.Sub(start)
	}
	var got []time.Duration
	for _, grant := range grants {
		if d := write(grant); grant.Host != "other" {
			got = append(got, d)
		} else if d != 0 {
			t.Errorf("an exempt host waited %v", d)
		}
		grant.Done(Result{Class: Success})
	}
	for i := 0; i < 14; {
		grant := next(t, s, clock)
		if grant.Host != "other" {
			i++
			got = append(got, write(grant))
		} else {
			write(grant)
		}
		grant.Done(Result{Class: Success})
	}
	for i := range got {
		if want := time.Duration(i) * 200 * time.Millisecond; got[i] != want {
			t.Errorf("request %d to the address at %v, want %v", i, got[i], want)
		}
	}
}

func TestSnapshotKeepsPace(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(10*time.Second, 1))
	for _, h := range []string{"c", "b", "a", "idle"} {
		s.Add(h, rows(0, 3))
	}
	grant := next(t, s, clock)
	grant.Written(clock.now, noAddr)
	grant.Done(Result{Class: Success})
	clock.add(4 * time.Second)
	next(t, s, clock) // the request to host b is about to be written
	limited := next(t, s, clock)
	limited.Written(clock.now, noAddr)
	limited.Done(Result{Class: RateLimited, RetryAfter: 5 * time.Minute})

	got := s.Snapshot()
	const s10 = 10_000
	paused := duration(got[0].WaitMS) // the pause has a random part
	if paused < 5*time.Minute || paused > 5*time.Minute*5/4 {
		t.Errorf("a Retry-After of 5m keeps the host waiting for %v, want up to a quarter more", paused)
	}
	want := []manifest.HostClock{
		{Host: "a", DelayMS: 2 * s10, BaseMS: s10, RaisedMS: 2 * s10, Limited: 1, WaitMS: Millis(paused), Breaker: &manifest.HostBreaker{Failed: 1}},
		{Host: "b", DelayMS: s10, BaseMS: s10, WaitMS: s10},
		{Host: "c", DelayMS: s10, BaseMS: s10, WaitMS: 6000, Breaker: &manifest.HostBreaker{OK: 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("clocks (-want +got):\n%s", diff)
	}

	s = newScheduler(t, clock, testConfig(10*time.Second, 1))
	for _, h := range []string{"a", "b", "c", "idle"} {
		s.Add(h, rows(0, 1))
	}
	s.Restore(got, 0, false)
	start := clock.now
	at := map[string]time.Duration{}
	for range 4 {
		grant := next(t, s, clock)
		at[grant.Host] = clock.now.Sub(start)
	}
	if diff := cmp.Diff(map[string]time.Duration{"a": paused, "b": 10 * time.Second, "c": 6 * time.Second, "idle": 0}, at); diff != "" {
		t.Errorf("first grants after a restart (-want +got):\n%s", diff)
	}

	s = newScheduler(t, clock, testConfig(10*time.Second, 1))
	s.Add("idle", rows(0, 1))
	s.HoldAll()
	start = clock.now
	next(t, s, clock)
	if got := clock.now.Sub(start); got != 10*time.Second {
		t.Errorf("after HoldAll: %v, want a whole delay", got)
	}
}

func TestASuccessorWaitsForAddressesThatItDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct {
		hold func(*Scheduler)
		want time.Duration
	}{
		"released":  {(*Scheduler).HoldAddresses, 5 * time.Second},
		"crashed":   {(*Scheduler).HoldAll, 5 * time.Second},
		"the first": {func(*Scheduler) {}, 0},
	} {
		clock := newClock()
		cfg := testConfig(time.Second, 1)
		cfg.PerAddressDelay = 5 * time.Second
		s := newScheduler(t, clock, cfg)
		s.Add("planned", rows(0, 1))
		c.hold(s)
		s.Push("redirected to", Item{ID: 1})
		start := clock.now
		for range 2 {
			if grant := next(t, s, clock); clock.now.Sub(start) != c.want {
				t.Errorf("%s: %s after %v, want %v", name, grant.Host, clock.now.Sub(start), c.want)
			}
		}
	}
}

// event is the write or the end of a simulated request.
type event struct {
	at    time.Time
	grant *Grant
	end   bool
	n     int
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].n < q[j].n
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

// TestPaceHoldsInAnyOrder runs random crawls in virtual time and checks when each request is
// written.
func TestPaceHoldsInAnyOrder(t *testing.T) {
	refused := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		clock := newClock()
		cfg := testConfig(time.Duration(r.IntN(3000))*time.Millisecond, 1+r.IntN(3))
		cfg.PerAddressDelay = time.Duration(r.IntN(2)) * 150 * time.Millisecond
		s := newScheduler(t, clock, cfg)
		hosts, total := 30, 0
		for i := range hosts {
			n := r.IntN(60)
			s.Add(fmt.Sprint("h", i), rows(total, n))
			total += n
		}
		addrOf := func(host string) netip.Addr {
			return netip.AddrFrom4([4]byte{192, 0, 2, host[1] % 4})
		}
		lastHost, lastAddr := map[string]time.Time{}, map[netip.Addr]time.Time{}
		crawlDelay := map[string]time.Duration{}
		inFlight := map[string]int{}
		ended := map[int64]int{}
		tries := map[int64]int{}
		var q events
		free, n := 8, 0
		push := func(at time.Time, grant *Grant, end bool) {
			n++
			heap.Push(&q, event{at, grant, end, n})
		}
		for {
			grant, wait, more := s.pick(clock.now)
			if grant != nil && grant.Kind > Probe {
				for _, id := range drainAll(grant) {
					ended[id]++
				}
				continue
			}
			if grant != nil {
				free--
				if inFlight[grant.Host]++; inFlight[grant.Host] > cfg.InFlightPerHost {
					t.Fatalf("seed %d: %d in flight to %s", seed, inFlight[grant.Host], grant.Host)
				}
				push(clock.now.Add(time.Duration(r.IntN(400))*time.Millisecond), grant, false)
				if free > 0 {
					continue
				}
			}
			if len(q) == 0 {
				if !more {
					break
				}
				clock.add(wait)
				continue
			}
			if free > 0 && more && clock.now.Add(wait).Before(q[0].at) {
				clock.add(wait)
				continue
			}
			e := heap.Pop(&q).(event)
			clock.now = later(clock.now, e.at)
			grant = e.grant
			if !e.end {
				a := addrOf(grant.Host)
				if !grant.HasAddress() && !grant.Meet(a) {
					grant.PutBack(grant.Item)
					grant.Done(Result{})
					free, inFlight[grant.Host] = free+1, inFlight[grant.Host]-1
					continue
				}
				at := clock.now.Add(grant.Clear(a))
				p, err := grant.Written(at, a)
				if err != nil { // the host's delay grew after the grant was given
					refused++
					grant.PutBack(grant.Item)
					grant.Done(Result{})
					free, inFlight[grant.Host] = free+1, inFlight[grant.Host]-1
					continue
				}
				if last, ok := lastAddr[a]; ok && at.Sub(last) < cfg.PerAddressDelay {
					t.Fatalf("seed %d: %v between writes to %v", seed, at.Sub(last), a)
				}
				lastAddr[a] = later(lastAddr[a], at)
				last, ok := lastHost[grant.Host]
				want := Pace{Delay: max(cfg.DelayOf(grant.Host), crawlDelay[grant.Host]), First: !ok}
				if ok {
					want.Gap = at.Sub(last)
				}
				if p.Delay < want.Delay || p.First != want.First || p.Gap != want.Gap || ok && p.Gap < p.Delay {
					t.Fatalf("seed %d: %+v at a write to %s, want %+v and no gap below the delay", seed, p, grant.Host, want)
				}
				lastHost[grant.Host] = at
				push(at.Add(time.Duration(r.IntN(3000))*time.Millisecond), grant, true)
				continue
			}
			free++
			inFlight[grant.Host]--
			res := Result{Class: Class(1 + r.IntN(2))}
			id := grant.Item.ID
			if r.IntN(10) == 0 && tries[id] < 3 {
				tries[id]++
				res = Result{Class: Failure + Class(r.IntN(2)), Requeue: &Item{ID: id, NotBefore: clock.now.Add(10 * time.Second)}}
			} else {
				ended[id]++
			}
			grant.Done(res)
			if r.IntN(100) == 0 {
				cfg.Delay = time.Duration(r.IntN(3000)) * time.Millisecond
				s.Reload(cfg)
			}
			if r.IntN(100) == 0 {
				d := time.Duration(r.IntN(5)) * time.Second
				crawlDelay[grant.Host] = max(crawlDelay[grant.Host], d)
				s.SetCrawlDelay(grant.Host, d)
			}
		}
		if len(ended) != total {
			t.Errorf("seed %d: %d items ended, want %d", seed, len(ended), total)
		}
		for id, n := range ended {
			if n != 1 {
				t.Errorf("seed %d: item %d ended %d times", seed, id, n)
			}
		}
	}
	if refused == 0 {
		t.Error("no write was refused: no grant met a delay that grew after it was given")
	}
}

// TestNextWakesForWork runs the scheduler as a task does: one goroutine calls Next, and other
// goroutines call Done.
func TestNextWakesForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Config: testConfig(2*time.Second, 1)})
		for i := range 10 {
			s.Add(fmt.Sprint("h", i), rows(i*10, 5))
		}
		start := time.Now()
		var mu sync.Mutex
		last := map[string]time.Time{}
		slots := make(chan struct{}, 3)
		var wg sync.WaitGroup
		n := 0
		for {
			slots <- struct{}{}
			grant, err := s.Next(t.Context())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
			wg.Go(func() {
				defer func() { <-slots }()
				time.Sleep(100 * time.Millisecond)
				now := time.Now()
				mu.Lock()
				if before, ok := last[grant.Host]; ok && now.Sub(before) < 2*time.Second {
					t.Errorf("%v between requests to %s", now.Sub(before), grant.Host)
				}
				last[grant.Host] = now
				mu.Unlock()
				grant.Written(now, noAddr)
				time.Sleep(100 * time.Millisecond)
				r := Result{Class: Success}
				if grant.Item.ID == 44 && grant.Item.NotBefore.IsZero() {
					r.Requeue = &Item{ID: 44, NotBefore: time.Now().Add(time.Minute)}
				}
				grant.Done(r)
			})
		}
		wg.Wait()
		if n != 51 {
			t.Errorf("%d grants, want 50 and a retry", n)
		}
		if d := time.Since(start); d < time.Minute || d > 75*time.Second {
			t.Errorf("took %v, want about the retry's minute", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Next(ctx); err != context.Canceled {
			t.Errorf("ended context: %v", err)
		}
	})
}

func TestABlockedHostIsAskedForUrgentItemsOnly(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(time.Second, 1))
	s.Add("a", rows(0, 2))
	start := clock.now
	grant := next(t, s, clock)
	s.Block("a")
	grant.PutBack(grant.Item)
	grant.Written(clock.now, noAddr) // a request for robots.txt, which fails
	grant.Done(Result{Class: Failure, Requeue: &Item{ID: -1, Urgent: true, NotBefore: clock.now.Add(10 * time.Second)}})
	grant = next(t, s, clock)
	if grant.Item.ID != -1 || clock.now.Sub(start) != 10*time.Second {
		t.Fatalf("item %d after %v, want the urgent one after 10s", grant.Item.ID, clock.now.Sub(start))
	}
	grant.Written(clock.now, noAddr)
	grant.Done(Result{Class: Success})
	if grant, _, more := s.pick(clock.now.Add(time.Hour)); grant != nil || more {
		t.Fatalf("a blocked host without urgent items: grant %v, more %t", grant, more)
	}
	s.Unblock("a")
	for want := range int64(2) {
		grant := next(t, s, clock)
		if grant.Item.ID != want {
			t.Errorf("item %d, want %d", grant.Item.ID, want)
		}
		grant.Written(clock.now, noAddr)
		grant.Done(Result{Class: Success})
	}

	s.Add("b", rows(10, 2))
	s.Block("b")
	s.Push("b", Item{ID: -2, Urgent: true, NotBefore: clock.now.Add(time.Hour)})
	s.Close()
	grant, _, _ = s.pick(clock.now)
	if grant == nil || grant.Kind != Closed {
		t.Fatalf("a blocked host after Close: %+v", grant)
	}
	if diff := cmp.Diff([]int64{-2, 10, 11}, drainAll(grant)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestRestoreCarriesTheBreakerAndTheSlowerDelay(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(10*time.Second, 1))
	s.Add("down", rows(0, 100))
	for range 20 { // all requests fail, so the breaker opens
		grant := next(t, s, clock)
		grant.Written(clock.now, noAddr)
		grant.Done(Result{Class: Failure})
	}
	kept := s.Snapshot()
	if len(kept) != 1 || !kept[0].Breaker.Open || kept[0].Breaker.Failed != 20 || kept[0].Breaker.ProbeMS <= 0 {
		t.Fatalf("snapshot %+v, want an open breaker with 20 failures", kept)
	}

	s = newScheduler(t, clock, testConfig(time.Second, 1)) // an older config, with a shorter delay
	s.Add("down", rows(0, 100))
	s.Restore(kept, 0, false)
	start := clock.now
	grant := next(t, s, clock)
	if got := clock.now.Sub(start); grant.Kind != Probe || got != duration(kept[0].Breaker.ProbeMS) || grant.Delay != 10*time.Second {
		t.Errorf("first grant: kind %d after %v with delay %v; want a probe after %v with the stored delay", grant.Kind, got, grant.Delay, duration(kept[0].Breaker.ProbeMS))
	}
	s.Reload(testConfig(time.Second, 1))
	grant.Written(clock.now, noAddr)
	grant.Done(Result{Class: Success})
	if got := next(t, s, clock).Delay; got != time.Second {
		t.Errorf("after a newer config: delay %v, want its own", got)
	}

	s = newScheduler(t, clock, testConfig(time.Second, 1))
	s.Restore([]manifest.HostClock{{Host: "seen", DelayMS: 10_000, BaseMS: 10_000, WaitMS: 4000}}, 0, true)
	s.HoldAll()
	s.Push("seen", Item{ID: 1}) // a host that is known only from redirects
	s.Push("unseen", Item{ID: 2})
	start = clock.now
	for _, want := range []struct {
		host string
		at   time.Duration
	}{{"unseen", time.Second}, {"seen", 4 * time.Second}} {
		grant := next(t, s, clock)
		if at := clock.now.Sub(start); grant.Host != want.host || at != want.at || grant.Delay != time.Second {
			t.Errorf("%s at %v with delay %v, want %s at %v with 1s", grant.Host, at, grant.Delay, want.host, want.at)
		}
	}
}

// If a stop is lifted while hosts still have items, these items are fetched as usual.
func TestAStopIsLiftedBeforeItsHostsAreDrained(t *testing.T) {
	clock := newClock()
	cfg := testConfig(2*time.Second, 1)
	s := newScheduler(t, clock, cfg)
	s.Add("a.org", rows(0, 3))
	stopped := cfg
	stopped.Domains = map[string]Domain{"a.org": {Stop: "asked by the owner"}}
	if !s.Reload(stopped) || s.Reload(stopped) || !s.Reload(cfg) {
		t.Error("Reload does not tell whether the config differs")
	}
	if grant := next(t, s, clock); grant.Kind != Fetch || grant.Host != "a.org" {
		t.Errorf("%+v", grant)
	}
}

// If an earlier attempt has sent requests and all remaining items are due after the window closes,
// the scheduler closes them early. If nothing was ever sent, it must not close early.
func TestAResumedTaskDoesNotWaitForTheWindowToClose(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		clock := newClock()
		s := newScheduler(t, clock, testConfig(2*time.Second, 1))
		s.Push("a.org", Item{ID: 1, NotBefore: clock.now.Add(2 * time.Hour)})
		s.CloseAt(clock.now.Add(time.Hour))
		if resumed {
			s.Resumed()
		}
		grant, wait, _ := s.pick(clock.now)
		if given := grant != nil && grant.Kind == Closed; given != resumed || !given && wait != 2*time.Hour {
			t.Errorf("resumed %t: grant %+v, wait %v", resumed, grant, wait)
		}
	}
}

func TestCheckpointsForgetHostsThatFailedBeforeTheWindow(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(time.Second, 1))
	if err := s.Add("a", rows(0, 1)); err != nil {
		t.Fatal(err)
	}
	g := next(t, s, clock)
	if _, err := g.Written(clock.now, noAddr); err != nil {
		t.Fatal(err)
	}
	g.Done(Result{Class: Failure})
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{time.Minute, 1}, {4*time.Minute - time.Second, 1}, {time.Minute, 0}} {
		clock.add(c.after)
		if got := s.Snapshot(); len(got) != c.want {
			t.Errorf("%v later: %+v", c.after, got)
		}
	}
}
