package simweb

import (
	"net/http"
	"strconv"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Half of the graph's pages have more metadata, as real sites do: a preview card (Open Graph,
// Twitter), JSON-LD, dates, an icon, the generator. Of these, package truth records only the link
// to the icon.

// born is when the oldest page of the web was published.
var born = time.Date(2019, 3, 1, 8, 0, 0, 0, time.UTC)

// dates returns the publication and modification dates of a page.
func (w *Web) dates(host, page int) (published, modified time.Time) {
	k := w.pageKey(host, page).named("dates")
	published = born.Add(time.Duration(k.at(0).below(2500*24*60)) * time.Minute)
	return published, published.Add(time.Duration(1+k.at(1).below(60*24*60)) * time.Minute)
}

// writeCard writes the metadata into a page.
func (a *author) writeCard(path string, k key) {
	if a.variant != "" || k.at(0).below(2) == 0 {
		return
	}
	w, d := a.w, a.doc
	site := title(w.hostKey(a.host).named("brand"), 2)
	published, modified := w.dates(a.host, a.page)
	picture := w.urlAt(a.host, "/static/picture-"+strconv.Itoa(k.at(1).below(9))+".png")
	kind := "article"
	if a.page == 0 {
		kind = "website"
	}
	for _, p := range [][2]string{
		{"og:title", d.Title}, {"og:description", "Preview: " + title(k.at(2), 4) + "."}, {"og:image", picture}, {"og:type", kind},
		{"og:url", w.urlAt(a.host, path)}, {"og:site_name", site}, {"og:locale", d.lang.tag},
		{"article:published_time", published.Format(time.RFC3339)}, {"article:modified_time", modified.Format(time.RFC3339)},
	} {
		a.text("<meta property=\"" + p[0] + "\" content=\"")
		d.html = appendEscaped(d.html, p[1])
		a.text("\">\n")
	}
	account := "@" + number("h", a.host)
	a.meta("twitter:card", "summary_large_image")
	a.meta("twitter:title", "Seen: "+title(k.at(3), 3))
	a.meta("twitter:description", title(k.at(4), 5))
	a.meta("twitter:image", picture)
	a.meta("twitter:site", account)
	a.meta("twitter:creator", account+"_"+strconv.Itoa(k.at(5).below(5)))
	a.meta("generator", "simweb 1")
	if k.at(6).below(8) == 0 {
		a.meta("tdm-reservation", "1")
		a.meta("tdm-policy", w.urlAt(a.host, "/tdm-policy.json"))
	}
	if d.Robots == "" && d.XRobots == "" && k.at(8).below(12) == 0 {
		d.Robots = "unavailable_after: 2040-06-25"
		a.meta("robots", d.Robots)
	}
	a.linkTag("icon", "", schema.KindLink, place{a.host, "/static/picture-icon.png"})
	by := ""
	if d.Author != "" {
		by = `"author":{"@type":"Person","name":"` + d.Author + `"},`
	}
	a.text(`<script type="application/ld+json">{"@context":"https://schema.org","@type":"Article","headline":"` + title(k.at(7), 4) + `",` + by +
		`"datePublished":"` + published.Format(time.RFC3339) + `","publisher":{"@type":"Organization","name":"` + site + `"}}</script>` + "\n")
}

// announce sets header fields of pages on half of the hosts: the modification date and, on some
// hosts, content signals.
func (w *Web) announce(host int, path string, h http.Header) {
	k := w.hostKey(host).named("announce")
	page, ok := w.pageOf(host, path)
	if !ok || k.below(2) == 0 {
		return
	}
	_, modified := w.dates(host, page)
	h.Set("Last-Modified", modified.Format(http.TimeFormat))
	if k.at(1).below(3) == 0 {
		h.Set("Content-Signal", "ai-train=no, search=yes")
	}
}
