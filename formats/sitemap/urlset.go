package sitemap

import (
	"bytes"
	"strconv"
	"strings"
)

// maxExtras bounds the alternates, images, videos and enclosures of an entry, each
// (1,000 images are allowed).
const maxExtras = 1000

// startInURL takes an element of a sitemap's entry. Extensions are told by the name of
// their outermost element, whatever its prefix stands for.
func (x *reader) startInURL(prefix, local, name []byte, more, empty bool) {
	switch x.in {
	case withinImage:
		switch string(local) {
		case "loc":
			x.begin(fieldImage, name, empty)
		case "title", "caption":
			x.begin(fieldImageText, name, empty)
		}
		return
	case withinVideo:
		switch string(local) {
		case "player_loc", "content_loc":
			x.begin(fieldVideo, name, empty)
		case "thumbnail_loc":
			x.begin(fieldImage, name, empty)
		case "title":
			x.begin(fieldVideoText, name, empty)
		case "publication_date":
			x.begin(fieldPublished, name, empty)
		}
		return
	case withinNews:
		switch string(local) {
		case "title":
			x.begin(fieldTitle, name, empty)
		case "publication_date":
			x.begin(fieldPublished, name, empty)
		}
		return
	case withinPageMap:
		if string(local) == "attribute" {
			x.attrs(more, func(key, val []byte) {
				if string(key) == "name" && (string(val) == "image_src" || string(val) == "src") {
					x.begin(fieldImage, name, empty)
				}
			})
		}
		return
	}
	switch string(local) {
	case "loc":
		x.begin(fieldLoc, name, empty)
	case "lastmod":
		x.begin(fieldLastMod, name, empty)
	case "changefreq":
		x.begin(fieldChangeFreq, name, empty)
	case "priority":
		x.begin(fieldPriority, name, empty)
	case "link":
		x.alternate(more)
	case "image":
		x.enter(withinImage, name, empty)
	case "video":
		x.enter(withinVideo, name, empty)
	case "news":
		x.enter(withinNews, name, empty)
	case "pagemap":
		x.enter(withinPageMap, name, empty)
	}
}

// alternate takes an xhtml:link.
func (x *reader) alternate(more bool) {
	var a Alternate
	alternate := false
	x.attrs(more, func(key, val []byte) {
		switch string(key) {
		case "rel":
			alternate = strings.EqualFold(words(val), "alternate")
		case "href":
			a.Href = reference(val)
		case "hreflang":
			a.Lang = words(val[:min(len(val), 64)])
		}
	})
	if alternate && a.Href != "" && len(a.Href) <= MaxLoc && len(x.entry.Alternates) < maxExtras {
		x.entry.Alternates = append(x.entry.Alternates, a)
	}
}

// set takes the text of the open field.
func (x *reader) set() {
	v := bytes.TrimSpace(x.buf)
	if len(v) == 0 {
		return
	}
	if !x.open {
		x.setOfFeed(v)
		return
	}
	e := &x.entry
	switch x.field {
	case fieldLoc:
		if e.Loc == "" {
			e.Loc = reference(v)
		}
	case fieldGUID:
		x.guid = reference(v)
	case fieldLastMod:
		x.date(v, true)
	case fieldPublished:
		x.date(v, false)
	case fieldChangeFreq:
		e.ChangeFreq = frequency(v)
	case fieldPriority:
		if p, ok := priority(v); ok {
			e.Priority = p
		}
	case fieldTitle:
		e.Title = firstOf(e.Title, plain(v, MaxSummary))
	case fieldSummary:
		e.Summary = firstOf(e.Summary, plain(v, MaxSummary))
	case fieldContent:
		x.content = firstOf(x.content, plain(v, MaxSummary))
	case fieldComments:
		e.Comments = reference(v)
	case fieldImage:
		e.Images = withRef(e.Images, v)
	case fieldVideo:
		e.Videos = withRef(e.Videos, v)
	case fieldImageText:
		withText(e.Images, v)
	case fieldVideoText:
		withText(e.Videos, v)
	}
}

func withRef(refs []Ref, v []byte) []Ref {
	if len(v) > MaxLoc || len(refs) >= maxExtras {
		return refs
	}
	return append(refs, Ref{Loc: reference(v)})
}

// withText gives the last reference the text that follows it, the first of several.
func withText(refs []Ref, v []byte) {
	if n := len(refs); n > 0 && refs[n-1].Text == "" {
		refs[n-1].Text = plain(v, MaxSummary)
	}
}

// date takes a date of the entry; that of a modification outdoes that of a publication,
// a later one of either the first.
func (x *reader) date(v []byte, modified bool) {
	if x.entry.LastMod != 0 && (x.modified || !modified) {
		return
	}
	if ms, ok := millis(v); ok {
		x.entry.LastMod, x.modified = ms, modified
	}
}

// frequency is one of the protocol's words, "" for any other.
func frequency(v []byte) string {
	for _, w := range [...]string{"daily", "weekly", "monthly", "always", "hourly", "yearly", "never"} {
		if len(v) == len(w) && strings.EqualFold(string(v), w) {
			return w
		}
	}
	return ""
}

// priority reads a number from 0 to 1; some write a comma.
func priority(v []byte) (float64, bool) {
	if len(v) == 3 && v[0] == '0' && v[1] == '.' && v[2] >= '0' && v[2] <= '9' {
		return float64(v[2]-'0') / 10, true
	}
	p, err := strconv.ParseFloat(strings.Replace(string(v[:min(len(v), 32)]), ",", ".", 1), 64)
	return p, err == nil && p >= 0 && p <= 1
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
