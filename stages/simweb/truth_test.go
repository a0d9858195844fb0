package simweb

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/simhash"
)

// readable leaves out of a web's faults those that net/http loses or that a test has no time for.
func readable(w *Web) {
	w.faults = slices.DeleteFunc(slices.Clone(w.faults), func(f *Fault) bool {
		switch f.Name {
		case "reset", "close": // as net/http sees them too
			return false
		case "http-1.0", "early-hints", "chunked", "gzip": // salvaged by none, since nothing is wrong
			return false
		case "deep", "gzip-bomb", "charset-wrong", "redirect-invalid":
			return true
		}
		return f.wire != nil || f.script != nil || len(f.header) > 0 && f.header[0] == "Content-Encoding"
	})
}

func TestTruthIsWhatACrawlerFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	w := newWeb(t, func(c *Config) {
		c.Hosts, c.PagesPerHost, c.SeedShare, c.FaultShare, c.Faults = 20, 60, 0.1, 0.2, Quick|Retried
		c.LargeBody, c.CrawlDelay = 5<<20+100, 0
	})
	readable(w)
	cfg := DefaultTruth()
	cfg.MaxDepth = 2
	cfg.Seeds = slices.Collect(w.Seeds())
	for _, f := range w.faults { // the graph may lack some
		cfg.Seeds = append(cfg.Seeds, w.FaultURL(0, f.Name, 900))
	}
	slices.Sort(cfg.Seeds)
	truth, err := w.Truth(cfg)
	if err != nil {
		t.Fatal(err)
	}
	log := NewLog(1<<20, nil)
	n := newNaive(t, serve(t, w, log))
	got, err := n.rounds(cfg.Seeds, cfg.Rounds, cfg.MaxDepth)
	if err != nil {
		t.Fatal(err)
	}
	ignore := cmp.Options{
		cmpopts.IgnoreFields(Fetch{}, "Fault"),
		cmpopts.IgnoreFields(Round{}, "Clusters"),
		cmpopts.EquateEmpty(),
	}
	outcomes := map[schema.Outcome]int{}
	for i := range got {
		t.Logf("round %d: %s", i, summary(&truth.Rounds[i]))
		if d := cmp.Diff(truth.Rounds[i], got[i], ignore); d != "" {
			t.Errorf("round %d, truth (-) and crawl (+):\n%.6000s", i, d)
		}
		for _, f := range truth.Rounds[i].Fetches {
			outcomes[f.Outcome]++
		}
	}
	for _, o := range []schema.Outcome{schema.OK, schema.Redirected, schema.RobotsDenied, schema.RobotsUnreachable, schema.HTTP4xx,
		schema.HTTP5xx, schema.RateLimited, schema.ConnectError, schema.ProtocolError, schema.RedirectLimit, schema.MIMEFiltered} {
		if outcomes[o] == 0 {
			t.Errorf("no URL of outcome %s: the test shows too little", o)
		}
	}
	for _, v := range w.CheckLog(log.Entries(), Pace{}) {
		t.Errorf("the crawl was not polite, or the check is wrong: %s", v)
	}
}

func TestTruthKnowsTheTableOfFaults(t *testing.T) {
	w := newWeb(t, nil)
	cfg := DefaultTruth()
	cfg.Rounds = 1
	for i := range Faults {
		cfg.Seeds = append(cfg.Seeds, w.FaultURL(0, Faults[i].Name, 9))
	}
	truth, err := w.Truth(cfg)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]Page{}
	for _, p := range truth.Rounds[0].Pages {
		pages[p.PlannedURL] = p
	}
	for _, f := range truth.Rounds[0].Fetches {
		want := faultNamed(f.Fault)
		if want == nil {
			t.Errorf("%s is no fault", f.URL)
			continue
		}
		if want.Host { // this one, on this host
			continue
		}
		if f.Outcome != want.Outcome || int(f.HTTPStatus) != want.Status || int(f.Redirects) != want.Redirects || f.Truncated != want.Truncated {
			t.Errorf("%s: %s %d after %d redirects, truncated %q; the table has %s %d, %d, %q", f.Fault, f.Outcome, f.HTTPStatus,
				f.Redirects, f.Truncated, want.Outcome, want.Status, want.Redirects, want.Truncated)
		}
		p, ok := pages[f.URL]
		if ok != (want.Page != NoPage) {
			t.Errorf("%s: page %v, the table has part %d", f.Fault, ok, want.Page)
		}
		if text := ok && p.TextKnown && p.Main != ""; text != (want.Page == WholePage || want.Page == MainPage) {
			t.Errorf("%s: text %v, the table has part %d", f.Fault, text, want.Page)
		}
	}
	if len(truth.Rounds[0].Fetches) != len(Faults) {
		t.Errorf("%d outcomes of %d faults", len(truth.Rounds[0].Fetches), len(Faults))
	}
}

func TestTrackingParametersStayUnlessStripped(t *testing.T) {
	w := newWeb(t, func(c *Config) { c.Hosts, c.PagesPerHost = 4, 40 })
	cfg := DefaultTruth()
	stripped, err := w.Truth(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.StripParams = nil
	kept, err := w.Truth(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := len(stripped.Rounds[0].Next), len(kept.Rounds[0].Next); a >= b {
		t.Errorf("%d URLs are next when parameters are stripped, %d when not", a, b)
	}
	exact := 0
	for _, c := range kept.Rounds[1].Clusters {
		for _, m := range c.Members {
			if m.Kind == schema.DupExact {
				exact++
			}
		}
	}
	if exact == 0 {
		t.Error("a page under two names is no duplicate")
	}
}

func TestClustersAreComponents(t *testing.T) {
	w := newWeb(t, func(c *Config) { c.PagesPerHost, c.ExactShare, c.NearShare = 60, 0.1, 0.1 })
	truth, err := w.Truth(DefaultTruth())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[schema.DuplicateKind]int{}
	earlier, far := 0, 0
	for i, r := range truth.Rounds {
		pages := map[string]Page{}
		for _, p := range r.Pages {
			pages[p.URL] = p
		}
		cluster := map[string]int{}
		for n, c := range r.Clusters {
			if c.Earlier >= 0 {
				earlier++
			}
			for _, m := range c.Members {
				kinds[m.Kind]++
				if m.Distance > 3 {
					far++
				}
				if _, twice := cluster[m.URL]; twice {
					t.Errorf("%s is in two clusters", m.URL)
				}
				cluster[m.URL] = n + 1
			}
		}
		for a, pa := range pages {
			for b, pb := range pages {
				near := pa.WordCount >= 50 && pb.WordCount >= 50 && simhash.Distance(pa.SimHash, pb.SimHash) <= 3
				if a != b && near && cluster[a] != cluster[b] {
					t.Errorf("round %d: %s and %s are near and in different clusters", i, a, b)
				}
			}
		}
	}
	if kinds[schema.DupExact] == 0 || kinds[schema.DupNear] == 0 || kinds[schema.DupRepresentative] == 0 || earlier == 0 || far == 0 {
		t.Errorf("kinds %v, %d with an earlier representative, %d beyond the limit: want some of all", kinds, earlier, far)
	}
}

func TestTruthConfigErrorsNameTheField(t *testing.T) {
	w := newWeb(t, nil)
	for field, change := range map[string]func(*TruthConfig){
		"Rounds":      func(c *TruthConfig) { c.Rounds = 0 },
		"Follow":      func(c *TruthConfig) { c.Follow = "links" },
		"Seeds":       func(c *TruthConfig) { c.Seeds = []string{"nothing"} },
		"StripParams": func(c *TruthConfig) { c.StripParams = []string{"*"} },
	} {
		cfg := DefaultTruth()
		change(&cfg)
		if _, err := w.Truth(cfg); !errors.Is(err, ErrTruth) || !strings.Contains(err.Error(), "config: "+field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

func TestLogCheckCatchesPlantedViolations(t *testing.T) {
	w := newWeb(t, nil)
	profile := map[RobotsProfile]int{}
	for h := range w.Hosts() {
		profile[w.Profile(h)] = h
	}
	start := time.Unix(1_800_000_000, 0)
	ms := func(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	at := func(p RobotsProfile, when int, path string, status int) Entry {
		return Entry{Time: ms(when), Host: w.Host(profile[p]), Path: path, Status: status}
	}
	robots := func(p RobotsProfile) Entry { return at(p, 0, "/robots.txt", 200) }
	for _, tc := range []struct {
		name string
		log  []Entry
		want []ViolationKind
	}{
		{"polite", []Entry{robots(RobotsAllow), at(RobotsAllow, 100, "/", 200), at(RobotsAllow, 181, "/x", 404)}, nil},
		{"out of order in the log", []Entry{at(RobotsAllow, 200, "/x", 404), robots(RobotsAllow), at(RobotsAllow, 100, "/", 200)}, nil},
		{"another host at once", []Entry{robots(RobotsAllow), robots(RobotsRules), at(RobotsAllow, 100, "/", 200), at(RobotsRules, 101, "/", 200)}, nil},
		{"too soon", []Entry{robots(RobotsAllow), at(RobotsAllow, 100, "/", 200), at(RobotsAllow, 179, "/x", 404)}, []ViolationKind{TooSoon}},
		{"too soon after robots.txt", []Entry{robots(RobotsAllow), at(RobotsAllow, 50, "/", 200)}, []ViolationKind{TooSoon}},
		{"Crawl-delay is a floor", []Entry{robots(RobotsDelay), at(RobotsDelay, 500, "/", 200), at(RobotsDelay, 900, "/x", 404)}, []ViolationKind{TooSoon}},
		{"Crawl-delay is not known before", []Entry{robots(RobotsMoved), at(RobotsMoved, 100, robotsMoved, 200), at(RobotsMoved, 200, "/", 200)}, nil},
		{"denied by a prefix", []Entry{robots(RobotsRules), at(RobotsRules, 100, "/private/x", 404)}, []ViolationKind{Denied}},
		{"denied by a wildcard", []Entry{robots(RobotsRules), at(RobotsRules, 100, "/a/drafts/x", 404)}, []ViolationKind{Denied}},
		{"denied by an end anchor", []Entry{robots(RobotsMoved), at(RobotsMoved, 100, "/a.cgi", 404), at(RobotsMoved, 200, "/a.cgi?x", 404)}, []ViolationKind{Denied}},
		{"denied with a tracking parameter", []Entry{robots(RobotsRules), at(RobotsRules, 100, "/private/x?ref=y", 404)}, []ViolationKind{Denied}},
		{"allowed by an exception", []Entry{robots(RobotsRules), at(RobotsRules, 100, "/private/open-x", 404)}, nil},
		{"denied altogether", []Entry{robots(RobotsDenyAll), at(RobotsDenyAll, 100, "/", 200)}, []ViolationKind{Denied}},
		{"no robots.txt", []Entry{at(RobotsNone, 0, "/robots.txt", 404), at(RobotsNone, 100, "/private/x", 200)}, nil},
		{"robots.txt unreachable", []Entry{at(RobotsUnreachable, 0, "/robots.txt", 503), at(RobotsUnreachable, 100, "/", 200)}, []ViolationKind{RobotsNotServed}},
		{"robots.txt not asked for", []Entry{at(RobotsAllow, 0, "/", 200)}, []ViolationKind{RobotsNotAsked}},
		{"robots.txt asked for too late", []Entry{at(RobotsAllow, 100, "/robots.txt", 200), at(RobotsAllow, 0, "/", 200)}, []ViolationKind{RobotsNotAsked}},
	} {
		var got []ViolationKind
		for _, v := range w.CheckLog(tc.log, Pace{Delay: 100 * time.Millisecond, Slack: 20 * time.Millisecond}) {
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
	if got := w.CheckLog([]Entry{robots(RobotsAllow), at(RobotsAllow, 500, "/", 200)}, Pace{DelayOf: slow}); len(got) != 1 {
		t.Errorf("a delay by host is not minded: %v", got)
	}
}
