package worker

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/jobs/config"
)

func zip(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

// The config decides first whether a document is stored. If the config does not mention the
// document's type, the handler for the type decides.
func TestTypesThatAreStored(t *testing.T) {
	body := map[string]string{
		"sitemap.gz": zip("<?xml version='1.0'?><urlset><url><loc>/a</loc></url>"),
		"urls.gz":    zip("https://example.com/a\nhttps://example.com/b\n"),
		"log.gz":     zip("a log of " + strings.Repeat("requests ", 1000)),
		"png":        "\x89PNG\r\n\x1a\n",
		"feed.json":  `{"version": "https://jsonfeed.org/version/1.1", "items": []}`,
	}
	for _, tt := range []struct {
		name, contentType, body string
		store, skip             []string
		refused, wanted         bool // expected decisions: whether the document is refused by its head, and wanted by its first bytes
	}{
		{"HTML", "text/html; charset=utf-8", "<p>", nil, nil, false, true},
		{"HTML of no type", "", "<html>", nil, nil, false, true},
		{"a list", "text/csv", "a,b", nil, nil, false, true},
		{"a style", "text/css", "a{}", nil, nil, true, false},
		{"a feed", "application/rss+xml", "<rss>", nil, nil, false, true},
		{"a PDF", "application/pdf", "%PDF-", nil, nil, true, false},
		{"a PDF of no type", "application/octet-stream", "%PDF-", nil, nil, false, false},
		{"a picture", "image/png", body["png"], nil, nil, false, false},
		{"an error page as a picture", "image/png", "<!DOCTYPE html><html>", nil, nil, false, true},
		{"a gzipped sitemap", "application/gzip", body["sitemap.gz"], nil, nil, false, true},
		{"a gzipped sitemap of no type", "application/octet-stream", body["sitemap.gz"], nil, nil, false, true},
		{"a gzipped list of URLs", "application/x-gzip", body["urls.gz"], nil, nil, false, true},
		{"a gzipped log", "application/gzip", body["log.gz"], nil, nil, false, false},
		{"JSON", "application/json", "{}", nil, nil, false, false},
		{"a JSON feed", "application/json", body["feed.json"], nil, nil, false, true},
		{"a PDF that is asked for", "application/pdf", "%PDF-", []string{"application/pdf"}, nil, false, true},
		{"pictures that are asked for", "image/png", body["png"], []string{"image/*"}, nil, false, true},
		{"a picture that is not", "image/png", body["png"], []string{"image/*"}, []string{"image/png"}, false, false},
		{"feeds that are not", "application/rss+xml", "<rss>", nil, []string{"application/rss+xml"}, true, false},
		{"HTML and nothing else", "text/plain", "text", []string{"text/html"}, []string{"*/*"}, false, false},
		{"HTML, and that is HTML", "text/html", "<p>", []string{"text/html"}, []string{"*/*"}, false, true},
		{"everything", "video/mp4", "\x00\x00\x00\x18ftypmp42", []string{"*/*"}, nil, false, true},
	} {
		c := config.Default()
		c.Fetch.Types = config.Types{Store: tt.store, Skip: tt.skip}
		p, err := NewParser(c)
		if err != nil {
			t.Fatal(err)
		}
		prefix := []byte(tt.body)[:min(len(tt.body), 1445)]
		detected := p.Sniff(tt.contentType, prefix)
		if got := p.Wants(detected, prefix); got != tt.wanted {
			t.Errorf("%s, detected as %s: Wants returned %t", tt.name, detected, got)
		}
		if got := p.Refuses(tt.contentType); got != tt.refused {
			t.Errorf("%s: refused %t by its name", tt.name, got)
		}
		if tt.refused && tt.wanted {
			t.Errorf("%s: the case contradicts itself", tt.name)
		}
	}
}
