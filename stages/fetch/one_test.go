package fetch

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// A person waits for this URL. So it is retried within seconds, and each wait is reported.
func TestOneURLIsTriedAgainWithinSecondsAndSaysWhatItWaitsFor(t *testing.T) {
	status := func(robots, page int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			code := page
			if r.URL.Path == "/robots.txt" {
				code = robots
			}
			if len(header) > 0 && code >= 400 && code != 404 {
				w.Header().Set("Retry-After", header[0])
			}
			w.WriteHeader(code)
		}
	}
	crawlDelay := func(delay string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				_, _ = w.Write([]byte("User-agent: *\nCrawl-delay: " + delay + "\n"))
			}
		}
	}
	slow := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			time.Sleep(8 * time.Second)
		}
	}
	for name, c := range map[string]struct {
		web     http.HandlerFunc
		outcome schema.Outcome
		told    []string
		within  time.Duration
	}{
		"it answers":                  {status(404, 200), schema.OK, nil, 5 * time.Second},
		"robots.txt is 503":           {status(503, 200), schema.RobotsUnreachable, []string{"robots.txt answered 503, asked again 5s", "robots.txt answered 503, asked again 10s"}, 25 * time.Second},
		"robots.txt is 500":           {status(500, 200), schema.RobotsUnreachable, []string{"robots.txt answered 500, asked again 2s", "robots.txt answered 500, asked again 2s"}, 15 * time.Second},
		"robots.txt is 503 for hours": {status(503, 200, "7200"), schema.RobotsUnreachable, nil, 5 * time.Second},
		"the page is 500":             {status(404, 500), schema.HTTP5xx, []string{"a page answered 500, asked again 2s", "a page answered 500, asked again 2s"}, 15 * time.Second},
		"the page is 408":             {status(404, 408), schema.HTTP4xx, []string{"a page answered 408, asked again 2s"}, 15 * time.Second},
		"429 with a short wait":       {status(404, 429, "3"), schema.RateLimited, []string{"a page answered 429 with Retry-After, asked again 3s", "a page answered 429 with Retry-After, asked again 3s"}, 60 * time.Second},
		"429 with a long wait":        {status(404, 429, "600"), schema.RateLimited, nil, 5 * time.Second},
		"a long Crawl-delay":          {crawlDelay("90"), schema.OK, []string{"one request every 1m30s (Crawl-delay), the next 1m29s"}, 100 * time.Second},
		"a short Crawl-delay":         {crawlDelay("10"), schema.OK, []string{"one request every 10s (Crawl-delay), the next 9s"}, 20 * time.Second},
		"a slow answer":               {slow, schema.OK, []string{"was asked, no answer yet"}, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLab(t, c.web)
				l.cfg.Retries, l.cfg.Pauses = Default().Retries, Default().Pauses
				began := time.Now()
				var told []string
				rows, err := one(t.Context(), l.env(nil, t.TempDir()), l.cfg, l.parser, "http://a.com/", func(w stages.Wait) {
					in := ""
					if !w.Until.IsZero() {
						in = " " + time.Until(w.Until).Round(time.Second).String()
					}
					told = append(told, w.Why+in)
					if w.Host != "a.com" {
						t.Errorf("the fetch waits for host %q", w.Host)
					}
				}, hooks{tune: l.web.tune})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); rows.Fetch.Outcome != c.outcome || took > c.within {
					t.Errorf("%s after %v, want %s within %v", rows.Fetch.Outcome, took, c.outcome, c.within)
				}
				if !slices.Equal(told, c.told) {
					t.Errorf("reported waits\n %s\nwant\n %s", strings.Join(told, "\n "), strings.Join(c.told, "\n "))
				}
			})
		})
	}
}

// one fetches a URL in a session of its own.
func one(ctx context.Context, env *stages.Env, cfg Config, parser document.Parser, rawURL string, tell func(stages.Wait), h hooks) (*segments.Record, error) {
	s, err := newSession(env, cfg, options{parser: parser, hooks: h}, tell)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Fetch(ctx, rawURL)
}
