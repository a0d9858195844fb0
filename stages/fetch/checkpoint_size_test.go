package fetch

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// A checkpoint with many cookies and many unfinished redirect chains stays far below the size limit
// of readers.
func TestChainsOfRedirectsTakeBoundedRoomInCheckpoints(t *testing.T) {
	hop := manifest.Hop{URL: "http://a.com/", Set: []string{"a=" + strings.Repeat("&", response.MaxCookieBytes-2)}}
	size := len(hop.Set[0])
	waiting := make([]manifest.URLRetry, 10_000)
	for i := range waiting {
		waiting[i] = manifest.URLRetry{Row: int64(i), Chain: &manifest.Chain{Met: []manifest.Hop{hop}, Next: "http://a.com/next"}}
	}
	dropChains(waiting)
	kept := 0
	for _, w := range waiting {
		if w.Chain != nil {
			kept++
		}
	}
	if kept == 0 || kept*size > maxChains {
		t.Errorf("%d chains of %d bytes are kept", kept, size)
	}
}

// If there is no memory for a document, it is requested again later. The row of the first request
// then has no response.
func TestADocumentWithoutMemoryIsAskedForLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		body := strings.Repeat("<p>word ", 400<<10/8)
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			for i := 0; i < len(body); i += 40 << 10 {
				if _, err := w.Write([]byte(body[i:min(i+40<<10, len(body))])); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				if strings.HasSuffix(r.Host, "slow.com") {
					time.Sleep(2 * time.Second)
				}
			}
		}), "http://slow.com/", "http://www.slow.com/", "http://far.slow.com/")
		l.hooks.tune = func(c *wire.Config) { l.web.tune(c); c.Memory = 1 }
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for u, f := range l.outcomes(r) {
			if f.Outcome != "ok" || f.Truncated != "" {
				t.Errorf("%s: %s, truncated %q (%s)", u, f.Outcome, f.Truncated, f.Error)
			}
		}
		l.checkPace(r)
	})
}
