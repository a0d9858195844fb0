package planner

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

const takedownKey = "0123456789abcdef0123456789abcdef"

// guard returns the guard of a list with the given targets.
func guard(t *testing.T, b store.Bucket, cfg Config, urls, domains []string) *takedown.Guard {
	t.Helper()
	c, err := urlkey.NewWithRules(cfg.StripParams, cfg.Rules)
	if err != nil {
		t.Fatal(err)
	}
	m, err := takedown.New(urls, domains, c)
	if err != nil {
		t.Fatal(err)
	}
	k, err := takedown.NewKey(takedownKey)
	if err == nil {
		err = takedown.Append(t.Context(), b, k, m, manifest.Takedown{At: "2026-11-26T00:00:00Z", Reason: "asked"})
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := takedown.Open(t.Context(), b, takedownKey)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Every source names what was taken down, in every form, also in lines that are not URLs. The opt-out
// list names it too.
func TestAPlanNamesNothingThatWasTakenDown(t *testing.T) {
	b := bucket(t)
	cfg := Default()
	cfg.StripParams = []string{"utm_*"}
	cfg.Rules = urlkey.Rules{TrailingSlash: true}
	optOut, err := readOptOut(t, "gone.example\n*.gone.example\nother.example\nkept.example/~a/gone?x=1\n", cfg.Rules)
	if err != nil {
		t.Fatal(err)
	}
	cfg.OptOut = optOut
	cfg.Gone = guard(t, b, cfg, []string{"http://kept.example/~a/gone?x=1", "http://kept.example/d/"}, []string{"gone.example"})
	listed := []string{
		"http://gone.example/", "https://GONE.example:443/x", "http://www.gone.example./y", "http://a.b.gone.example:8080/", "http://%67one.example/",
		"http://kept.example/~a/gone?x=1", "https://kept.example/%7Ea/gone?x=1&utm_source=m", "http://KEPT.example:80/%7ea/gone?x=1#f", "http://kept.example/d/", "http://kept.example/d",
		"ftp://gone.example/file", "http://gone.example:99999/", "http://gone.example/" + strings.Repeat("x", 9000), "see gone.example",
	}
	from := append(slices.Clone(listed), "http://kept.example/", "http://kept.example/~a/gone", "http://notgone.example/", "http://gone.example.org/", "not a URL", "http://other.example/")
	m, parts, refused := commitAndRead(t, b, plan(t, cfg, lines(from...), known(
		source.Entry{URL: "http://gone.example/known", File: source.FrontierName, Due: true, Form: schema.Linked("http://gone.example/%6bnown", true)},
		source.Entry{URL: "http://kept.example/known", File: source.FrontierName, Due: true},
	)))
	want := []string{"http://gone.example.org/", "http://kept.example/", "http://kept.example/known", "http://kept.example/~a/gone", "http://notgone.example/"}
	got := planned(parts)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("planned %q, want %q", got, want)
	}
	var rows []string
	for _, r := range refused {
		rows = append(rows, string(r.Reason)+" "+r.URL)
	}
	if want := []string{"not_url not a URL", "opt_out http://other.example/"}; !slices.Equal(rows, want) {
		t.Errorf("refused %q, want %q", rows, want)
	}
	if n := int64(len(listed)) + 1; m.TakenDown != n {
		t.Errorf("%d are counted, want %d", m.TakenDown, n)
	}
	var entries []string
	for row := range optOut.Rows(cfg.Gone) {
		entries = append(entries, row.Entry)
	}
	if !slices.Equal(entries, []string{"other.example"}) {
		t.Errorf("the plan's opt-out list is %q", entries)
	}
}

func TestAPlanOfOnlyTakenDownURLsSaysSo(t *testing.T) {
	b := bucket(t)
	cfg := Default()
	cfg.Gone = guard(t, b, cfg, nil, []string{"gone.example"})
	_, err := Make(t.Context(), cfg, Request{Crawl: "2026-11", Sources: []source.Source{lines("http://gone.example/", "http://www.gone.example/")}, Scratch: t.TempDir(), Version: "test"})
	if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "taken down (2)") || strings.Contains(err.Error(), "gone.example") {
		t.Errorf("got %v", err)
	}
	cfg.OptOut, cfg.Gone = nil, nil
	m, _, _ := commitAndRead(t, b, plan(t, cfg, lines("http://gone.example/")))
	if m.TakenDown != 0 || len(m.Refused) != 0 || schema.FormatVersion < 13 {
		t.Errorf("without a list: %+v", m)
	}
}
