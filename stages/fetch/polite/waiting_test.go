package polite

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// endNext takes the next grant and ends it with the given result. Only one host is due.
func endNext(t *testing.T, s *Scheduler, clock *testClock, r Result) {
	t.Helper()
	grant := next(t, s, clock)
	if _, err := grant.Written(clock.now, netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	grant.Done(r)
}

func TestStandTellsWhyAHostWaitsAndUntilWhen(t *testing.T) {
	for _, c := range []struct {
		name   string
		does   func(t *testing.T, s *Scheduler, clock *testClock)
		reason Reason
		within [2]time.Duration // earliest and latest end of the wait, from now
	}{
		{"429", func(t *testing.T, s *Scheduler, clock *testClock) {
			endNext(t, s, clock, Result{Class: RateLimited})
		}, ByLimit, [2]time.Duration{30 * time.Second, 38 * time.Second}},
		{"Retry-After", func(t *testing.T, s *Scheduler, clock *testClock) {
			endNext(t, s, clock, Result{Class: RateLimited, RetryAfter: time.Hour})
		}, ByRetryAfter, [2]time.Duration{time.Hour, 75 * time.Minute}},
		{"a name that cannot be looked up", func(t *testing.T, s *Scheduler, clock *testClock) {
			endNext(t, s, clock, Result{Class: Unanswered, Hold: time.Minute})
		}, ByHold, [2]time.Duration{time.Minute, time.Minute}},
		{"Crawl-delay", func(t *testing.T, s *Scheduler, clock *testClock) {
			s.SetCrawlDelay("h", time.Hour)
			endNext(t, s, clock, Result{Class: Success})
		}, ByCrawlDelay, [2]time.Duration{time.Hour, time.Hour}},
		{"a breaker", func(t *testing.T, s *Scheduler, clock *testClock) {
			for range DefaultBreaker().Silent {
				endNext(t, s, clock, Result{Class: Unanswered})
			}
		}, ByBreaker, [2]time.Duration{2 * time.Minute, 2 * time.Minute}},
		{"a retry", func(_ *testing.T, s *Scheduler, clock *testClock) {
			s.Block("h")
			s.Push("h", Item{ID: -1, Urgent: true, NotBefore: clock.now.Add(8 * time.Minute), Why: "answered 503"})
		}, ByItem, [2]time.Duration{8 * time.Minute, 8 * time.Minute}},
		{"an earlier attempt", func(_ *testing.T, s *Scheduler, _ *testClock) {
			s.Restore([]manifest.HostClock{{Host: "h", WaitMS: Millis(10 * time.Minute)}}, 0, false)
		}, ByEarlier, [2]time.Duration{10 * time.Minute, 10 * time.Minute}},
		{"an earlier attempt, after a 429", func(_ *testing.T, s *Scheduler, _ *testClock) {
			s.Restore([]manifest.HostClock{{Host: "h", Limited: 1, WaitMS: Millis(10 * time.Minute)}}, 0, false)
		}, ByLimit, [2]time.Duration{10 * time.Minute, 10 * time.Minute}},
	} {
		clock := newClock()
		s := newScheduler(t, clock, testConfig(time.Second, 1))
		if err := s.Add("h", rows(0, 10)); err != nil {
			t.Fatal(err)
		}
		c.does(t, s, clock)
		st := s.Overview(3, 30*time.Second)
		if len(st.Waits) != 1 || st.Delayed+st.Ready+st.InFlight+st.More != 0 || (st.Suspended == 1) != (c.reason == ByBreaker) {
			t.Errorf("%s: %+v", c.name, st)
			continue
		}
		w := st.Waits[0]
		wait := w.Until.Sub(clock.now)
		if w.Host != "h" || w.Reason != c.reason || wait < c.within[0] || wait > c.within[1] {
			t.Errorf("%s: the host waits %s for reason %d, want reason %d and a wait within %v", c.name, wait, w.Reason, c.reason, c.within)
		}
		if c.reason == ByItem && w.Item.Why != "answered 503" {
			t.Errorf("the host waits for item %+v", w.Item)
		}
		if st.Rest < wait || w.Left == 0 || w.Left > 11 {
			t.Errorf("%s: %d left, which take %s", c.name, w.Left, st.Rest)
		}
	}
}

func TestStandCountsHostsAndListsThoseThatTakeLongest(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(2*time.Second, 1))
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		if err := s.Add(name, rows(i*100, 10*(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if st := s.Overview(3, 30*time.Second); st.Ready != 5 || st.Left != 150 || st.Slowest[0].Host != "e" {
		t.Errorf("at first: %+v", st)
	}
	first := next(t, s, clock)
	if st := s.Overview(3, 30*time.Second); st.Ready != 4 {
		t.Errorf("with a grant out: %+v", st)
	}
	if _, err := first.Written(clock.now, netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	if st := s.Overview(3, 30*time.Second); st.InFlight != 1 || st.Asked == "" || st.Ready != 4 {
		t.Errorf("with a request under way: %+v", st)
	}
	first.Done(Result{Class: Success})
	for range 4 {
		endNext(t, s, clock, Result{Class: RateLimited})
	}
	st := s.Overview(3, 30*time.Second)
	if st.Delayed != 1 || len(st.Waits) != 3 || st.More != 1 || st.Waits[0].Rest < st.Waits[2].Rest {
		t.Errorf("when four were limited: %+v", st)
	}
	// With one second as brief, delays of two seconds are listed as waits.
	if st := s.Overview(5, time.Second); st.Delayed != 0 || len(st.Waits) != 5 {
		t.Errorf("with short waits: %+v", st)
	}
	// The predicted time does not exceed the rest of the window.
	s.CloseAt(clock.now.Add(5 * time.Second))
	if st := s.Overview(3, 30*time.Second); st.Rest != 5*time.Second || st.Closes.IsZero() {
		t.Errorf("before the window closes: %+v", st)
	}
}

func TestStandListsTheTwentySlowestHosts(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(2*time.Second, 1))
	const hosts = 50
	for i := range hosts {
		n := i * 7 % hosts // the hosts come in no order
		if err := s.Add(fmt.Sprintf("h%02d", n), rows(i*100, n+1)); err != nil {
			t.Fatal(err)
		}
	}
	st := s.Overview(3, 30*time.Second)
	if len(st.Slowest) != 20 || st.Rest < st.Slowest[0].Rest {
		t.Fatalf("%d slowest hosts, %s", len(st.Slowest), st.Rest)
	}
	for i, w := range st.Slowest {
		if want := hosts - i; w.Host != fmt.Sprintf("h%02d", want-1) || w.Left != want || w.Delay != 2*time.Second || w.Suspended {
			t.Errorf("host %d: %+v", i, w)
		}
	}
}

// Items that a host gets later, in turn with its others, lengthen the prediction.
func TestStandForeseesLaterItems(t *testing.T) {
	for later, want := range map[int]time.Duration{0: 18 * time.Second, 4: 26 * time.Second, 20: 78 * time.Second} {
		clock := newClock()
		s := newScheduler(t, clock, testConfig(2*time.Second, 1))
		s.Foresee(func(host string) int { return later })
		if err := s.Add("a", rows(0, 10)); err != nil {
			t.Fatal(err)
		}
		if st := s.Overview(3, 30*time.Second); st.Rest < want || st.Rest > want+2*time.Second {
			t.Errorf("10 pages and %d later: %v, want about %v", later, st.Rest, want)
		}
	}
}

func TestAHostWithoutItemsIsExpectedUnlessItGetsNoRequests(t *testing.T) {
	clock := newClock()
	cfg := testConfig(time.Second, 1)
	cfg.Domains = map[string]Domain{"stopped.org": {Stop: "asked"}}
	s := newScheduler(t, clock, cfg)
	expect := func(when string, want map[string]bool) {
		t.Helper()
		for host, is := range want {
			if s.Expects(host, true) != is {
				t.Errorf("%s: %s: expected is %t", when, host, !is)
			}
		}
	}
	if err := s.Add("a.stopped.org", rows(0, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Add("h.org", rows(1, 1)); err != nil {
		t.Fatal(err)
	}
	expect("at first", map[string]bool{"a.stopped.org": true, "b.stopped.org": false, "h.org": true, "new.org": true})
	if !s.Expects("h.org", false) || s.Expects("new.org", false) {
		t.Error("without later items, a host must be expected only if it has items")
	}
	for range 2 {
		next(t, s, clock).Done(Result{})
	}
	if s.Expects("h.org", false) {
		t.Error("without later items, a host whose items are done is expected")
	}
	expect("without items", map[string]bool{"a.stopped.org": false, "b.stopped.org": false, "h.org": true, "new.org": true})
	s.Close()
	expect("closed", map[string]bool{"a.stopped.org": false, "h.org": false, "new.org": false})
}
