package planner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/scope"
	"crawlbatch.io/crawlbatch/planner/source"
)

// readOptOut reads a list from a file.
func readOptOut(t *testing.T, text string, rules urlkey.Rules, stripParams ...string) (*scope.OptOut, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "opt-out.txt")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	from, err := source.Files(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return scope.ReadOptOut(t.Context(), from, stripParams, rules)
}

func optOutEntries(o *scope.OptOut) (entries []string) {
	for row := range o.Rows(nil) {
		entries = append(entries, row.Entry)
	}
	return entries
}

func TestNoSourcePassesTheOptOutList(t *testing.T) {
	o, err := readOptOut(t, "b.example\n*/private/*\n", urlkey.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Default()
	cfg.OptOut = o
	b := bucket(t)
	m, parts, refused := commitAndRead(t, b, plan(t, cfg, lines("http://a.example/", "http://www.b.example/x", "http://a.example/private/1"),
		known(source.Entry{URL: "http://b.example/known", File: source.FrontierName, Due: true})))
	if got := planned(parts); !slices.Equal(got, []string{"http://a.example/"}) {
		t.Errorf("planned %q", got)
	}
	for i, want := range []string{"http://a.example/private/1 */private/*", "http://b.example/known b.example", "http://www.b.example/x b.example"} {
		if i >= len(refused) || refused[i].Reason != schema.SkipOptOut || !slices.Contains([]string{refused[i].URL + " " + refused[i].Detail}, want) {
			t.Errorf("refused %+v", refused)
			break
		}
	}
	again, err := scope.LoadOptOut(t.Context(), b, m, nil, cfg.Rules)
	if err != nil || !slices.Equal(optOutEntries(again), optOutEntries(o)) {
		t.Errorf("the plan has %v, %v", again, err)
	}
}

// The list names a form that the rules change. No pattern can have a form that covers the new URL.
func TestTheOptOutListCoversTheFormsThatRulesChange(t *testing.T) {
	cfg := Default()
	cfg.Rules = urlkey.Rules{Sessions: true, TrailingSlash: true}
	o, err := readOptOut(t, "a.example/*/\na.example/*;jsessionid=*\na.example/q?b*\n", cfg.Rules)
	if err != nil {
		t.Fatal(err)
	}
	cfg.OptOut = o
	_, parts, refused := commitAndRead(t, bucket(t), plan(t, cfg, lines("http://a.example/x/", "http://a.example/y;jsessionid=1", "http://a.example/z", "http://a.example/q?b=2&a=1"),
		known(source.Entry{URL: "http://a.example/q?a=3&b=1", File: source.FrontierName, Due: true, Form: schema.Linked("http://a.example/q?b=1&a=3", true)})))
	if got := planned(parts); !slices.Equal(got, []string{"http://a.example/z"}) {
		t.Errorf("planned %q", got)
	}
	var got []string
	for _, r := range refused {
		got = append(got, fmt.Sprint(r.URL, " ", r.Reason, " ", r.Detail))
	}
	slices.Sort(got)
	if want := []string{
		"http://a.example/q?a=1&b=2 opt_out a.example/q?b*", "http://a.example/q?a=3&b=1 opt_out a.example/q?b*",
		"http://a.example/x opt_out a.example/*/", "http://a.example/y opt_out a.example/*;jsessionid=*",
	}; !slices.Equal(got, want) {
		t.Errorf("refused %q", got)
	}
	if _, reason, detail, err := Judge(cfg, "http://a.example/x/", ""); err != nil || reason != schema.SkipOptOut || detail != "a.example/*/" {
		t.Errorf("%q %q, %v", reason, detail, err)
	}
}
