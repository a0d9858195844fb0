package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlanReadsASitemapFromTheWeb plans from a sitemap twice, and from sitemaps that cannot be read.
func TestPlanReadsASitemapFromTheWeb(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			_, _ = w.Write([]byte("User-agent: *\nDisallow: /denied\n"))
		case "/s.xml":
			_, _ = w.Write([]byte("<urlset><url><loc>/1</loc></url><url><loc>/2</loc></url><url><loc>http://other.net/</loc></url></urlset>"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	store := filepath.Join(t.TempDir(), "store")
	for _, c := range []struct {
		source string
		code   int
		says   string
	}{
		{"sitemap:http://example.com/s.xml", exitDone, "2 URLs, 1 host"},
		{"sitemap:http://example.com/s.xml", exitDone, "had planned, the same,"},
		{"sitemap:http://example.com/s.xml", exitDone, "bad_record 1"},
		{"sitemap:http://example.com/404.xml", exitUsage, "it answered 404"},
		{"sitemap:http://example.com/denied.xml", exitUsage, "robots.txt denies it"},
		{"http://example.com/s.xml", exitUsage, "write sitemap:http://example.com/s.xml"},
	} {
		var said bytes.Buffer
		code := execute(t.Context(), []string{"plan", "--store", store, "--month", "2026-11", "--source", c.source,
			"--connect-to", "::" + strings.TrimPrefix(web.URL, "http://")}, nil, &said, &said)
		if code != c.code || !strings.Contains(said.String(), c.says) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s", c.source, code, c.code, c.says, said.String())
		}
	}
}
