package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// TestWhatARobotsAnswerMeansForItsHost has one host for each kind of response to a robots.txt
// request. It checks the outcomes of each host's URLs /a and /private.
func TestWhatARobotsAnswerMeansForItsHost(t *testing.T) {
	const rules = "User-agent: *\nDisallow: /private\n"
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	body := func(b string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, b) }
	}
	moved := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(301)
		}
	}
	var mu sync.Mutex
	times := map[string]int{}
	after := func(n int, host string, first, then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			times[host]++
			early := times[host] <= n
			mu.Unlock()
			if early {
				first(w, r)
				return
			}
			then(w, r)
		}
	}
	var gz bytes.Buffer
	z := gzip.NewWriter(&gz)
	fmt.Fprint(z, rules)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var wide bytes.Buffer
	for _, u := range append([]uint16{0xFEFF}, utf16.Encode([]rune(rules))...) {
		wide.Write([]byte{byte(u), byte(u >> 8)})
	}
	drip := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(w, "#")
			w.(http.Flusher).Flush()
			time.Sleep(time.Second)
		}
	}
	cut := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			w.WriteHeader(code)
			fmt.Fprint(w, "<h1>this is broken off")
		}
	}
	const ok, denied, unreachable = schema.OK, schema.RobotsDenied, schema.RobotsUnreachable
	long := strings.Repeat("# "+strings.Repeat("x", 97)+"\n", 6000) // the file has 600,000 bytes
	hosts := map[string]struct {
		answer     http.HandlerFunc
		a, private schema.Outcome
		asked      int // number of requests for the robots.txt
	}{
		"rules.com":    {body(rules), ok, denied, 1},
		"empty.com":    {body(""), ok, ok, 1},
		"s204.com":     {status(204), ok, ok, 1},
		"s400.com":     {status(400), ok, ok, 1},
		"s401.com":     {status(401), ok, ok, 1},
		"s403.com":     {status(403), ok, ok, 1},
		"s404.com":     {status(404), ok, ok, 1},
		"s410.com":     {status(410), ok, ok, 1},
		"s408.com":     {status(408), unreachable, unreachable, 4},
		"s421.com":     {status(421), unreachable, unreachable, 4},
		"idle.com":     {after(2, "idle.com", status(408), body(rules)), ok, denied, 3},
		"s429.com":     {status(429), unreachable, unreachable, 6},
		"s500.com":     {status(500), unreachable, unreachable, 5},
		"s503.com":     {status(503), unreachable, unreachable, 6},
		"s599.com":     {status(599), unreachable, unreachable, 5},
		"mended.com":   {after(2, "mended.com", status(500), body(rules)), ok, denied, 3},
		"later.com":    {after(4, "later.com", status(500), body(rules)), ok, denied, 5},
		"let.com":      {after(2, "let.com", status(429), status(404)), ok, ok, 3},
		"hop1.com":     {moved("http://hop2.net/robots.txt"), ok, denied, 1},
		"hop2.net":     {moved("http://hop3.org/robots.txt"), ok, denied, 2},
		"hop3.org":     {moved("/elsewhere"), ok, denied, 3},
		"loop.com":     {moved("/robots.txt"), ok, ok, 6},
		"nowhere.com":  {status(302), ok, ok, 1},
		"noscheme.com": {moved("mailto:x@y"), ok, ok, 1},
		"inside.com":   {moved("http://169.254.169.254/robots.txt"), schema.AddressBlocked, schema.AddressBlocked, 1},
		"tonobody.com": {moved("http://nobody.example/robots.txt"), unreachable, unreachable, 1},
		"tobroken.com": {moved("http://b500.com/robots.txt"), unreachable, unreachable, 1},
		"html.com":     {body("<!DOCTYPE html><html><body><p>Disallow: /private</p></body></html>"), ok, ok, 1},
		"binary.com":   {body("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe"), ok, ok, 1},
		"utf16.com":    {body(wide.String()), ok, denied, 1},
		"gzip.com":     {body(gz.String()), ok, denied, 1},
		"mark.com":     {body("\xEF\xBB\xBF" + rules), ok, denied, 1},
		"cr.com":       {body(strings.ReplaceAll(rules, "\n", "\r")), ok, denied, 1},
		"oneline.com":  {body(strings.Repeat("x", 400_000) + "\n" + rules), ok, denied, 1},
		"long.com":     {body(rules + long + "User-agent: *\nDisallow: /\n"), ok, denied, 1},
		"drip.com":     {drip, unreachable, unreachable, 4},
		"silent.com":   {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, unreachable, unreachable, 4},
		"cut.com": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "User-agent: *\nAllow: /\n")
		}, unreachable, unreachable, 4},
		"cut404.com": {cut(404), ok, ok, 1},
		"cut503.com": {cut(503), unreachable, unreachable, 6},
	}
	bubble(t, func(t *testing.T) {
		var urls []string
		for h := range hosts {
			urls = append(urls, "http://"+h+"/a", "http://"+h+"/private")
		}
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/elsewhere":
				fmt.Fprint(w, rules)
			case r.Host == "b500.com":
				w.WriteHeader(500)
			case r.URL.Path == "/robots.txt":
				hosts[r.Host].answer(w, r)
			default:
				page(w, r)
			}
		}, urls...)
		l.web.down["nobody.example"] = &wire.Error{Kind: wire.ErrNXDomain}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.checkPace(r)
		l.checkEvidence(r)
		got, asked := l.outcomes(r), l.web.askedRobots()
		for h, want := range hosts {
			for path, outcome := range map[string]schema.Outcome{"/a": want.a, "/private": want.private} {
				if f := got["http://"+h+path]; f.Outcome != outcome {
					t.Errorf("%s%s: %s %q, want %s", h, path, f.Outcome, f.Error, outcome)
				}
			}
			if asked[h] != want.asked {
				t.Errorf("%s: robots.txt was requested %d times, want %d", h, asked[h], want.asked)
			}
		}
		if asked["169.254.169.254"] != 0 {
			t.Error("an address that the guard refuses got a request")
		}
		for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
			if limit := l.cfg.RobotsTimeout + time.Second; q.Purpose == schema.ForRobots && q.TotalMS > limit.Milliseconds() {
				t.Errorf("%s took %d ms, a robots.txt has %v", q.URL, q.TotalMS, l.cfg.RobotsTimeout)
			}
		}
		stored := map[string]bool{}
		for _, c := range rowsOf[schema.Capture](l, r, stages.FileCaptures) {
			if c.Path != "/robots.txt" {
				continue
			}
			stored[c.HostName] = true
			_, block, _ := l.record(&c.CaptureColumns)
			if c.HostName == "long.com" && (c.Truncated != "length" || len(block) > robots.MaxBytes+1000) {
				t.Errorf("%s: %d bytes are kept, content_truncated %q", c.URL, len(block), c.Truncated)
			}
		}
		for h := range hosts {
			if !stored[h] && h != "silent.com" {
				t.Errorf("%s: the answer is not stored", h)
			}
		}
		for _, f := range r.FilesOf(stages.FileCaptures) {
			if f.Subset == schema.SubsetRobots {
				return
			}
		}
		t.Error("no capture is in the subset robotstxt")
	})
}

// TestATaskToldToEndWithinARobotsRedirectGoesOnWithItsTarget ends a task after the first hop of a
// redirected robots.txt. The next attempt requests the second hop and does not repeat the first.
func TestATaskToldToEndWithinARobotsRedirectGoesOnWithItsTarget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path != "/robots.txt":
				page(w, r)
			case r.Host == "a.com":
				http.Redirect(w, r, "http://b.org/robots.txt", http.StatusFound)
				time.AfterFunc(time.Millisecond, stop)
			case r.Host == "b.org":
				http.Redirect(w, r, "http://b.org/rules", http.StatusFound)
			}
		}, "http://a.com/1", "http://a.com/2", "http://b.org/1")
		if _, err := l.run(ctx, nil, nil); !errors.Is(err, stages.ErrInterrupted) {
			t.Fatalf("got %v, want ErrInterrupted", err)
		}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.outcomes(r)
		l.checkPace(r)
		sent := map[string]int{}
		for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
			sent[q.URL]++
		}
		if sent["http://a.com/robots.txt"] != 1 || l.web.askedRobots()["a.com"] != 1 {
			t.Errorf("the first hop has %d recorded requests and was requested %d times", sent["http://a.com/robots.txt"], l.web.askedRobots()["a.com"])
		}
		total := 0
		for _, n := range sent {
			total += n
		}
		if hits := len(l.web.hits()); total != hits {
			t.Errorf("%d requests are recorded, the server saw %d", total, hits)
		}
	})
}

func TestHopsOfARobotsFileThatTheWindowClosesOnAreRecorded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Host == "a.com" {
				http.Redirect(w, r, "http://b.org/robots.txt", http.StatusFound)
				return
			}
			noRobots(page)(w, r)
		}, "http://a.com/1", "http://b.org/1", "http://b.org/2")
		l.cfg.Politeness.Delay = 10 * time.Second
		l.cfg.Window = 5 * time.Second
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f := l.outcomes(r)["http://a.com/1"]; f.Outcome != schema.Deferred {
			t.Errorf("its outcome is %s", f.Outcome)
		}
		if n, hits := len(rowsOf[schema.Request](l, r, stages.FileRequests)), len(l.web.hits()); n != hits || hits != 2 {
			t.Errorf("%d requests are recorded, the server saw %d", n, hits)
		}
	})
}
