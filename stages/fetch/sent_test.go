package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// asLinked lists URLs that are not canonical, in the ways in which servers tell them apart.
var asLinked = []struct{ name, linked, canonical string }{
	{"order of parameters", "/order?z=1&a=2", "/order?a=2&z=1"},
	{"a name without a value before others", "/notes?OpenView&Count=5", "/notes?Count=5&OpenView"},
	{"tracking", "/tracked?utm_source=x", "/tracked"},
	{"tracking among others", "/some?b=1&utm_source=x&a=2", "/some?a=2&b=1"},
	{"an empty parameter", "/empty?a&&b", "/empty?a&b"},
	{"an empty query", "/none?", "/none"},
	{"a separator at the end", "/end?a=1&", "/end?a=1"},
	{"an escaped tilde", "/%7Ejoe/", "/~joe/"},
	{"hex digits in lower case", "/a%2fb", "/a%2Fb"},
	{"an escaped letter", "/%61lpha", "/alpha"},
	{"a signature", "/file?Signature=a%2bb%3d&Expires=1&AWSAccessKeyId=x", "/file?AWSAccessKeyId=x&Expires=1&Signature=a%2Bb%3D"},
}

// The server gets a URL as a source, a redirect, robots.txt or the page before wrote it, and never in another form. All
// rows and the record say so.
func TestAURLIsAskedForAsItWasLinked(t *testing.T) {
	for _, how := range []string{"planned", "redirected"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var urls []string
				for i, c := range asLinked {
					if how == "planned" {
						urls = append(urls, "http://a.com"+c.linked)
					} else {
						urls = append(urls, fmt.Sprintf("http://a.com/to-%d", i))
					}
				}
				l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
					var n int
					if _, err := fmt.Sscanf(r.URL.Path, "/to-%d", &n); err == nil {
						w.Header().Set("Location", asLinked[n].linked)
						w.WriteHeader(http.StatusFound)
						return
					}
					page(w, r)
				}, urls...)
				result, err := l.run(t.Context(), nil, &Input{})
				if err != nil {
					t.Fatal(err)
				}
				requests := rowsOf[schema.Request](l, result, stages.FileRequests)
				pages := rowsOf[schema.Page](l, result, stages.FilePages)
				for _, c := range asLinked {
					url, sent := "http://a.com"+c.canonical, "http://a.com"+c.linked
					if l.web.count(c.linked) != 1 || l.web.count(c.canonical) != 0 {
						t.Errorf("%s: the server got %s %d times, %s %d times", c.name, c.linked, l.web.count(c.linked), c.canonical, l.web.count(c.canonical))
					}
					if !slices.ContainsFunc(requests, func(r schema.Request) bool { return r.URL == url && r.Sent == sent }) {
						t.Errorf("%s: no row of requests has %s, sent as %s", c.name, url, sent)
					}
					if !slices.ContainsFunc(pages, func(p schema.Page) bool { return p.URL == url && p.Sent == sent }) {
						t.Errorf("%s: no page has %s, sent as %s", c.name, url, sent)
					}
				}
			})
		})
	}
}

// A redirect to the same canonical URL is no loop unless the same bytes were sent with the same cookies.
func TestARedirectToAnotherFormIsNoLoop(t *testing.T) {
	to := func(location string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		}
	}
	for _, c := range []struct {
		name    string
		planned string
		web     map[string]http.HandlerFunc
		outcome schema.Outcome
		sent    string // form of the page
	}{
		{"tracking is added", "/", map[string]http.HandlerFunc{"/": to("/?utm_source=x"), "/?utm_source=x": page}, schema.OK, "/?utm_source=x"},
		{"another order", "/?a=1&b=2", map[string]http.HandlerFunc{"/?a=1&b=2": to("/?b=2&a=1"), "/?b=2&a=1": page}, schema.OK, "/?b=2&a=1"},
		{"an escape", "/~joe", map[string]http.HandlerFunc{"/~joe": to("/%7Ejoe"), "/%7Ejoe": page}, schema.OK, "/%7Ejoe"},
		{"an escape in lower case", "/%7Ejoe", map[string]http.HandlerFunc{"/%7Ejoe": to("/%7ejoe"), "/%7ejoe": page}, schema.OK, "/%7ejoe"},
		{"an empty query", "/p", map[string]http.HandlerFunc{"/p": to("/p?"), "/p?": page}, schema.OK, "/p?"},
		{"tracking is dropped", "/p?utm_source=x", map[string]http.HandlerFunc{"/p?utm_source=x": to("/p"), "/p": page}, schema.OK, ""},
		{"two forms in turn", "/", map[string]http.HandlerFunc{"/": to("/?utm_source=x"), "/?utm_source=x": to("/")}, schema.RedirectLimit, ""},
		{"itself", "/?b&a", map[string]http.HandlerFunc{"/?b&a": to("/?b&a")}, schema.RedirectLimit, ""},
		{"longer and longer", "/", map[string]http.HandlerFunc{"*": func(w http.ResponseWriter, r *http.Request) {
			to("/?utm_source="+strings.Repeat("x", len(r.RequestURI)))(w, r)
		}}, schema.RedirectLimit, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
					if h := c.web[r.RequestURI]; h != nil {
						h(w, r)
					} else if h := c.web["*"]; h != nil && r.URL.Path != "/robots.txt" {
						h(w, r)
					} else {
						w.WriteHeader(http.StatusNotFound)
					}
				}, "http://a.com"+c.planned)
				result, err := l.run(t.Context(), nil, &Input{})
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range l.outcomes(result) {
					if f.Outcome != c.outcome {
						t.Errorf("%s (%s %s), want %s", f.Outcome, f.Error, f.ErrorDetail, c.outcome)
					}
				}
				if c.outcome != schema.OK {
					return
				}
				want := ""
				if c.sent != "" {
					want = "http://a.com" + c.sent
				}
				pages := rowsOf[schema.Page](l, result, stages.FilePages)
				if len(pages) != 1 || pages[0].Sent != want {
					t.Errorf("%d pages, the first sent as %q, want %q", len(pages), pages[0].Sent, want)
				}
			})
		})
	}
}

// denied lists rules that deny a URL as it is linked.
var denied = []struct{ rule, linked, canonical string }{
	{"Disallow: /%7Ejoe/", "/%7Ejoe/a", "/~joe/a"},
	{"Disallow: /~ann/", "/%7Eann/b", "/~ann/b"},
	{"Disallow: /q?z=1&a=2", "/q?z=1&a=2", "/q?a=2&z=1"},
	{"Disallow: /star-%2A.html", "/star-*.html", "/star-*.html"},
	{"Disallow: /*utm_", "/p?utm_source=x", "/p"},
}

// What robots.txt denies as it is linked is not sent in any form. The row names the form.
func TestWhatIsDeniedAsLinkedIsNotSent(t *testing.T) {
	file := "User-agent: *\n"
	for _, c := range denied {
		file += c.rule + "\n"
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		var n int
		switch _, err := fmt.Sscanf(r.URL.Path, "/to-%d", &n); {
		case r.URL.Path == "/robots.txt":
			fmt.Fprint(w, file)
		case err == nil:
			w.Header().Set("Location", denied[n].linked)
			w.WriteHeader(http.StatusFound)
		default:
			page(w, r)
		}
	}
	for _, how := range []string{"planned", "redirected"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				urls := []string{"http://a.com/", "http://a.com/q?a=2&z=2"}
				for i, c := range denied {
					if how == "planned" {
						urls = append(urls, "http://a.com"+c.linked)
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
				for i, c := range denied {
					sent := l.web.count(c.canonical) + l.web.count(c.linked)
					f := outcomes["http://a.com"+c.canonical]
					rule := f.RobotsRule
					if how == "redirected" {
						f = outcomes[fmt.Sprintf("http://a.com/to-%d", i)]
						_, rule, _ = strings.Cut(f.ErrorDetail, ": ")
					}
					switch {
					case sent > 0 || f.Outcome != schema.RobotsDenied || rule != c.rule:
						t.Errorf("%s was sent %d times: %s by %q (%s), want it denied by %q", c.linked, sent, f.Outcome, rule, f.ErrorDetail, c.rule)
					case how == "planned" && c.linked != c.canonical && (f.ErrorDetail != "http://a.com"+c.linked || f.Sent != f.ErrorDetail):
						t.Errorf("%s is denied by %q (%s), but the row does not say in which form", c.linked, rule, f.ErrorDetail)
					}
				}
				if l.web.count("/q?a=2&z=2") == 0 {
					t.Error("a URL that no rule denies was not sent")
				}
			})
		})
	}
}

// A rule for a form that nobody linked denies nothing: robots.txt is asked for what is sent.
func TestOneURLIsAskedForAsItIsGiven(t *testing.T) {
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

// A task is interrupted at a redirect, which the next attempt follows.
func TestAChainGoesOnAsItWasLinked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, nil, "http://a.com/q?z=1&a=2")
		c := l.fetcherOf()
		u, err := c.urlTask(0)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.asked(); got != "http://a.com/q?z=1&a=2" {
			t.Errorf("asks for %q", got)
		}
		var kept manifest.URLRetry
		for _, location := range []string{"/%7Ejoe?b&a", "/%71?a=2&z=1", "/plain"} {
			if u.key, u.sent, err = c.canon.Sent(location, u.asked()); err != nil {
				t.Fatal(err)
			}
			u.met = append(u.met, manifest.Hop{URL: u.planned.URL, Sent: u.planned.Sent})
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
			if again.key != u.key || again.asked() != "http://a.com"+location {
				t.Errorf("goes on with %q, want %q", again.asked(), location)
			}
			u = again
		}
		kept.Chain.Next = "::"
		if err := c.resume(u, &kept); !errors.Is(err, manifest.ErrCorrupt) {
			t.Errorf("a chain to nowhere: %v", err)
		}
	})
}

// A redirect of robots.txt is followed as it is written, and a sitemap is asked for as robots.txt names it.
func TestRobotsAndSitemapsAreAskedForAsWritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.RequestURI {
			case "/robots.txt":
				w.Header().Set("Location", "/r?z=1&a=2")
				w.WriteHeader(http.StatusFound)
			case "/r?z=1&a=2":
				fmt.Fprint(w, "User-agent: *\nDisallow: /private\nSitemap: /s.xml?z=1&a=2\n")
			case "/s.xml?z=1&a=2":
				w.Header().Set("Content-Type", "application/xml")
				fmt.Fprint(w, urlset("/q"))
			case "/", "/private":
				page(w, r)
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		}, "http://a.com/", "http://a.com/private")
		l.parser = mapParser{}
		result := l.mustRun(nil)
		if o := l.outcomes(result)["http://a.com/private"].Outcome; o != schema.RobotsDenied {
			t.Errorf("/private: %s; requests %v", o, l.web.hits())
		}
		if o := l.sitemapOutcomes(result)["http://a.com/s.xml?a=2&z=1"]; o != schema.OK {
			t.Errorf("the sitemap: %s; requests %v", o, l.web.hits())
		}
	})
}
