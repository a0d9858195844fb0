package simweb

import (
	"net/http"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// Response is what a host of the web answers to a request for a URL, before it is sent.
type Response struct {
	Status   int
	MIME     string
	Location string    // Location of a redirect, as sent
	Target   string    // URL to which Location leads; "" if it cannot be crawled
	Document *Document // HTML page, or nil
	Body     []byte
	MainEnd  int           // offset in Body at which a page's main part ends
	XRobots  string        // content of X-Robots-Tag
	Fault    *faults.Fault // fault of the response, or nil
}

// Redirects reports whether the response is a redirect, with or without a Location.
func (r *Response) Redirects() bool {
	return r.Location != "" || r.Fault != nil && r.Fault.Redirect != nil
}

// faultPath returns the path of a fault, and landingPath the path of its landing page.
func faultPath(name string, num int) string { return "/fault/" + name + "/" + strconv.Itoa(num) }

func landingPath(name string, num int) string { return "/land/" + name + "/" + strconv.Itoa(num) }

func hopPath(name string, num, hop int) string {
	return faultPath(name, num) + "/" + strconv.Itoa(hop)
}

// isTrack reports whether a query parameter is a tracking parameter, which the web ignores.
func isTrack(param string) bool {
	name, _, _ := strings.Cut(param, "=")
	return strings.HasPrefix(name, "utm_") || name == "fbclid" || name == "gclid"
}

// Untracked returns a path without its tracking parameters.
func Untracked(path string) string {
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

// Look returns the response of host at a path with its query.
func (w *Web) Look(host int, path string) Response {
	if r, ok := w.robotsResponse(host, path); ok {
		return r
	}
	path = Untracked(path)
	if page, ok := w.pageOf(host, path); ok && w.role(host, page) != roleFault {
		return documentResponse(w.makeDocument(host, page, "", path, nil))
	}
	plain, query, _ := strings.Cut(path, "?")
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(plain, "/private"), "/land/"); ok {
		if f, num, hop, ok := readFault(rest); ok && hop == 0 {
			return documentResponse(w.makeDocument(host, num, "land:"+f.Name, path, nil))
		}
	}
	if rest, ok := strings.CutPrefix(path, "/fault/"); ok {
		if f, num, hop, ok := readFault(rest); ok && hop <= f.Hops() {
			return w.faultResponse(f, host, num, hop, path)
		}
	}
	if num, ok := strings.CutPrefix(query, "next="); ok && plain == "/login" {
		if n, ok := readNumber(num); ok {
			return documentResponse(w.makeDocument(host, n, "login", path, nil))
		}
	}
	if mime, body := w.staticFile(host, path); body != nil {
		return Response{Status: http.StatusOK, MIME: mime, Body: body}
	}
	return statusPage(http.StatusNotFound)
}

// readFault parses NAME/NUM or NAME/NUM/HOP in a fault's path.
func readFault(s string) (f *faults.Fault, num, hop int, ok bool) {
	name, digits, found := strings.Cut(s, "/")
	if f = faults.Named(name); f == nil || !found {
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

// readNumber parses a number in a URL. It accepts only the canonical form, without leading zeros or
// a sign.
func readNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > maxPages || strconv.Itoa(n) != s {
		return 0, false
	}
	return n, true
}

func documentResponse(doc *Document) Response {
	return Response{Status: http.StatusOK, MIME: faults.HTML, Document: doc, Body: doc.html, MainEnd: doc.mainEnd, XRobots: doc.XRobots}
}

// statusPage returns a response without a document; its body names the status.
func statusPage(status int) Response {
	text := strconv.Itoa(status) + " " + http.StatusText(status)
	return Response{Status: status, MIME: faults.HTML, Body: []byte("<!doctype html>\n<title>" + text + "</title>\n<h1>" + text + "</h1>\n")}
}

// staticFile returns a file other than a page, such as a sitemap. If there is none at the path, it
// returns nil.
func (w *Web) staticFile(host int, path string) (mime string, body []byte) {
	switch {
	case path == "/static/site.css":
		return "text/css", []byte("body { margin: 2em }\n")
	case path == "/static/site.js":
		return "text/javascript", []byte("\"use strict\";\n")
	case strings.HasPrefix(path, "/static/picture-") && strings.HasSuffix(path, ".png"):
		return "image/png", faults.Picture()
	case path == "/feed.xml":
		return "application/rss+xml", w.rssFeed(host)
	case strings.HasPrefix(path, "/sitemap"):
		return "application/xml", w.sitemap(host, path)
	}
	return "", nil
}
