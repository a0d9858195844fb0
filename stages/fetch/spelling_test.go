package fetch

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// respelled lists rules that deny a URL as given but do not match its canonical form.
var respelled = []struct{ rule, given, canonical string }{
	{"Disallow: /%7Ejoe/", "/%7Ejoe/a", "/~joe/a"},
	{"Disallow: /~ann/", "/%7Eann/b", "/~ann/b"},
	{"Disallow: /q?z=1&a=2", "/q?z=1&a=2", "/q?a=2&z=1"},
	{"Disallow: /star-%2A.html", "/star-*.html", "/star-*.html"},
}

// TestNoSpellingOfADeniedURLReachesTheServer plans URLs in the spellings of a list or link, and
// redirects to such URLs.
func TestNoSpellingOfADeniedURLReachesTheServer(t *testing.T) {
	file := "User-agent: *\n"
	for _, c := range respelled {
		file += c.rule + "\n"
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		var n int
		switch _, err := fmt.Sscanf(r.URL.Path, "/to-%d", &n); {
		case r.URL.Path == "/robots.txt":
			fmt.Fprint(w, file)
		case err == nil:
			w.Header().Set("Location", respelled[n].given)
			w.WriteHeader(http.StatusFound)
		default:
			page(w, r)
		}
	}
	for _, how := range []string{"planned", "redirected"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				urls := []string{"http://a.com/", "http://a.com/q?a=2&z=2"}
				for i, c := range respelled {
					if how == "planned" {
						urls = append(urls, "http://a.com"+c.given)
					} else {
						urls = append(urls, fmt.Sprintf("http://a.com/to-%d", i))
					}
				}
				l := newLab(t, handler, urls...)
				result, err := l.run(t.Context(), nil, &Input{})
				if err != nil {
					t.Fatal(err)
				}
				outcomes := l.outcomes(result)
				for i, c := range respelled {
					sent := l.web.count(c.canonical) + l.web.count(c.given)
					f := outcomes["http://a.com"+c.canonical]
					rule := f.RobotsRule
					if how == "redirected" {
						f = outcomes[fmt.Sprintf("http://a.com/to-%d", i)]
						_, rule, _ = strings.Cut(f.ErrorDetail, ": ")
					}
					switch {
					case sent > 0 || f.Outcome != schema.RobotsDenied || rule != c.rule:
						t.Errorf("%s was sent %d times: %s by %q (%s), want it denied by %q", c.given, sent, f.Outcome, rule, f.ErrorDetail, c.rule)
					case how == "planned" && c.rule == "Disallow: /q?z=1&a=2" && f.ErrorDetail != "http://a.com"+c.given:
						t.Errorf("%s is denied by %q (%s), its spelling is not named", c.given, rule, f.ErrorDetail)
					}
				}
				if l.web.count("/q?a=2&z=2") == 0 {
					t.Error("a URL that no rule denies was not sent")
				}
			})
		})
	}
}

// TestOneURLIsAskedForInItsSpelling fetches one URL, as the command `crawlbatch fetch` does.
func TestOneURLIsAskedForInItsSpelling(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				fmt.Fprint(w, "User-agent: *\nDisallow: /q?z=1&a=2\n")
				return
			}
			page(w, r)
		})
		for url, want := range map[string]schema.Outcome{"http://a.com/q?z=1&a=2": schema.RobotsDenied, "http://a.com/q?a=2&z=1": schema.OK} {
			rows, err := one(t.Context(), l.env(nil, t.TempDir()), l.cfg, l.parser, url, nil, hooks{tune: l.web.tune})
			if err != nil || rows.Fetch.Outcome != want {
				t.Errorf("%s: %+v, %v; want %s", url, rows, err, want)
			}
		}
	})
}

// TestAChainKeepsItsSpelling interrupts a task at a redirect, which the next attempt follows.
func TestAChainKeepsItsSpelling(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, nil, "http://a.com/q?z=1&a=2")
		c := l.fetcherOf()
		u, err := c.urlTask(0)
		if err != nil {
			t.Fatal(err)
		}
		planned := "http://a.com/q?z=1&a=2"
		if got := u.spellings(); len(got) != 1 || got[0] != planned {
			t.Errorf("spellings of the planned URL: %q", got)
		}
		var kept manifest.URLRetry
		follow := func(location string) {
			t.Helper()
			if u.key, u.spelled, err = c.canon.Spelled(location, u.key.URL); err != nil {
				t.Fatal(err)
			}
			u.met = append(u.met, manifest.Hop{URL: u.planned.URL})
			c.keepRecorded(u, u.due)
			kept = *u.kept
			next, err := c.urlTask(0)
			if err != nil {
				t.Fatal(err)
			}
			again := &urlTask{row: 0, planned: next.planned, fetch: next.fetch, key: next.key}
			if err := c.resume(again, &kept); err != nil {
				t.Fatal(err)
			}
			if again.key != u.key || again.spelled != u.spelled {
				t.Errorf("resumed at %q (%q), want %q (%q)", again.key.URL, again.spelled, u.key.URL, u.spelled)
			}
			u = again
		}
		follow("/%7Ejoe?b&a")
		if got := u.spellings(); len(got) != 1 || got[0] != "http://a.com/%7Ejoe?b&a" {
			t.Errorf("spellings of a redirect's target: %q", got)
		}
		follow("/%71?a=2&z=1") // leads back to the planned URL
		if got := u.spellings(); len(got) != 2 || got[0] != planned || got[1] != "http://a.com/%71?a=2&z=1" {
			t.Errorf("spellings of the planned URL as a redirect's target: %q", got)
		}
		follow("/plain")
		if got := u.spellings(); len(got) != 0 {
			t.Errorf("spellings of a canonical target: %q", got)
		}
		kept.Chain.Next = "::"
		if err := c.resume(u, &kept); !errors.Is(err, manifest.ErrCorrupt) {
			t.Errorf("a chain to nowhere: %v", err)
		}
	})
}

// knownRows returns rows of known URLs. One URL has five spellings. Every other URL has one
// spelling.
func knownRows(t *testing.T, count int) []schema.PlannedURL {
	t.Helper()
	urls := []string{"http://a.com/five", "http://www.a.com/q?z=1&a=2"}
	for i := range count {
		urls = append(urls, fmt.Sprintf("http://a.com/q?z=1&a=%03d", i))
	}
	rows := planRows(t, urls)
	for i := range rows {
		if rows[i].URL == "http://a.com/five" {
			rows[i].Spellings = []string{"1", "2", "3", "4", "5"}
		}
	}
	slices.SortFunc(rows, func(a, b schema.PlannedURL) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.URL, b.URL))
	})
	return rows
}

// TestARedirectToAKnownURLIsJudgedInItsSpellings redirects to URLs that the round does not plan.
// Their spellings are known from earlier rounds.
func TestARedirectToAKnownURLIsJudgedInItsSpellings(t *testing.T) {
	for _, c := range []struct {
		name, to string
		outcome  schema.Outcome
		detail   string
	}{
		{"denied", "/q?a=002&z=1", schema.RobotsDenied, "http://a.com/q?z=1&a=002: Disallow: /q?z=1&a=002"},
		{"allowed", "/q?a=003&z=1", schema.OK, ""},
		{"too many", "/five", schema.RobotsDenied, "http://a.com/five: robots.txt would have to allow more than 4 spellings, such as 1"},
		{"of another host", "http://www.a.com/q?a=2&z=1", schema.RobotsDenied, "http://www.a.com/q?z=1&a=2: Disallow: /q?z=1&a=2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case "/robots.txt":
						fmt.Fprint(w, "User-agent: *\nDisallow: /q?z=1&a=2\nDisallow: /q?z=1&a=002\n")
					case "/":
						w.Header().Set("Location", c.to)
						w.WriteHeader(http.StatusFound)
					default:
						page(w, r)
					}
				}, "http://a.com/")
				l.setSpelled(knownRows(t, 5))
				result, err := l.run(t.Context(), nil, &Input{})
				if err != nil {
					t.Fatal(err)
				}
				f := l.outcomes(result)["http://a.com/"]
				if f.Outcome != c.outcome || f.ErrorDetail != c.detail {
					t.Errorf("%s: %s, %q; want %s, %q", f.Outcome, f.Error, f.ErrorDetail, c.outcome, c.detail)
				}
			})
		})
	}
}

// TestAChainGoesOnWithKnownSpellings interrupts a task at a redirect to a known URL, which the next
// attempt follows.
func TestAChainGoesOnWithKnownSpellings(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, nil, "http://a.com/")
		l.setSpelled(knownRows(t, 3))
		c := l.fetcherOf()
		u, err := c.urlTask(0)
		if err != nil {
			t.Fatal(err)
		}
		kept := manifest.URLRetry{Chain: &manifest.Chain{Met: []manifest.Hop{{URL: u.planned.URL}}, Next: "http://a.com/q?%61=001&z=1", Fetch: u.fetch}}
		if err := c.resume(u, &kept); err != nil {
			t.Fatal(err)
		}
		want := []string{"http://a.com/q?z=1&a=001", "http://a.com/q?%61=001&z=1"}
		if got := u.spellings(); !slices.Equal(got, want) {
			t.Errorf("resumed with %q, want %q", got, want)
		}
	})
}
