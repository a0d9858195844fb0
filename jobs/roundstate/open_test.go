package roundstate

import (
	"os"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
)

// Who queries a crawl that still runs is told which rounds the views lack.
func TestANoteNamesTheRoundsThatAreNotFinished(t *testing.T) {
	b, p := sealable(t)
	note := func(crawl string, all bool) string {
		t.Helper()
		_, note, err := toOpen(t.Context(), b, crawl, all, os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		return note
	}
	const none = "no round of 2026-11 is finished yet, so the views are empty: create them again after the first round"
	if got := note("", true); got != none {
		t.Error(got)
	}
	if err := Seal(t.Context(), b, p, ledgertest.Writer(), nil); err != nil {
		t.Fatal(err)
	}
	if got := note("", true); got != "" {
		t.Error(got)
	}
	ledgertest.Edit(t, b, "2026-11", func(all []manifest.Entry) []manifest.Entry {
		return append(all, manifest.Entry{What: manifest.EntryStarted, Round: new(1)})
	})
	const second = "round 1 of 2026-11 is not finished, so the views lack its rows"
	if got := note("", false); got != "opened 2026-11, the newest crawl with a finished round; "+second {
		t.Error(got)
	}
	if got := note("", true); got != second {
		t.Error(got)
	}
}
