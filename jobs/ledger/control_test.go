package ledger_test

import (
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
)

const controlled = "2026-11"

func controlledCrawl(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.Create(t.Context(), b, layout.CrawlManifest(controlled), &manifest.Crawl{Crawl: controlled}); err != nil {
		t.Fatal(err)
	}
	ledgertest.Make(t, b, controlled)
	return b
}

func loaded(t *testing.T, b store.Bucket) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Load(t.Context(), b, controlled)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAStopIsInForceUntilItIsResumed(t *testing.T) {
	b, w := controlledCrawl(t), ledgertest.Writer()
	if loaded(t, b).Stopped() != nil {
		t.Error("a new crawl stops something")
	}
	for n, step := range []struct {
		stop    ledger.Stop
		changed bool
	}{
		{ledger.Stop{Host: "www.example.org", Reason: "ticket 17", By: "ana@one"}, true},
		{ledger.Stop{Host: "www.example.org", Reason: "ticket 17", By: "bob@two"}, false},
		{ledger.Stop{Host: "www.example.org", Reason: "ticket 18", By: "bob@two"}, true},
		{ledger.Stop{Domain: "example.net", Reason: "law", By: "ana@one"}, true},
	} {
		now, changed, err := w.Stop(t.Context(), b, controlled, step.stop)
		if err != nil || changed != step.changed || now.Reason != step.stop.Reason || now.Since == "" {
			t.Errorf("step %d: %+v, changed %t, %v", n, now, changed, err)
		}
	}
	l := loaded(t, b)
	s := l.Stopped()
	for host, want := range map[[2]string]string{
		{"www.example.org", "example.org"}: "ticket 18", {"example.org", "example.org"}: "", {"www.example.org:8080", "example.org"}: "",
		{"a.example.net", "example.net"}: "law", {"example.net:81", "example.net"}: "law", {"notexample.net", "notexample.net"}: "",
	} {
		if got := s.Reason(host[0], host[1]); got != want {
			t.Errorf("%s: %q, want %q", host[0], got, want)
		}
	}
	if all := l.Stops(); len(all) != 3 || all[0].Ended == "" || all[0].EndedBy != "bob@two" || len(l.StopsInForce()) != 2 {
		t.Errorf("stops: %+v", all)
	}
	for n, want := range []bool{true, false} {
		was, err := w.Resume(t.Context(), b, controlled, "www.example.org", "", "eve@three")
		if err != nil || (was != nil) != want {
			t.Errorf("resume %d: %+v, %v", n, was, err)
		}
	}
	if was, err := w.Resume(t.Context(), b, controlled, "a.example.net", "", "eve@three"); err != nil || was != nil {
		t.Errorf("the resume of a host ended the stop of its domain: %+v, %v", was, err)
	}
	l = loaded(t, b)
	if l.Stopped().Reason("www.example.org", "example.org") != "" || l.Stopped().Reason("a.example.net", "example.net") != "law" {
		t.Errorf("after resume: %+v", l.StopsInForce())
	}
	if text := l.Stops()[1].String(); !strings.Contains(text, "ticket 18") || !strings.HasSuffix(text, "resumed by eve@three") {
		t.Error(text)
	}
}

func TestAPauseIsInForceUntilContinue(t *testing.T) {
	b, w := controlledCrawl(t), ledgertest.Writer()
	if _, changed, err := w.Continue(t.Context(), b, controlled, "ana@one"); err != nil || changed {
		t.Errorf("continue without a pause: %t, %v", changed, err)
	}
	for round := range 2 { // a second pause counts like the first
		for n, by := range []string{"ana@one", "bob@two"} {
			l, changed, err := w.Pause(t.Context(), b, controlled, by, "new proxy")
			if err != nil || changed != (n == 0) || l.Paused("").By != "ana@one" {
				t.Errorf("round %d, pause by %s: changed %t, %+v, %v", round, by, changed, l.Paused(""), err)
			}
		}
		p := loaded(t, b).Paused(" --store x")
		if p == nil || p.Continue != "crawlbatch continue --month 2026-11 --store x" || !strings.Contains(p.String(), "by ana@one (new proxy): continue with `"+p.Continue+"`") {
			t.Errorf("round %d: %v", round, p)
		}
		for n, want := range []bool{true, false} {
			l, changed, err := w.Continue(t.Context(), b, controlled, "bob@two")
			if err != nil || changed != want || l.Paused("") != nil {
				t.Errorf("round %d, continue %d: %t, %v", round, n, changed, err)
			}
		}
	}
	if entries := loaded(t, b).Entries(); entries[len(entries)-1].What != manifest.EntryContinue || entries[len(entries)-1].By != "bob@two" {
		t.Errorf("entries: %+v", entries)
	}
}
