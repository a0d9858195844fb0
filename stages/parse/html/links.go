package html

import (
	"bytes"
	"slices"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// maxHref bounds the length of a reference that is read, in bytes. Canonical URLs are shorter, but
// a data: URL may have megabytes.
const maxHref = 16 << 10

// span is a range of a linkList's bytes.
type span struct{ start, end uint32 }

// rawLink is a link in the form in which the page states it. The reader resolves links at the end
// of the page, because a base element also applies to earlier links.
type rawLink struct {
	kind      schema.LinkKind
	href, rel span
	alt       span   // alternative text, which becomes the anchor text of a link without text
	hreflang  span   // value of hreflang, unchanged
	from, to  uint32 // range of the anchor text in the outline's text
	class     linkClass
	part      part
	nofollow  bool
	header    bool // whether the link is in the response header, where links are relative to the document's URL and not to the base element
}

// linkList collects the links of a page in document order.
type linkList struct {
	raw    []rawLink
	bytes  []byte // bytes to which spans refer
	base   span   // reference of the base element; empty if the base is the document's URL
	based  bool   // whether the page has a base element with a reference
	icons  icons
	max    int
	met    [classes]int           // number of links in raw, by class
	over   int                    // number of links that were dropped because of max
	bad    int                    // number of references without a target: too long, or with a scheme other than http and https
	opened int                    // index in raw of the current <a> element's link, or -1 outside <a> elements
	seen   map[string]resolvedRef // resolved targets, by reference

	// makeRows sets the following fields.
	canonical string // canonical URL of the page
	refresh   string // URL to which the page refreshes
	relAuthor string // text of the first link with rel=author whose text may be a name
}

func (l *linkList) reset(max int) {
	l.raw, l.bytes = l.raw[:0], l.bytes[:0]
	l.base, l.based = span{}, false
	l.max, l.over, l.opened, l.met = max, 0, -1, [classes]int{}
	l.canonical, l.refresh, l.relAuthor, l.bad = "", "", "", 0
	l.icons.reset()
	if l.seen == nil {
		l.seen = make(map[string]resolvedRef)
	}
	clear(l.seen)
}

func (l *linkList) keep(p []byte) span {
	s := uint32(len(l.bytes))
	l.bytes = append(l.bytes, p...)
	return span{s, uint32(len(l.bytes))}
}

func (l *linkList) str(s span) []byte { return l.bytes[s.start:s.end] }

// collectLink adds a link. If the link is not kept, the result is nil.
func (l *linkList) collectLink(kind schema.LinkKind, href []byte, in part) *rawLink {
	href = bytes.TrimFunc(href, fold.IsSpace)
	if len(href) > maxHref || hasOtherScheme(href) {
		l.bad++ // a link without a target does not count against the limit
		return nil
	}
	c := classOf(kind)
	if l.met[c] >= c.maxCollected(l.max) {
		l.over++
		return nil
	}
	l.met[c]++
	l.raw = append(l.raw, rawLink{kind: kind, href: l.keep(href), class: c, part: in})
	return &l.raw[len(l.raw)-1]
}

// hasOtherScheme reports whether a reference is an absolute URL, by the URL Standard, with a scheme
// other than http and https, such as javascript:, mailto:, tel: or data:.
func hasOtherScheme(href []byte) bool {
	for len(href) > 0 && href[0] <= ' ' {
		href = href[1:]
	}
	if len(href) == 0 || !lexer.IsLetter(href[0]) {
		return false
	}
	var scheme [8]byte
	n := 0
	for _, c := range href {
		switch {
		case c == ':':
			s := string(scheme[:min(n, len(scheme))])
			return s != "http" && s != "https"
		case c == '\t' || c == '\n' || c == '\r':
			continue // the URL Standard ignores tabs and line breaks in URLs
		case lexer.IsLetter(c):
			c |= 0x20
		case c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.':
		default:
			return false
		}
		if n < len(scheme) {
			scheme[n] = c
		}
		n++
	}
	return false
}

// addEmbedded adds a link to a file that the page embeds. For an empty reference or a data: URL,
// addEmbedded returns nil.
func (l *linkList) addEmbedded(kind schema.LinkKind, href []byte, in part) *rawLink {
	if len(href) == 0 || bytes.HasPrefix(href, dataScheme) {
		return nil
	}
	return l.collectLink(kind, href, in)
}

// addTag adds a hyperlink. A link with an empty reference leads to the page itself.
func (l *linkList) addTag(kind schema.LinkKind, a lexer.Attr, t *lexer.Attrs, in part) *rawLink {
	if !t.Has(a) {
		return nil
	}
	r := l.collectLink(kind, t.Get(a), in)
	if r == nil {
		return nil
	}
	r.rel, r.nofollow = l.keepRel(t.Get(lexer.AttrRel))
	if alt := t.Get(lexer.AttrAlt); len(alt) > 0 {
		r.alt = l.keep(fold.Prefix(alt, fold.MaxAnchor))
	} else if title := t.Get(lexer.AttrTitle); len(title) > 0 {
		r.alt = l.keep(fold.Prefix(title, fold.MaxAnchor))
	}
	if lang := t.Get(lexer.AttrHreflang); len(lang) > 0 && len(lang) <= text.MaxLanguageTag {
		r.hreflang = l.keep(lang)
	}
	return r
}

// keepRel stores a rel attribute, in lower case and folded. It keeps the first words that fit into
// MaxRel bytes. If even the first word does not fit, it keeps the word's beginning. It also reports
// whether any word forbids robots to follow the link. Here commas and semicolons separate words, too.
func (l *linkList) keepRel(rel []byte) (s span, nofollow bool) {
	if len(rel) == 0 {
		return span{}, false
	}
	s.start = uint32(len(l.bytes))
	full := false
	for w := range bytes.FieldsFuncSeq(rel, fold.IsSpace) {
		nofollow = nofollow || isNofollow(w)
		w = fold.Lower(fold.Prefix(w, fold.MaxRel+1))
		kept := len(l.bytes) - int(s.start)
		if full = full || kept > 0 && kept+1+len(w) > fold.MaxRel; full {
			continue
		}
		if kept > 0 {
			l.bytes = append(l.bytes, ' ')
		}
		l.bytes = append(l.bytes, fold.Prefix(w, fold.MaxRel)...)
	}
	s.end = uint32(len(l.bytes))
	return s, nofollow
}

// isNofollow reports whether a part of rel forbids robots to follow the link.
func isNofollow(words []byte) bool {
	for w := range bytes.FieldsFuncSeq(words, func(r rune) bool { return r == ',' || r == ';' }) {
		switch string(fold.Lower(w)) {
		case "nofollow", "ugc", "sponsored":
			return true
		}
	}
	return false
}

// openAnchor begins an <a> element. The anchor text is the text that the outline collects
// between the calls of openAnchor and closeAnchor.
func (l *linkList) openAnchor(t *lexer.Attrs, out *text.Outline, in part) {
	a := lexer.AttrHref
	if !t.Has(a) {
		a = lexer.AttrXlinkHref
	}
	if r := l.addTag(schema.KindA, a, t, in); r != nil {
		l.opened = len(l.raw) - 1
		r.from = uint32(out.Len())
	}
	out.SetLink(t.Has(a))
}

// closeAnchor ends the current <a> element. Outside <a> elements, closeAnchor does nothing.
func (l *linkList) closeAnchor(out *text.Outline) {
	out.SetLink(false)
	if l.opened >= 0 {
		l.raw[l.opened].to = uint32(out.Len())
		l.opened = -1
	}
}

// addImage adds the image of an img element, the image that a script loads later, and all variants
// of these images. If the <a> element around the image has no text, the image's alternative text
// becomes the anchor text.
func (l *linkList) addImage(t *lexer.Attrs, in part) {
	alt := fold.Prefix(t.Get(lexer.AttrAlt), fold.MaxAnchor)
	if len(alt) > 0 && l.opened >= 0 && l.raw[l.opened].alt == (span{}) {
		l.raw[l.opened].alt = l.keep(alt)
	}
	src, later := t.Get(lexer.AttrSrc), t.Get(lexer.AttrDataSrc)
	if bytes.Equal(src, later) {
		later = nil
	}
	for _, ref := range [...][]byte{src, later} {
		if r := l.addEmbedded(schema.KindImg, ref, in); r != nil && len(alt) > 0 {
			r.alt = l.keep(alt)
		}
	}
	l.addVariants(t, in)
}

// addVariants adds an image's variants, and the variants that a script loads later.
func (l *linkList) addVariants(t *lexer.Attrs, in part) {
	set, later := t.Get(lexer.AttrSrcset), t.Get(lexer.AttrDataSrcset)
	l.addSrcset(set, in)
	if !bytes.Equal(set, later) {
		l.addSrcset(later, in)
	}
}

// addSrcset adds the images of a srcset attribute (HTML, 4.8.4.2.1). URLs in a srcset contain no
// white space and do not end in a comma.
func (l *linkList) addSrcset(set []byte, in part) {
	for len(set) > 0 {
		set = bytes.TrimLeft(set, " \t\n\f\r,")
		i := bytes.IndexAny(set, " \t\n\f\r")
		if i < 0 {
			i = len(set)
		}
		ref := set[:i]
		set = set[i:]
		if n := len(ref); n > 0 && ref[n-1] == ',' {
			l.addEmbedded(schema.KindImg, bytes.TrimRight(ref, ","), in)
			continue
		}
		l.addEmbedded(schema.KindImg, ref, in)
		// Descriptors end at the next comma outside parentheses.
		depth := 0
		for i = 0; i < len(set) && (set[i] != ',' || depth > 0); i++ {
			switch set[i] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
		set = set[i:]
	}
}

// addLink adds a link element. Its attribute rel decides the kind of the link. own is true if the
// element may declare the page's canonical URL (see Reader.outermost).
func (l *linkList) addLink(t *lexer.Attrs, in part, own bool) {
	if !t.Has(lexer.AttrRel) {
		return
	}
	if len(t.Get(lexer.AttrHref)) == 0 { // the preload of an image may name only its variants (HTML, 4.2.4)
		l.addSrcset(t.Get(lexer.AttrSrcset), in)
		return
	}
	kind := schema.KindLink
	alternate := false
	for w := range bytes.FieldsFuncSeq(t.Get(lexer.AttrRel), fold.IsSpace) {
		switch w = fold.Lower(w); string(w) {
		case "canonical":
			if own {
				kind = schema.KindCanonical
			}
		case "alternate":
			alternate = true
		case "feed": // keyword of hAtom, which is older than the media types of feeds
			if kind == schema.KindLink {
				kind = schema.KindFeed
			}
		default:
			if rank := slices.Index(iconRels[:], string(w)); rank >= 0 {
				l.addIcon(rank, t.Get(lexer.AttrHref))
			}
		}
	}
	if alternate && kind == schema.KindLink {
		kind = alternateKind(t.Get(lexer.AttrType), len(t.Get(lexer.AttrHreflang)) > 0)
	}
	l.addTag(kind, lexer.AttrHref, t, in)
	l.addSrcset(t.Get(lexer.AttrSrcset), in)
}

// alternateKind returns the kind of a link to another representation of the page.
func alternateKind(mediaType []byte, inLanguage bool) schema.LinkKind {
	switch {
	case isFeedType(mediaType):
		return schema.KindFeed
	case inLanguage:
		return schema.KindHreflang
	}
	return schema.KindLink
}

func isFeedType(t []byte) bool {
	t, _, _ = bytes.Cut(t, semicolon)
	switch string(fold.Lower(bytes.TrimSpace(t))) {
	case "application/rss+xml", "application/x-rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml":
		return true
	}
	return false
}

// addForm adds the target of a form that is sent by GET, because such a form leads to a page, like
// a link.
func (l *linkList) addForm(t *lexer.Attrs, in part) {
	if m := t.Get(lexer.AttrMethod); len(m) == 0 || bytes.EqualFold(m, methodGet) {
		l.addEmbedded(schema.KindForm, t.Get(lexer.AttrAction), in)
	}
}

var methodGet = []byte("get")

// setBase keeps the reference of the first base element that has one, even an empty one (HTML, 4.2.3).
// If the reference is too long, the document's URL is the base.
func (l *linkList) setBase(t *lexer.Attrs) {
	if l.based || !t.Has(lexer.AttrHref) {
		return
	}
	l.based = true
	if href := t.Get(lexer.AttrHref); len(href) <= maxHref {
		l.base = l.keep(bytes.TrimFunc(href, fold.IsSpace))
	}
}
