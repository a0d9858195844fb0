package frontier

import (
	"fmt"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
)

func TestPatternsLeaveOutWhatVaries(t *testing.T) {
	for url, want := range map[string]string{
		"http://a.com/":                                              "a.com/",
		"http://a.com/calendar/2026/11/21":                           "a.com/calendar/0/0/0",
		"http://a.com/article-17-of-20":                              "a.com/article-0-of-0",
		"http://a.com/s/5f3a9c0b77/home":                             "a.com/s/0/home",
		"http://a.com/x/3F2504E0-4F89-11D3-9A0C-0305E82C3301":        "a.com/x/0",
		"http://a.com/decade/facade":                                 "a.com/decade/facade",
		"http://a.com/page?sid=1&b=2&b=3":                            "a.com/page?b&sid",
		"http://a.com:8080/p?":                                       "a.com:8080/p?",
		"http://a.com/?" + strings.Repeat("x&", 100) + "y=1":         "a.com/?x&y",
		"https://a.com/%E4%BB%8A/" + strings.Repeat("7", 2000) + "/": "a.com/%E0%BB%0A/0",
	} {
		host, p := pattern(url)
		if got := host + p; got != want {
			t.Errorf("%.80s: %q, want %q", url, got, want)
		}
	}
}

// alikeWorld returns a world with pages of one URL pattern, and a link to another URL of that
// pattern. digest returns the text digest of page n.
func alikeWorld(t *testing.T, pages int, words int32, digest func(n int) string) world {
	var w world
	for n := range pages {
		u := fmt.Sprintf("http://a.com/cal/%04d", n)
		w.fetches = append(w.fetches, fetch(t, u, schema.OK, nil))
		k := key(t, u)
		w.pages = append(w.pages, schema.WorkingPage{PageColumns: schema.PageColumns{URLColumns: schema.URLColumns{SURT: k.SURT, URL: k.URL}, TextDigest: digest(n), SimHash: schema.TitleHash(digest(n)), WordCount: words}})
	}
	w.inlinks = []schema.Inlink{link(t, "http://a.com/cal/9999", nil), link(t, "http://a.com/other", nil)}
	return w
}

func TestSimilarURLsWhosePagesAreTheSameAreATrap(t *testing.T) {
	same := func(int) string { return "D" }
	for name, tt := range map[string]struct {
		pages  int
		words  int32
		digest func(int) string
		trap   bool
	}{
		"the same":                     {50, 20, same, true},
		"the same, which says nothing": {50, 19, same, false},
		"the same, but few":            {49, 20, same, false},
		"each its own":                 {60, 20, func(n int) string { return fmt.Sprint(n) }, false},
		"one its own":                  {80, 20, func(n int) string { return fmt.Sprint("D", n%60/59*n) }, true},
		"one in forty its own":         {80, 20, func(n int) string { return fmt.Sprint("D", n%40/39*n) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Default()
			urls, skips, _ := run(t, bucket(t), cfg, alikeWorld(t, tt.pages, tt.words, tt.digest))
			found := map[string]schema.URLState{}
			for _, u := range urls {
				found[u.URL] = u.State
			}
			if found["http://a.com/other"] != schema.StateFound {
				t.Error("a URL of another pattern was not found")
			}
			if tt.trap {
				if len(skips) != 1 || skips[0].Reason != schema.SkipTrap || skips[0].URL != "http://a.com/cal/9999" || !strings.Contains(skips[0].Detail, "a.com/cal/0 are the same") {
					t.Errorf("skips: %+v", skips)
				}
			} else if len(skips) != 0 || found["http://a.com/cal/9999"] != schema.StateFound {
				t.Errorf("skips: %+v", skips)
			}
		})
	}
}

// The pages of www.a.com and a.com stand between each other, because their SURTs are equal.
func TestATrapUnderTwoNamesOfAHost(t *testing.T) {
	var w world
	for n := range 60 {
		for name, text := range map[string]string{"a.com": "D", "www.a.com": fmt.Sprint(n)} {
			u := fmt.Sprintf("http://%s/cal/%04d", name, n)
			k := key(t, u)
			w.fetches = append(w.fetches, fetch(t, u, schema.OK, nil))
			w.pages = append(w.pages, schema.WorkingPage{PageColumns: schema.PageColumns{URLColumns: schema.URLColumns{SURT: k.SURT, URL: k.URL}, TextDigest: text, SimHash: schema.TitleHash(text), WordCount: 20}})
		}
	}
	w.inlinks = []schema.Inlink{link(t, "http://a.com/cal/9999", nil), link(t, "http://www.a.com/cal/9999", nil)}
	_, skips, _ := run(t, bucket(t), Default(), w)
	check(t, "skips", []string{"a.com/cal/9999 trap 3"}, reasons(skips)) // only the name under which the pages are the same
}
