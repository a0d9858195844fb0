package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/optout"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/source"
)

// The opt-out list names a URL as it is linked, which is the form that would be sent. A form that the rules for URLs
// change is not sent, so it does not matter that the list names it.
func TestALinkToAListedForm(t *testing.T) {
	web, addr := serveLinks(t, map[string]string{"a.test/": "/x/ /y?b=2&a=1 /z?a=1&b=2", "a.test/x": "", "a.test/y": "", "a.test/z": ""})
	list := filepath.Join(t.TempDir(), "opt-out.txt")
	if err := os.WriteFile(list, []byte("a.test/*/\na.test/*?b=*\na.test/z?b=2&a=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := newCrawlLab(t, addr, []string{"http://a.test/"}, func(c *config.Config) {
		c.Plan.OptOut, c.Plan.Canonical.TrailingSlash = list, true
	})
	if err := l.driver.Run(t.Context(), testCrawl, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"http://a.test/", "http://a.test/x"}, web.pagesAsked()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0 http://a.test/y?a=1&b=2 opt_out a.test/*?b=*", "0 http://a.test/z?a=1&b=2 opt_out a.test/z?b=2&a=1"}, l.skips(t, 1)); diff != "" {
		t.Errorf("skips (-want +got):\n%s", diff)
	}
	l.verify(t, true)
}

// A crawl requests no URL of the opt-out list, whether a source, a link, a redirect or the redirect of a
// robots.txt leads there. The list changes between the rounds.
func TestNothingOfTheOptOutListIsRequested(t *testing.T) {
	web, addr := serveLinks(t, map[string]string{
		"a.test/":       "/open /private/link /chain /away /later http://sub.out.test/link http://elsewhere.test/",
		"a.test/open":   "/private/link2 /later/2",
		"a.test/chain":  "302 /chain2",
		"a.test/chain2": "302 /private/redirected", "a.test/private/redirected": "302 /open2",
		"a.test/away": "302 http://sub.out.test/away", "a.test/later": "", "a.test/later/2": "",
		"elsewhere.test/robots.txt": "302 http://out.test/robots.txt", "elsewhere.test/": "",
		"out.test/robots.txt": "", "out.test/": "", "sub.out.test/link": "", "sub.out.test/away": "",
	})
	list := filepath.Join(t.TempDir(), "opt-out.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(list, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("# asked on Monday\nOUT.test\na.test/private/*\n")
	l := newCrawlLab(t, addr, []string{"http://a.test/", "http://out.test/", "http://a.test/private/listed"}, func(c *config.Config) {
		c.Frontier.Follow = "any"
		c.Plan.OptOut = list
	})
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	write("out.test\na.test/private/*\na.test/later*\n")
	if err := l.driver.Run(t.Context(), testCrawl, 2); err != nil {
		t.Fatal(err)
	}
	want := []string{"a.test/", "a.test/away", "a.test/chain", "a.test/chain2", "a.test/open", "elsewhere.test/robots.txt"}
	if diff := cmp.Diff(want, slices.Compact(web.requests())); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	wantSkips := []string{
		"0 http://a.test/private/link opt_out a.test/private/*", "0 http://a.test/private/listed opt_out a.test/private/*",
		"0 http://out.test/ opt_out OUT.test", "0 http://sub.out.test/link opt_out OUT.test",
		"1 http://a.test/later opt_out a.test/later*", "1 http://a.test/later/2 opt_out a.test/later*",
		"1 http://a.test/private/link2 opt_out a.test/private/*", "1 http://a.test/private/redirected opt_out a.test/private/*",
		"1 http://sub.out.test/away opt_out out.test",
	}
	got := l.skips(t, 2)
	slices.Sort(got)
	if diff := cmp.Diff(wantSkips, got); diff != "" {
		t.Errorf("skips (-want +got):\n%s", diff)
	}
	p, _, err := roundstate.FindPlan(t.Context(), l.bucket, testCrawl, 1)
	if err != nil {
		t.Fatal(err)
	}
	if rows := tabletest.Read[schema.OptOut](t, l.bucket, p.OptOutFile.Key); len(rows) != 3 || rows[0].Entry != "out.test" {
		t.Errorf("the second round's list: %+v", rows)
	}
	l.verify(t, true)
}

// A crawl plans no round if its list is missing or damaged, or if plan.opt_out no longer names it.
func TestNoRoundIsPlannedWithoutItsOptOutList(t *testing.T) {
	web, addr := serveLinks(t, map[string]string{"a.test/": "/x", "a.test/x": ""})
	list := filepath.Join(t.TempDir(), "opt-out.txt")
	if err := os.WriteFile(list, []byte("out.test\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := newCrawlLab(t, addr, []string{"http://a.test/"}, func(c *config.Config) { c.Plan.OptOut = list })
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	web.requests()
	for name, tc := range map[string]struct {
		prepare func() string // returns plan.opt_out
		err     error
	}{
		"another config": {func() string { return "" }, config.ErrInvalid},
		"standard input": {func() string { return "-" }, config.ErrInvalid},
		"the frontier":   {func() string { return "frontier" }, config.ErrInvalid},
		"a bucket":       {func() string { return "s3://bucket/opt-out.txt" }, config.ErrInvalid},
		"a database":     {func() string { return "mysql://db/x" }, source.ErrMissing},
		"malformed":      {func() string { os.WriteFile(list, []byte("out.test\nno host\n"), 0o644); return list }, planner.ErrConfig},
		"damaged":        {func() string { os.WriteFile(list, []byte("\x1f\x8b\x08"), 0o644); return list }, source.ErrUnreadable},
		"absent":         {func() string { os.Remove(list); return list }, source.ErrMissing},
	} {
		l.driver.Config = l.cfg.Clone()
		l.driver.Config.Plan.OptOut = tc.prepare()
		err := l.driver.Run(t.Context(), testCrawl, 2)
		if !errors.Is(err, tc.err) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "- for standard input") {
			t.Errorf("%s: %v, want %v without an advice that fails too", name, err, tc.err)
		}
		if _, _, err := roundstate.FindPlan(t.Context(), l.bucket, testCrawl, 1); !errors.Is(err, roundstate.ErrNoPlan) {
			t.Errorf("%s: a plan: %v", name, err)
		}
	}
	if asked := web.requests(); len(asked) > 0 {
		t.Errorf("requested %q", asked)
	}
	// The list may also be an object in a bucket.
	b := directory(t)
	archive := func(_ context.Context, address string) (store.Bucket, error) {
		if address != "s3://bucket" {
			t.Errorf("opens %q", address)
		}
		return b, nil
	}
	cfg := config.Default()
	cfg.Plan.OptOut = "s3://bucket/lists/opt-out.txt"
	if _, err := optout.Read(t.Context(), cfg, archive); !errors.Is(err, source.ErrMissing) {
		t.Errorf("an absent object: %v", err)
	}
	if _, err := b.Create(t.Context(), "lists/opt-out.txt", strings.NewReader("out.test\n"), 9); err != nil {
		t.Fatal(err)
	}
	o, err := optout.Read(t.Context(), cfg, archive)
	if err != nil {
		t.Fatal(err)
	}
	if entry, ok := o.Refuses("http://www.out.test/", ""); !ok || entry != "out.test" {
		t.Errorf("%q, %v", entry, ok)
	}
}

// If the plan's copy of the list is missing or damaged, no task of the round sends a request.
func TestADamagedCopyOfTheOptOutListStopsTheRound(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, file string){
		"missing": func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		},
		"emptied": func(t *testing.T, file string) {
			if err := os.WriteFile(file, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"changed": func(t *testing.T, file string) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, bytes.Replace(body, []byte("out.test"), []byte("our.test"), -1), 0o644); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			web, addr := serveLinks(t, map[string]string{"a.test/": "302 http://out.test/", "out.test/": ""})
			list := filepath.Join(t.TempDir(), "opt-out.txt")
			if err := os.WriteFile(list, []byte("out.test\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			l := newCrawlLab(t, addr, []string{"http://a.test/"}, func(c *config.Config) { c.Plan.OptOut = list })
			p, _, err := roundstate.FindPlan(t.Context(), l.bucket, testCrawl, 0)
			if err != nil {
				t.Fatal(err)
			}
			damage(t, filepath.Join(l.dir, filepath.FromSlash(p.OptOutFile.Key)))
			if err := l.driver.Run(t.Context(), testCrawl, 1); err == nil {
				t.Error("the round was crawled")
			} else {
				t.Log(err)
			}
			if asked := web.requests(); len(asked) > 0 {
				t.Errorf("requested %q", asked)
			}
			if r := l.report(t, true); !slices.ContainsFunc(r.Violations, func(v audit.Violation) bool { return strings.Contains(fmt.Sprint(v), p.OptOutFile.Key) }) {
				t.Errorf("verify does not report it: %+v", r.Violations)
			}
		})
	}
}
