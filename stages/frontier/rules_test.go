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

func TestIntervalsStayInBounds(t *testing.T) {
	testIntervals(t, Default())
	news := Default()
	news.Interval, news.MinInterval, news.MaxInterval, news.RetryAfter = time.Hour, 15*time.Minute, 7*24*time.Hour, 5*time.Minute
	testIntervals(t, news)
}

func testIntervals(t *testing.T, cfg Config) {
	t.Helper()
	r, now := schema.URLRecord{}, at
	fetchAgain := func(digest string) time.Duration {
		prior := r
		o := outcome{Outcome: schema.OK, FetchedAt: now, ContentDigest: digest}
		r = cfg.recordAfter(r, &prior, &o, false, cfg.rule())
		wait := r.NextDue.Sub(now)
		now = r.NextDue
		return wait
	}
	if d := fetchAgain("0"); d != cfg.Interval || r.DueReason != schema.DueFirst {
		t.Errorf("after the first fetch %v because of %s", d, r.DueReason)
	}
	var d time.Duration
	for n := range 80 {
		d = fetchAgain(strings.Repeat("x", n+1))
	}
	if d != cfg.MinInterval || r.DueReason != schema.DueMin || r.Changes != 80 || r.Fetches != 81 {
		t.Errorf("of a URL that changes each time %v, %+v", d, r)
	}
	for range 30 {
		if next := fetchAgain(r.ContentDigest); next < d {
			t.Errorf("a URL that changes no more waits %v after %v", next, d)
		} else {
			d = next
		}
	}
	if r.RevisitMS != cfg.MaxInterval.Milliseconds() || r.DueReason != schema.DueMax {
		t.Errorf("30 fetches after the last change: %+v", r)
	}
	r, now = schema.URLRecord{}, at
	for n := range 9 { // 1h, doubled eight times, is more than a week
		if next := fetchAgain("0"); next < d && n > 0 {
			t.Fatalf("fetch %d of a URL that never changes: %v after %v", n, next, d)
		} else if d = next; n > 0 && d < cfg.MaxInterval && r.DueReason != schema.DueRate && r.DueReason != schema.DueSteady {
			t.Errorf("fetch %d: %v because of %s", n, d, r.DueReason)
		}
	}
	if d != cfg.MaxInterval || r.DueReason != schema.DueMax || r.Changes != 0 {
		t.Errorf("of a URL that never changes %v, %+v", d, r)
	}
	for range 100 {
		prior := r
		r = cfg.recordAfter(r, &prior, &outcome{Outcome: schema.Timeout, FetchedAt: at}, false, cfg.rule())
	}
	if d := r.NextDue.Sub(at); d != cfg.MaxInterval || r.Failures != 100 || r.DueReason != schema.DueRetry {
		t.Errorf("of a URL that fails %v, %+v", d, r)
	}
}

// The URL's row says which record holds the content, so that the next crawl can send a conditional
// request. The record must be complete and stored under the URL itself.
func TestContentIsRememberedWhereItLies(t *testing.T) {
	known := schema.URLRecord{
		Fetches: 1, LastFetched: at - 1, NextDue: at, ContentDigest: "D", ETag: "e", LastModified: "m",
		ContentAt: 7, WARCFilename: "old", WARCRecordOff: 8, WARCRecordLen: 9,
	}
	type content struct {
		digest, etag, modified, file string
		at                           schema.Time
		offset, length               int32
	}
	answer := func(change func(*outcome)) outcome {
		o := outcome{
			Outcome: schema.OK, FetchedAt: at, ContentDigest: "N", ETag: "f", LastModified: "n",
			WARCFilename: "new", WARCRecordOff: 1, WARCRecordLen: 2,
		}
		change(&o)
		return o
	}
	kept := content{"D", "e", "m", "old", 7, 8, 9}
	for name, tc := range map[string]struct {
		o    outcome
		want content
	}{
		"content that is not kept":   {answer(func(o *outcome) { o.Truncated = schema.TruncatedUnspecified }), content{"N", "f", "n", "", 0, 0, 0}},
		"another content":            {answer(func(*outcome) {}), content{"N", "f", "n", "new", at, 1, 2}},
		"the same, stored once more": {answer(func(o *outcome) { o.ContentDigest = "D" }), content{"D", "f", "n", "new", at, 1, 2}},
		"the same, not stored again": {answer(func(o *outcome) { o.ContentDigest, o.Revisit = "D", schema.RevisitIdentical }), content{"D", "f", "n", "old", 7, 8, 9}},
		"that of another URL":        {answer(func(o *outcome) { o.Revisit = schema.RevisitIdentical }), content{digest: "N", etag: "f", modified: "n"}},
		"cut by its length":          {answer(func(o *outcome) { o.Truncated = schema.TruncatedLength }), content{"N", "f", "n", "new", at, 1, 2}},
		"broken off":                 {answer(func(o *outcome) { o.Truncated = schema.TruncatedDisconnect }), content{digest: "N"}},
		"too slow to be whole":       {answer(func(o *outcome) { o.Truncated = schema.TruncatedTime }), content{digest: "N"}},
		"304": {answer(func(o *outcome) {
			o.Outcome, o.ContentDigest, o.Revisit, o.ETag, o.LastModified = schema.NotModified, "D", schema.RevisitNotModified, "", ""
		}), kept},
		"304 with another ETag": {answer(func(o *outcome) {
			o.Outcome, o.ContentDigest, o.Revisit, o.ETag, o.LastModified = schema.NotModified, "D", schema.RevisitNotModified, "g", ""
		}), content{"D", "g", "m", "old", 7, 8, 9}},
		"a failure": {answer(func(o *outcome) { o.Outcome, o.ContentDigest = schema.HTTP5xx, "X" }), kept},
	} {
		cfg := Default()
		r := cfg.recordAfter(known, &known, &tc.o, false, cfg.rule())
		got := content{r.ContentDigest, r.ETag, r.LastModified, r.WARCFilename, r.ContentAt, r.WARCRecordOff, r.WARCRecordLen}
		if got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// A page that the network cut is due as after a failure: soon, and later each time. The interval that was learned
// stays, and the next whole answer counts like any other.
func TestAPageThatBrokeOffIsDueSoon(t *testing.T) {
	cfg := Default()
	fetch := func(prior schema.URLRecord, digest, truncated string, end schema.Outcome, days schema.Time) schema.URLRecord {
		return cfg.recordAfter(prior, &prior, &outcome{Outcome: end, HTTPStatus: 200, FetchedAt: at + days*day, ContentDigest: digest, Truncated: truncated}, false, cfg.rule())
	}
	whole := fetch(schema.URLRecord{}, "a", "", schema.OK, 0)
	for _, cut := range []string{schema.TruncatedDisconnect, schema.TruncatedTime} {
		once := fetch(whole, "b", cut, schema.OK, 30)
		if once.State != schema.StateFetched || once.NextDue != (at+30*day).Add(cfg.RetryAfter) || once.DueReason != schema.DueRetry || once.Changes != 0 || once.ETag != "" {
			t.Errorf("%s: %+v", cut, once)
		}
		twice := fetch(once, "c", cut, schema.OK, 31)
		if twice.NextDue != (at+31*day).Add(2*cfg.RetryAfter) || twice.Failures != 2 {
			t.Errorf("%s twice: %+v", cut, twice)
		}
		failed := fetch(twice, "", "", schema.HTTP5xx, 33)
		if failed.NextDue != (at + 33*day).Add(4*cfg.RetryAfter) {
			t.Errorf("%s, then a failure: %+v", cut, failed)
		}
		again := fetch(twice, "c", "", schema.OK, 33)
		if again.Failures != 0 || again.DueReason == schema.DueRetry || again.FalseAlarms != 0 || again.NextDue.Sub(at+33*day) < cfg.MinInterval {
			t.Errorf("%s, then whole: %+v", cut, again)
		}
	}
	for _, cut := range []string{schema.TruncatedLength, schema.TruncatedUnspecified} {
		if r := fetch(whole, "b", cut, schema.OK, 30); r.DueReason == schema.DueRetry || r.Failures != 0 {
			t.Errorf("%s: %+v", cut, r)
		}
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

// A list of the next month may name a page minutes after its last fetch. If the page is unchanged, it is not
// due again in the later rounds of that month, as long as they come within two months. If a sitemap caused the
// early fetch, the interval stays. A change shortens it to less than three days, but a single change within
// minutes is not enough for MinInterval.
func TestEarlyFetches(t *testing.T) {
	cfg := Default()
	const minute = 60 * 1e6
	prior := cfg.recordAfter(schema.URLRecord{}, &schema.URLRecord{}, &outcome{Outcome: schema.OK, FetchedAt: at, ContentDigest: "a"}, false, cfg.rule())
	announced := prior
	announced.NextDue, announced.DueReason = at+minute, schema.DueAnnounced
	for name, tc := range map[string]struct {
		prior  schema.URLRecord
		o      outcome
		want   time.Duration
		reason schema.DueReason
	}{
		"listed, unchanged":    {prior, outcome{Outcome: schema.OK, ContentDigest: "a"}, 2 * cfg.Interval, schema.DueSteady},
		"listed, 304":          {prior, outcome{Outcome: schema.NotModified, HTTPStatus: 304, ContentDigest: "a"}, 2 * cfg.Interval, schema.DueSteady},
		"listed, changed":      {prior, outcome{Outcome: schema.OK, ContentDigest: "b"}, 3 * 24 * time.Hour, schema.DueRate},
		"announced, unchanged": {announced, outcome{Outcome: schema.OK, ContentDigest: "a"}, cfg.Interval, schema.DueFirst},
		"announced, changed":   {announced, outcome{Outcome: schema.OK, ContentDigest: "b"}, 3 * 24 * time.Hour, schema.DueRate},
	} {
		tc.o.FetchedAt = at + 2*minute
		r := cfg.recordAfter(tc.prior, &tc.prior, &tc.o, false, cfg.rule())
		if got := r.NextDue.Sub(tc.o.FetchedAt); got != tc.want && (tc.reason != schema.DueRate || got > tc.want || got <= cfg.MinInterval) || r.DueReason != tc.reason {
			t.Errorf("%s: due after %v because of %s, want %v because of %s", name, got, r.DueReason, tc.want, tc.reason)
		}
	}
}

// A list names a page before it is due, and the page fails. The retry also comes before the page would have been
// due, but no sitemap caused it: it is no false alarm, and the interval doubles as after any other fetch.
func TestARetryIsNoFalseAlarm(t *testing.T) {
	cfg := Default()
	fetch := func(cfg Config, prior schema.URLRecord, o schema.Outcome, days schema.Time) schema.URLRecord {
		return cfg.recordAfter(prior, &prior, &outcome{Outcome: o, HTTPStatus: 200, FetchedAt: at + days*day, ContentDigest: "a"}, false, cfg.rule())
	}
	first := fetch(cfg, schema.URLRecord{}, schema.OK, 0)
	failed := fetch(cfg, first, schema.HTTP5xx, 1)
	if failed.NextDue != at+2*day || failed.DueReason != schema.DueRetry {
		t.Fatalf("%+v", failed)
	}
	announced := first
	announced.NextDue, announced.DueReason = at+2*day, schema.DueAnnounced
	for name, tc := range map[string]struct {
		prior  schema.URLRecord
		alarms int32
		wait   int64
	}{
		"retry":     {failed, 0, 60 * dayMS},
		"announced": {announced, 1, 30 * dayMS},
	} {
		r := fetch(cfg, tc.prior, schema.OK, 2)
		if r.FalseAlarms != tc.alarms || r.RevisitMS != tc.wait || r.Failures != 0 {
			t.Errorf("%s: %d false alarms, due after %g days, want %d and %d: %+v", name, r.FalseAlarms, float64(r.RevisitMS)/dayMS, tc.alarms, tc.wait/dayMS, r)
		}
	}
}
