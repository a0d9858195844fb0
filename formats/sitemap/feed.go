package sitemap

import (
	"bytes"
	"net/url"
	"strings"
)

// ends reports whether an element cannot stand within the markup of a feed's text, so that
// one that was not ended ends before it.
func (x *reader) ends(prefix, local []byte) bool {
	switch string(local) {
	case "link":
		return len(prefix) == 0 || bytes.Equal(prefix, x.own)
	case "guid", "pubdate", "published", "updated", "enclosure", "loc", "publication_date", "lastmod":
		return true
	}
	return false
}

// openItem begins an entry of a feed.
func (x *reader) openItem(more bool) {
	x.attrs(more, func(key, val []byte) {
		switch string(key) {
		case "xml:base":
			x.entry.Base = join(x.feedBase, reference(val))
		case "rdf:about":
			x.guid = reference(val)
		}
	})
}

// join makes ref absolute; base may be relative itself, or empty. What is no reference
// is returned as it stands.
func join(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil || base == "" {
		return ref
	}
	r, err := url.Parse(ref)
	switch {
	case err != nil:
		return ref
	case b.IsAbs() || b.Host != "" || strings.HasPrefix(base, "/"):
		return b.ResolveReference(r).String()
	case r.IsAbs() || r.Host != "" || strings.HasPrefix(ref, "/"):
		return ref
	}
	// Both are relative: RFC 3986, 5.2.3. Whoever makes it absolute removes dots.
	if i := strings.IndexAny(base, "?#"); i >= 0 {
		base = base[:i]
	}
	if r.Path != "" {
		base = base[:strings.LastIndexByte(base, '/')+1]
	}
	return base + ref
}

// startInItem takes an element of a feed's entry.
func (x *reader) startInItem(prefix, local, name []byte, more, empty bool) {
	switch x.in {
	case withinImage:
		if string(local) == "url" {
			x.begin(fieldImage, name, empty)
		}
		return
	case withinOther, withinAuthor:
		return
	}
	if bytes.Equal(prefix, x.own) {
		prefix = nil
	}
	switch string(prefix) {
	case "", "atom", "atom10", "a10", "rss", "rss1", "rss09":
	case "dc", "dcterms":
		switch string(local) {
		case "date", "created", "issued":
			x.begin(fieldPublished, name, empty)
		case "modified":
			x.begin(fieldLastMod, name, empty)
		case "title":
			x.begin(fieldTitle, name, empty)
		case "description":
			x.begin(fieldSummary, name, empty)
		}
		return
	case "content":
		if string(local) == "encoded" {
			x.begin(fieldContent, name, empty)
		}
		return
	case "media", "itunes":
		x.media(local, more)
		return
	default:
		return // of another vocabulary: its title is not the entry's
	}
	switch string(local) {
	case "title":
		x.begin(fieldTitle, name, empty)
	case "link":
		x.link(name, more, empty)
	case "guid":
		x.begin(fieldGUID, name, empty)
	case "pubdate", "published", "issued", "created", "date":
		x.begin(fieldPublished, name, empty)
	case "updated", "modified":
		x.begin(fieldLastMod, name, empty)
	case "description", "summary":
		x.begin(fieldSummary, name, empty)
	case "content":
		x.begin(fieldContent, name, empty)
	case "comments":
		x.begin(fieldComments, name, empty)
	case "enclosure":
		x.file(more, "url")
	case "image":
		x.enter(withinImage, name, empty)
	case "author", "contributor":
		x.enter(withinAuthor, name, empty)
	case "source":
		x.enter(withinOther, name, empty)
	}
}

// link takes a link: of RSS its text, of Atom its attributes, whatever the feed is.
func (x *reader) link(name []byte, more, empty bool) {
	rel, href, typ, base := "alternate", "", "", ""
	x.attrs(more, func(key, val []byte) {
		switch string(key) {
		case "rel":
			rel = strings.ToLower(words(val[:min(len(val), 64)]))
		case "href":
			href = reference(val)
		case "type":
			typ = words(val[:min(len(val), 64)])
		case "xml:base":
			base = reference(val)
		}
	})
	if href != "" && len(href) <= MaxLoc && len(base) <= MaxLoc {
		href = join(base, href) // the entry's base counts for what is relative still
	}
	e := &x.entry
	switch {
	case href == "":
		x.begin(fieldLoc, name, empty)
	case len(href) > MaxLoc:
	case rel == "enclosure":
		if len(e.Enclosures) < maxExtras {
			e.Enclosures = append(e.Enclosures, Ref{Loc: href})
		}
	case rel == "replies":
		e.Comments = firstOf(e.Comments, href)
	case rel == "alternate":
		if e.Loc == "" || strings.Contains(typ, "html") {
			e.Loc = href
		}
	}
}

// file takes an element that names a file by an attribute, as RSS's enclosure.
func (x *reader) file(more bool, attr string) {
	x.attrs(more, func(key, val []byte) {
		if string(key) == attr && len(val) > 0 {
			x.entry.Enclosures = withRef(x.entry.Enclosures, val)
		}
	})
}

// media takes an element of Media RSS or iTunes' vocabulary.
func (x *reader) media(local []byte, more bool) {
	var ref []byte
	image := string(local) != "content"
	switch string(local) {
	case "content", "thumbnail", "image":
		x.attrs(more, func(key, val []byte) {
			switch string(key) {
			case "url", "href":
				ref = append([]byte(nil), val...)
			case "medium":
				image = image || string(val) == "image"
			case "type":
				image = image || strings.HasPrefix(string(val), "image/")
			}
		})
	}
	switch {
	case len(ref) == 0:
	case image:
		x.entry.Images = withRef(x.entry.Images, ref)
	default:
		x.entry.Enclosures = withRef(x.entry.Enclosures, ref)
	}
}

// startInFeed takes what a feed says of itself.
func (x *reader) startInFeed(prefix, local, name []byte, more, empty bool) {
	if x.in == withinAuthor && string(local) == "name" {
		x.begin(fieldAuthor, name, empty)
	}
	if x.in != withinNothing {
		return
	}
	if bytes.Equal(prefix, x.own) {
		prefix = nil
	}
	switch string(prefix) {
	case "", "atom", "atom10", "a10", "rss", "rss1", "rss09", "dc":
	case "itunes":
		if string(local) == "author" {
			x.begin(fieldAuthor, name, empty)
		}
		return
	default:
		return
	}
	switch string(local) {
	case "title":
		x.begin(fieldTitle, name, empty)
	case "description", "subtitle", "tagline":
		x.begin(fieldSummary, name, empty)
	case "language":
		x.begin(fieldLanguage, name, empty)
	case "updated", "modified", "pubdate", "lastbuilddate", "date":
		x.begin(fieldUpdated, name, empty)
	case "managingeditor", "creator":
		x.begin(fieldAuthor, name, empty)
	case "author":
		x.enter(withinAuthor, name, empty)
	case "image", "textinput":
		x.enter(withinOther, name, empty)
	case "link":
		x.feedLink(name, more, empty)
	}
}

// maxFeedLinks bounds the links that a feed has of its own.
const maxFeedLinks = 64

func (x *reader) feedLink(name []byte, more, empty bool) {
	l := FeedLink{Rel: "alternate", Base: x.feedBase}
	x.attrs(more, func(key, val []byte) {
		switch string(key) {
		case "rel":
			l.Rel = strings.ToLower(words(val[:min(len(val), 64)]))
		case "href":
			l.Href = reference(val)
		case "xml:base":
			l.Base = join(x.feedBase, reference(val))
		}
	})
	if l.Href == "" {
		x.begin(fieldSite, name, empty)
		return
	}
	x.addFeedLink(l)
}

func (x *reader) addFeedLink(l FeedLink) {
	if len(l.Href) <= MaxLoc && len(x.sum.Links) < maxFeedLinks {
		x.sum.Links = append(x.sum.Links, l)
	}
}

// setOfFeed takes the text of a field of the feed itself.
func (x *reader) setOfFeed(v []byte) {
	s := &x.sum
	switch x.field {
	case fieldTitle:
		s.Title = firstOf(s.Title, plain(v, MaxSummary))
	case fieldSummary:
		s.Description = firstOf(s.Description, plain(v, MaxSummary))
	case fieldAuthor:
		s.Author = firstOf(s.Author, plain(v, MaxSummary))
	case fieldLanguage:
		s.Lang = firstOf(s.Lang, words(v))
	case fieldSite:
		x.addFeedLink(FeedLink{Rel: "alternate", Href: reference(v), Base: x.feedBase})
	case fieldUpdated:
		if ms, ok := millis(v); ok && ms > s.Updated {
			s.Updated = ms
		}
	}
}

// finishItem completes an entry of a feed.
func (x *reader) finishItem() {
	e := &x.entry
	// A guid is a permanent link unless isPermaLink says that it is none; what is written
	// shows that better: numbers and UUIDs without the attribute are as common as URLs
	// with isPermaLink="false".
	if e.Loc == "" && isHTTP([]byte(x.guid)) {
		e.Loc = x.guid
	}
	if e.Summary == "" {
		e.Summary = x.content
	}
}
