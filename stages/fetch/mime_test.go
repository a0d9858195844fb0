package fetch

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// A body that nobody wants is not waited for: its name decides, or its beginning.
func TestBodiesThatAreNotWantedAreNotRead(t *testing.T) {
	const big = 40 << 10
	cases := map[string]struct {
		contentType, body string
		outcome           schema.Outcome
		most              int64 // bytes that may be received
	}{
		"/pdf":          {"application/pdf", strings.Repeat("x", big), schema.MIMEFiltered, 20 << 10},
		"/small-json":   {"application/json; charset=utf-8", "{}", schema.MIMEFiltered, 1 << 10},
		"/font":         {"font/woff2", strings.Repeat("x", big), schema.MIMEFiltered, 20 << 10},
		"/style":        {"text/css", strings.Repeat("x", big), schema.MIMEFiltered, 20 << 10},
		"/unnamed-png":  {"", "\x89PNG\r\n\x1a\n" + strings.Repeat("x", big), schema.MIMEFiltered, 20 << 10},
		"/unnamed-html": {"", "<html>" + strings.Repeat("x", big), schema.OK, 1 << 20},
		"/html":         {"text/html", strings.Repeat("x", big), schema.OK, 1 << 20},
		"/feed":         {"application/atom+xml", strings.Repeat("x", big), schema.OK, 1 << 20},
		"/xml":          {"application/xml", strings.Repeat("x", big), schema.OK, 1 << 20},
	}
	bubble(t, func(t *testing.T) {
		var list []string
		for path := range cases {
			list = append(list, "http://a.com"+path)
		}
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			c := cases[r.URL.Path]
			w.Header()["Content-Type"] = nil
			if c.contentType != "" {
				w.Header().Set("Content-Type", c.contentType)
			}
			if len(c.body) > 1<<10 {
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush() // chunked: the end is not told
			}
			fmt.Fprint(w, c.body)
		}), list...)
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		fetches := l.outcomes(r)
		for path, c := range cases {
			f := fetches["http://a.com"+path]
			if f.Outcome != c.outcome || f.WireBytes > c.most || f.WireBytes == 0 {
				t.Errorf("%s: %s (%s) after %d bytes, want %s", path, f.Outcome, f.Error, f.WireBytes, c.outcome)
			}
		}
		if n := len(rowsOf[schema.Page](l, r, stages.FilePages)); n != 4 {
			t.Errorf("%d pages", n)
		}
	})
}

func TestNamesThatDecideBeforeTheBody(t *testing.T) {
	for _, tt := range []struct {
		contentType, length string
		status              int
		unwanted            bool
	}{
		{"application/pdf", "", 200, true},
		{"APPLICATION/PDF ; q=1", "99999", 200, true},
		{"application/pdf", "100", 200, false}, // read, so that the connection is kept
		{"application/pdf", "many", 200, true},
		{"application/pdf", "", 404, false},
		{"application/octet-stream", "", 200, false},
		{"application/xhtml+xml", "", 200, false},
		{"application/rss+xml", "", 206, false},
		{"text/html", "", 200, false},
		{"text/plain", "", 200, false},
		{"text/css", "", 200, true},
		{"image/png", "", 200, false},
		{"video/mp4", "", 200, false},
		{"multipart/form-data", "", 200, true},
		{"", "", 200, false},
		{"nonsense", "", 200, false},
	} {
		x := &wire.Exchange{Status: tt.status, Header: wire.Header{{Name: "Content-Type", Value: tt.contentType}}}
		if tt.length != "" {
			x.Header = append(x.Header, wire.Field{Name: "Content-Length", Value: tt.length})
		}
		if got := (&crawl{parser: plainParser{}}).unwantedByName(x); got != tt.unwanted {
			t.Errorf("%q of %q bytes with status %d: %t", tt.contentType, tt.length, tt.status, got)
		}
	}
}
