package planner

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/planner/slowest"
	"crawlbatch.io/crawlbatch/planner/source"
)

func TestPlanNamesTheSlowestHostOfEachOfTheTenSlowestDomains(t *testing.T) {
	var urls []string
	add := func(host string, n int) {
		for i := range n {
			urls = append(urls, fmt.Sprintf("http://%s/%d", host, i))
		}
	}
	for d := range 12 {
		add(fmt.Sprintf("a.d%02d.example", d), d+1)
		add(fmt.Sprintf("b.d%02d.example", d), d+2)
	}
	delay := int64(60_000)
	cfg := Default()
	cfg.RobotsTries = 40 * time.Second
	cfg.Window = time.Minute // bounds the prediction of the round, but not the times of the slowest hosts
	p := planWith(t, cfg, seen(source.Host{Host: "a.d00.example", Domain: "d00.example", DelayMS: &delay}), urls...)
	want := []slowest.Host{{Host: "a.d00.example", Domain: "d00.example", URLs: 1, Each: time.Minute}}
	for d := 11; len(want) < slowest.Domains; d-- {
		want = append(want, slowest.Host{Host: fmt.Sprintf("b.d%02d.example", d), Domain: fmt.Sprintf("d%02d.example", d), URLs: int64(d + 2), Each: cfg.Delay, New: true, Tries: cfg.RobotsTries})
	}
	if diff := cmp.Diff(want, p.Slowest()); diff != "" {
		t.Error(diff)
	}
	if most, longest := slowest.Unforeseen(p.Slowest()); most.Host != "b.d11.example" || longest != 13*slowest.SlowEach {
		t.Errorf("%+v could take %v", most, longest)
	}
	if _, longest := slowest.Unforeseen(want[:1]); longest != 0 {
		t.Errorf("a known host could take %v", longest)
	}
	if got := p.Manifest().EstimatedSeconds; got != 60 {
		t.Errorf("%v s, want 60", got)
	}
}
