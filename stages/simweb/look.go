package simweb

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// answer is what the web has at a URL, before any transport.
type answer struct {
	status   int
	mime     string
	location string    // Location header of a redirect, as sent
	to       place     // of a redirect, what its location means
	doc      *document // an HTML page; else
	body     []byte
	xRobots  string

	// Of a fault: what goes wrong, and the number in its URL.
	fault *Fault
	visit visit
}

// redirects reports whether the answer is a redirect, one without a Location included.
func (a *answer) redirects() bool {
	return a.location != "" || a.fault != nil && a.fault.redirect != nil
}

// visit is where a fault is met.
type visit struct {
	w    *Web
	host int
	num  int // number in the fault's URL
	hop  int // of a fault that has several URLs, which: 0 is the first
}

// faultPath is the URL form of a fault. landingPath is where it leads, if it does.
func faultPath(name string, num int) string { return "/fault/" + name + "/" + strconv.Itoa(num) }

func landingPath(name string, num int) string { return "/land/" + name + "/" + strconv.Itoa(num) }

// deniedLandingPath is one that some hosts' robots.txt denies.
func deniedLandingPath(name string, num int) string { return "/private" + landingPath(name, num) }

func hopPath(name string, num, hop int) string {
	return faultPath(name, num) + "/" + strconv.Itoa(hop)
}

// isTrack reports whether a parameter is one of those that references carry to
// track readers. The web answers as though they were not there.
func isTrack(param string) bool {
	name, _, _ := strings.Cut(param, "=")
	return strings.HasPrefix(name, "utm_") || name == "fbclid" || name == "gclid" || name == "ref"
}

// untracked is a path without tracking parameters.
func untracked(path string) string {
	path, query, ok := strings.Cut(path, "?")
	if !ok {
		return path
	}
	kept := ""
	for param := range strings.SplitSeq(query, "&") {
		if !isTrack(param) {
			kept += "&" + param
		}
	}
	if kept == "" {
		return path
	}
	return path + "?" + kept[1:]
}

// look finds what host has at a path, with its query.
func (w *Web) look(host int, path string) answer {
	if a, ok := w.robotsAnswer(host, path); ok {
		return a
	}
	path = untracked(path)
	if page, ok := w.pageOf(host, path); ok && w.role(host, page) != roleFault {
		doc := w.document(host, page, "", path, nil)
		return documentAnswer(doc)
	}
	plain, query, _ := strings.Cut(path, "?")
	rest, denied := strings.CutPrefix(plain, "/private/land/")
	if !denied {
		rest, denied = strings.CutPrefix(plain, "/land/")
	}
	if denied {
		if f, num, hop, ok := readFault(rest); ok && hop == 0 {
			return documentAnswer(w.document(host, num, "land:"+f.Name, path, nil))
		}
	}
	if rest, ok := strings.CutPrefix(path, "/fault/"); ok {
		if f, num, hop, ok := readFault(rest); ok && hop <= f.hops {
			return w.meet(f, visit{w: w, host: host, num: num, hop: hop}, path)
		}
	}
	if num, ok := strings.CutPrefix(query, "next="); ok && plain == "/login" {
		if n, ok := readNumber(num); ok {
			return documentAnswer(w.document(host, n, "login", path, nil))
		}
	}
	if a, ok := w.furniture(host, path); ok {
		return a
	}
	return statusPage(http.StatusNotFound)
}

// readFault reads NAME/NUM or NAME/NUM/HOP.
func readFault(s string) (f *Fault, num, hop int, ok bool) {
	name, digits, found := strings.Cut(s, "/")
	if f = faultNamed(name); f == nil || !found {
		return nil, 0, 0, false
	}
	digits, hops, more := strings.Cut(digits, "/")
	if more {
		if hop, ok = readNumber(hops); !ok || hop == 0 {
			return nil, 0, 0, false
		}
	}
	num, ok = readNumber(digits)
	return f, num, hop, ok
}

// readNumber reads a number as it is written in URLs: one form each.
func readNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > maxPages || strconv.Itoa(n) != s {
		return 0, false
	}
	return n, true
}

func documentAnswer(doc *document) answer {
	return answer{status: http.StatusOK, mime: htmlType, doc: doc, body: doc.html, xRobots: doc.xRobots}
}

const htmlType = "text/html; charset=utf-8"

// statusPage is an answer that is no document: a few words under a status.
func statusPage(status int) answer {
	text := strconv.Itoa(status) + " " + http.StatusText(status)
	return answer{status: status, mime: htmlType, body: []byte("<!doctype html>\n<title>" + text + "</title>\n<h1>" + text + "</h1>\n")}
}

// furniture is what hosts have beside pages.
func (w *Web) furniture(host int, path string) (answer, bool) {
	switch {
	case path == "/static/site.css":
		return answer{status: http.StatusOK, mime: "text/css", body: []byte("body { margin: 2em }\n")}, true
	case path == "/static/site.js":
		return answer{status: http.StatusOK, mime: "text/javascript", body: []byte("\"use strict\";\n")}, true
	case strings.HasPrefix(path, "/static/picture-") && strings.HasSuffix(path, ".png"):
		return answer{status: http.StatusOK, mime: "image/png", body: picture()}, true
	case path == "/feed.xml":
		return answer{status: http.StatusOK, mime: "application/rss+xml", body: w.feed(host)}, true
	case strings.HasPrefix(path, "/sitemap"):
		if body := w.sitemap(host, path); body != nil {
			return answer{status: http.StatusOK, mime: "application/xml", body: body}, true
		}
	}
	return answer{}, false
}

// picture is a PNG of one transparent pixel.
var picture = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, 1, 1))) // a Buffer takes all
	return b.Bytes()
})

// recorded gives the first n links of a document as a crawler records them that
// makes URLs canonical by canonical: tracking parameters stay unless it strips them.
func (d *document) recorded(n int, canonical func(url string) (string, bool)) []link {
	out := make([]link, 0, n)
	for _, l := range d.links[:n] {
		if l.track != "" {
			sep := "?"
			if strings.Contains(l.target, "?") {
				sep = "&"
			}
			t, ok := canonical(l.target + sep + l.track)
			if !ok {
				continue
			}
			l.target = t
		}
		out = append(out, l)
	}
	return out
}

// followed reports whether the kind is one of those whose targets may be planned.
func followed(kinds []schema.LinkKind, kind schema.LinkKind) bool {
	for _, k := range kinds {
		if k == kind {
			return true
		}
	}
	return false
}
