package lexer

import "bytes"

// Attr is an attribute that the pass looks at.
type Attr uint8

const (
	AttrHref Attr = iota
	AttrSrc
	AttrSrcset
	AttrDataSrc
	AttrDataSrcset
	AttrRel
	AttrClass
	AttrID
	AttrRole
	AttrStyle
	AttrHidden
	AttrName
	AttrProperty
	AttrContent
	AttrHTTPEquiv
	AttrCharset
	AttrLang
	AttrXMLLang
	AttrHreflang
	AttrType
	AttrAlt
	AttrTitle
	AttrAction
	AttrMethod
	AttrData
	AttrItemprop
	AttrDatetime
	AttrPubdate
	AttrPoster
	AttrXlinkHref
	AttrBackground
	attrCount
	attrNone = attrCount
)

// maxAttrs is how many attributes of a tag are looked at; the rest is noise or an attack.
const maxAttrs = 256

func attrOf(key []byte) Attr {
	switch string(key) {
	case "href":
		return AttrHref
	case "src":
		return AttrSrc
	case "srcset", "imagesrcset": // of a preload link
		return AttrSrcset
	case "data-src", "data-lazy-src", "data-original": // what scripts put into src later
		return AttrDataSrc
	case "data-srcset", "data-lazy-srcset":
		return AttrDataSrcset
	case "rel":
		return AttrRel
	case "class":
		return AttrClass
	case "id":
		return AttrID
	case "role":
		return AttrRole
	case "style":
		return AttrStyle
	case "hidden":
		return AttrHidden
	case "name":
		return AttrName
	case "property":
		return AttrProperty
	case "content":
		return AttrContent
	case "http-equiv":
		return AttrHTTPEquiv
	case "charset":
		return AttrCharset
	case "lang":
		return AttrLang
	case "xml:lang":
		return AttrXMLLang
	case "hreflang":
		return AttrHreflang
	case "type":
		return AttrType
	case "alt":
		return AttrAlt
	case "title":
		return AttrTitle
	case "action":
		return AttrAction
	case "method":
		return AttrMethod
	case "data":
		return AttrData
	case "itemprop":
		return AttrItemprop
	case "datetime":
		return AttrDatetime
	case "pubdate":
		return AttrPubdate
	case "poster":
		return AttrPoster
	case "xlink:href":
		return AttrXlinkHref
	case "background":
		return AttrBackground
	}
	return attrNone
}

// Attrs are the attributes of a tag, as they stand in the document. Of attributes
// with the same name the first counts (HTML, 13.2.5.33).
type Attrs struct {
	seen uint64
	val  [attrCount][]byte
}

// put keeps an attribute that is looked at.
func (t *Attrs) put(key, value []byte) {
	var low [16]byte
	if len(key) < 2 || len(key) > len(low) {
		return
	}
	for i, c := range key {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		low[i] = c
	}
	a := attrOf(low[:len(key)])
	if a == attrNone || t.seen&(1<<a) != 0 {
		return
	}
	t.seen |= 1 << a
	if bytes.IndexByte(value, '&') >= 0 {
		value = Unescape(make([]byte, 0, len(value)), value, true)
	}
	if bytes.IndexByte(value, 0) >= 0 {
		value = bytes.ReplaceAll(value, []byte{0}, []byte("\uFFFD"))
	}
	t.val[a] = value
}

// Get returns an attribute's value, nil if the tag has no such attribute.
func (t *Attrs) Get(a Attr) []byte {
	if t.seen&(1<<a) == 0 {
		return nil
	}
	return t.val[a]
}

func (t *Attrs) Has(a Attr) bool { return t.seen&(1<<a) != 0 }

// Clear forgets all attributes.
func (t *Attrs) Clear() { t.seen = 0 }

// Any reports whether there is any.
func (t *Attrs) Any() bool { return t.seen != 0 }
