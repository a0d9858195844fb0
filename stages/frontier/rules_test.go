package frontier

import (
	"errors"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

func TestTraps(t *testing.T) {
	cfg := Default()
	for path, want := range map[string]bool{
		"/":                              false,
		"/a/b/c/d.html":                  false,
		"/a/a":                           false,
		"/a/a/a":                         true,
		"/x/a/b/a/b":                     false,
		"/x/a/b/a/b/a/b/y":               true,
		"/a/b/c/a/b/c/a/b/c":             true,
		"/2026/11/11/11":                 true,
		"/a/b?x=/a/a/a/a/a":              false,
		"/" + strings.Repeat("x", 2000):  true,
		"/?" + strings.Repeat("x", 2000): true,
		"/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u": true,
	} {
		k := key(t, "http://a.example"+path)
		if why := cfg.trap(&k); (why != "") != want {
			t.Errorf("trap(%.80q) = %q, want one: %v", path, why, want)
		}
	}
}

func TestPriority(t *testing.T) {
	for _, tc := range []struct {
		url     string
		rank    float64
		anchors []string
		want    int32
	}{
		{"http://a.example/", 0.001, nil, 650},                // a mean host among 1,000
		{"http://a.example/", 0.1, nil, 800},                  // a hundred times the mean
		{"http://a.example/", 0.00001, nil, 500},              // a hundredth
		{"http://a.example/", 0, nil, 650},                    // unknown
		{"http://a.example/", 0.001, []string{"x"}, 750},      // anchor text
		{"http://a.example/a/b/c.html", 0.001, nil, 450},      // two levels
		{"http://a.example/a/b/?x=/y/z", 0.001, nil, 550},     // a query has no levels
		{"http://a.example/a/b/c/d/e/f/g/h/i", 0.001, nil, 0}, // never below
		{"http://a.example/", 1000, []string{"x"}, 900},       // never above the sum of its parts
	} {
		if got := priority(tc.url, tc.rank, 1000, tc.anchors); got != tc.want {
			t.Errorf("priority(%q, %v, %v) = %d, want %d", tc.url, tc.rank, tc.anchors, got, tc.want)
		}
	}
}

func TestIntervalsStayInBounds(t *testing.T) {
	cfg := Default()
	var r schema.URLRecord
	fetchAgain := func(digest string) time.Duration {
		prior := r
		o := outcome{Outcome: schema.OK, FetchedAt: at, ContentDigest: digest}
		r = cfg.after(r, &prior, &o, false)
		return time.Duration(r.NextDue-at) * time.Millisecond
	}
	if d := fetchAgain("0"); d != cfg.Interval {
		t.Errorf("after the first fetch %v", d)
	}
	for n := range 12 {
		fetchAgain(strings.Repeat("x", n+1))
	}
	if d := time.Duration(r.NextDue-at) * time.Millisecond; d != cfg.MinInterval || r.Changes != 12 || r.Fetches != 13 {
		t.Errorf("of a URL that changes each time %v, %+v", d, r)
	}
	for range 20 {
		fetchAgain(r.ContentDigest)
	}
	if d := time.Duration(r.NextDue-at) * time.Millisecond; d != cfg.MaxInterval || r.Changes != 12 {
		t.Errorf("of a URL that never changes %v, %+v", d, r)
	}
	for range 100 {
		prior := r
		r = cfg.after(r, &prior, &outcome{Outcome: schema.Timeout, FetchedAt: at}, false)
	}
	if d := time.Duration(r.NextDue-at) * time.Millisecond; d != cfg.MaxInterval || r.Failures != 100 {
		t.Errorf("of a URL that fails %v, %+v", d, r)
	}
}

func TestBadConfigIsPermanent(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"follow": func(c *Config) { c.Follow = "all" }, "depth": func(c *Config) { c.MaxDepth = -1 }, "interval": func(c *Config) { c.MinInterval = 0 },
	} {
		cfg := Default()
		change(&cfg)
		if err := cfg.check(); !errors.Is(err, stages.ErrPermanent) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOverlap(t *testing.T) {
	for _, tc := range []struct {
		a, n, b, m int
		want       bool
	}{{0, 1, 6, 7, true}, {0, 2, 1, 2, false}, {0, 2, 0, 3, true}, {0, 2, 1, 3, true}, {0, 2, 2, 3, false}, {1, 2, 0, 3, false}, {3, 4, 2, 3, true}} {
		if got := overlap(tc.a, tc.n, tc.b, tc.m); got != tc.want {
			t.Errorf("bucket %d of %d and %d of %d overlap: %v", tc.a, tc.n, tc.b, tc.m, got)
		}
	}
}
