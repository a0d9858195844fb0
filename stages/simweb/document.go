package simweb

import (
	"strconv"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Document is an HTML page, with the text, links and metadata that a correct parser finds in it.
type Document struct {
	Title, Description, Keywords, Author string

	Language  string // ISO 639-3 code of the language
	Canonical string // declared canonical URL, or ""
	Robots    string // content of meta robots, or ""
	XRobots   string // content of X-Robots-Tag, or ""

	Main      []byte // main text, with one block per line
	Links     []Link
	MainLinks int // number of Links before the end of the main part

	lang    language
	html    []byte
	mainEnd int // end of the main part, as an offset in html
}

// Link is a reference in a page, with what it means.
type Link struct {
	Target   string // canonical URL of the target, without tracking parameters
	Track    string // tracking parameters of the reference
	Anchor   string
	Rel      string // rel attribute of the link, in lower case
	Hreflang string
	Kind     schema.LinkKind
	Nofollow bool
	Position string
}

// place is a URL. If host is -1, the URL is outside the web.
type place struct {
	host int
	path string // the whole URL if host is -1
}

func (w *Web) urlOf(p place) string {
	if p.host < 0 {
		return p.path
	}
	return w.urlAt(p.host, p.path)
}

// author writes a document.
type author struct {
	w        *Web
	doc      *Document
	host     int
	page     int
	variant  string
	key      key
	dir      string // directory of the document's base URL
	absolute bool   // whether to write only references that work with any base URL
	position string
	nofollow bool // whether a meta robots element makes all links nofollow
	refresh  *place
}

// makeDocument generates the document at path for a page number. variant is "" for the page itself.
// Otherwise it names another document with this number, such as the landing page of a redirect.
func (w *Web) makeDocument(host, page int, variant, path string, refresh *place) *Document {
	a := &author{w: w, host: host, page: page, variant: variant, dir: directory(path), refresh: refresh}
	a.key = w.pageKey(host, page).named("document").named(variant)
	a.doc = &Document{html: make([]byte, 0, 8<<10), Main: make([]byte, 0, 4<<10), Links: make([]Link, 0, 40)}
	src := w.source(host, page, variant)
	a.doc.lang = w.languageOf(src)
	a.doc.Language = a.doc.lang.iso
	a.head(src, path)
	a.text("\n<body>\n<header><p class=\"brand\">The " + title(w.hostKey(host).named("brand"), 2) + "</p></header>\n")
	a.nav()
	a.mainPart(src)
	a.writeEmbeds(src)
	a.footer()
	if refresh != nil { // a meta refresh counts as the last link of the page
		a.record(*refresh, Link{Kind: schema.KindRefresh})
	}
	a.text("</body>\n</html>\n")
	return a.doc
}

func (a *author) text(s string) { a.doc.html = append(a.doc.html, s...) }

// titleOf returns the title of a page of the graph, with the given number of words. The text of a
// link is the first words of its target's title. The word of the page's topic may come before them.
func (w *Web) titleOf(host, page, words int) string {
	return w.withTopic(host, page, title(w.pageKey(host, page).named("title"), words), words > 2)
}

func (a *author) head(src source, path string) {
	w, d, k := a.w, a.doc, a.key.named("head")
	d.Title = w.titleOf(a.host, a.page, 3)
	switch k.at(0).below(8) {
	case 0:
		d.Title += " & Co"
	case 1:
		d.Title += " – " + title(w.hostKey(a.host).named("brand"), 1)
	}
	a.text("<!doctype html>\n<html lang=\"" + d.lang.tag + "\">\n<head>\n<meta charset=\"utf-8\">\n<title>")
	d.html = appendEscaped(d.html, d.Title)
	a.text("</title>\n")
	if k.at(1).below(4) > 0 {
		d.Description = "About " + title(k.at(2), 4) + "."
		a.meta("description", d.Description)
	}
	if k.at(3).below(4) == 0 {
		d.Keywords = title(k.at(4), 1) + ", " + title(k.at(5), 1)
		a.meta("keywords", d.Keywords)
	}
	if k.at(6).below(6) == 0 {
		d.Author = title(k.at(7), 2)
		a.meta("author", d.Author)
	}
	ordinary := a.variant == "" && a.page > 0 && w.role(a.host, a.page) == rolePage
	if u := k.at(8).below(100); ordinary && u < 5 {
		switch {
		case u < 2:
			d.Robots = "noindex"
			a.meta("robots", d.Robots)
		case u < 4:
			d.Robots, a.nofollow = "nofollow", true
			a.meta("robots", d.Robots)
		default:
			d.XRobots = "noindex"
		}
	}
	if a.variant == "" && k.at(9).below(12) == 0 {
		base := "/" + sections[k.at(10).below(len(sections))] + "/base/"
		a.dir = base
		a.text("<base href=\"" + w.urlAt(a.host, base) + "\">\n")
	}
	a.headLinks(src, path, k.named("links"))
	a.writeCard(path, k.named("card"))
	a.text("</head>")
}

func (a *author) meta(name, content string) {
	a.text("<meta name=\"" + name + "\" content=\"" + content + "\">\n")
}

// headLinks writes the link elements. A landing page declares no canonical URL, because no link may
// name the landing page of a redirect.
func (a *author) headLinks(src source, path string, k key) {
	w := a.w
	if a.refresh != nil {
		url := w.urlOf(*a.refresh)
		a.text("<meta http-equiv=\"refresh\" content=\"5; url=" + url + "\">\n")
	}
	if a.variant == "" {
		own := src.host == a.host && src.page == a.page
		switch u := k.at(0).below(10); {
		case !own && u < 6 && w.role(a.host, a.page) == roleExact:
			a.canonical(place{src.host, w.path(src.host, src.page)})
		case own && u < 4:
			a.canonical(place{a.host, path})
		}
		if k.at(1).below(16) == 0 {
			p := k.at(2).below(w.Pages(a.host))
			if w.role(a.host, p) != roleFault {
				a.text("<link rel=\"alternate\" hreflang=\"nl\" href=\"")
				a.linkEnd(place{a.host, w.path(a.host, p)}, Link{Rel: "alternate", Kind: schema.KindHreflang, Hreflang: "nl"})
			}
		}
	}
	a.linkTag("stylesheet", "", schema.KindLink, place{a.host, "/static/site.css"})
	if a.page == 0 {
		a.linkTag("alternate", ` type="application/rss+xml"`, schema.KindFeed, place{a.host, "/feed.xml"})
	}
}

func (a *author) canonical(p place) {
	a.doc.Canonical = a.w.urlOf(p)
	a.linkTag("canonical", "", schema.KindCanonical, p)
}

func (a *author) linkTag(rel, attrs string, kind schema.LinkKind, p place) {
	a.text("<link rel=\"" + rel + "\"" + attrs + " href=\"")
	a.linkEnd(p, Link{Rel: rel, Kind: kind})
}

// linkEnd completes a link element: the value of href and the end of the tag.
func (a *author) linkEnd(p place, l Link) {
	a.doc.html = appendEscaped(a.doc.html, a.w.urlOf(p))
	a.text("\">\n")
	a.record(p, l)
}

// record adds a link to the document's Links after it was written.
func (a *author) record(p place, l Link) {
	l.Target = a.w.urlOf(p)
	l.Position = a.position
	l.Nofollow = l.Nofollow || a.nofollow
	a.doc.Links = append(a.doc.Links, l)
}

func (a *author) nav() {
	w := a.w
	a.position = "nav"
	a.text("<nav>\n<ul>\n<li>")
	a.plainAnchor(place{a.host, "/"}, "Home")
	for p := 1; p <= 4 && p < w.Pages(a.host); p++ {
		if w.role(a.host, p) == roleFault {
			continue
		}
		a.text("</li>\n<li>")
		a.plainAnchor(place{a.host, w.path(a.host, p)}, w.titleOf(a.host, p, 1))
	}
	a.text("</li>\n</ul>\n</nav>\n")
	a.position = ""
}

// writeEmbeds writes embedded objects. If the main part is short or copied from another page, it
// has no links to this page's children, so writeEmbeds writes these too.
func (a *author) writeEmbeds(src source) {
	w, k := a.w, a.key.named("aside")
	a.position = "aside"
	a.text("<aside>\n")
	if a.variant == "" && (src.isCopied(a.host, a.page) || src.short) {
		a.text("<ul>\n")
		n := 0
		w.children(a.host, a.page, func(c int) {
			a.text("<li>")
			a.pageAnchor(k.at(100+n), a.host, c)
			a.text("</li>\n")
			n++
		})
		a.text("</ul>\n")
	}
	if k.at(0).below(5) == 0 {
		a.embed("<img src=\"", schema.KindImg, place{a.host, "/static/picture-" + strconv.Itoa(k.at(1).below(50)) + ".png"}, "\" alt=\"\">\n")
	}
	if p := k.at(2).below(w.Pages(a.host)); k.at(3).below(24) == 0 && w.role(a.host, p) != roleFault {
		a.embed("<iframe src=\"", schema.KindIframe, place{a.host, w.path(a.host, p)}, "\"></iframe>\n")
	}
	if p := k.at(4).below(w.Pages(a.host)); k.at(5).below(24) == 0 && w.role(a.host, p) != roleFault {
		a.embed("<map name=\"m\"><area shape=\"default\" href=\"", schema.KindArea, place{a.host, w.path(a.host, p)}, "\"></map>\n")
	}
	a.text("<p>Related to this.</p>\n</aside>\n")
	a.position = ""
}

func (a *author) embed(open string, kind schema.LinkKind, p place, end string) {
	a.text(open)
	a.doc.html = appendEscaped(a.doc.html, a.w.urlOf(p))
	a.text(end)
	a.record(p, Link{Kind: kind})
}

func (a *author) footer() {
	w, k := a.w, a.key.named("footer")
	a.position = "footer"
	a.text("<footer>\n<p>")
	login := place{a.host, "/login?next=" + strconv.Itoa(a.page)}
	a.text("<a rel=\"NoFollow\" href=\"" + login.path + "\">Sign in</a>\n")
	a.record(login, Link{Anchor: "Sign in", Rel: "nofollow", Kind: schema.KindA, Nofollow: true})
	if k.at(0).below(3) == 0 {
		a.plainAnchor(place{(a.host + 1) % w.cfg.Hosts, "/"}, "Partner")
		a.text("\n")
	}
	if k.at(1).below(5) == 0 {
		a.plainAnchor(w.unknownHome(k.at(2)), "Elsewhere")
		a.text("\n")
	}
	if k.at(3).below(8) == 0 {
		a.text("<a href=\"mailto:post@" + w.Host(a.host) + "\">Write to us</a>\n<a href=\"javascript:void(0)\">Print</a>\n")
	}
	a.text("</p>\n<p>All rights reserved by nobody.</p>\n</footer>\n")
	a.position = ""
	if k.at(4).below(4) == 0 {
		a.embed("<script src=\"", schema.KindScript, place{a.host, "/static/site.js"}, "\"></script>\n")
	}
}

// unknownHome returns the home page of a host that does not exist in the web.
func (w *Web) unknownHome(k key) place {
	return place{-1, "http://" + number("s", k.below(1000)) + ".elsewhere.example/"}
}
