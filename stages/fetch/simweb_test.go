package fetch

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
	"crawlbatch.io/crawlbatch/stages/simweb/truth"
)

// TestASyntheticWebIsFetchedAsItsTruthSays crawls a web with every fault of the table, in virtual
// time, and compares the outcomes with the generator's predictions.
func TestASyntheticWebIsFetchedAsItsTruthSays(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	bubble(t, func(t *testing.T) {
		cfg := simweb.Default()
		cfg.Hosts, cfg.PagesPerHost, cfg.FaultShare, cfg.SeedShare = 16, 40, 0.3, 1
		cfg.Faults = faults.Quick | faults.Retried | faults.Slow
		w, err := simweb.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		truthCfg := truth.Default()
		truthCfg.Rounds = 1
		correct, err := truth.Compute(w, truthCfg)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]truth.Fetch{}
		var list []string
		for _, f := range correct.Rounds[0].Fetches {
			want[f.URL] = f
			list = append(list, f.URL)
		}

		l := newLab(t, http.NotFound, list...)
		l.cfg.StripParams = truthCfg.StripParams
		l.cfg.Politeness.Delay = time.Second
		l.cfg.Window = 0
		// The task waits for late tries.
		l.cfg.Pauses.ServerError, l.cfg.Pauses.Timeout, l.cfg.Politeness.SlowFactor = 300*time.Millisecond, time.Second, 0
		record := simweb.NewLog(nil)
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		l.web.serve(func(ln pipeListener) { served <- simweb.NewServer(w, record).Serve(ctx, ln) })
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		stop()
		if err := <-served; err != nil {
			t.Fatal(err)
		}

		differ := 0
		for u, f := range l.outcomes(r) {
			got := truth.Fetch{
				URL: f.URL, Host: f.Host, Domain: f.Domain, Outcome: f.Outcome, HTTPStatus: f.HTTPStatus,
				RobotsAllowed: f.RobotsAllowed, RobotsRule: f.RobotsRule, Depth: f.Depth, Truncated: f.Truncated,
				RedirectTarget: f.RedirectTarget, Redirects: f.Redirects, FinalURL: f.FinalURL, Fault: want[u].Fault,
			}
			if diff := cmp.Diff(want[u], got); diff != "" {
				if differ++; differ < 20 {
					t.Errorf("%s (%s, error %q) (-want +got):\n%s", u, want[u].Fault, f.Error, diff)
				}
			}
		}
		for _, v := range truth.CheckLog(w, record.Entries(), truth.Pace{Delay: l.cfg.Politeness.Delay}) {
			t.Error(v)
		}
		l.checkCaptures(r)
		l.checkPace(r)
		l.checkErrorsGroup(r)

		var pages []string
		for _, p := range rowsOf[schema.Page](l, r, stages.FilePages) {
			pages = append(pages, p.PlannedURL+" "+p.URL)
		}
		var wantPages []string
		for _, p := range correct.Rounds[0].Pages {
			wantPages = append(wantPages, p.PlannedURL+" "+p.URL)
		}
		slices.Sort(pages)
		slices.Sort(wantPages)
		if diff := cmp.Diff(wantPages, pages); diff != "" {
			t.Errorf("pages (-want +got):\n%s", diff)
		}
		met := map[string]bool{}
		for _, f := range want {
			met[strings.TrimSpace(f.Fault)] = true
		}
		if len(met) < 40 {
			t.Errorf("only %d faults were met", len(met))
		}
	})
}
