package scope

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// readOptOut reads a list from a file.
func readOptOut(t *testing.T, text string, rules urlkey.Rules, stripParams ...string) (*OptOut, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "opt-out.txt")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	from, err := source.Files(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ReadOptOut(t.Context(), from, stripParams, rules)
}

func TestOptOut(t *testing.T) {
	all := urlkey.Rules{Sessions: true, WWW: true, HTTPS: []string{"*"}, TrailingSlash: true, IndexFiles: true,
		Rewrite: []urlkey.Rewrite{{Match: "^http://m\\.", Replace: "http://"}}}
	for _, tc := range []struct {
		entry, url string
		want       bool
	}{
		{"example.org", "https://example.org/a", true}, {"example.org", "http://www.example.org:8080/", true},
		{"example.org", "http://badexample.org/", false}, {"example.org", "http://example.org.evil.example/", false},
		{" EXAMPLE.Org. \r", "http://example.org/", true}, {"Bücher.example", "http://xn--bcher-kva.example/x", true},
		{"http://example.org", "https://example.org/a", true}, {"https://example.org/", "http://www.example.org/a", true}, {"example.org/", "http://example.org/a", true},
		{"example.org:8080", "http://www.example.org:8080/a", true}, {"example.org:8080", "http://example.org/a", false},
		{"[::1]", "http://[::1]/", true}, {"[::1]", "http://[::1]:81/", true}, {"127.0.0.1", "http://127.0.0.1:99/", true}, {"0x7f.1", "http://127.0.0.1/", true},
		{"*.example.org", "http://a.example.org/x", true}, {"*.example.org", "http://example.org/x", false},
		{"*.PDF", "http://a.test/x.pdf", true}, {"*/private/*", "http://a.test/Private/x", true}, {"http://*.example.org", "http://a.example.org/x", true},
		{"example.org/private/*", "http://example.org/private/x", true}, {"example.org/private/*", "http://example.org/public", false},
		{"EXAMPLE.org/%7Ejoe/*", "http://example.org/~joe/x", true}, {"example.org/é*", "http://example.org/%C3%A9t%C3%A9", true},
		{"https://example.org/x", "http://example.org/x", false}, {"https://example.org/x", "https://example.org/x", true},
		{"# example.org", "http://example.org/", false},
		{"*.example.org/%7Ejoe/*", "http://a.example.org/~joe/x", true}, {"*/é*", "http://a.test/%C3%A9t%C3%A9", true}, {"*/#x", "http://a.test/", false},
		{"example.org:443/x/*", "http://example.org:443/x/1", true}, {"example.org:443/x/*", "https://example.org/x/1", true}, {"example.org:443/x/*", "http://example.org/x/1", false},
		{"example.org:80/x/*", "https://example.org:80/x/1", true}, {"http://example.org:443/x/*", "http://example.org:443/x/1", true},
	} {
		o, err := readOptOut(t, "other.example\n\n"+tc.entry+"\n", urlkey.Rules{})
		if err != nil {
			t.Errorf("%q: %v", tc.entry, err)
			continue
		}
		if entry, ok := o.Refuses(tc.url, ""); ok != tc.want || ok && entry != strings.TrimSpace(tc.entry) {
			t.Errorf("%q, URL %q: %q, %v", tc.entry, tc.url, entry, ok)
		}
	}
	for _, tc := range []struct {
		entry, url string
		want       bool
	}{
		{"www.example.org", "https://example.org/", true}, {"www.example.org", "http://www.example.org/", true},
		{"http://example.org/x/*", "https://example.org/x/y", true}, {"example.org/x/index.html", "https://example.org/x", true},
		{"m.example.org", "https://example.org/", false}, {"m.example.org", "https://m.example.org/", true},
		{"example.org/private/*", "https://example.org/private", true}, {"example.org/private/*", "https://example.org/privately", false},
		{"*/private/*", "https://example.org/private", true}, {"example.org/*/*", "https://example.org/x", false}, {"example.org/*/", "https://example.org/x", false},
		{"example.org/*;jsessionid=*", "https://example.org/x", false}, {"example.org/*/index.html", "https://example.org/x", false},
		{"*/*;jsessionid=*", "https://example.org/x", false}, {"example.org/x;jsessionid=1", "https://example.org/x", true},
		{"example.org/x?utm_source=a", "https://example.org/x", true}, {"example.org/x?utm_source=*", "https://example.org/x", false},
		{"example.org/x?b=1&utm_source=a&a=*", "https://example.org/x?a=2&b=1", true},
	} {
		o, err := readOptOut(t, tc.entry, all, "utm_*")
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := o.Refuses(tc.url, ""); ok != tc.want {
			t.Errorf("with rules, %q, URL %q: %v", tc.entry, tc.url, ok)
		}
	}
	var none *OptOut
	if _, ok := none.Refuses("http://a.test/", ""); ok {
		t.Error("no list refuses a URL")
	}
	if o, err := readOptOut(t, "", urlkey.Rules{}); err != nil || o == nil {
		t.Errorf("an empty list: %v", err)
	}
	if o, err := readOptOut(t, "# nobody\n\n", urlkey.Rules{}); err != nil || o == nil || len(o.entries) > 0 {
		t.Errorf("a list of comments: %v", err)
	}
}

func TestMalformedOptOutLists(t *testing.T) {
	for name, text := range map[string]string{
		"two words": "a.test\nb test", "no host": "a.test\nhttp://", "a user": "a.test\nme@b.test", "a query": "a.test\nb.test?x", "not UTF-8": "a.test\n\xff",
		"a bad port": "a.test\nb.test:99999", "long": "a.test\n" + strings.Repeat("a", maxOptOutEntry+1), "a scheme": "a.test\nftp://b.test/x",
		"a control character": "a.test\nb\x01.test", "an empty path": "a.test\n/private/*",
	} {
		if _, err := readOptOut(t, text, urlkey.Rules{}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "line 2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var wild strings.Builder
	for i := range maxWild + 1 {
		fmt.Fprintf(&wild, "*/private%d/*\n", i)
	}
	if _, err := readOptOut(t, wild.String(), urlkey.Rules{}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "line 201") {
		t.Errorf("many patterns: %v", err)
	}
	if _, err := readOptOut(t, "\x1f\x8bdamaged", urlkey.Rules{}); !errors.Is(err, source.ErrUnreadable) {
		t.Errorf("damaged: %v", err)
	}
}

// An opt-out list gives the answers that a comparison with each of its patterns, in their order, gives.
func TestTheFirstEntryThatCoversAURLIsNamed(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	first := func(patterns []pattern, url string) string {
		for i := range patterns {
			if patterns[i].match(url) {
				return patterns[i].entry
			}
		}
		return ""
	}
	covered := map[string]int{}
	for range 2000 {
		o, forms, err := newOptOut(nil, urlkey.Rules{WWW: true, TrailingSlash: random.IntN(2) == 0})
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + random.IntN(12) {
			if entry := randomPattern(random); random.IntN(8) == 0 || strings.Contains(entry, "/") {
				_ = o.add(entry, forms) // some are no entries
			}
		}
		for range 20 {
			url := randomURL(random)
			want, by := first(o.paths.patterns, url), "path"
			if want == "" {
				want, _ = (&OptOut{entries: o.entries, hosts: o.hosts}).Refuses(url, "")
				by = "host"
			}
			if want == "" {
				want, by = first(o.wild.patterns, strings.ToLower(url)), "star"
			}
			if want != "" {
				covered[by]++
			}
			if entry, ok := o.Refuses(url, ""); entry != want || ok != (want != "") {
				t.Fatalf("entries %q, URL %q: %q, %v, want %q", o.entries, url, entry, ok, want)
			}
		}
	}
	if min(covered["path"], covered["host"], covered["star"]) < 500 {
		t.Errorf("too few answers of a kind: %v", covered)
	}
}

// All entries of a list may name one host.
func TestManyPathsOfAHostAreLookedUp(t *testing.T) {
	var list strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&list, "shop.example/%d\nhttps://shop.example/%d/*\n", i, i)
	}
	o, err := readOptOut(t, list.String(), urlkey.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	if s := o.paths.sites["shop.example"]; len(s.lengths) != 4 || len(s.others) > 0 {
		t.Errorf("%d lengths and %d patterns one by one, want 4 and 0", len(s.lengths), len(s.others))
	}
	for url, want := range map[string]string{
		"http://shop.example/4999": "shop.example/4999", "https://shop.example:443/4999": "", "https://shop.example/4999/x": "https://shop.example/4999/*", "http://shop.example/4999/x": "",
	} {
		if entry, ok := o.Refuses(url, ""); entry != want || ok != (want != "") {
			t.Errorf("URL %q: %q, %v, want %q", url, entry, ok, want)
		}
	}
}

// An entry covers a URL if it names the form in which the URL is sent.
func TestTheListCoversForms(t *testing.T) {
	o, err := readOptOut(t, "a.example/%78*\na.example/exact?b&a\n*/Wild*?*b&a\nhttp://whole.example\n", urlkey.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		url, sent string
		want      string
	}{
		{"http://a.example/x?a", "http://a.example/%78?a", "a.example/%78*"},
		{"http://a.example/exact?a&b", "http://a.example/exact?b&a", "a.example/exact?b&a"},
		{"http://b.example/wild?a&b", "http://b.example/wild?b&a", "*/Wild*?*b&a"},
		{"http://whole.example/x", "http://whole.example/%78", "http://whole.example"},
		{"http://a.example/other", "http://a.example/other?", ""},
	} {
		for _, refuses := range []func(url, sent string) (string, bool){o.Refuses, o.Or(nil)} {
			if entry, ok := refuses(tc.url, tc.sent); entry != tc.want || ok != (tc.want != "") {
				t.Errorf("%s sent as %s: %q, want %q", tc.url, tc.sent, entry, tc.want)
			}
		}
	}
}
