package simweb

import (
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// plainAnchor writes a link in its usual form.
func (a *author) plainAnchor(p place, anchor string) {
	a.text("<a href=\"")
	if p.host == a.host {
		a.doc.html = appendEscaped(a.doc.html, p.path)
	} else {
		a.doc.html = appendEscaped(a.doc.html, a.w.urlOf(p))
	}
	a.text("\">" + anchor + "</a>")
	a.record(p, Link{Anchor: anchor, Kind: schema.KindA})
}

// pageAnchor writes a link to a page, in a form that k chooses, and returns the link's text. If the
// page has the fault Planned, pageAnchor also writes a link to the redirect's target (the twin).
func (a *author) pageAnchor(k key, host, page int) string {
	anchor := a.w.titleOf(host, page, 2)
	a.writeAnchor(k, place{host, a.w.path(host, page)}, anchor, "")
	if a.w.role(host, page) == roleFault && a.w.faultOf(host, page).Name == faults.Planned {
		a.text(" ")
		a.writeAnchor(k.at(50), place{host, landingPath(faults.Planned, page)}, "twin", "")
		anchor += " twin"
	}
	return anchor
}

// tracks are tracking parameters, which crawlers remove.
var tracks = [...]string{"utm_source=simweb", "utm_source=simweb&utm_medium=link", "fbclid=IwAR0x", "gclid=EAIaIQ", "utm_campaign=front"}

// writeAnchor writes an element <a>. The key k chooses the form of its URL.
func (a *author) writeAnchor(k key, p place, anchor, rel string) {
	l := Link{Anchor: anchor, Rel: strings.ToLower(rel), Kind: schema.KindA}
	for _, r := range strings.Fields(l.Rel) {
		l.Nofollow = l.Nofollow || r == "nofollow" || r == "ugc" || r == "sponsored"
	}
	a.text("<a")
	if rel != "" {
		a.text(" rel=\"" + rel + "\"")
	}
	a.text(" href=\"")
	ref := a.urlReference(k, p)
	if k.at(1).below(8) == 0 && p.host >= 0 {
		l.Track = tracks[k.at(2).below(len(tracks))]
		if strings.Contains(ref, "?") {
			ref += "&" + l.Track
		} else {
			ref += "?" + l.Track
		}
	}
	if k.at(3).below(12) == 0 {
		ref += "#part-2"
	}
	if k.at(4).below(30) == 0 {
		ref = " \t" + ref + "\n "
	}
	a.doc.html = appendEscaped(a.doc.html, ref)
	a.text("\">")
	if first, rest, ok := strings.Cut(anchor, " "); ok && k.at(5).below(4) == 0 {
		a.text("<b>" + first + "</b>\n  " + rest)
	} else {
		a.text(anchor)
	}
	a.text("</a>")
	a.record(p, l)
}

// urlReference returns a URL reference to p, in a form that k chooses.
func (a *author) urlReference(k key, p place) string {
	if p.host < 0 {
		return p.path
	}
	form := k.at(0).below(20)
	if p.host != a.host || a.absolute {
		form = 14 + form%6
	}
	host, path := a.w.Host(p.host), p.path
	if form%3 == 0 {
		path = strings.Replace(path, "%C3%A9", "é", 1)
	}
	switch {
	case form < 8:
		return path
	case form < 12:
		return relative(a.dir, path)
	case form < 14:
		return "/x/./y/../.." + path
	case form < 15:
		return "//" + host + path
	case form < 16:
		return "HTTP://" + strings.ToUpper(host) + path
	case form < 17:
		return "http://" + host + ":80" + path
	}
	return "http://" + host + path
}

// directory returns the part of path up to and including its last slash.
func directory(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path[:strings.LastIndexByte(path, '/')+1]
}

// relative returns the reference from a directory to a path on the same host (RFC 3986, 4.2).
func relative(dir, path string) string {
	up := ""
	for !strings.HasPrefix(path, dir) {
		up += "../"
		dir = directory(dir[:len(dir)-1])
	}
	if rest := up + path[len(dir):]; rest != "" {
		return rest
	}
	return "./"
}

// appendEscaped appends s, escaped for text and quoted attributes.
func appendEscaped(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] == '&' {
			b = append(b, "&amp;"...)
		} else {
			b = append(b, s[i])
		}
	}
	return b
}
