package sitemap

import (
	"bytes"
	"fmt"
	"testing"
)

// fullSitemap returns a sitemap with the maximum number of entries.
func fullSitemap() []byte {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n")
	for i := range MaxEntries {
		fmt.Fprintf(&b, "<url><loc>https://example.com/section-%d/article-%d?a=1&amp;b=%d</loc><lastmod>2024-03-05T08:%02d:00+01:00</lastmod><changefreq>daily</changefreq><priority>0.%d</priority></url>\n",
			i%97, i, i%7, i%60, i%10)
	}
	b.WriteString("</urlset>\n")
	return b.Bytes()
}

// BenchmarkReadEntry measures the cost per entry of a full sitemap.
func BenchmarkReadEntry(b *testing.B) {
	body := fullSitemap()
	b.ReportAllocs()
	b.SetBytes(int64(len(body)) / MaxEntries)
	for left := b.N; left > 0; {
		if _, err := Read(bytes.NewReader(body), Limits{}, func(*Entry) bool { left--; return left > 0 }); err != nil {
			b.Fatal(err)
		}
	}
}
