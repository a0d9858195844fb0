package planner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	ten := 10 * time.Second
	cfg.DomainDelays = map[string]time.Duration{"www.slow.example": ten, "d0.example": ten}
	cfg.Pace = func(host string) (time.Duration, int) {
		if host == "d0.example" || strings.HasSuffix(host, "slow.example") {
			return ten, 1
		}
		return cfg.Delay, 1
	}
	return urls, cfg
}

func TestTheDelayOfAHostIsPredictedAndPacked(t *testing.T) {
	urls, cfg := slowWeb()
	p := plan(t, cfg, lines(urls...))
	want := []SlowHost{{"d0.example", "d0.example", 10, 10 * time.Second}, {"www.slow.example", "slow.example", 10, 10 * time.Second}}
	if diff := cmp.Diff(want, p.Slowest()[:2]); diff != "" {
		t.Error(diff)
	}
	if of := domainsOf(t, p); of["d0.example"] != of["slow.example"] {
		t.Errorf("the slow domains are in different partitions: %v", of)
	}
}

// A crawl that began before format 8 keeps its assignment and the ID of its plan.
func TestOldCrawlsArePackedAsBefore(t *testing.T) {
	urls, cfg := slowWeb()
	cfg.BeforeFormat8 = true
	now := plan(t, cfg, lines(urls...))
	cfg.Pace = nil // an older binary has no Pace
	before := plan(t, cfg, lines(urls...))
	if diff := cmp.Diff(domainsOf(t, before), domainsOf(t, now)); diff != "" {
		t.Errorf("partitions of domains (-before +now):\n%s", diff)
	}
	if before.Manifest().ID != now.Manifest().ID {
		t.Errorf("plan %s, before %s", now.Manifest().ID, before.Manifest().ID)
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
	// The assignment of an old crawl does not depend on what is measured.
	cfg.BeforeFormat8, cfg.PartitionURLs = true, 200
	var apart []source.Host // the same delays, without what older binaries did not read
	for _, h := range hosts {
		apart = append(apart, source.Host{Host: h.Host, Domain: h.Domain, DelayMS: h.DelayMS})
	}
	if diff := cmp.Diff(domainsOf(t, planWith(t, cfg, seen(apart...), urls...)), domainsOf(t, planWith(t, cfg, seen(hosts...), urls...))); diff != "" {
		t.Errorf("partitions of domains (-before +now):\n%s", diff)
	}
}
