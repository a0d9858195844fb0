package fetch

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// beHostile answers like one of seven kinds of hostile hosts.
func beHostile(kind int, w http.ResponseWriter, r *http.Request) {
	endless := func(piece string, pause time.Duration) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(piece)); err != nil {
				return
			}
			if pause > 0 {
				_ = http.NewResponseController(w).Flush()
				time.Sleep(pause)
			}
		}
	}
	switch kind {
	case 0: // never answers
		<-r.Context().Done()
	case 1: // sends one byte now and then
		endless("x", time.Second)
	case 2: // sends a body that fills all memory, then one byte now and then
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(strings.Repeat("word ", 400_000)))
		endless("x", time.Second)
	case 3: // sends an endless body
		w.Header().Set("Content-Type", "text/html")
		endless(strings.Repeat("word ", 1000), 0)
	case 4:
		w.WriteHeader(http.StatusInternalServerError)
	case 5:
		w.Header().Set("Retry-After", "3153600000")
		w.WriteHeader(http.StatusTooManyRequests)
	case 6: // closes the connection
		panic(http.ErrAbortHandler)
	}
}

// Fifty hostile hosts in the same task neither delay requests to good hosts nor damage documents.
func TestGoodHostsGoOnAtFullPaceBesideHostileOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const hostile, good, pages = 50, 6, 40
	bubble(t, func(t *testing.T) {
		var list []string
		for h := range hostile {
			list = append(list, urls(fmt.Sprintf("bad%02d.com", h), 10)...)
		}
		for h := range good {
			list = append(list, urls(fmt.Sprintf("good%d.com", h), pages)...)
		}
		large := strings.Repeat("word ", 100_000)
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			if n := 0; strings.HasPrefix(r.Host, "bad") {
				_, _ = fmt.Sscanf(r.Host, "bad%d", &n)
				beHostile(n%7, w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(large))
		}), list...)
		l.cfg.Slots = 60
		l.cfg.Window = 10 * time.Minute
		l.cfg.Politeness.PerAddressDelay = 0
		began := time.Now()
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		asked := map[string][]time.Duration{}
		for _, h := range l.web.hits() {
			if strings.HasPrefix(h.host, "good") {
				asked[h.host] = append(asked[h.host], h.at.Sub(began))
			}
		}
		delay := l.cfg.Politeness.Delay
		for host, times := range asked {
			if len(times) != pages+1 {
				t.Errorf("%s got %d requests, want robots.txt and %d pages", host, len(times), pages)
			}
			slices.Sort(times)
			if took, want := times[len(times)-1]-times[0], pages*delay; took != want {
				t.Errorf("%s took %v, its delays alone take %v", host, took, want)
			}
		}
		if len(asked) != good {
			t.Errorf("%d good hosts got requests, want %d", len(asked), good)
		}
		ok := 0
		for u, f := range l.outcomes(r) {
			if !strings.Contains(u, "//good") {
				continue
			}
			if ok++; f.Outcome != schema.OK || f.ContentBytes != int64(len(large)) || f.Truncated != "" {
				t.Errorf("%s: %s, %d bytes, truncated %q", u, f.Outcome, f.ContentBytes, f.Truncated)
			}
		}
		if ok != good*pages {
			t.Errorf("%d URLs of good hosts have an outcome, want %d", ok, good*pages)
		}
	})
}
