package polite

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// writes lets a Scheduler send all its requests, and returns when they were written.
func writes(t *testing.T, s *Scheduler, a netip.Addr) (at []time.Time) {
	for {
		g, err := s.Next(t.Context())
		if err != nil {
			return at
		}
		time.Sleep(g.Clear(a))
		now := time.Now()
		if _, err := g.Written(now, a); err != nil {
			g.Done(Result{Requeue: &g.Item})
			continue
		}
		at = append(at, now)
		time.Sleep(30 * time.Millisecond)
		g.Done(Result{Class: Success})
	}
}

func TestTasksOfAProcessKeepTheDelaysTogether(t *testing.T) {
	const tasks, requests = 3, 20
	shared := netip.MustParseAddr("192.0.2.1")
	for _, c := range []struct {
		name  string
		host  func(task int) string
		addr  netip.Addr
		delay time.Duration // least time between two requests of any tasks
	}{
		{"to a host", func(int) string { return "shared.net" }, noAddr, 2 * time.Second},
		{"to an address", func(task int) string { return fmt.Sprintf("h%d.net", task) }, shared, 1500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := testConfig(2*time.Second, 1)
				cfg.PerAddressDelay = 1500 * time.Millisecond
				var clocks Clocks
				var mu sync.Mutex
				var all []time.Time
				var wg sync.WaitGroup
				for task := range tasks {
					s := New(Options{Config: cfg, Clocks: &clocks})
					if err := s.Add(c.host(task), rows(0, requests)); err != nil {
						t.Fatal(err)
					}
					wg.Go(func() {
						at := writes(t, s, c.addr)
						mu.Lock()
						defer mu.Unlock()
						all = append(all, at...)
					})
				}
				wg.Wait()
				slices.SortFunc(all, time.Time.Compare)
				for i := 1; i < len(all); i++ {
					if gap := all[i].Sub(all[i-1]); gap < c.delay {
						t.Errorf("request %d came %v after the one before", i, gap)
					}
				}
				if took := all[len(all)-1].Sub(all[0]); len(all) != tasks*requests || took > c.delay*tasks*requests*5/4 {
					t.Errorf("%d requests within %v", len(all), took)
				}
			})
		})
	}
}

func TestClocksForgetWhatMattersNoMore(t *testing.T) {
	var c Clocks
	at := time.Unix(0, 0)
	for i := range 100_000 {
		c.takeHost(fmt.Sprint(i), at, time.Second)
		at = at.Add(10 * time.Millisecond)
	}
	if n := len(c.hosts); n > 2000 {
		t.Errorf("%d hosts are left, though only 100 matter", n)
	}
}
