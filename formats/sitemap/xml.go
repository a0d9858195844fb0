package sitemap

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// maxField bounds the text of an element that is kept, bytes.
const maxField = MaxLoc

// maxToken bounds a token that is held in memory; a longer one ends the read.
const maxToken = 4 << 20

// reader reads the XML kinds from HTML tokens: that tokenizer never fails, and the
// XML that is published as sitemaps is often none.
type reader struct {
	z    *html.Tokenizer
	sum  Summary
	max  int
	each func(*Entry) bool

	prefix string // namespace prefix of the root element
	known  bool   // the root was seen
	open   bool   // within an entry
	field  string // element of the entry whose text is collected, "" if none
	buf    []byte // that text
	bare   []byte // text right within the entry, which some write in place of loc
	entry  Entry
	guid   string
	isLink bool // guid is a permanent link
}

func readXML(r io.Reader, max int, each func(*Entry) bool) (Summary, error) {
	x := &reader{z: html.NewTokenizer(r), max: max, each: each}
	x.z.SetMaxBuf(maxToken)
	x.z.AllowCDATA(true)
	err := x.run()
	return x.sum, err
}

func (x *reader) run() error {
	for {
		switch x.z.Next() {
		case html.ErrorToken:
			err := x.z.Err()
			if err == html.ErrBufferExceeded {
				x.sum.Cut, err = true, io.EOF
			}
			if err != io.EOF {
				return err
			}
			if !x.known {
				return fmt.Errorf("no root element of one: %w", ErrUnknown)
			}
			if x.open {
				x.finish() // an entry that the end of the file cut, if it has its loc
			}
			return nil
		case html.TextToken:
			x.text(x.z.Text())
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := x.z.TagName()
			x.z.NextIsNotRawText() // title, script … are nothing special here
			if !x.start(string(name), more) {
				return nil
			}
			if !x.known {
				return fmt.Errorf("root element %q: %w", cutString(string(name), 40), ErrUnknown)
			}
		case html.EndTagToken:
			name, _ := x.z.TagName()
			if !x.end(string(name)) {
				return nil
			}
		}
	}
}

func cutString(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

func (x *reader) text(p []byte) {
	if !x.open && x.field == "" {
		return
	}
	dst := &x.buf
	if x.field == "" {
		dst = &x.bare
	}
	if room := maxField - len(*dst); room > 0 {
		*dst = append(*dst, p[:min(len(p), room)]...)
	}
}

// clean returns p as a string without white space around it, and in UTF-8.
func clean(p []byte) string {
	return strings.ToValidUTF8(string(bytes.TrimSpace(p)), "\uFFFD")
}

// split takes a name apart into its namespace prefix and its local part.
func split(name string) (prefix, local string) {
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}

// start takes a start tag; false ends the read.
func (x *reader) start(name string, more bool) bool {
	prefix, local := split(name)
	if !x.known {
		x.root(prefix, local)
		return true
	}
	x.field, x.buf = "", x.buf[:0]
	if prefix == x.prefix || x.sum.Kind == RSS && prefix == "" {
		switch local {
		case "url", "sitemap", "item", "entry":
			if isEntry(x.sum.Kind, local) {
				if x.open && !x.finish() { // the entry before was not ended
					return false
				}
				if x.sum.Entries >= x.max {
					x.sum.Cut = true
					return false
				}
				x.open = true
				return true
			}
		}
	}
	if !x.open {
		x.startHead(prefix, local, more)
		return true
	}
	switch {
	case x.sum.Kind == Atom && prefix == x.prefix:
		if local == "link" {
			x.atomLink(more)
		} else if local == "updated" || local == "published" || local == "modified" || local == "title" {
			x.field = local
		}
	case x.sum.Kind == RSS:
		switch {
		case prefix == "" && (local == "link" || local == "guid" || local == "pubdate" || local == "title"):
			x.field = local
			if local == "guid" {
				x.isLink = x.attr(more, "ispermalink") != "false"
			}
		case prefix == "dc" && local == "date":
			x.field = "pubdate"
		case prefix == "atom" && local == "link" && x.entry.Loc == "":
			x.atomLink(more)
		}
	case prefix == x.prefix:
		switch local {
		case "loc", "lastmod", "changefreq", "priority":
			x.field = local
		}
	case local == "link": // xhtml:link
		x.alternate(more)
	case prefix == "image" && local == "loc":
		x.field = "image"
	case prefix == "video" && (local == "player_loc" || local == "content_loc"):
		x.field = "video"
	case prefix == "news" && (local == "title" || local == "publication_date"):
		x.field = "news:" + local
	}
	return true
}

func isEntry(k Kind, local string) bool {
	switch k {
	case URLSet:
		return local == "url"
	case Index:
		return local == "sitemap"
	case RSS:
		return local == "item"
	}
	return local == "entry"
}

func (x *reader) root(prefix, local string) {
	switch local {
	case "urlset":
		x.sum.Kind = URLSet
	case "sitemapindex":
		x.sum.Kind = Index
	case "rss", "rdf":
		x.sum.Kind, prefix = RSS, ""
	case "feed":
		x.sum.Kind = Atom
	default:
		return
	}
	x.known, x.prefix = true, prefix
	x.entry = Entry{Priority: -1}
}

// startHead takes what a feed says of itself.
func (x *reader) startHead(prefix, local string, more bool) {
	if x.sum.Kind != RSS && x.sum.Kind != Atom || prefix != x.prefix {
		return
	}
	switch local {
	case "title", "language", "updated", "pubdate", "lastbuilddate":
		x.field = local
	}
}

// attr is the value of an attribute of the tag at hand, "" if it has none.
func (x *reader) attr(more bool, name string) string {
	for n := 0; more && n < 64; n++ {
		var key, val []byte
		key, val, more = x.z.TagAttr()
		if string(key) == name {
			return clean(val)
		}
	}
	return ""
}

// atomLink takes a link of an Atom entry: the alternate, or the one without rel.
func (x *reader) atomLink(more bool) {
	rel, href, typ := "alternate", "", ""
	for n := 0; more && n < 64; n++ {
		var key, val []byte
		key, val, more = x.z.TagAttr()
		switch string(key) {
		case "rel":
			rel = strings.ToLower(clean(val))
		case "href":
			href = clean(val)
		case "type":
			typ = clean(val)
		}
	}
	if rel != "alternate" || href == "" || len(href) > MaxLoc {
		return
	}
	if x.entry.Loc == "" || strings.Contains(typ, "html") {
		x.entry.Loc = href
	}
}

// maxExtras bounds the alternates, images and videos of an entry (1,000 images are allowed).
const maxExtras = 1000

func (x *reader) alternate(more bool) {
	var a Alternate
	alternate := false
	for n := 0; more && n < 64; n++ {
		var key, val []byte
		key, val, more = x.z.TagAttr()
		switch string(key) {
		case "rel":
			alternate = strings.EqualFold(clean(val), "alternate")
		case "href":
			a.Href = clean(val)
		case "hreflang":
			a.Lang = clean(val)
		}
	}
	if alternate && a.Href != "" && len(a.Href) <= MaxLoc && len(x.entry.Alternates) < maxExtras {
		x.entry.Alternates = append(x.entry.Alternates, a)
	}
}

// end takes an end tag; false ends the read.
func (x *reader) end(name string) bool {
	prefix, local := split(name)
	if x.field != "" {
		x.set(clean(x.buf))
		x.field, x.buf = "", x.buf[:0]
	}
	if x.open && prefix == x.prefix && isEntry(x.sum.Kind, local) {
		return x.finish()
	}
	return true
}

// set takes the text of the open field.
func (x *reader) set(v string) {
	if v == "" {
		return
	}
	if !x.open {
		switch x.field {
		case "title":
			x.sum.Title = firstOf(x.sum.Title, v)
		case "language":
			x.sum.Lang = firstOf(x.sum.Lang, v)
		default:
			if t, ok := ParseTime(v); ok && t.UnixMilli() > x.sum.Updated {
				x.sum.Updated = t.UnixMilli()
			}
		}
		return
	}
	e := &x.entry
	switch x.field {
	case "loc", "link":
		e.Loc = firstOf(e.Loc, v)
	case "guid":
		x.guid = v
	case "lastmod", "pubdate", "published", "modified":
		x.date(v, false)
	case "updated":
		x.date(v, true)
	case "news:publication_date":
		x.date(v, false)
	case "changefreq":
		e.ChangeFreq = strings.ToLower(v)
	case "priority":
		if p, err := strconv.ParseFloat(v, 64); err == nil && p >= 0 && p <= 1 {
			e.Priority = p
		}
	case "title", "news:title":
		e.Title = firstOf(e.Title, v)
	case "image":
		if len(e.Images) < maxExtras {
			e.Images = append(e.Images, v)
		}
	case "video":
		if len(e.Videos) < maxExtras {
			e.Videos = append(e.Videos, v)
		}
	}
}

func (x *reader) date(v string, over bool) {
	if x.entry.LastMod != 0 && !over {
		return
	}
	if t, ok := ParseTime(v); ok {
		x.entry.LastMod = t.UnixMilli()
	}
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// finish gives the entry, if it says where; false ends the read.
func (x *reader) finish() bool {
	e := &x.entry
	if e.Loc == "" && x.guid != "" && (x.isLink || strings.HasPrefix(x.guid, "http")) {
		e.Loc = x.guid
	}
	if e.Loc == "" {
		if b := bytes.TrimSpace(x.bare); bytes.HasPrefix(b, []byte("http")) && !bytes.ContainsAny(b, " \t\r\n") {
			e.Loc = clean(b)
		}
	}
	more := true
	if e.Loc != "" && len(e.Loc) < maxField {
		x.sum.Entries++
		more = x.each(e)
	}
	x.entry = Entry{Priority: -1, Alternates: e.Alternates[:0], Images: e.Images[:0], Videos: e.Videos[:0]}
	x.open, x.field, x.guid, x.isLink = false, "", "", false
	x.buf, x.bare = x.buf[:0], x.bare[:0]
	return more
}
