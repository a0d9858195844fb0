package truth

import (
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// newWeb makes the default web, or one with another config if change is not nil.
func newWeb(t testing.TB, change func(*simweb.Config)) *simweb.Web {
	t.Helper()
	cfg := simweb.Default()
	if change != nil {
		change(&cfg)
	}
	w, err := simweb.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// serve starts a server on loopback that runs until the test ends.
func serve(t testing.TB, w *simweb.Web, log *simweb.Log) (addr string) {
	t.Helper()
	srv := httptest.NewServer(simweb.NewServer(w, log))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// unreadable returns the names of the faults that this test leaves out, because net/http cannot read
// their response or takes too long.
func unreadable() (names []string) {
	for _, f := range faults.All {
		switch f.Name {
		case "reset", "close": // net/http fails on these too
			continue
		case "http-1.0", "early-hints", "chunked", "gzip": // net/http reads these without an error
			continue
		case "deep", "gzip-bomb", "charset-wrong", "redirect-invalid":
			names = append(names, f.Name)
			continue
		}
		if f.OnWire() || len(f.Header) > 0 && f.Header[0] == "Content-Encoding" {
			names = append(names, f.Name)
		}
	}
	return names
}

func TestTruthIsWhatACrawlerFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	w := newWeb(t, func(c *simweb.Config) {
		c.Hosts, c.PagesPerHost, c.SeedShare, c.FaultShare, c.Faults = 20, 60, 0.1, 0.2, faults.Quick|faults.Retried
		c.LargeBody, c.CrawlDelay, c.Without = 5<<20+100, 0, unreadable()
	})
	cfg := Default()
	cfg.MaxDepth = 2
	cfg.Seeds = slices.Collect(w.Seeds())
	for _, f := range faults.InClasses(faults.Quick | faults.Retried) { // the graph may have no link to some faults
		if !slices.Contains(unreadable(), f.Name) {
			cfg.Seeds = append(cfg.Seeds, w.FaultURL(0, f.Name, 900))
		}
	}
	slices.Sort(cfg.Seeds)
	truth, err := Compute(w, cfg)
	if err != nil {
		t.Fatal(err)
	}
	log := simweb.NewLog(nil)
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
			t.Errorf("no URL has the outcome %s, so the test does not check it", o)
		}
	}
	for _, v := range CheckLog(w, log.Entries(), Pace{}) {
		t.Errorf("the crawl violated a rule, or the check is wrong: %s", v)
	}
}

func TestTruthKnowsTheTableOfFaults(t *testing.T) {
	w := newWeb(t, nil)
	cfg := Default()
	cfg.Rounds = 1
	for i := range faults.All {
		cfg.Seeds = append(cfg.Seeds, w.FaultURL(0, faults.All[i].Name, 9))
	}
	truth, err := Compute(w, cfg)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]Page{}
	for _, p := range truth.Rounds[0].Pages {
		pages[p.PlannedURL] = p
	}
	for _, f := range truth.Rounds[0].Fetches {
		want := faults.Named(f.Fault)
		if want == nil {
			t.Errorf("%s is not a fault", f.URL)
			continue
		}
		if want.Host { // the result depends on the host
			continue
		}
		if f.Outcome != want.Outcome || int(f.HTTPStatus) != want.Status || int(f.Redirects) != want.Redirects || f.Truncated != want.Truncated {
			t.Errorf("%s: %s %d after %d redirects, truncated %q; the table has %s %d, %d, %q", f.Fault, f.Outcome, f.HTTPStatus,
				f.Redirects, f.Truncated, want.Outcome, want.Status, want.Redirects, want.Truncated)
		}
		p, ok := pages[f.URL]
		if ok != (want.Page != faults.NoPage) {
			t.Errorf("%s: page %v, the table has part %d", f.Fault, ok, want.Page)
		}
		if text := ok && p.TextKnown && p.Main != ""; text != (want.Page == faults.WholePage || want.Page == faults.MainPage) {
			t.Errorf("%s: text %v, the table has part %d", f.Fault, text, want.Page)
		}
	}
	if len(truth.Rounds[0].Fetches) != len(faults.All) {
		t.Errorf("%d outcomes of %d faults", len(truth.Rounds[0].Fetches), len(faults.All))
	}
}

func TestTrackingParametersStayUnlessStripped(t *testing.T) {
	w := newWeb(t, func(c *simweb.Config) { c.Hosts, c.PagesPerHost = 4, 40 })
	cfg := Default()
	stripped, err := Compute(w, cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.StripParams = nil
	kept, err := Compute(w, cfg)
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
		t.Error("a page under two names is not a duplicate")
	}
}

func TestClustersAreComponents(t *testing.T) {
	w := newWeb(t, func(c *simweb.Config) { c.PagesPerHost, c.ExactShare, c.NearShare = 60, 0.1, 0.1 })
	truth, err := Compute(w, Default())
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

func TestConfigErrorsNameTheField(t *testing.T) {
	w := newWeb(t, nil)
	for field, change := range map[string]func(*Config){
		"Rounds":      func(c *Config) { c.Rounds = 0 },
		"Seeds":       func(c *Config) { c.Seeds = []string{"nothing"} },
		"StripParams": func(c *Config) { c.StripParams = []string{"*"} },
	} {
		cfg := Default()
		change(&cfg)
		if _, err := Compute(w, cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "config: "+field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}
