package simweb

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
)

// sitemapEntries is the largest number of URLs in a sitemap. The sitemap protocol allows 50,000.
const sitemapEntries = 10_000

const xmlHead = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

const sitemapNamespace = ` xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"

// SitemapURLs calls f with the URLs in a host's sitemaps: its pages without faults, in the order of
// their numbers.
func (w *Web) SitemapURLs(host int, f func(url string) bool) {
	w.sitemapRange(host, 0, w.Pages(host), f)
}

// NamedSitemap works like SitemapURLs if the host's robots.txt names its sitemaps. Otherwise it does
// nothing.
func (w *Web) NamedSitemap(host int, f func(url string) bool) {
	path := "/robots.txt"
	if w.Profile(host) == RobotsMoved {
		path = w.Look(host, path).Location
	}
	if strings.Contains(string(w.Look(host, path).Body), "Sitemap:") {
		w.SitemapURLs(host, f)
	}
}

func (w *Web) sitemapRange(host, from, to int, f func(url string) bool) {
	for p := from; p < to; p++ {
		if w.role(host, p) != roleFault && !f(w.URL(host, p)) {
			return
		}
	}
}

// sitemap returns the file at /sitemap.xml or /sitemap-N.xml, or nil if there is none. On hosts
// with many pages, /sitemap.xml is an index of sitemaps; on others, it is the only sitemap.
func (w *Web) sitemap(host int, path string) []byte {
	n := w.Pages(host)
	parts := (n + sitemapEntries - 1) / sitemapEntries
	if path == "/sitemap.xml" {
		if parts == 1 {
			return w.urlset(host, 0, n)
		}
		b := bytes.NewBufferString(xmlHead + "<sitemapindex" + sitemapNamespace)
		for i := range parts {
			b.WriteString("<sitemap><loc>" + w.urlAt(host, "/sitemap-"+strconv.Itoa(i)+".xml") + "</loc></sitemap>\n")
		}
		b.WriteString("</sitemapindex>\n")
		return b.Bytes()
	}
	digits := strings.TrimSuffix(strings.TrimPrefix(path, "/sitemap-"), ".xml")
	i, ok := readNumber(digits)
	if !ok || path != "/sitemap-"+digits+".xml" || i >= parts || parts == 1 {
		return nil
	}
	return w.urlset(host, i*sitemapEntries, min(n, (i+1)*sitemapEntries))
}

func (w *Web) urlset(host, from, to int) []byte {
	b := bytes.NewBufferString(xmlHead + "<urlset" + sitemapNamespace)
	w.sitemapRange(host, from, to, func(url string) bool {
		b.WriteString("<url><loc>")
		_ = xml.EscapeText(b, []byte(url)) // writing to a Buffer never fails
		b.WriteString("</loc><lastmod>2026-01-15</lastmod><changefreq>monthly</changefreq><priority>0.5</priority></url>\n")
		return true
	})
	b.WriteString("</urlset>\n")
	return b.Bytes()
}

// rssFeed returns the RSS feed of a host, which lists its first pages.
func (w *Web) rssFeed(host int) []byte {
	b := bytes.NewBufferString(xmlHead + `<rss version="2.0"><channel><title>` + title(w.hostKey(host).named("brand"), 2) + "</title>\n")
	w.sitemapRange(host, 0, min(20, w.Pages(host)), func(url string) bool {
		b.WriteString("<item><link>")
		_ = xml.EscapeText(b, []byte(url))
		b.WriteString("</link></item>\n")
		return true
	})
	b.WriteString("</channel></rss>\n")
	return b.Bytes()
}
