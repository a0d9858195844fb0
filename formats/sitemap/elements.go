package sitemap

import (
	"bytes"
	"cmp"
	"strings"
)

// elementRule tells how to read an XML element. Each rule sets exactly one of the three fields.
type elementRule struct {
	take   func(*reader) // function that reads the element's attributes
	within compound      // compound that the element begins (see compound)
	field  textField     // meaning of the element's text
}

// urlElements holds the rules for the elements of a sitemap entry, by the compound that contains them.
// The reader recognizes an extension by the name of its outermost element, under any prefix.
var urlElements = [...]map[string]elementRule{
	withinNothing: {
		"loc":        {field: fieldLoc},
		"lastmod":    {field: fieldLastMod},
		"changefreq": {field: fieldChangeFreq},
		"priority":   {field: fieldPriority},
		"link":       {take: (*reader).alternate},
		"image":      {within: withinImage},
		"video":      {within: withinVideo},
		"news":       {within: withinNews},
		"pagemap":    {within: withinPageMap},
	},
	withinImage: {
		"loc":     {field: fieldImage},
		"title":   {field: fieldImageText},
		"caption": {field: fieldImageText},
	},
	withinVideo: {
		"player_loc":       {field: fieldVideo},
		"content_loc":      {field: fieldVideo},
		"thumbnail_loc":    {field: fieldImage},
		"title":            {field: fieldVideoText},
		"publication_date": {field: fieldPublished},
	},
	withinNews: {
		"title":            {field: fieldTitle},
		"publication_date": {field: fieldPublished},
	},
	withinPageMap: {
		"attribute": {take: (*reader).pageMapImage},
	},
}

// itemElements holds the rules for the elements of a feed entry, by prefix. The prefix "" stands for
// the feed's own vocabulary. The reader ignores elements with other prefixes.
var itemElements = map[string]map[string]elementRule{
	"": {
		"title":       {field: fieldTitle},
		"link":        {take: (*reader).link},
		"guid":        {field: fieldGUID},
		"pubdate":     {field: fieldPublished},
		"published":   {field: fieldPublished},
		"issued":      {field: fieldPublished},
		"created":     {field: fieldPublished},
		"date":        {field: fieldPublished},
		"updated":     {field: fieldLastMod},
		"modified":    {field: fieldLastMod},
		"description": {field: fieldSummary},
		"summary":     {field: fieldSummary},
		"content":     {field: fieldContent},
		"comments":    {field: fieldComments},
		"enclosure":   {take: (*reader).enclosure},
		"image":       {within: withinImage},
		"author":      {within: withinAuthor},
		"contributor": {within: withinAuthor},
		"source":      {within: withinOther},
	},
	"dc":      dublinCore,
	"dcterms": dublinCore,
	"content": {"encoded": {field: fieldContent}},
	"media":   media,
	"itunes":  media,
}

var dublinCore = map[string]elementRule{
	"date":        {field: fieldPublished},
	"created":     {field: fieldPublished},
	"issued":      {field: fieldPublished},
	"modified":    {field: fieldLastMod},
	"title":       {field: fieldTitle},
	"description": {field: fieldSummary},
}

// media holds the rules for the elements of Media RSS and of iTunes' vocabulary.
var media = map[string]elementRule{
	"content":   {take: (*reader).media},
	"thumbnail": {take: (*reader).media},
	"image":     {take: (*reader).media},
}

// feedElements holds the rules for the elements of a feed itself, by prefix.
var feedElements = map[string]map[string]elementRule{
	"":       feedOwn,
	"dc":     feedOwn,
	"itunes": {"author": {field: fieldAuthor}},
}

var feedOwn = map[string]elementRule{
	"title":          {field: fieldTitle},
	"description":    {field: fieldSummary},
	"subtitle":       {field: fieldSummary},
	"tagline":        {field: fieldSummary},
	"language":       {field: fieldLanguage},
	"updated":        {field: fieldUpdated},
	"modified":       {field: fieldUpdated},
	"pubdate":        {field: fieldUpdated},
	"lastbuilddate":  {field: fieldUpdated},
	"date":           {field: fieldUpdated},
	"managingeditor": {field: fieldAuthor},
	"creator":        {field: fieldAuthor},
	"author":         {within: withinAuthor},
	"image":          {within: withinOther},
	"textinput":      {within: withinOther},
	"link":           {take: (*reader).feedLink},
}

// itemImage holds the rules for the elements within the image of an entry, and feedAuthor those for
// the elements within the author of a feed.
var (
	itemImage  = map[string]elementRule{"url": {field: fieldImage}}
	feedAuthor = map[string]elementRule{"name": {field: fieldAuthor}}
)

// knownElements returns the rules for the elements that may occur where the current tag is, by local
// name.
func (x *reader) knownElements() map[string]elementRule {
	switch {
	case !x.feed() && x.open:
		if int(x.in) < len(urlElements) {
			return urlElements[x.in]
		}
		return nil
	case !x.feed():
		return nil
	case x.open && x.in == withinImage:
		return itemImage
	case !x.open && x.in == withinAuthor:
		return feedAuthor
	case x.in != withinNothing:
		return nil
	}
	prefix := x.tag.prefix
	if bytes.Equal(prefix, x.own) {
		prefix = nil
	}
	switch string(prefix) {
	case "atom", "atom10", "a10", "rss", "rss1", "rss09":
		prefix = nil
	}
	if x.open {
		return itemElements[string(prefix)]
	}
	return feedElements[string(prefix)]
}

// take reads the current element according to the rule e. The zero rule ignores the element.
func (x *reader) take(e elementRule) {
	switch {
	case e.take != nil:
		e.take(x)
	case e.within != withinNothing:
		if !x.tag.empty {
			x.in, x.inName = e.within, append(x.inName[:0], x.tag.name...)
		}
	case e.field != noField:
		x.beginField(e.field)
	}
}

// linkAttrs are the attributes of a link element.
type linkAttrs struct{ rel, href, lang, mediaType, base string }

// linkAttrs reads the attributes of the tag. If the tag has no rel, the result has the given rel.
func (x *reader) linkAttrs(rel string) linkAttrs {
	l := linkAttrs{rel: rel}
	x.attrs(func(key, val []byte) {
		short := val[:min(len(val), 64)]
		switch string(key) {
		case "rel":
			l.rel = strings.ToLower(trimmedText(short))
		case "href":
			l.href = reference(val)
		case "hreflang":
			l.lang = trimmedText(short)
		case "type":
			l.mediaType = trimmedText(short)
		case "xml:base":
			l.base = baseOf(val)
		}
	})
	return l
}

// alternate reads an xhtml:link element.
func (x *reader) alternate() {
	l := x.linkAttrs("")
	if l.rel == "alternate" && l.href != "" && len(l.href) <= MaxLoc && len(x.entry.Alternates) < maxExtras {
		x.entry.Alternates = append(x.entry.Alternates, Alternate{Lang: l.lang, Href: l.href})
	}
}

// pageMapImage reads an element "attribute" of a PageMap, whose text may be the URL of an image.
func (x *reader) pageMapImage() {
	x.attrs(func(key, val []byte) {
		if string(key) == "name" && (string(val) == "image_src" || string(val) == "src") {
			x.beginField(fieldImage)
		}
	})
}

// link reads a link of an entry. In Atom, the URL is in the attribute href. In RSS, it is the text of
// the element.
func (x *reader) link() {
	l := x.linkAttrs("alternate")
	if l.href != "" && len(l.href) <= MaxLoc {
		l.href = join(l.base, l.href) // the result may be relative to Entry.Base
	}
	e := &x.entry
	switch {
	case l.href == "":
		x.beginField(fieldLoc)
	case len(l.href) > MaxLoc:
	case l.rel == "enclosure":
		if len(e.Enclosures) < maxExtras {
			e.Enclosures = append(e.Enclosures, Ref{Loc: l.href})
		}
	case l.rel == "replies":
		e.Comments = cmp.Or(e.Comments, l.href)
	case l.rel == "alternate":
		if e.Loc == "" || strings.Contains(l.mediaType, "html") {
			e.Loc = l.href
		}
	}
}

// feedLink reads a link of the feed itself.
func (x *reader) feedLink() {
	l := x.linkAttrs("alternate")
	if l.href == "" {
		x.beginField(fieldSite)
		return
	}
	x.addFeedLink(l)
}

// maxFeedLinks is the largest number of links of the feed itself that are kept.
const maxFeedLinks = 64

// addFeedLink keeps a link of the feed itself. Only kept links are joined with the feed's base, which
// may be much longer than their elements.
func (x *reader) addFeedLink(l linkAttrs) {
	if l.href != "" && len(l.href) <= MaxLoc && len(x.sum.Links) < maxFeedLinks {
		x.sum.Links = append(x.sum.Links, FeedLink{Rel: l.rel, Href: l.href, Base: x.joinBase(l.base)})
	}
}

// enclosure reads the element of RSS for an attached file.
func (x *reader) enclosure() {
	x.attrs(func(key, val []byte) {
		if string(key) == "url" && len(val) > 0 {
			x.entry.Enclosures = withRef(x.entry.Enclosures, val)
		}
	})
}

// media reads an element of Media RSS or of iTunes' vocabulary.
func (x *reader) media() {
	var ref []byte
	image := string(x.tag.local) != "content"
	x.attrs(func(key, val []byte) {
		switch string(key) {
		case "url", "href":
			ref = bytes.Clone(val)
		case "medium":
			image = image || string(val) == "image"
		case "type":
			image = image || strings.HasPrefix(string(val), "image/")
		}
	})
	switch {
	case len(ref) == 0:
	case image:
		x.entry.Images = withRef(x.entry.Images, ref)
	default:
		x.entry.Enclosures = withRef(x.entry.Enclosures, ref)
	}
}
