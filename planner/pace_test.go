package planner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/planner/slowest"
	"crawlbatch.io/crawlbatch/planner/source"
)

// slowWeb returns URLs of six domains, a budget of two domains for each partition, and a pace with
// 10 s for the host www.slow.example and for all hosts of d0.example.
func slowWeb() (urls []string, cfg Config) {
	for d := range 5 {
		for n := range 10 {
			urls = append(urls, fmt.Sprintf("http://d%d.example/%d", d, n))
		}
	}
	for n := range 10 {
		urls = append(urls, fmt.Sprintf("http://www.slow.example/%d", n))
	}
	cfg = Default()
	cfg.PartitionURLs = 20
	cfg.Pace = func(host string) (time.Duration, int) {
		if host == "d0.example" || strings.HasSuffix(host, "slow.example") {
			return 10 * time.Second, 1
		}
		return cfg.Delay, 1
	}
	return urls, cfg
}

func TestTheDelayOfAHostIsPredictedAndPacked(t *testing.T) {
	urls, cfg := slowWeb()
	p := plan(t, cfg, lines(urls...))
	want := []slowest.Host{
		{Host: "d0.example", Domain: "d0.example", URLs: 10, Each: 10 * time.Second, New: true},
		{Host: "www.slow.example", Domain: "slow.example", URLs: 10, Each: 10 * time.Second, New: true},
	}
	if diff := cmp.Diff(want, p.Slowest()[:2]); diff != "" {
		t.Error(diff)
	}
	if of := domainsOf(t, p); of["d0.example"] != of["slow.example"] {
		t.Errorf("the slow domains are in different partitions: %v", of)
	}
}

func TestMeasuredPaceReplacesGuesses(t *testing.T) {
	latency := func(ms float64) *float64 { return &ms }
	delay := int64(0)
	hosts := []source.Host{
		{Host: "quick.example", Domain: "quick.example", DelayMS: &delay, Planned: 95, Requests: 96, LatencyMS: latency(20)},
		{Host: "failing.example", Domain: "failing.example", DelayMS: &delay, Planned: 95, Requests: 196, LatencyMS: latency(20)},
		{Host: "slow.example", Domain: "slow.example", DelayMS: &delay, Planned: 95, Requests: 96, LatencyMS: latency(4000)},
		{Host: "target.example", Domain: "target.example", DelayMS: &delay, Requests: 1000, LatencyMS: latency(50)},
	}
	var urls []string
	for _, name := range []string{"quick", "failing", "slow", "target", "unseen"} {
		for n := range 100 {
			urls = append(urls, fmt.Sprintf("http://%s.example/%d", name, n))
		}
	}
	cfg := Default()
	cfg.Pace = func(host string) (time.Duration, int) {
		if host == "slow.example" {
			return 0, 4
		}
		return 0, 1
	}
	got := map[string]time.Duration{}
	for _, h := range planWith(t, cfg, seen(hosts...), urls...).Slowest() {
		got[h.Host] = h.Time().Round(time.Millisecond)
	}
	// The mean of all hosts is 96 × 20 ms, 196 × 20 ms and 96 × 4 s for 285 URLs.
	want := map[string]time.Duration{
		"quick.example": 2 * time.Second, "failing.example": 4 * time.Second, "slow.example": 100 * time.Second,
		"target.example": 5 * time.Second, "unseen.example": 136786 * time.Millisecond,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Without observations, the guess of 1.5 s counts.
	if h := planWith(t, cfg, nil, urls...).Slowest()[0]; h.Each != cfg.Service {
		t.Errorf("%+v", h)
	}
}

// requested returns the row of a host that took the given time for 100 planned URLs.
func requested(host string, requests int64, delay, took time.Duration) source.Host {
	first, delayMS, latency := schema.Time(1_700_000_000_000_000), delay.Milliseconds(), 2.0
	return source.Host{
		Host: host, Domain: host, DelayMS: &delayMS, LatencyMS: &latency, Planned: 100, Requests: requests,
		FirstRequest: first, LastRequest: first.Add(took),
	}
}

func TestObservedPacesArePredicted(t *testing.T) {
	failing := requested("failing.example", 121, time.Second, 20*time.Minute)
	failing.FailedHTTP5xx = 10
	unreachable := requested("unreachable.example", 5, time.Second, 18*time.Minute)
	unreachable.RobotsState = "unreachable"
	stopped, limited, raised := unreachable, unreachable, int64(32_000)
	stopped.Host, stopped.Domain, stopped.LastRequest = "stopped.example", "stopped.example", stopped.FirstRequest.Add(24*time.Hour)
	limited.Host, limited.Domain, limited.DelayMS = "limited.example", "limited.example", &raised
	old, recent := requested("recovered.example", 61, time.Second, time.Minute), requested("recovered.example", 3, 5*time.Second, 31*time.Second)
	recent.Planned, recent.Requests, recent.FailedTimeout = 2, 3, 1
	hosts := []source.Host{
		requested("even.example", 101, time.Second, 100*time.Second),
		requested("paused.example", 101, time.Second, 5*time.Hour), // no request failed, so the crawl was paused
		failing, unreachable, stopped, limited, old, recent,
	}
	var urls []string
	for _, name := range []string{"even", "paused", "failing", "unreachable", "stopped", "limited", "recovered"} {
		for n := range 100 {
			urls = append(urls, fmt.Sprintf("http://%s.example/%d", name, n))
		}
	}
	cfg := Default()
	cfg.Delay, cfg.RobotsTries, cfg.RobotsAgain = time.Second, 17*time.Minute, 54*time.Minute
	got := map[string]time.Duration{}
	for _, h := range planWith(t, cfg, seen(hosts...), urls...).Slowest() {
		got[h.Host] = h.Time().Round(time.Second)
	}
	want := map[string]time.Duration{
		"even.example": 100 * time.Second, "paused.example": 100 * time.Second,
		"failing.example":     1190 * time.Second, // 10 s a request, 125 requests for 105 URLs
		"unreachable.example": 17 * time.Minute, "stopped.example": 17 * time.Minute, "limited.example": 17 * time.Minute,
		"recovered.example": 147 * time.Second, // 62 requests in 91 s
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPredictionsAllowForRobotsThatFail(t *testing.T) {
	of := func(n int) (urls []string, hosts []source.Host) {
		for i := range n {
			name := fmt.Sprintf("d%d.example", i)
			urls, hosts = append(urls, "http://"+name+"/"), append(hosts, requested(name, 2, time.Second, time.Second))
		}
		return urls, hosts
	}
	cfg := Default()
	cfg.RobotsTries = 17 * time.Minute
	for _, tt := range []struct {
		hosts, observed, unreachable int
		want                         float64
	}{
		{hosts: 20, want: 2}, // one host in 50 fails
		{hosts: 100, want: 17 * 60},
		{hosts: 100, observed: 95, want: 2},                        // 1 of 145 hosts fails, 5 are new
		{hosts: 100, observed: 80, unreachable: 20, want: 17 * 60}, // 21 of 130 hosts fail, 20 are new
		{hosts: 1000, observed: 950, want: 2},                      // 1 of 1000 hosts fails, 50 are new
		{hosts: 1000, observed: 500, want: 17 * 60},                // 1 of 550 hosts fails, 500 are new
	} {
		urls, hosts := of(tt.hosts)
		hosts = hosts[:tt.observed]
		for i := range tt.unreachable {
			hosts[i].RobotsState = "unreachable"
		}
		if got := planWith(t, cfg, seen(hosts...), urls...).Manifest().EstimatedSeconds; got != tt.want {
			t.Errorf("%+v: %v s", tt, got)
		}
	}
}

// A raised delay and long pauses pass from a round to the next one of the same crawl, but not to another month.
func TestARaisedDelayIsPredictedUntilItFalls(t *testing.T) {
	raised := func(host string, requests int64, latency float64) source.Host {
		h := requested(host, requests, 32*time.Second, 400*time.Second)
		h.LatencyMS = &latency
		return h
	}
	silent := raised("silent.example", 2, 0)
	silent.RobotsState, silent.LatencyMS = "unreachable", nil
	hosts := []source.Host{
		raised("calm.example", 101, 2),            // 4 s a request; the delay falls to 16, 8 and 4 s after 10 requests each
		raised("limiting.example", 116, 2),        // of 115 requests 15 were repeated, so the delay stays
		raised("slow.example", 101, 3000), silent, // their delays follow the latency
	}
	var urls []string
	for _, h := range hosts {
		for n := range 100 {
			urls = append(urls, fmt.Sprintf("http://%s/%d", h.Host, n))
		}
	}
	cfg := Default()
	cfg.RobotsTries, cfg.RobotsAgain = 17*time.Minute, 54*time.Minute
	for round, want := range []map[string]time.Duration{
		{"calm.example": 400 * time.Second, "limiting.example": 398 * time.Second, "slow.example": 400 * time.Second, "silent.example": 400 * time.Second},
		{"calm.example": 840 * time.Second, "limiting.example": 3657 * time.Second, "slow.example": 400 * time.Second, "silent.example": 400 * time.Second},
	} {
		req := request(t, unnumbered(urls...))
		req.Hosts, req.Round = seen(hosts...), round
		p, err := Make(t.Context(), cfg, req)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]time.Duration{}
		for _, h := range p.Slowest() {
			got[h.Host] = h.Time().Round(time.Second)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", round, diff)
		}
	}
}
