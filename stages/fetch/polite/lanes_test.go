package polite

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

func TestBandOf(t *testing.T) {
	for priority, want := range map[int32]Band{
		-5: Batch, 0: Batch, 199: Batch, 200: Low, 400: Medium, 599: Medium, 600: High, 799: High, 800: Critical, 1000: Critical, math.MaxInt32: Critical,
	} {
		if got := BandOf(priority); got != want {
			t.Errorf("priority %d is in band %d, want %d", priority, got, want)
		}
	}
}

// flight is a request in flight.
type flight struct {
	ends   time.Time
	grant  *Grant
	result Result
}

// fly sends the requests of grants in virtual time. At most one request per slot is in flight. fly
// returns when the scheduler has no more grants, or when until has passed. send returns a request's
// duration and result.
func fly(t *testing.T, s *Scheduler, clock *testClock, slots int, until time.Time, send func(grant *Grant, inFlight []flight) (time.Duration, Result)) {
	t.Helper()
	var out []flight
	for !clock.now.After(until) {
		if len(out) < slots {
			grant, wait, more := s.pick(clock.now)
			switch {
			case grant != nil && grant.Kind > Probe:
				drainAll(grant)
				continue
			case grant != nil:
				if _, err := grant.Written(clock.now, noAddr); err != nil {
					t.Fatal(err)
				}
				takes, r := send(grant, out)
				out = append(out, flight{clock.now.Add(takes), grant, r})
				continue
			case len(out) == 0 && !more:
				return
			case len(out) == 0 || clock.now.Add(wait).Before(firstToEnd(out).ends):
				clock.add(wait)
				continue
			}
		}
		f := firstToEnd(out)
		clock.now = f.ends
		f.grant.Done(f.result)
		out = slices.DeleteFunc(out, func(g flight) bool { return g.grant == f.grant })
	}
}

func firstToEnd(out []flight) flight {
	return slices.MinFunc(out, func(a, b flight) int { return a.ends.Compare(b.ends) })
}

func one(b Band, n int) *banded { return &banded{*rows(0, n), slices.Repeat([]Band{b}, n)} }

func TestBandsShareTheSlotsByWeight(t *testing.T) {
	clock := newClock()
	s := New(Options{Config: testConfig(0, 1), Clock: clock, Slots: 10})
	bandOf := map[string]Band{}
	for b := range bands {
		for i := range 40 {
			name := fmt.Sprint("h", b, "-", i)
			bandOf[name] = b
			s.Add(name, one(b, 1000))
		}
	}
	var got [bands]int
	fly(t, s, clock, 10, clock.now.Add(930*time.Second), func(grant *Grant, _ []flight) (time.Duration, Result) {
		got[bandOf[grant.Host]]++
		return 1500 * time.Millisecond, Result{Class: Success}
	})
	for b, want := range [bands]int{3200, 1600, 800, 400, 200} {
		if n := got[b]; n < want*9/10 || n > want*11/10 {
			t.Errorf("band %d had %d grants, want about %d: all had %v", b, n, want, got)
		}
	}
}

func TestPriorityWithinAHostIsTheOrderOfItsRows(t *testing.T) {
	clock := newClock()
	s := New(Options{Config: testConfig(time.Second, 1), Clock: clock, Slots: 1})
	s.Add("a", &banded{*rows(0, 3), []Band{Critical, Low, Batch}})
	s.Add("b", &banded{*rows(10, 3), []Band{High, High, Batch}})
	got := map[string][]int64{}
	fly(t, s, clock, 1, clock.now.Add(time.Hour), func(grant *Grant, _ []flight) (time.Duration, Result) {
		got[grant.Host] = append(got[grant.Host], grant.Item.ID)
		return time.Millisecond, Result{Class: Success}
	})
	if diff := cmp.Diff(map[string][]int64{"a": {0, 1, 2}, "b": {10, 11, 12}}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestASlowHostRestsLonger(t *testing.T) {
	tests := []struct {
		name   string
		factor float64
		delay  time.Duration
		takes  []time.Duration // duration of each response, in the order of requests
		want   []time.Duration // gaps between the requests
	}{
		{"within the delay", 2, 2 * time.Second, []time.Duration{1500 * time.Millisecond, 2 * time.Second, 0}, []time.Duration{2 * time.Second, 2 * time.Second}},
		{"beyond it", 2, 2 * time.Second, []time.Duration{5 * time.Second, 5 * time.Second, 0}, []time.Duration{8 * time.Second, 8 * time.Second}},
		{"one slow answer among others", 2, 2 * time.Second, []time.Duration{time.Second, 9 * time.Second, time.Second, 0},
			[]time.Duration{2 * time.Second, 9 * time.Second, 2 * time.Second}},
		{"no more than the bound", 2, 2 * time.Second, []time.Duration{25 * time.Second, 0}, []time.Duration{30 * time.Second}},
		{"a delay beyond the bound", 2, 40 * time.Second, []time.Duration{50 * time.Second, 0}, []time.Duration{50 * time.Second}},
		{"a delay of nothing", 2, 0, []time.Duration{900 * time.Millisecond, 3 * time.Second, 3 * time.Second, 0}, []time.Duration{900 * time.Millisecond, 3 * time.Second, 3 * time.Second}},
		{"switched off", 0, 2 * time.Second, []time.Duration{5 * time.Second, 0}, []time.Duration{5 * time.Second}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := newClock()
			cfg := testConfig(tt.delay, 1)
			cfg.SlowFactor = tt.factor
			s := newScheduler(t, clock, cfg)
			s.Add("a", rows(0, len(tt.takes)))
			var got []time.Duration
			var last time.Time
			fly(t, s, clock, 1, clock.now.Add(time.Hour), func(grant *Grant, _ []flight) (time.Duration, Result) {
				if !last.IsZero() {
					got = append(got, clock.now.Sub(last))
				}
				last = clock.now
				return tt.takes[grant.Item.ID], Result{Class: Success}
			})
			for i := range got { // rounded because the mean times are not integers
				got[i] = got[i].Round(time.Millisecond)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("gaps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHostsThatDoNotAnswerHaveFewSlotsAndAreSuspendedSoon(t *testing.T) {
	clock := newClock()
	s := New(Options{Config: testConfig(time.Second, 1), Clock: clock, Slots: 16})
	for i := range 40 {
		s.Add(fmt.Sprint("silent", i), rows(0, 50))
		s.Add(fmt.Sprint("lively", i), rows(0, 500))
	}
	tries := map[string]int{}
	most := 0
	fly(t, s, clock, 16, clock.now.Add(20*time.Minute), func(grant *Grant, out []flight) (time.Duration, Result) {
		if grant.Host[0] == 'l' {
			return 500 * time.Millisecond, Result{Class: Success}
		}
		if tries[grant.Host]++; tries[grant.Host] > 1 {
			again := 1
			for _, f := range out {
				if f.grant.Host[0] == 's' && tries[f.grant.Host] > 1 {
					again++
				}
			}
			most = max(most, again)
		}
		if n := tries[grant.Host]; (grant.Kind == Probe) != (n > 5) {
			t.Errorf("try %d of %s is of kind %d", n, grant.Host, grant.Kind)
		}
		return 10 * time.Second, Result{Class: Unanswered}
	})
	if most != 2 {
		t.Errorf("hosts whose last request got no response held %d slots, want an eighth of 16", most)
	}
	for host, n := range tries {
		if n > 8 {
			t.Errorf("%s was tried %d times, want five and three probes", host, n)
		}
	}
}

func TestWhatCannotBeDueBeforeTheWindowClosesIsGivenBack(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(time.Second, 1))
	start := clock.now
	s.CloseAt(start.Add(150 * time.Minute))
	s.Add("hermit", rows(0, 5))
	s.Add("closed for the day", rows(10, 5))
	s.SetCrawlDelay("hermit", time.Hour)
	at := map[string][]time.Duration{}
	var kinds []Kind
	for {
		grant, wait, more := s.pick(clock.now)
		if grant == nil && !more {
			break
		}
		if grant == nil {
			clock.add(wait)
			continue
		}
		at[grant.Host] = append(at[grant.Host], clock.now.Sub(start))
		if grant.Kind > Probe {
			kinds = append(kinds, grant.Kind)
			drainAll(grant)
			continue
		}
		grant.Written(clock.now, noAddr)
		r := Result{Class: Success}
		if grant.Host != "hermit" {
			r = Result{Class: RateLimited, RetryAfter: 20 * time.Hour}
		}
		grant.Done(r)
	}
	want := map[string][]time.Duration{
		"hermit":             {0, time.Hour, 2 * time.Hour, 2 * time.Hour},
		"closed for the day": {0, 2 * time.Hour},
	}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Kind{Closed, Closed}, kinds); diff != "" {
		t.Errorf("last grants (-want +got):\n%s", diff)
	}
	for _, c := range s.Snapshot() {
		if c.Host != "hermit" && duration(c.WaitMS) < 18*time.Hour {
			t.Errorf("the next round gets a wait of %v, want the rest of 20h", duration(c.WaitMS))
		}
	}
}

func TestADelayForEverIsNotShortenedByArithmetic(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(time.Second, 1))
	s.Add("a", rows(0, 5))
	const ever = 1e9 * time.Second
	s.SetCrawlDelay("a", ever)
	grant := next(t, s, clock)
	grant.Written(clock.now, noAddr)
	grant.Done(Result{Class: RateLimited, RetryAfter: 1 << 62})
	start := clock.now
	if grant := next(t, s, clock); clock.now.Sub(start) < ever || grant.Delay != ever {
		t.Errorf("next grant after %v with delay %v, want %v", clock.now.Sub(start), grant.Delay, ever)
	}
}

func TestAWriteIsRefusedWhenTheHostIsNotDueAnyMore(t *testing.T) {
	slower := testConfig(5*time.Second, 2)
	stopped := testConfig(time.Second, 2)
	stopped.Domains = map[string]Domain{"a": {Stop: "asked"}}
	for name, change := range map[string]func(s *Scheduler, other *Grant){
		"its domain was stopped":       func(s *Scheduler, _ *Grant) { s.Reload(stopped) },
		"its delay was raised":         func(s *Scheduler, _ *Grant) { s.Reload(slower) },
		"its robots.txt asks for more": func(s *Scheduler, _ *Grant) { s.SetCrawlDelay("a", time.Minute) },
		"another answer was 429":       func(_ *Scheduler, other *Grant) { other.Done(Result{Class: RateLimited}) },
	} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			s := newScheduler(t, clock, testConfig(time.Second, 2))
			s.Add("a", rows(0, 5))
			other := next(t, s, clock)
			other.Written(clock.now, noAddr)
			grant := next(t, s, clock) // the connection is not open yet
			change(s, other)
			if _, err := grant.Written(clock.now, noAddr); !errors.Is(err, ErrNotDue) {
				t.Errorf("got %v, want the write refused", err)
			}
			grant.PutBack(grant.Item)
			grant.Done(Result{})
			other.Done(Result{Class: Success})
			if grant, _, _ := s.pick(clock.now); grant != nil && grant.Kind == Fetch {
				t.Error("another grant at once")
			}
		})
	}
}

// TestHostsOfOneAddressHoldNoSlot has 100,000 hosts that share an address, and one host with its
// own address. Hosts that wait for their shared address must not hold slots.
func TestHostsOfOneAddressHoldNoSlot(t *testing.T) {
	clock := newClock()
	cfg := testConfig(2*time.Second, 1)
	cfg.PerAddressDelay = 200 * time.Millisecond
	s := New(Options{Config: cfg, Clock: clock, Slots: 4})
	const crowd = 100_000
	for i := range crowd {
		s.Add(fmt.Sprint("h", i), rows(2*i, 2))
	}
	s.Add("alone", rows(0, 30))
	shared, own := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	start := clock.now
	var last, lastAlone time.Time
	alone, many, looked := 0, 0, 0
	for clock.now.Sub(start) < 2*time.Minute {
		grant, wait, more := s.pick(clock.now)
		if grant == nil {
			if !more {
				t.Fatal("no more grants")
			}
			clock.add(wait)
			continue
		}
		a := shared
		if grant.Host == "alone" {
			a = own
		}
		if !grant.HasAddress() {
			looked++
			if !grant.Meet(a) {
				grant.PutBack(grant.Item)
				grant.Done(Result{})
				continue
			}
		}
		if wait := grant.Clear(a); wait > 0 {
			t.Fatalf("a slot waits for %v", wait)
		}
		if _, err := grant.Written(clock.now, a); err != nil {
			t.Fatal(err)
		}
		if a == own {
			if alone++; alone > 1 && clock.now.Sub(lastAlone) != 2*time.Second {
				t.Errorf("the host with its own address gets its next request after %v", clock.now.Sub(lastAlone))
			}
			lastAlone = clock.now
		} else {
			if many++; many > 1 && clock.now.Sub(last) != 200*time.Millisecond {
				t.Errorf("the shared address gets its next request after %v", clock.now.Sub(last))
			}
			last = clock.now
		}
		grant.Done(Result{Class: Success})
	}
	if alone != 30 || many != 600 || looked != crowd+1 {
		t.Errorf("%d and %d requests, %d look-ups; want 30, 600 and one a host", alone, many, looked)
	}
}

// A round that sent nothing must not end early. Otherwise the next round would start immediately,
// and send nothing either.
func TestATaskThatSentNothingWaitsForTheWindowToClose(t *testing.T) {
	clock := newClock()
	s := newScheduler(t, clock, testConfig(time.Second, 1))
	s.CloseAt(clock.now.Add(time.Hour))
	s.Add("a", rows(0, 2))
	s.Restore([]manifest.HostClock{{Host: "a", WaitMS: Millis(20 * time.Hour)}}, 0, true)
	if grant, wait, more := s.pick(clock.now); grant != nil || wait != 20*time.Hour || !more {
		t.Errorf("grant %+v, wait %v, more %t; want none until Close is called", grant, wait, more)
	}
	s.Close()
	if grant, _, _ := s.pick(clock.now); grant == nil || grant.Kind != Closed {
		t.Errorf("grant %+v after Close", grant)
	}
}
