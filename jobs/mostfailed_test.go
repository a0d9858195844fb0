package jobs

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
)

func TestEachFailureHasOneReason(t *testing.T) {
	seen := map[schema.Outcome]int{}
	for _, r := range reasons {
		for _, o := range r.outcomes {
			seen[o]++
		}
	}
	for _, o := range schema.Outcomes {
		if (seen[o] == 1) != o.Failed() || seen[o] > 1 {
			t.Errorf("%s: it fails: %v, and %d reasons have it", o, o.Failed(), seen[o])
		}
	}
}

// ended returns the seal of a round with these outcomes. If answers is false, nothing answered its requests.
func ended(round int, answers bool, outcomes map[schema.Outcome]int64) *manifest.Sealed {
	counts := map[string]int64{"merge.requests": 7}
	if answers {
		counts["merge.captures"] = 7
	}
	for o, n := range outcomes {
		counts["plan.urls"] += n
		counts["merge.outcome."+string(o)] = n
	}
	return &manifest.Sealed{Crawl: "2026-11", Round: round, Counts: manifest.SortedCounts(counts)}
}

func TestARunSaysOfWhichRoundMostURLsFailed(t *testing.T) {
	type of = map[schema.Outcome]int64
	const ok, deferred, denied = schema.OK, schema.Deferred, schema.RobotsDenied
	blocked := ended(0, false, of{schema.AddressBlocked: 100})
	good, later := ended(0, true, of{ok: 90, schema.HTTP4xx: 10}), ended(1, true, of{ok: 100})
	for name, c := range map[string]struct {
		before, now []*manifest.Sealed // rounds that earlier commands and this one sealed
		want        string             // beginning of the sentence; "" for none
		fails       bool
	}{
		"nothing was sealed":           {nil, nil, "", false},
		"a tenth fails":                {nil, []*manifest.Sealed{good}, "", false},
		"half of them fail":            {nil, []*manifest.Sealed{ended(0, true, of{ok: 50, schema.HTTP4xx: 50})}, "", false},
		"one more than half":           {nil, []*manifest.Sealed{ended(0, true, of{ok: 49, schema.HTTP4xx: 51})}, "round 0 of 2026-11: 51 of 100 URLs failed, 51 of them with http_4xx: the hosts refuse", true},
		"half of them for a reason":    {nil, []*manifest.Sealed{ended(0, true, of{schema.HTTP4xx: 50, schema.HTTP5xx: 50})}, "", false},
		"two outcomes of one reason":   {nil, []*manifest.Sealed{ended(0, true, of{ok: 10, schema.ConnectError: 40, schema.Timeout: 20, schema.HTTP4xx: 30})}, "round 0 of 2026-11: 90 of 100 URLs failed, 60 of them with connect_error or timeout: the hosts do not answer", true},
		"deferred":                     {nil, []*manifest.Sealed{ended(0, true, of{ok: 10, deferred: 90})}, "", false},
		"deferred, nothing answered":   {nil, []*manifest.Sealed{ended(0, false, of{schema.ConnectError: 10, deferred: 90})}, "round 0 of 2026-11: 100 of 100 URLs failed: nothing answered", true},
		"no names, nothing answered":   {nil, []*manifest.Sealed{ended(0, false, of{schema.DNSError: 60, deferred: 40})}, "round 0 of 2026-11: 100 of 100 URLs failed, 60 of them with dns_error: the names", true},
		"robots.txt denies them":       {nil, []*manifest.Sealed{ended(0, true, of{ok: 49, denied: 51})}, "round 0 of 2026-11: 51 of 100 URLs were not requested: robots.txt forbids them", false},
		"robots.txt denies half":       {nil, []*manifest.Sealed{ended(0, true, of{ok: 50, denied: 50})}, "", false},
		"a good round, then one URL":   {nil, []*manifest.Sealed{good, ended(1, true, of{schema.HTTP4xx: 1})}, "", false},
		"a good round, then late ones": {nil, []*manifest.Sealed{good, ended(1, false, of{ok: 10, schema.Timeout: 50})}, "", false},
		"a good round, then a bad one": {nil, []*manifest.Sealed{good, ended(1, true, of{schema.HTTP4xx: 51})}, "round 1 of 2026-11: 51 of 51", true},
		"a bad round, then a good one": {nil, []*manifest.Sealed{blocked, later}, "round 0 of 2026-11: 100 of 100", true},
		"bad and large rounds":         {nil, []*manifest.Sealed{blocked, ended(1, true, of{ok: 99999})}, "round 0 of 2026-11: 100 of 100", true},
		"the same command again":       {[]*manifest.Sealed{blocked}, nil, "round 0 of 2026-11: 100 of 100", true},
		"again, after a follow-up":     {[]*manifest.Sealed{blocked, ended(1, true, of{ok: 2})}, nil, "round 0 of 2026-11: 100 of 100", true},
		"a later round ends it":        {[]*manifest.Sealed{blocked}, []*manifest.Sealed{later}, "", false},
		"which does not come again":    {[]*manifest.Sealed{blocked, later}, nil, "", false},
		"another follow-up alone":      {[]*manifest.Sealed{good}, []*manifest.Sealed{ended(1, true, of{schema.HTTP4xx: 1})}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var warned strings.Builder
			f.driver.Log = slog.New(slog.NewTextHandler(&warned, nil))
			for _, s := range c.before {
				f.driver.judge.add(s, false)
			}
			for _, s := range c.now {
				f.driver.judge.add(s, true)
			}
			err := f.driver.MostFailed(t.Context())
			said := warned.String()
			if err != nil {
				said += err.Error()
			}
			if errors.Is(err, ErrMostFailed) != c.fails || !strings.Contains(said, c.want) || (said == "") != (c.want == "") {
				t.Errorf("it says %q, want %q", said, c.want)
			}
		})
	}
	reparse := ended(0, false, of{schema.HTTP4xx: 100})
	reparse.Crawl = "2026-11r1"
	var j judge
	if j.add(reparse, true); j.found != nil {
		t.Errorf("a reparse, which requests nothing: %+v", j.found)
	}
}
