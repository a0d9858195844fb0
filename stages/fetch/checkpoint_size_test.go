package fetch

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// However much a site sets, and however many of its chains wait, a checkpoint stays
// far below what is read back.
func TestChainsOfRedirectsTakeBoundedRoomInCheckpoints(t *testing.T) {
	var k cookies
	var head wire.Header
	for i := range maxCookies {
		head = append(head, wire.Field{Name: "Set-Cookie", Value: string(rune('a'+i%26)) + strings.Repeat("x", i) + "=" + strings.Repeat("&", 3<<10)})
	}
	hop := manifest.Hop{URL: "http://a.com/", Set: k.take("http://a.com/", head)}
	hop.Set = append(hop.Set, k.take("http://www.a.com/", head)...)
	size := 0
	for _, line := range hop.Set {
		size += len(line)
	}
	if size == 0 || size > maxKept {
		t.Errorf("%d bytes of Set-Cookie are kept", size)
	}

	waiting := make([]manifest.URLRetry, 10_000)
	for i := range waiting {
		waiting[i] = manifest.URLRetry{Row: int64(i), Chain: &manifest.Chain{Met: []manifest.Hop{hop}, Next: "http://a.com/next"}}
	}
	forget(waiting)
	kept := 0
	for _, w := range waiting {
		if w.Chain != nil {
			kept++
		}
	}
	if kept == 0 || kept*size > maxChains {
		t.Errorf("%d chains of %d bytes are kept", kept, size)
	}

	var resumed cookies
	resumed.resume(hop)
	if d := cmp.Diff(k.field("http://a.com/"), resumed.field("http://a.com/")); d != "" || resumed.kept != size {
		t.Errorf("after a resume, %d bytes: %s", resumed.kept, d)
	}
}

// A document for which there was no memory is asked for a while later, and leaves no
// answer in its row.
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
		l.cfg.tune = func(c *wire.Config) { c.Memory = 1 }
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
