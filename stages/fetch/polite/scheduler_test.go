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

// testClock is a clock that a test moves.
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

// next gives the turn that is due, moving the clock to it.
func next(t *testing.T, s *Scheduler, clock *testClock) *Grant {
	t.Helper()
	for {
		turn, wait, more := s.pick(clock.now)
		if turn != nil {
			return turn
		}
		if !more || wait == idle {
			t.Fatalf("no turn: more=%t wait=%v", more, wait)
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
	clock.add(700 * time.Millisecond) // connecting
	if p, err := first.Written(clock.now, noAddr); err != nil || !p.First {
		t.Errorf("pace of the first request: %+v, %v", p, err)
	}
	clock.add(300 * time.Millisecond)
	first.Done(Result{Class: Success})

	second := next(t, s, clock)
	if got := clock.now.Sub(start); got != 2700*time.Millisecond {
		t.Errorf("second turn at %v, want 2.7s", got)
	}
	p, err := second.Written(clock.now, noAddr)
	if diff := cmp.Diff(Pace{Delay: 2 * time.Second, Gap: 2 * time.Second}, p); diff != "" || err != nil {
		t.Errorf("pace (-want +got), error %v:\n%s", err, diff)
	}
	clock.add(5 * time.Second) // a slow answer
	if turn, _, _ := s.pick(clock.now); turn != nil {
		t.Error("a turn while the only request allowed is in flight")
	}
	second.Done(Result{Class: Success})
	third := next(t, s, clock)
	if got := clock.now.Sub(start); got != 7700*time.Millisecond {
		t.Errorf("third turn at %v, want at once, 7.7s", got)
	}
	third.Done(Result{})
	if turn, _, more := s.pick(clock.now); turn != nil || more {
		t.Errorf("after the last item: turn %v, more %t", turn, more)
	}
}

func TestUnsentTurnCostsNoDelay(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(2*time.Second, 1))
	s.Add("a", rows(0, 4))
	start := clock.now
	turn := next(t, s, clock)
	if it, ok := turn.Another(); !ok || it.ID != 1 {
		t.Errorf("another: %v, %t; want 1", it, ok)
	}
	turn.PutBack(Item{ID: 1})
	turn.Done(Result{})
	turn = next(t, s, clock)
	if turn.Item.ID != 1 || clock.now != start {
		t.Errorf("got item %d after %v, want the one put back at once", turn.Item.ID, clock.now.Sub(start))
	}
	// A connection that failed was a try: the next waits.
	turn.Done(Result{Class: Failure})
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
		turn := next(t, s, clock)
		got = append(got, turn.Item.ID)
		turn.Written(clock.now, noAddr)
		r := Result{Class: Success}
		if i == 0 {
			r = Result{Class: Failure, Requeue: &Item{ID: 0, NotBefore: clock.now.Add(1500 * time.Millisecond)}}
		}
		turn.Done(r)
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
		turn := next(t, s, clock)
		at = append(at, clock.now.Sub(last).Truncate(time.Second))
		last = clock.now
		turn.Written(clock.now, noAddr)
		turn.Done(Result{Class: RateLimited, RetryAfter: retryAfter})
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
	// The delay stays raised, and falls with good answers.
	next(t, s, clock).Done(Result{})
	var delays []time.Duration
	for range 60 {
		turn := next(t, s, clock)
		turn.Written(clock.now, noAddr)
		turn.Done(Result{Class: Success})
		if n := len(delays); n == 0 || delays[n-1] != turn.Delay {
			delays = append(delays, turn.Delay)
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
	turn := next(t, s, clock)
	if turn.Delay != 2*time.Second {
		t.Errorf("a shorter Crawl-delay: %v", turn.Delay)
	}
	at := clock.now
	turn.Written(at, noAddr)
	s.SetCrawlDelay("a", 10*time.Second) // as robots.txt, asked for first, says
	turn.Done(Result{Class: Success})
	turn = next(t, s, clock)
	if turn.Delay != 10*time.Second || clock.now.Sub(at) != 10*time.Second {
		t.Errorf("delay %v after %v, want 10s", turn.Delay, clock.now.Sub(at))
	}
}

func TestBreakerSuspendsProbesAndGivesUp(t *testing.T) {
	tests := []struct {
		name   string
		probes []Class // how the probes end
		want   Kind    // of the turn behind them
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
				turn := next(t, s, clock)
				turn.Written(clock.now, noAddr)
				turn.Done(Result{Class: c})
				return turn.Kind
			}
			for i := range 20 { // 4xx and successes are no failures; 11 of 20 are
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
			if turn := next(t, s, clock); turn.Kind != tt.want {
				t.Errorf("behind the probes: kind %d, want %d", turn.Kind, tt.want)
			}
		})
	}
}

func TestBreakerForgetsOldFailures(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(20*time.Second, 1))
	s.Add("a", rows(0, 100))
	for i := range 60 { // 14 failures of 15 requests in any 5 minutes
		turn := next(t, s, clock)
		if turn.Kind != Fetch {
			t.Fatalf("suspended for fewer than 20 requests in the window")
		}
		turn.Written(clock.now, noAddr)
		r := Result{Class: Failure}
		if i%15 == 0 {
			r.Class = Success
		}
		turn.Done(r)
	}
}

func drainAll(turn *Grant) []int64 {
	got := []int64{turn.Item.ID}
	for it, ok := turn.Another(); ok; it, ok = turn.Another() {
		got = append(got, it.ID)
	}
	turn.Done(Result{})
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
		t.Fatalf("turns of %s, %s", a.Host, b.Host)
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
	// What was in flight comes back with a retry: stopped too.
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
	if _, _, more := s.pick(clock.now); !more || s.Left() != 0 {
		t.Errorf("a turn is out: more %t, left %d", more, s.Left())
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
	var turns []*Grant
	for range 6 { // addresses are not known yet: all hosts are due
		turns = append(turns, next(t, s, clock))
	}
	start := clock.now
	write := func(turn *Grant) time.Duration {
		a := addr
		if turn.Host == "other" {
			a = netip.Addr{}
		}
		at := clock.now.Add(turn.Clear(a))
		turn.Written(at, a)
		return at.Sub(start)
	}
	var got []time.Duration
	for _, turn := range turns {
		if d := write(turn); turn.Host != "other" {
			got = append(got, d)
		} else if d != 0 {
			t.Errorf("an exempt host waited %v", d)
		}
		turn.Done(Result{Class: Success})
	}
	for i := 0; i < 14; {
		turn := next(t, s, clock)
		if turn.Host != "other" {
			i++
			got = append(got, write(turn))
		} else {
			write(turn)
		}
		turn.Done(Result{Class: Success})
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
	turn := next(t, s, clock)
	turn.Written(clock.now, noAddr)
	turn.Done(Result{Class: Success})
	clock.add(4 * time.Second)
	next(t, s, clock) // b: about to be written
	limited := next(t, s, clock)
	limited.Written(clock.now, noAddr)
	limited.Done(Result{Class: RateLimited, RetryAfter: 5 * time.Minute})

	got := s.Snapshot()
	const s10 = 10_000
	paused := duration(got[0].WaitMS) // jittered
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
		turn := next(t, s, clock)
		at[turn.Host] = clock.now.Sub(start)
	}
	if diff := cmp.Diff(map[string]time.Duration{"a": paused, "b": 10 * time.Second, "c": 6 * time.Second, "idle": 0}, at); diff != "" {
		t.Errorf("first turns after a restart (-want +got):\n%s", diff)
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
			if turn := next(t, s, clock); clock.now.Sub(start) != c.want {
				t.Errorf("%s: %s after %v, want %v", name, turn.Host, clock.now.Sub(start), c.want)
			}
		}
	}
}

// event is a moment in a simulated request: it is written, or it ends.
type event struct {
	at   time.Time
	turn *Grant
	end  bool
	n    int
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

// TestPaceHoldsInAnyOrder runs random crawls in virtual time and checks every write.
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
		push := func(at time.Time, turn *Grant, end bool) {
			n++
			heap.Push(&q, event{at, turn, end, n})
		}
		for {
			turn, wait, more := s.pick(clock.now)
			if turn != nil && turn.Kind > Probe {
				for _, id := range drainAll(turn) {
					ended[id]++
				}
				continue
			}
			if turn != nil {
				free--
				if inFlight[turn.Host]++; inFlight[turn.Host] > cfg.InFlightPerHost {
					t.Fatalf("seed %d: %d in flight to %s", seed, inFlight[turn.Host], turn.Host)
				}
				push(clock.now.Add(time.Duration(r.IntN(400))*time.Millisecond), turn, false)
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
			turn = e.turn
			if !e.end {
				a := addrOf(turn.Host)
				if !turn.HasAddress() && !turn.Meet(a) {
					turn.PutBack(turn.Item)
					turn.Done(Result{})
					free, inFlight[turn.Host] = free+1, inFlight[turn.Host]-1
					continue
				}
				at := clock.now.Add(turn.Clear(a))
				p, err := turn.Written(at, a)
				if err != nil { // it was slowed down meanwhile
					refused++
					turn.PutBack(turn.Item)
					turn.Done(Result{})
					free, inFlight[turn.Host] = free+1, inFlight[turn.Host]-1
					continue
				}
				if last, ok := lastAddr[a]; ok && at.Sub(last) < cfg.PerAddressDelay {
					t.Fatalf("seed %d: %v between writes to %v", seed, at.Sub(last), a)
				}
				lastAddr[a] = later(lastAddr[a], at)
				last, ok := lastHost[turn.Host]
				want := Pace{Delay: max(cfg.DelayOf(turn.Host), crawlDelay[turn.Host]), First: !ok}
				if ok {
					want.Gap = at.Sub(last)
				}
				if p.Delay < want.Delay || p.First != want.First || p.Gap != want.Gap || ok && p.Gap < p.Delay {
					t.Fatalf("seed %d: %+v at a write to %s, want %+v and no gap below the delay", seed, p, turn.Host, want)
				}
				lastHost[turn.Host] = at
				push(at.Add(time.Duration(r.IntN(3000))*time.Millisecond), turn, true)
				continue
			}
			free++
			inFlight[turn.Host]--
			res := Result{Class: Class(1 + r.IntN(2))}
			id := turn.Item.ID
			if r.IntN(10) == 0 && tries[id] < 3 {
				tries[id]++
				res = Result{Class: Failure + Class(r.IntN(2)), Requeue: &Item{ID: id, NotBefore: clock.now.Add(10 * time.Second)}}
			} else {
				ended[id]++
			}
			turn.Done(res)
			if r.IntN(100) == 0 {
				cfg.Delay = time.Duration(r.IntN(3000)) * time.Millisecond
				s.Reload(cfg)
			}
			if r.IntN(100) == 0 {
				d := time.Duration(r.IntN(5)) * time.Second
				crawlDelay[turn.Host] = max(crawlDelay[turn.Host], d)
				s.SetCrawlDelay(turn.Host, d)
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
		t.Error("no write was refused: no turn met a delay that grew after it was given")
	}
}

// TestNextWakesForWork runs the scheduler as a task does: one goroutine asks for
// turns, others end them.
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
			turn, err := s.Next(t.Context())
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
				if before, ok := last[turn.Host]; ok && now.Sub(before) < 2*time.Second {
					t.Errorf("%v between requests to %s", now.Sub(before), turn.Host)
				}
				last[turn.Host] = now
				mu.Unlock()
				turn.Written(now, noAddr)
				time.Sleep(100 * time.Millisecond)
				r := Result{Class: Success}
				if turn.Item.ID == 44 && turn.Item.NotBefore.IsZero() {
					r.Requeue = &Item{ID: 44, NotBefore: time.Now().Add(time.Minute)}
				}
				turn.Done(r)
			})
		}
		wg.Wait()
		if n != 51 {
			t.Errorf("%d turns, want 50 and a retry", n)
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
	turn := next(t, s, clock)
	s.Block("a")
	turn.PutBack(turn.Item)
	turn.Written(clock.now, noAddr) // as for robots.txt, which failed
	turn.Done(Result{Class: Failure, Requeue: &Item{ID: -1, Urgent: true, NotBefore: clock.now.Add(10 * time.Second)}})
	turn = next(t, s, clock)
	if turn.Item.ID != -1 || clock.now.Sub(start) != 10*time.Second {
		t.Fatalf("item %d after %v, want the urgent one after 10s", turn.Item.ID, clock.now.Sub(start))
	}
	turn.Written(clock.now, noAddr)
	turn.Done(Result{Class: Success})
	if turn, _, more := s.pick(clock.now.Add(time.Hour)); turn != nil || more {
		t.Fatalf("a blocked host without urgent items: turn %v, more %t", turn, more)
	}
	s.Unblock("a")
	for want := range int64(2) {
		turn := next(t, s, clock)
		if turn.Item.ID != want {
			t.Errorf("item %d, want %d", turn.Item.ID, want)
		}
		turn.Written(clock.now, noAddr)
		turn.Done(Result{Class: Success})
	}

	s.Add("b", rows(10, 2))
	s.Block("b")
	s.Push("b", Item{ID: -2, Urgent: true, NotBefore: clock.now.Add(time.Hour)})
	s.Close()
	turn, _, _ = s.pick(clock.now)
	if turn == nil || turn.Kind != Closed {
		t.Fatalf("a blocked host after Close: %+v", turn)
	}
	if diff := cmp.Diff([]int64{-2, 10, 11}, drainAll(turn)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestRestoreCarriesTheBreakerAndTheSlowerDelay(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(10*time.Second, 1))
	s.Add("down", rows(0, 100))
	for range 20 { // all fail: the breaker opens
		turn := next(t, s, clock)
		turn.Written(clock.now, noAddr)
		turn.Done(Result{Class: Failure})
	}
	kept := s.Snapshot()
	if len(kept) != 1 || !kept[0].Breaker.Open || kept[0].Breaker.Failed != 20 || kept[0].Breaker.ProbeMS <= 0 {
		t.Fatalf("snapshot %+v, want an open breaker with 20 failures", kept)
	}

	s = newScheduler(t, clock, testConfig(time.Second, 1)) // an older, faster config
	s.Add("down", rows(0, 100))
	s.Restore(kept, 0, false)
	start := clock.now
	turn := next(t, s, clock)
	if got := clock.now.Sub(start); turn.Kind != Probe || got != duration(kept[0].Breaker.ProbeMS) || turn.Delay != 10*time.Second {
		t.Errorf("first turn: kind %d after %v with delay %v; want a probe after %v with the stored delay", turn.Kind, got, turn.Delay, duration(kept[0].Breaker.ProbeMS))
	}
	s.Reload(testConfig(time.Second, 1))
	turn.Written(clock.now, noAddr)
	turn.Done(Result{Class: Success})
	if got := next(t, s, clock).Delay; got != time.Second {
		t.Errorf("after a newer config: delay %v, want its own", got)
	}

	s = newScheduler(t, clock, testConfig(time.Second, 1))
	s.Restore([]manifest.HostClock{{Host: "seen", DelayMS: 10_000, BaseMS: 10_000, WaitMS: 4000}}, 0, true)
	s.HoldAll()
	s.Push("seen", Item{ID: 1}) // a host that only redirects lead to
	s.Push("unseen", Item{ID: 2})
	start = clock.now
	for _, want := range []struct {
		host string
		at   time.Duration
	}{{"unseen", time.Second}, {"seen", 4 * time.Second}} {
		turn := next(t, s, clock)
		if at := clock.now.Sub(start); turn.Host != want.host || at != want.at || turn.Delay != time.Second {
			t.Errorf("%s at %v with delay %v, want %s at %v with 1s", turn.Host, at, turn.Delay, want.host, want.at)
		}
	}
}

// A stop that is lifted before its hosts were drained leaves them as they were.
func TestAStopIsLiftedBeforeItsHostsAreDrained(t *testing.T) {
	clock := newClock()
	cfg := testConfig(2*time.Second, 1)
	s := newScheduler(t, clock, cfg)
	s.Add("a.org", rows(0, 3))
	stopped := cfg
	stopped.Domains = map[string]Domain{"a.org": {Stop: "asked by the owner"}}
	s.Reload(stopped)
	s.Reload(cfg)
	if turn := next(t, s, clock); turn.Kind != Fetch || turn.Host != "a.org" {
		t.Errorf("%+v", turn)
	}
}

// What an attempt before could not fetch, and cannot be due before the window closes,
// is given back at once; a task that has sent nothing yet waits.
func TestAResumedTaskDoesNotWaitForTheWindowToClose(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		clock := newClock()
		s := newScheduler(t, clock, testConfig(2*time.Second, 1))
		s.Push("a.org", Item{ID: 1, NotBefore: clock.now.Add(2 * time.Hour)})
		s.CloseAt(clock.now.Add(time.Hour))
		if resumed {
			s.Resumed()
		}
		turn, wait, _ := s.pick(clock.now)
		if given := turn != nil && turn.Kind == Closed; given != resumed || !given && wait != 2*time.Hour {
			t.Errorf("resumed %t: turn %+v, wait %v", resumed, turn, wait)
		}
	}
}
