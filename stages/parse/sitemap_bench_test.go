package parse

import (
	"bytes"
	"fmt"
	"testing"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/sitemap"
)

// BenchmarkSitemap parses a sitemap of 50,000 entries, from bytes to rows.
func BenchmarkSitemap(b *testing.B) {
	var body bytes.Buffer
	body.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n")
	for i := range sitemap.MaxEntries {
		fmt.Fprintf(&body, "<url><loc>https://example.com/section-%d/article-%d?a=1&amp;b=%d</loc><lastmod>2024-03-05T08:%02d:00+01:00</lastmod><changefreq>daily</changefreq><priority>0.%d</priority></url>\n",
			i%97, i, i%7, i%60, i%10)
	}
	body.WriteString("</urlset>\n")
	p := newParser(b)
	d := &document.Document{URL: "https://example.com/sitemap.xml", ContentType: "application/xml", Body: body.Bytes()}
	b.ReportAllocs()
	b.SetBytes(int64(body.Len()))
	for b.Loop() {
		if r := p.Parse(d); len(r.Links) != sitemap.MaxEntries {
			b.Fatalf("%d links", len(r.Links))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/sitemap.MaxEntries, "ns/entry")
}
