package planner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// A crawl that began before format 8 keeps its assignment, but not its wrong prediction.
func TestOldCrawlsArePackedAsBefore(t *testing.T) {
	urls, cfg := slowWeb()
	cfg.OldPacking = true
	right := plan(t, cfg, lines(urls...))
	if got := right.Manifest().EstimatedSeconds; got != 100 {
		t.Errorf("predicted %v s, want 100", got)
	}
	cfg.Pace = nil // an older binary has no Pace
	if diff := cmp.Diff(domainsOf(t, plan(t, cfg, lines(urls...))), domainsOf(t, right)); diff != "" {
		t.Errorf("partitions of domains (-before +now):\n%s", diff)
	}
}
