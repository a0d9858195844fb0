package sitemap

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"

	"golang.org/x/net/html"
)

// maxAttrs is the largest number of attributes that are read per tag.
const maxAttrs = 64

// textField is the meaning of an element's text.
type textField uint8

const (
	noField textField = iota
	fieldLoc
	fieldLastMod
	fieldChangeFreq
	fieldPriority
	fieldImage
	fieldImageText
	fieldVideo
	fieldVideoText
	fieldPublished // publication date, used if there is no modification date
	fieldTitle
	fieldSummary
	fieldContent
	fieldGUID
	fieldComments
	fieldLanguage
	fieldUpdated // date of the last update of the feed itself
	fieldAuthor
	fieldSite // link of a feed to its site
)

// markup reports whether the text of the field f may contain HTML.
func (f textField) markup() bool { return f == fieldTitle || f == fieldSummary || f == fieldContent }

// reference reports whether the text of the field f is a reference.
func (f textField) reference() bool {
	switch f {
	case fieldLoc, fieldGUID, fieldComments, fieldImage, fieldVideo:
		return true
	}
	return false
}

// compound tells which compound contains the current element. A compound is an element with elements
// of its own, such as an extension or an author. Inside a compound, element names have other
// meanings.
type compound uint8

const (
	withinNothing compound = iota
	withinImage
	withinVideo
	withinNews
	withinPageMap
	withinAuthor
	withinOther // compound outside the entry: Atom's source, RSS's textInput
)

// reader reads XML files as HTML tokens, because many sitemaps are malformed and the HTML tokenizer
// never fails. The reader needs no stack: at most one entry, one compound and one field are open.
type reader struct {
	src  rewound
	z    *html.Tokenizer
	sum  Summary
	max  int
	each func(*Entry) bool

	tag    tag
	own    []byte // prefix of the root element or of the last entry; all elements of the format itself have this prefix
	known  bool   // the reader has seen the root element
	open   bool   // the reader is inside an entry
	in     compound
	inName []byte // name of the element that began the compound

	field     textField
	fieldName []byte // name of the element that began the field
	buf       []byte // text of the field
	bare      []byte // text directly within the entry, which replaces loc in some files

	entry    Entry
	base     string // xml:base of the entry, relative to feedBase
	content  string // content of the entry, used if there is no summary
	guid     string
	modified bool // LastMod is a modification date

	feedBase string
}

// tag is the current start or end tag.
type tag struct {
	name          []byte // name in lower case, with its prefix
	prefix, local []byte // parts of the name before and after the colon
	attrs         bool   // the tag may have attributes
	empty         bool   // the tag also ends its element
}

func readXML(br *bufio.Reader, max int, each func(*Entry) bool) (Summary, error) {
	x := &reader{src: rewound{in: fromRoot(br)}, max: max, each: each, entry: Entry{Priority: -1}}
	x.tokenize()
	err := x.run()
	return x.sum, err
}

// fromRoot returns a reader that begins at the XML declaration. Anything before the declaration is
// skipped.
func fromRoot(br *bufio.Reader) io.Reader {
	head, _ := br.Peek(headLen)
	if i := bytes.Index(head, []byte("<?xml")); i > 0 && !bytes.Contains(head[:i], []byte("<urlset")) && !bytes.Contains(head[:i], []byte("<sitemapindex")) {
		_, _ = br.Discard(i) // Discard cannot fail, because Peek has already read the bytes
	}
	return br
}

func (x *reader) run() error {
	var before []byte // the token before the current one
	for more := true; more; {
		tt := x.z.Next()
		raw := x.z.Raw()
		var err error
		switch tt {
		case html.ErrorToken:
			if err = x.z.Err(); err == html.ErrBufferExceeded {
				if len(raw) == 0 { // a text, a comment or CDATA comes before its error
					raw = before
				}
				more, err = x.skipLong(raw)
			}
		case html.TextToken:
			x.text(raw)
		case html.StartTagToken, html.SelfClosingTagToken:
			x.readTag(raw[1:])
			x.tag.empty = tt == html.SelfClosingTagToken
			x.z.NextIsNotRawText() // title and script are ordinary elements in XML
			more, err = x.opens()
		case html.EndTagToken:
			x.readTag(raw[2:])
			more = x.closes()
		}
		if err == io.EOF {
			return x.ends()
		}
		if err != nil {
			return err
		}
		before = raw
	}
	return nil
}

// ends takes the end of the file. It keeps an entry with a loc even without an end tag.
func (x *reader) ends() error {
	if !x.known {
		return fmt.Errorf("no root element of one: %w", ErrUnknown)
	}
	if x.open {
		x.finish()
	}
	return nil
}

// opens takes a start tag. The result is false if reading must end.
func (x *reader) opens() (more bool, err error) {
	if !x.known {
		err := x.root()
		return err == nil, err
	}
	return x.start(), nil
}

// closes takes an end tag. The result is false if reading must end.
func (x *reader) closes() bool { return !x.known || x.end() }

// maxName is the length of the longest name of an element that is told from others, in bytes.
const maxName = 1 << 10

// readTag reads the tag name at the beginning of p. The tokenizer's method TagName would copy each
// name.
func (x *reader) readTag(p []byte) {
	t := &x.tag
	t.name, t.attrs = t.name[:0], true
scan:
	for _, c := range p {
		switch c {
		case ' ', '\t', '\r', '\n', '\f', '/':
			break scan
		case '>':
			t.attrs = false
			break scan
		}
		if len(t.name) == maxName {
			continue
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		t.name = append(t.name, c)
	}
	i := bytes.LastIndexByte(t.name, ':')
	t.prefix, t.local = t.name[:max(i, 0)], t.name[i+1:]
}

// roots maps the names of root elements to the kinds of files.
var roots = map[string]Kind{"urlset": URLSet, "sitemapindex": Index, "rss": RSS, "rdf": RSS, "feed": Atom}

// root reads a tag that may begin the root element. Programs put HTML elements around warnings, so
// root skips HTML elements before the root. Any other element is an error.
func (x *reader) root() error {
	x.own = append(x.own[:0], x.tag.prefix...)
	x.sum.Kind, x.known = roots[string(x.tag.local)]
	if !x.known {
		switch string(x.tag.local) {
		case "b", "br", "div", "font", "i", "p", "pre", "span", "strong":
			return nil
		}
		return fmt.Errorf("root element %q: %w", x.tag.name[:min(len(x.tag.name), 40)], ErrUnknown)
	}
	if x.feed() {
		x.attrs(func(key, val []byte) {
			switch string(key) {
			case "xml:base":
				x.feedBase = baseOf(val)
			case "xml:lang":
				x.sum.Lang = trimmedText(val)
			}
		})
	}
	return nil
}

func (x *reader) feed() bool { return x.sum.Kind == RSS || x.sum.Kind == Atom }

// attrs calls each with the name and the value of every attribute of the tag.
func (x *reader) attrs(each func(key, val []byte)) {
	for n, more := 0, x.tag.attrs; more && n < maxAttrs; n++ {
		var key, val []byte
		key, val, more = x.z.TagAttr()
		each(key, val)
	}
}

// text reads a raw text token.
func (x *reader) text(raw []byte) {
	dst, max := &x.buf, MaxLoc+1
	switch {
	case x.field == noField && x.open && x.in == withinNothing && len(x.bare) < max:
		dst = &x.bare
	case x.field == noField:
		return
	case x.field.markup():
		max = maxMarkup
	}
	if len(*dst) >= max {
		return
	}
	if data, ok := bytes.CutPrefix(raw, []byte("<![CDATA[")); ok {
		data = bytes.TrimSuffix(data, []byte("]]>"))
		*dst = append(*dst, data[:min(len(data), max-len(*dst))]...)
		return
	}
	*dst = unescapeUpTo(*dst, raw, max)
}

// beginField starts to collect the text of the field f at the current element.
func (x *reader) beginField(f textField) {
	if !x.tag.empty {
		x.field, x.fieldName, x.buf = f, append(x.fieldName[:0], x.tag.name...), x.buf[:0]
	}
}

// start reads a start tag and returns false if reading must end.
func (x *reader) start() bool {
	opens := x.opensEntry()
	if x.field.markup() && !opens && !x.endsMarkup() {
		if !inline(x.tag.local) {
			x.buf = append(x.buf, ' ')
		}
		return true
	}
	if x.field != noField { // a field without its end tag ends here
		x.set()
		x.field = noField
	}
	if opens {
		return x.openEntry()
	}
	x.take(x.knownElements()[string(x.tag.local)])
	return true
}

// openEntry begins an entry and returns false if reading must end.
func (x *reader) openEntry() bool {
	if x.open && !x.finish() { // an entry without its end tag ends at the next entry
		return false
	}
	if x.sum.Entries >= x.max {
		x.sum.Cut = true
		return false
	}
	x.open, x.in, x.own = true, withinNothing, append(x.own[:0], x.tag.prefix...)
	x.entry.Sitemap = string(x.tag.local) == "sitemap"
	if x.feed() {
		x.attrs(func(key, val []byte) {
			switch string(key) {
			case "xml:base":
				x.base = baseOf(val)
			case "rdf:about":
				x.guid = reference(val)
			}
		})
	}
	return true
}

// opensEntry reports whether the current element begins an entry. A new entry also ends a
// compound whose end tag is missing.
func (x *reader) opensEntry() bool {
	switch string(x.tag.local) {
	case "url", "sitemap":
		return !x.feed() && (x.in == withinNothing || len(x.tag.prefix) == 0)
	case "item":
		return x.sum.Kind == RSS
	case "entry":
		return x.sum.Kind == Atom
	}
	return false
}

// endsMarkup reports whether the current element never occurs within the markup of a feed's text. If
// the text's end tag is missing, the text ends before such an element.
func (x *reader) endsMarkup() bool {
	switch string(x.tag.local) {
	case "link":
		return len(x.tag.prefix) == 0 || bytes.Equal(x.tag.prefix, x.own)
	case "guid", "pubdate", "published", "updated", "enclosure", "loc", "publication_date", "lastmod":
		return true
	}
	return false
}

// end reads an end tag and returns false if reading must end.
func (x *reader) end() bool {
	if x.field != noField {
		switch {
		case bytes.Equal(x.tag.name, x.fieldName) || !x.field.markup() || x.open && x.opensEntry():
			x.set()
			x.field = noField
		default:
			if !inline(x.tag.local) {
				x.buf = append(x.buf, ' ')
			}
			return true
		}
	}
	if x.in != withinNothing && bytes.Equal(x.tag.name, x.inName) {
		x.in = withinNothing
		return true
	}
	if x.open && x.opensEntry() {
		return x.finish()
	}
	return true
}

// finish passes on an entry that has a location. It returns false if reading must end.
func (x *reader) finish() bool {
	e := &x.entry
	if e.Loc == "" && isHTTP([]byte(x.guid)) {
		// The text of a guid shows whether the guid is a link. The attribute isPermaLink is often
		// wrong: many URLs have isPermaLink="false", and many numbers lack the attribute.
		e.Loc = x.guid
	}
	e.Summary = cmp.Or(e.Summary, x.content)
	if e.Loc == "" {
		if b := bytes.TrimSpace(x.bare); len(x.bare) <= MaxLoc && isHTTP(b) && !bytes.ContainsAny(b, " \t\r\n") {
			e.Loc = reference(b)
		}
	}
	more := true
	if e.Loc != "" && len(e.Loc) <= MaxLoc {
		x.sum.Entries++
		e.Base = x.joinBase(x.base) // only here, because no limit bounds the number of entries without a Loc
		more = x.each(e)
	} else {
		x.sum.Skipped++
	}
	x.entry = Entry{Priority: -1, Alternates: e.Alternates[:0], Images: e.Images[:0], Videos: e.Videos[:0], Enclosures: e.Enclosures[:0]}
	x.open, x.field, x.in = false, noField, withinNothing
	x.base, x.guid, x.modified, x.content = "", "", false, ""
	x.buf, x.bare = x.buf[:0], x.bare[:0]
	return more
}
