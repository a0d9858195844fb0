package truth

import (
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/stages/simweb"
	"github.com/google/go-cmp/cmp"
)

func TestLogCheckCatchesPlantedViolations(t *testing.T) {
	w := newWeb(t, nil)
	profile := map[simweb.RobotsProfile]int{}
	for h := range w.Hosts() {
		profile[w.Profile(h)] = h
	}
	start := time.Unix(1_800_000_000, 0)
	ms := func(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	at := func(p simweb.RobotsProfile, when int, path string, status int) simweb.Entry {
		return simweb.Entry{Time: ms(when), Host: w.Host(profile[p]), Path: path, Status: status}
	}
	robots := func(p simweb.RobotsProfile) simweb.Entry { return at(p, 0, "/robots.txt", 200) }
	for _, tc := range []struct {
		name string
		log  []simweb.Entry
		want []ViolationKind
	}{
		{"polite", []simweb.Entry{robots(simweb.RobotsAllow), at(simweb.RobotsAllow, 100, "/", 200), at(simweb.RobotsAllow, 181, "/x", 404)}, nil},
		{"out of order in the log", []simweb.Entry{at(simweb.RobotsAllow, 200, "/x", 404), robots(simweb.RobotsAllow), at(simweb.RobotsAllow, 100, "/", 200)}, nil},
		{"another host at once", []simweb.Entry{robots(simweb.RobotsAllow), robots(simweb.RobotsRules), at(simweb.RobotsAllow, 100, "/", 200), at(simweb.RobotsRules, 101, "/", 200)}, nil},
		{"too soon", []simweb.Entry{robots(simweb.RobotsAllow), at(simweb.RobotsAllow, 100, "/", 200), at(simweb.RobotsAllow, 179, "/x", 404)}, []ViolationKind{TooSoon}},
		{"too soon after robots.txt", []simweb.Entry{robots(simweb.RobotsAllow), at(simweb.RobotsAllow, 50, "/", 200)}, []ViolationKind{TooSoon}},
		{"Crawl-delay is a floor", []simweb.Entry{robots(simweb.RobotsDelay), at(simweb.RobotsDelay, 500, "/", 200), at(simweb.RobotsDelay, 900, "/x", 404)}, []ViolationKind{TooSoon}},
		{"Crawl-delay is not known before", []simweb.Entry{robots(simweb.RobotsMoved), at(simweb.RobotsMoved, 100, "/robots-moved.txt", 200), at(simweb.RobotsMoved, 200, "/", 200)}, nil},
		{"denied by a prefix", []simweb.Entry{robots(simweb.RobotsRules), at(simweb.RobotsRules, 100, "/private/x", 404)}, []ViolationKind{Denied}},
		{"denied by a wildcard", []simweb.Entry{robots(simweb.RobotsRules), at(simweb.RobotsRules, 100, "/a/drafts/x", 404)}, []ViolationKind{Denied}},
		{"denied by an end anchor", []simweb.Entry{robots(simweb.RobotsMoved), at(simweb.RobotsMoved, 100, "/a.cgi", 404), at(simweb.RobotsMoved, 200, "/a.cgi?x", 404)}, []ViolationKind{Denied}},
		{"denied with a tracking parameter", []simweb.Entry{robots(simweb.RobotsRules), at(simweb.RobotsRules, 100, "/private/x?utm_source=y", 404)}, []ViolationKind{Denied}},
		{"allowed by an exception", []simweb.Entry{robots(simweb.RobotsRules), at(simweb.RobotsRules, 100, "/private/open-x", 404)}, nil},
		{"denied altogether", []simweb.Entry{robots(simweb.RobotsDenyAll), at(simweb.RobotsDenyAll, 100, "/", 200)}, []ViolationKind{Denied}},
		{"no robots.txt", []simweb.Entry{at(simweb.RobotsNone, 0, "/robots.txt", 404), at(simweb.RobotsNone, 100, "/private/x", 200)}, nil},
		{"robots.txt unreachable", []simweb.Entry{at(simweb.RobotsUnreachable, 0, "/robots.txt", 503), at(simweb.RobotsUnreachable, 100, "/", 200)}, []ViolationKind{RobotsNotServed}},
		{"robots.txt not asked for", []simweb.Entry{at(simweb.RobotsAllow, 0, "/", 200)}, []ViolationKind{RobotsNotAsked}},
		{"robots.txt asked for too late", []simweb.Entry{at(simweb.RobotsAllow, 100, "/robots.txt", 200), at(simweb.RobotsAllow, 0, "/", 200)}, []ViolationKind{RobotsNotAsked}},
	} {
		var got []ViolationKind
		for _, v := range CheckLog(w, tc.log, Pace{Delay: 100 * time.Millisecond, Slack: 20 * time.Millisecond}) {
			got = append(got, v.Kind)
			if v.String() == "" {
				t.Errorf("%s: a violation without words", tc.name)
			}
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
	slow := func(host string) time.Duration { return time.Second }
	if got := CheckLog(w, []simweb.Entry{robots(simweb.RobotsAllow), at(simweb.RobotsAllow, 500, "/", 200)}, Pace{DelayOf: slow}); len(got) != 1 {
		t.Errorf("a delay by host is not minded: %v", got)
	}
}
