package fetch

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// The fetcher stops reading a body as soon as its media type or its first bytes show that the
// document is not wanted.
func TestBodiesThatAreNotWantedAreNotRead(t *testing.T) {
	const big = 40 << 10
	cases := map[string]struct {
		contentType, body string
		outcome           schema.Outcome
		detected          string
		most              int64 // largest number of bytes that may be received
	}{
		"/pdf":          {"application/pdf", strings.Repeat("x", big), schema.MIMEFiltered, "application/pdf", 20 << 10},
		"/small-json":   {"application/json; charset=utf-8", "{}", schema.MIMEFiltered, "application/json", 1 << 10},
		"/font":         {"font/woff2", strings.Repeat("x", big), schema.MIMEFiltered, "font/woff2", 20 << 10},
		"/style":        {"text/css", strings.Repeat("x", big), schema.MIMEFiltered, "text/css", 20 << 10},
		"/unnamed-png":  {"", "\x89PNG\r\n\x1a\n" + strings.Repeat("x", big), schema.MIMEFiltered, "image/png", 20 << 10},
		"/unnamed-html": {"", "<html>" + strings.Repeat("x", big), schema.OK, "text/html", 1 << 20},
		"/html":         {"text/html", strings.Repeat("x", big), schema.OK, "text/html", 1 << 20},
		"/feed":         {"application/atom+xml", strings.Repeat("x", big), schema.OK, "application/atom+xml", 1 << 20},
		"/xml":          {"application/xml", strings.Repeat("x", big), schema.OK, "application/xml", 1 << 20},
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
				w.(http.Flusher).Flush() // makes the body chunked, so that its length is unknown
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
			if f.MimeDetected != c.detected {
				t.Errorf("%s: detected %q, want %q", path, f.MimeDetected, c.detected)
			}
		}
		if n := len(rowsOf[schema.Page](l, r, stages.FilePages)); n != 4 {
			t.Errorf("%d pages", n)
		}
	})
}

// hungry is a parser that also wants types that plainParser refuses.
type hungry struct{ plainParser }

func (hungry) Wants(mediaType string, _ []byte) bool { return !strings.HasPrefix(mediaType, "text/") }
func (hungry) Refuses(string) bool                   { return false }

// The parser, not package fetch, decides which documents are stored.
func TestWhatIsStoredTheParserSays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", map[string]string{"/p": "application/pdf", "/h": "text/html", "/e": "text/html"}[r.URL.Path])
			if r.URL.Path != "/e" {
				fmt.Fprint(w, "%PDF-1.7 as it were")
			}
		}), "http://a.com/p", "http://a.com/h", "http://a.com/e")
		l.parser = hungry{}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		fetches := l.outcomes(r)
		for path, want := range map[string]schema.Outcome{"p": schema.OK, "h": schema.MIMEFiltered, "e": schema.MIMEFiltered} {
			if f := fetches["http://a.com/"+path]; f.Outcome != want || f.MimeDetected == "" || (f.WARCFilename != "") != (want == schema.OK) {
				t.Errorf("%s: %s, detected %q, stored in %q; want %s", path, f.Outcome, f.MimeDetected, f.WARCFilename, want)
			}
		}
	})
}

// A sitemap may be as long as sitemaps.org allows, even if other documents must be shorter.
func TestSitemapsHaveABoundOfTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, map[string]string{"/s": "<urlset>", "/x": "<other>"}[r.URL.Path], strings.Repeat("x", 90<<10))
		}), "http://a.com/s", "http://a.com/x")
		l.cfg.MaxBody, l.cfg.MaxSitemap = 20<<10, 60<<10
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		fetches := l.outcomes(r)
		for path, want := range map[string]int64{"s": 60 << 10, "x": 20 << 10} {
			if f := fetches["http://a.com/"+path]; f.Outcome != schema.OK || f.ContentBytes != want || f.Truncated != schema.TruncatedLength {
				t.Errorf("%s: %s, %d bytes, truncated %q; want %d", path, f.Outcome, f.ContentBytes, f.Truncated, want)
			}
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
		{"application/pdf", "100", 200, false}, // the body is read to its end, so that the connection can be kept
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
		x := &wire.Exchange{Response: http1.Response{Status: tt.status, Header: http1.Header{{Name: "Content-Type", Value: tt.contentType}}}}
		if tt.length != "" {
			x.Header = append(x.Header, http1.Field{Name: "Content-Length", Value: tt.length})
		}
		if got := response.RefusedByName(plainParser{}, x); got != tt.unwanted {
			t.Errorf("%q of %q bytes with status %d: %t", tt.contentType, tt.length, tt.status, got)
		}
	}
}
