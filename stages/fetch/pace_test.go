package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

func TestHostsThatGoSilentCostTheOthersNothing(t *testing.T) {
	lively := func(silent bool) (last time.Duration, r map[string]schema.Fetch, tries map[string]int) {
		bubble(t, func(t *testing.T) {
			began := time.Now()
			var list []string
			for i := range 20 {
				list = append(list, urls(fmt.Sprintf("lively%02d.com", i), 40)...)
			}
			for i := range 10 {
				if silent {
					list = append(list, urls(fmt.Sprintf("silent%02d.com", i), 40)...)
				}
			}
			tries = map[string]int{}
			l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
				if r.Host[0] == 's' && time.Since(began) > 10*time.Second {
					<-r.Context().Done()
					return
				}
				time.Sleep(time.Second)
				page(w, r)
			}), list...)
			l.cfg.Slots = 16
			result, err := l.run(t.Context(), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			r = l.outcomes(result)
			for _, h := range l.web.hits() {
				if h.host[0] == 'l' {
					last = h.at.Sub(began)
				} else if h.at.Sub(began) > 10*time.Second {
					tries[h.host]++
				}
			}
		})
		return last, r, tries
	}
	alone, _, _ := lively(false)
	beside, outcomes, tries := lively(true)
	// Each of the ten silent hosts gets one request before the fetcher finds it silent.
	if most := alone + 10*15*time.Second/16 + 5*time.Second; beside > most {
		t.Errorf("the other hosts took %v, and %v without silent hosts; want at most %v", beside, alone, most)
	}
	got := map[schema.Outcome]int{}
	for _, f := range outcomes {
		if f.Host[0] == 's' {
			got[f.Outcome]++
		}
	}
	if got[schema.HostSuspended] < 10*30 || got[schema.Timeout] > 10*5 {
		t.Errorf("of 400 URLs of silent hosts: %v; want nearly all host_suspended, to be tried again in the next round", got)
	}
	for host, n := range tries {
		if n > 9 {
			t.Errorf("%s got %d requests after it had gone silent, want about 5 and 3 probes", host, n)
		}
	}
}

// Hosts that share an address wait for it without a slot or a connection.
func TestHostsOfOneAddressWaitWithoutASlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		list := urls("alone.com", 20)
		const crowd = 60
		for i := range crowd {
			list = append(list, fmt.Sprintf("http://h%02d.com/", i))
		}
		l := newLab(t, noRobots(page), list...)
		l.cfg.Slots, l.cfg.Politeness.PerAddressDelay = 4, 5*time.Second
		l.web.shares = map[string]string{}
		for i := range crowd {
			l.web.shares[fmt.Sprintf("h%02d.com", i)] = "crowd.com"
		}
		var dials atomic.Int64
		l.hooks.tune = func(c *wire.Config) {
			l.web.tune(c)
			dial := c.Dial
			c.Dial = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
				dials.Add(1)
				return dial(ctx, a)
			}
		}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.outcomes(r)
		var alone, shared []time.Time
		for _, h := range l.web.hits() {
			if h.host == "alone.com" {
				alone = append(alone, h.at)
			} else {
				shared = append(shared, h.at)
			}
		}
		if len(alone) != 21 || len(shared) != 2*crowd {
			t.Fatalf("%d and %d requests", len(alone), len(shared))
		}
		for i := 1; i < len(alone); i++ {
			if gap := alone[i].Sub(alone[i-1]); gap != 5*time.Second { // the same delay as for a host with its own address
				t.Errorf("the host with its own address gets its next request after %v", gap)
			}
		}
		slices.SortFunc(shared, time.Time.Compare)
		for i := 1; i < len(shared); i++ {
			if gap := shared[i].Sub(shared[i-1]); gap < 5*time.Second || gap > 6*time.Second {
				t.Errorf("the shared address gets its next request after %v", gap)
			}
		}
		if int(dials.Load()) > len(alone)+len(shared) {
			t.Errorf("%d connections for %d requests", dials.Load(), len(alone)+len(shared))
		}
	})
}

// A Crawl-delay also applies between the last request of a round and the first of the next.
func TestALongCrawlDelayIsSpreadOverWindowsAndRounds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				fmt.Fprint(w, "User-agent: *\nCrawl-delay: 3600\n")
				return
			}
			page(w, r)
		}, urls("hermit.com", 8)...)
		l.cfg.Window = 200 * time.Minute
		began := time.Now()
		first, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[schema.Outcome]int{}
		for _, f := range l.outcomes(first) {
			got[f.Outcome]++
		}
		if diff := cmp.Diff(map[schema.Outcome]int{schema.OK: 3, schema.Deferred: 5}, got); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took > 181*time.Minute {
			t.Errorf("took %v: nothing could be fetched in the last of the window's 200m", took)
		}
		l.task.Round = 1
		l.setPlanAt(planRows(t, urls("hermit.com", 2)), "p2")
		if _, err := l.run(t.Context(), nil, &Input{Before: []*manifest.Result{first}}); err != nil {
			t.Fatal(err)
		}
		hits := l.web.hits()
		if len(hits) != 4+2 {
			t.Fatalf("%d requests in two rounds, want robots.txt, which still holds in the second, and pages: 1 + 3, 2", len(hits))
		}
		for i := 1; i < len(hits); i++ {
			if gap := hits[i].at.Sub(hits[i-1].at); gap < time.Hour {
				t.Errorf("%s came %v after %s", hits[i].path, gap, hits[i-1].path)
			}
		}
	})
}

// A stopped domain gets no more requests, even if one was already granted.
func TestAStopReachesARequestThatIsBeingConnected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 5)...)
		began := time.Now()
		l.hooks.tune = func(c *wire.Config) {
			l.web.tune(c)
			dial := c.Dial
			c.Dial = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
				time.Sleep(3 * time.Second) // a slow connect
				return dial(ctx, a)
			}
		}
		reload := make(chan Revision)
		time.AfterFunc(time.Second, func() {
			p := l.cfg.Politeness
			p.Domains = map[string]polite.Domain{"a.com": {Stop: "ticket 17"}}
			reload <- Revision{1, p}
		})
		r, err := l.run(t.Context(), nil, &Input{Reload: reload})
		if err != nil {
			t.Fatal(err)
		}
		for u, f := range l.outcomes(r) {
			if f.Outcome != schema.Stopped {
				t.Errorf("%s: %s", u, f.Outcome)
			}
		}
		if hits := l.web.hits(); len(hits) != 0 {
			t.Errorf("%d requests after %v", len(hits), hits[0].at.Sub(began))
		}
		if n := len(rowsOf[schema.Request](l, r, stages.FileRequests)); n != 0 {
			t.Errorf("%d requests are recorded", n)
		}
	})
}

// A pause or a stop leaves a partition released. If the delay was raised meanwhile, the next attempt's
// first request keeps the new delay too, because its row says that this delay was in force.
func TestALongerDelayHoldsForTheFirstRequestOfTheNextAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("h.com", 6)...)
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		if _, err := l.run(ctx, nil, &Input{Politeness: 1}); !errors.Is(err, stages.ErrInterrupted) {
			t.Fatal(err)
		}
		before := len(l.web.hits())
		l.cfg.Politeness.Delay = time.Minute
		r, err := l.run(t.Context(), nil, &Input{Politeness: 2})
		if err != nil {
			t.Fatal(err)
		}
		if hits := l.web.hits(); before < 2 || len(hits) <= before || hits[before].at.Sub(hits[before-1].at) < time.Minute {
			t.Errorf("%d requests before: %v", before, hits)
		}
		last := schema.Request{}
		for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
			if last.Epoch != 0 && q.Epoch != last.Epoch && q.Start.Sub(last.Start).Milliseconds() < q.DelayMS {
				t.Errorf("%s came %d ms after %s, the delay in force was %d ms", q.URL, q.Start.Sub(last.Start).Milliseconds(), last.URL, q.DelayMS)
			}
			last = q
		}
	})
}

// Two tasks have domains whose robots.txt redirect to one host. They share the clocks of their process.
func TestTasksOfAProcessPaceAHostThatRobotsRedirectToTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		handler := func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" && r.Host != "shared.net" {
				http.Redirect(w, r, "http://shared.net/robots.txt", http.StatusFound)
				return
			}
			noRobots(page)(w, r)
		}
		var clocks polite.Clocks
		var labs []*lab
		var wg sync.WaitGroup
		for task := range 2 {
			var urls []string
			for i := range 10 {
				urls = append(urls, fmt.Sprintf("http://d%d-%d.com/", task, i))
			}
			l := newLab(t, handler, urls...)
			labs = append(labs, l)
			wg.Go(func() {
				if _, err := l.run(t.Context(), nil, &Input{Clocks: &clocks}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		var at []time.Time
		for _, l := range labs {
			for _, h := range l.web.hits() {
				if h.host == "shared.net" {
					at = append(at, h.at)
				}
			}
		}
		slices.SortFunc(at, time.Time.Compare)
		for i := 1; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < labs[0].cfg.Politeness.Delay {
				t.Errorf("shared.net got request %d only %v after the one before", i, gap)
			}
		}
		if len(at) != 20 {
			t.Errorf("shared.net got %d requests, want 20", len(at))
		}
	})
}
