package truth

import (
	"net/http"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// read extracts the content of a document by walking its tree.
func (n *naive) read(u string, resp *http.Response, body []byte) (*Page, []Link) {
	page := &Page{URL: u, Indexable: true, TextKnown: true, ETag: resp.Header.Get("ETag"), Robots: resp.Header.Get("X-Robots-Tag")}
	if len(body) == 0 {
		return page, nil
	}
	decoded, err := charset.NewReader(strings.NewReader(string(body)), resp.Header.Get("Content-Type"))
	if err != nil {
		n.t.Fatal(err)
	}
	root, err := html.Parse(decoded)
	if err != nil {
		n.t.Fatalf("%s: %v", u, err)
	}
	w := &treeWalk{naive: n, page: page, base: u}
	w.walk(root, "", false)
	w.refreshLink()
	if page.Robots == "nofollow" {
		for i := range w.links {
			w.links[i].Nofollow = true
		}
	}
	page.Indexable = page.Robots != "noindex"
	page.Main = strings.Join(w.lines, "\n")
	page.WordCount = int32(len(strings.Fields(page.Main)))
	page.SimHash, page.TextDigest = simweb.Fingerprint([]byte(page.Main)), textDigest([]byte(page.Main))
	page.Outlinks = int32(len(w.links))
	return page, w.links
}

// treeWalk is the state of reading one document.
type treeWalk struct {
	*naive
	page    *Page
	base    string
	lines   []string
	links   []Link
	refresh string
}

func attr(e *html.Node, name string) string {
	for _, a := range e.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf returns all text below a node, except scripts, with white space folded.
func textOf(e *html.Node) string {
	var b strings.Builder
	for d := range e.Descendants() {
		if d.Type == html.TextNode && d.Parent.DataAtom != atom.Script {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func (w *treeWalk) link(e *html.Node, kind schema.LinkKind, ref, position string) {
	target, ok := w.canonical(w.base, ref)
	if !ok {
		return
	}
	l := Link{Source: w.page.URL, Target: target, Kind: kind, Position: position, Hreflang: attr(e, "hreflang"), Ordinal: int32(len(w.links))}
	if kind == schema.KindA {
		l.Anchor = textOf(e)
	}
	l.Rel = strings.ToLower(attr(e, "rel"))
	l.Nofollow = regexp.MustCompile(`\b(nofollow|ugc|sponsored)\b`).MatchString(l.Rel)
	w.links = append(w.links, l)
}

func (w *treeWalk) refreshLink() {
	if w.refresh != "" {
		w.link(new(html.Node), schema.KindRefresh, w.refresh, "")
	}
}

func (w *treeWalk) walk(e *html.Node, position string, inMain bool) {
	switch e.DataAtom {
	case atom.Html:
		w.page.Language = map[string]string{"en": "eng", "en-GB": "eng", "de": "deu", "fr": "fra", "es-MX": "spa"}[attr(e, "lang")]
	case atom.Title:
		w.page.Title = textOf(e)
	case atom.Meta:
		for name, field := range map[string]*string{"description": &w.page.Description, "keywords": &w.page.Keywords,
			"author": &w.page.Author, "robots": &w.page.Robots} {
			if attr(e, "name") == name {
				*field = attr(e, "content")
			}
		}
		if attr(e, "http-equiv") == "refresh" {
			_, w.refresh, _ = strings.Cut(attr(e, "content"), "url=")
		}
	case atom.Base:
		w.base = attr(e, "href")
	case atom.Link:
		kind := schema.KindLink
		switch {
		case attr(e, "rel") == "canonical":
			kind = schema.KindCanonical
			w.page.CanonicalURL = attr(e, "href")
		case attr(e, "hreflang") != "":
			kind = schema.KindHreflang
		case attr(e, "type") != "":
			kind = schema.KindFeed
		}
		w.link(e, kind, attr(e, "href"), position)
	case atom.A, atom.Area:
		w.link(e, schema.LinkKind(e.Data), attr(e, "href"), position)
	case atom.Img, atom.Iframe, atom.Script:
		if attr(e, "src") != "" {
			w.link(e, schema.LinkKind(e.Data), attr(e, "src"), position)
		}
	case atom.Nav, atom.Aside, atom.Footer, atom.Header, atom.Main:
		position = e.Data
		inMain = inMain || e.DataAtom == atom.Main
	case atom.H1, atom.P, atom.Li:
		if inMain {
			w.lines = append(w.lines, textOf(e))
		}
	}
	for c := range e.ChildNodes() {
		w.walk(c, position, inMain)
	}
}
