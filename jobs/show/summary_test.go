package show

import (
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/slowest"
	"crawlbatch.io/crawlbatch/planner/source"
)

func TestSlowestSaysWhatABudgetWouldChange(t *testing.T) {
	var out strings.Builder
	if err := Slowest(&out, []slowest.Host{
		{Host: "www.example.com", Domain: "example.com", URLs: 10_000, Each: 2 * time.Second},
		{Host: "down.test", Domain: "down.test", URLs: 40, Each: 2 * time.Second, Unreachable: 18 * time.Minute},
		{Host: "b.test", Domain: "b.test", URLs: 40, Each: 1500 * time.Millisecond},
		{Host: "quick.test", Domain: "quick.test", URLs: 29, Each: 2 * time.Second},
	}); err != nil {
		t.Fatal(err)
	}
	want := `the slowest hosts, one of each domain:
  www.example.com: 10,000 URLs at one each 2.0 s = 5.56 h
  down.test: 40 URLs; its robots.txt was unreachable, and the tries for it take 0.30 h
  b.test: 40 URLs at one each 1.5 s = 1m0s
  plan.budgets.domains of 5,000 for example.com would end this host in at most 2.78 h
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := Slowest(&out, nil); err != nil || out.Len() > 0 {
		t.Errorf("without slow hosts: %q, %v", out.String(), err)
	}
}

func TestADryRunSaysWhatNewHostsMayTake(t *testing.T) {
	large := slowest.Host{Host: "large.test", URLs: 720, Each: 2 * time.Second, New: true, Tries: 17 * time.Minute}
	small := slowest.Host{Host: "small.test", URLs: 4, Each: 2 * time.Second, New: true, Tries: 17 * time.Minute}
	known := slowest.Host{Host: "known.test", URLs: 9000, Each: 2 * time.Second}
	const heading = "no round has requested some of these hosts; the round takes\n"
	for name, tc := range map[string]struct {
		hosts     []slowest.Host
		predicted time.Duration
		want      string
	}{
		"the window ends sooner":        {[]slowest.Host{large}, 12 * time.Minute, heading + "  1.00 h if large.test, with 720 URLs, allows one request each 10s (Crawl-delay, or slow answers)\n  0.28 h if a robots.txt answers only 503\n"},
		"a new host that takes longest": {[]slowest.Host{large, small}, 24 * time.Minute, heading + "  2.00 h if large.test, with 720 URLs, allows one request each 10s (Crawl-delay, or slow answers)\n"},
		"small new hosts":               {[]slowest.Host{small}, 8 * time.Second, heading + "  0.28 h if a robots.txt answers only 503\n"},
		"both":                          {[]slowest.Host{large}, 12 * time.Minute, heading + "  2.00 h if large.test, with 720 URLs, allows one request each 10s (Crawl-delay, or slow answers)\n  0.28 h if a robots.txt answers only 503\n"},
		"a known host takes longer":     {[]slowest.Host{known, large}, 5 * time.Hour, ""},
		"all hosts are known":           {[]slowest.Host{known}, time.Minute, ""},
	} {
		var out strings.Builder
		window := 20 * time.Hour
		if strings.Contains(name, "window") {
			window = time.Hour
		}
		if err := Unforeseen(&out, tc.hosts, tc.predicted, window); err != nil || out.String() != tc.want {
			t.Errorf("%s: %q, %v, want %q", name, out.String(), err, tc.want)
		}
	}
}

func TestNoPredictedTimeIsLongerThanTheWindow(t *testing.T) {
	p := &manifest.Plan{EstimatedSeconds: 9000, Partitions: []manifest.PlanPartition{{EstimatedSeconds: 9000}, {EstimatedSeconds: 30}, {EstimatedSeconds: 4}}}
	for window, want := range map[time.Duration]string{
		20 * time.Hour:   "predicted: 2.50 hours if all partitions run at once, 2.51 pod-hours, 0 bytes\n  one process of `crawlbatch run --fetch-tasks 2` fetches them in 2.50 hours; ",
		6 * time.Minute:  "predicted: 0.10 hours if all partitions run at once, 0.11 pod-hours, 0 bytes\n  one process of `crawlbatch run --fetch-tasks 2` fetches them in 0.10 hours; ",
		10 * time.Second: "predicted: 10s if all partitions run at once, 0.0067 pod-hours, 0 bytes\n  one process of `crawlbatch run --fetch-tasks 2` fetches them in 14s; ",
	} {
		var out strings.Builder
		if err := Plan(&out, p, nil, nil, "planned", "", false, 2, window); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: %v\n%swant\n%s", window, err, out.String(), want)
		}
	}
}

func TestAPlanSaysWhatURLFiltersAnswered(t *testing.T) {
	var out strings.Builder
	if err := FilterAnswers(&out, source.FilterAnswers{}); err != nil || out.Len() > 0 {
		t.Errorf("no filter was asked: %q, %v", out.String(), err)
	}
	if err := FilterAnswers(&out, source.FilterAnswers{Absent: 1990, Found: 3000, NotFound: 10}); err != nil {
		t.Fatal(err)
	}
	if want := "asked the URL filters of earlier rounds 5,000 times: 1,990 absent, 3,000 found, 10 looked up in vain (0.50 %)\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// The entries of the frontier are no source lines, but refused as those are.
func TestAPlanCountsRefusalsOfAllEntries(t *testing.T) {
	p := &manifest.Plan{Crawl: "2026-11", SourceLines: 210, Refused: []manifest.Count{{Name: "duplicate", N: 105}, {Name: "out_of_scope", N: 30}}}
	sources := []planner.SourceCount{{Name: "a.txt", Entries: 105, Refused: 2}, {Name: "./a.txt", Entries: 105}, {Name: "frontier", Entries: 90, Refused: 28}}
	var out strings.Builder
	if err := Plan(&out, p, sources, nil, "planned", "", false, 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	if want := `  from a.txt: 105 entries, 2 refused besides duplicates
  from ./a.txt: 105 entries, 0 refused besides duplicates
  from frontier: 90 entries, 28 refused besides duplicates
refused of 300 entries: duplicate 105 out_of_scope 30
`; !strings.HasSuffix(out.String(), want) {
		t.Errorf("%s\nwant at the end\n%s", &out, want)
	}
}
