package status

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
)

// A robots.txt that fails ends many URLs, and none of them got a request.
func TestFailuresCountRequestsAndNotURLs(t *testing.T) {
	var f Failures
	now := time.Unix(1000, 0)
	f.Note(schema.HTTP5xx, "h.test", "robots.txt answered 503", now)
	for _, u := range []schema.Fetch{
		{Outcome: schema.RobotsUnreachable}, {Outcome: schema.RobotsUnreachable}, {Outcome: schema.DNSError}, {Outcome: schema.HostSuspended, Attempts: 2},
		{Outcome: schema.Timeout, Attempts: 1}, {Outcome: schema.InternalError},
	} {
		f.NoteOutcome(&u, "h.test", now)
	}
	got := map[string]int64{}
	for _, n := range f.list() {
		got[n.Class] = n.N
	}
	if want := map[string]int64{"http_5xx": 1, "timeout": 1, "internal_error": 1}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAReportNamesTheHostsThatEndTogether(t *testing.T) {
	host := func(name string, rest time.Duration) stages.SlowHost { return stages.SlowHost{Host: name, Rest: rest} }
	for name, c := range map[string]struct {
		slowest []stages.SlowHost
		want    []string
	}{
		"nothing is left":       {nil, nil},
		"one decides":           {[]stages.SlowHost{host("a.test", time.Hour), host("b.test", 53*time.Minute)}, nil},
		"two decide":            {[]stages.SlowHost{host("a.test", time.Hour), host("b.test", 54*time.Minute), host("c.test", 53*time.Minute)}, []string{"a.test", "b.test"}},
		"the end is near":       {[]stages.SlowHost{host("a.test", 59*time.Second), host("b.test", 59*time.Second)}, nil},
		"all end at about once": {[]stages.SlowHost{host("a.test", time.Minute), host("b.test", time.Minute)}, []string{"a.test", "b.test"}},
	} {
		if got := Stored(stages.Activity{Slowest: c.slowest}, time.Unix(1000, 0)).Slowest; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestTheEndIsEarlierIfTheLastTryOfARobotsTxtFails(t *testing.T) {
	now := time.Unix(1000, 0)
	latest := &stages.Wait{Host: "bad.test", Until: now.Add(2 * time.Minute)}
	host := func(name string, rest time.Duration) stages.SlowHost { return stages.SlowHost{Host: name, Rest: rest} }
	for name, c := range map[string]struct {
		slowest []stages.SlowHost
		want    time.Duration
	}{
		"no other host":           {[]stages.SlowHost{host("bad.test", time.Hour)}, 2 * time.Minute},
		"another host":            {[]stages.SlowHost{host("bad.test", time.Hour), host("b.test", 9*time.Minute)}, 9 * time.Minute},
		"another host decides":    {[]stages.SlowHost{host("b.test", time.Hour), host("bad.test", time.Minute)}, 0},
		"the tries end later":     {[]stages.SlowHost{host("bad.test", time.Minute)}, 0},
		"no host has URLs to ask": {nil, 0},
	} {
		a := stages.Activity{Latest: latest, Slowest: c.slowest}
		if len(c.slowest) > 0 {
			a.Remaining = c.slowest[0].Rest
		}
		if got := Least(&a, now); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A host that pauses for one page's failure may have another failed page as its next item.
func TestAWaitNamesTheFailureThatCausedIt(t *testing.T) {
	for _, c := range []struct {
		reason  polite.Reason
		failure string
		urgent  bool
		want    string
	}{
		{polite.ByItem, "answered 502", false, "a page answered 502, asked again"},
		{polite.ByLimit, "answered 502", false, "answered 429 or 503, asked again"},
		{polite.ByLimit, "answered 429", false, "a page answered 429, asked again"},
		{polite.ByRetryAfter, "answered 503 with Retry-After", true, "robots.txt answered 503 with Retry-After, asked again"},
		{polite.ByEarlier, "answered 502", false, "a page answered 502, asked again"},
		{polite.ByEarlier, "", false, "a pause from an earlier attempt, asked again"},
		{polite.ByHold, "did not answer in time", false, "its name could not be looked up, tried again"},
		{polite.ByHold, How(0, false, schema.DNSError), false, "a page is on a host whose name could not be looked up, asked again"},
		{polite.ByBreaker, "did not answer in time", false, "suspended, because too many of its requests failed (a page did not answer in time); tried again"},
		{polite.ByDelay, "answered 502", false, "one request every 2s, the next"},
	} {
		got := Why(polite.Wait{Reason: c.reason, Delay: 2 * time.Second, Item: polite.Item{Why: c.failure, Urgent: c.urgent}})
		if got != c.want {
			t.Errorf("reason %d, %q: %q, want %q", c.reason, c.failure, got, c.want)
		}
	}
}
