package verify

import (
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// A killed process leaves only the record that it began. This is no violation, but no check covers the
// requests that it did not record.
func TestAKilledAttemptIsNotedAndIsNoViolation(t *testing.T) {
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.CrawlDelay, w.RetryAfter, w.FaultShare = 2, 4, 5*time.Millisecond, 0, 0
	l := newSimwebLab(t, w, func(*config.Config) {})
	for _, stage := range []stages.Stage{stages.Fetch, stages.Merge} {
		task := stages.Task{Stage: stage, Crawl: testCrawl}
		if key := roundstate.CreateBegun(t.Context(), l.bucket, task, &manifest.Begun{Task: task.String(), At: "2026-11-02T10:00:00Z", Machine: "one"}); key == "" {
			t.Fatal("the beginning was not recorded")
		}
	}
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	r := l.report(t, true)
	is := func(n string) bool {
		return strings.HasPrefix(n, "round 0: attempts at fetch tasks that were killed: 1. ")
	}
	if r.Found() != 0 || !slices.ContainsFunc(r.Notes, is) {
		t.Errorf("%d violations, notes %q", r.Found(), r.Notes)
	}
	// Neither is a command that was killed before it changed an object.
	if _, err := roundstate.HoldForQuarantine(t.Context(), l.bucket, testCrawl, 0, ledgertest.Writer()); err != nil {
		t.Fatal(err)
	}
	is = func(n string) bool {
		return strings.Contains(n, "--quarantine --yes` moves objects, or was interrupted")
	}
	if r := l.report(t, true); r.Found() != 0 || !slices.ContainsFunc(r.Notes, is) {
		t.Errorf("%d violations, notes %q", r.Found(), r.Notes)
	}
}
