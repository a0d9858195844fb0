package fetch

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// TestARedirectsTargetIsTakenOnceAcrossAttempts has two URLs that redirect to the same target. In
// some cases the task is interrupted between their requests.
func TestARedirectsTargetIsTakenOnceAcrossAttempts(t *testing.T) {
	for _, c := range []struct {
		name      string
		locations map[string]string // redirect target of each path; the order of requests is /1, /2, /3, and the request for /2 may interrupt the task
		more      string            // domain of /2 and /3; "" means a.com
		target    string
		sent      int
		after     schema.Outcome // outcome of /3
	}{
		{"fetched", map[string]string{"/1": "/d", "/3": "/d"}, "", "/d", 1, schema.Redirected},
		{"on the way", map[string]string{"/1": "/m", "/m": "/d", "/3": "/m"}, "", "/m", 1, schema.Redirected},
		{"denied as it was linked", map[string]string{"/1": "/d?z=1&a=2", "/3": "/d?a=2&z=1"}, "", "/d?a=2&z=1", 0, schema.Redirected},
		{"denied in a long URL", map[string]string{"/1": "/d?z=1&a=2" + strings.Repeat("0", 600), "/3": "/d?a=2" + strings.Repeat("0", 600) + "&z=1"}, "",
			"/d?a=2" + strings.Repeat("0", 600) + "&z=1", 0, schema.Redirected},
		{"of another domain", map[string]string{"/1": "http://b.org/d", "/3": "/d"}, "b.org", "/d", 1, schema.OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			var outcomes [2]map[string]schema.Outcome
			for i, interrupted := range []bool{false, true} {
				bubble(t, func(t *testing.T) {
					cancel := context.CancelFunc(func() {})
					after := "a.com"
					if c.more != "" {
						after = c.more
					}
					l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
						to := c.locations[r.URL.Path]
						switch {
						case r.URL.Path == "/robots.txt":
							_, _ = w.Write([]byte("User-agent: *\nDisallow: /d?z=1&a=2\n"))
							return
						case r.URL.Path == "/2":
							cancel()
						}
						if to == "" {
							page(w, r)
							return
						}
						w.Header().Set("Location", to)
						w.WriteHeader(http.StatusFound)
					}, "http://a.com/1", "http://"+after+"/2", "http://"+after+"/3")
					ctx := t.Context()
					if interrupted {
						ctx, cancel = context.WithCancel(ctx)
						if _, err := l.run(ctx, nil, nil); !errors.Is(err, stages.ErrInterrupted) {
							t.Fatal(err)
						}
						if l.web.count("/3") > 0 {
							t.Fatal("the interruption came too late")
						}
						cancel = func() {}
					}
					r, err := l.run(t.Context(), nil, nil)
					if err != nil {
						t.Fatal(err)
					}
					outcomes[i] = map[string]schema.Outcome{}
					for url, f := range l.outcomes(r) {
						outcomes[i][url] = f.Outcome
					}
					if got := outcomes[i]["http://"+after+"/3"]; got != c.after || l.web.count(c.target) != c.sent {
						t.Errorf("interrupted %t: /3 is %s and %s was sent %d times, want %s and %d", interrupted, got, c.target, l.web.count(c.target), c.after, c.sent)
					}
				})
			}
			if d := cmp.Diff(outcomes[0], outcomes[1]); d != "" {
				t.Errorf("the interruption changes outcomes (-without +with):\n%s", d)
			}
		})
	}
}
