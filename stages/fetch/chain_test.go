package fetch

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// TestATaskThatEndsWithinAChainOfRedirectsGoesOnInIt stops a task within a chain of redirects. The
// next attempt must neither request nor record the finished hops a second time.
func TestATaskThatEndsWithinAChainOfRedirectsGoesOnInIt(t *testing.T) {
	for _, c := range []struct {
		name   string
		killed bool
		twice  map[string]int // number of requests for each URL that is requested more than once
	}{
		{"told to end between two hops", false, nil},
		{"killed as a hop waits for another try", true, map[string]int{"/hop3": 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				tried := 0
				l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case "/hop1":
						w.Header().Set("Set-Cookie", "been=here; Domain=a.com")
						http.Redirect(w, r, "/hop2", http.StatusFound)
					case "/hop2":
						http.Redirect(w, r, "http://www.a.com/hop3", http.StatusFound)
						if !c.killed {
							time.AfterFunc(time.Millisecond, stop)
						}
					case "/hop3":
						if tried++; c.killed && tried == 1 {
							w.WriteHeader(500)
							return
						}
						if k, err := r.Cookie("been"); err != nil || k.Value != "here" {
							t.Errorf("the chain continues without its cookie: %v", err)
						}
						http.Redirect(w, r, "/page", http.StatusFound)
					default:
						page(w, r)
					}
				}), "http://a.com/hop1", "http://www.a.com/other", "http://a.com/page")
				l.cfg.Checkpoint.Every = time.Second
				l.cfg.Pauses.ServerError = time.Minute
				if c.killed {
					if _, err := l.run(ctx, dying{l.bucket, time.Now().Add(40 * time.Second)}, nil); !errors.Is(err, errKilled) {
						t.Fatalf("got %v, want the bucket's error", err)
					}
				} else if _, err := l.run(ctx, nil, nil); !errors.Is(err, stages.ErrInterrupted) {
					t.Fatalf("got %v, want ErrInterrupted", err)
				}
				r, err := l.run(t.Context(), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				l.checkPace(r)
				f := l.outcomes(r)["http://a.com/hop1"]
				if f.Outcome != schema.OK || f.Redirects != 3 || f.FinalURL != "http://www.a.com/page" || f.RobotsAllowed == nil || !*f.RobotsAllowed || f.WireBytes == 0 {
					t.Errorf("the row of the chain is %+v", f)
				}
				recorded := map[string]int{}
				for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
					recorded[q.URL]++
				}
				links := map[string]int{}
				for _, k := range linksOf(l, r) {
					if k.Kind == schema.KindRedirect {
						links[k.Source]++
					}
				}
				for _, hop := range []string{"http://a.com/hop1", "http://a.com/hop2", "http://www.a.com/hop3"} {
					path := hop[len(hop)-len("/hop1"):]
					want := max(c.twice[path], 1)
					if recorded[hop] != want || l.web.count(path) != want {
						t.Errorf("%s has %d recorded requests and was requested %d times, want %d", hop, recorded[hop], l.web.count(path), want)
					}
					if links[hop] != 1 {
						t.Errorf("%s has %d links of redirects", hop, links[hop])
					}
				}
			})
		})
	}
}

// A page fails, then it redirects, and the task ends before the target is requested. What the next attempt
// says of the target's host must not name the failure of the page.
func TestAChainForgetsTheFailureBeforeItsRedirect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		tried := 0
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			if tried++; tried == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			http.Redirect(w, r, "http://www.a.com/", http.StatusFound)
			time.AfterFunc(time.Millisecond, stop)
		}), "http://a.com/")
		if _, err := l.run(ctx, nil, nil); !errors.Is(err, stages.ErrInterrupted) {
			t.Fatalf("got %v, want ErrInterrupted", err)
		}
		if all := l.checkpoint().Retries; len(all) != 1 || all[0].Chain == nil || all[0].Chain.Next != "http://www.a.com/" || all[0].Why != "" {
			t.Errorf("the checkpoint keeps %+v", all)
		}
	})
}
