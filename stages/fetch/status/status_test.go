package status

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
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
