package parse

import "golang.org/x/net/html"

// attr is an attribute that the pass looks at.
type attr uint8

const (
	attrHref attr = iota
	attrSrc
	attrSrcset
	attrDataSrc
	attrRel
	attrClass
	attrID
	attrRole
	attrStyle
	attrHidden
	attrAriaHidden
	attrName
	attrProperty
	attrContent
	attrHTTPEquiv
	attrCharset
	attrLang
	attrXMLLang
	attrHreflang
	attrType
	attrAlt
	attrTitle
	attrAction
	attrMethod
	attrData
	attrItemprop
	attrDatetime
	attrPubdate
	attrPoster
	attrXlinkHref
	attrCount
	attrNone = attrCount
)

// maxAttrs is how many attributes of a tag are looked at; the rest is noise or an attack.
const maxAttrs = 256

func attrOf(key []byte) attr {
	switch string(key) {
	case "href":
		return attrHref
	case "src":
		return attrSrc
	case "srcset":
		return attrSrcset
	case "data-src":
		return attrDataSrc
	case "rel":
		return attrRel
	case "class":
		return attrClass
	case "id":
		return attrID
	case "role":
		return attrRole
	case "style":
		return attrStyle
	case "hidden":
		return attrHidden
	case "aria-hidden":
		return attrAriaHidden
	case "name":
		return attrName
	case "property":
		return attrProperty
	case "content":
		return attrContent
	case "http-equiv":
		return attrHTTPEquiv
	case "charset":
		return attrCharset
	case "lang":
		return attrLang
	case "xml:lang":
		return attrXMLLang
	case "hreflang":
		return attrHreflang
	case "type":
		return attrType
	case "alt":
		return attrAlt
	case "title":
		return attrTitle
	case "action":
		return attrAction
	case "method":
		return attrMethod
	case "data":
		return attrData
	case "itemprop":
		return attrItemprop
	case "datetime":
		return attrDatetime
	case "pubdate":
		return attrPubdate
	case "poster":
		return attrPoster
	case "xlink:href":
		return attrXlinkHref
	}
	return attrNone
}

// tagAttrs are the attributes of the tag at hand, valid until the next token.
// Of attributes with the same name the first counts (HTML, 13.2.5.33).
type tagAttrs struct {
	has uint32
	val [attrCount][]byte
}

func (t *tagAttrs) read(z *html.Tokenizer) {
	t.has = 0
	for n, more := 0, true; more && n < maxAttrs; n++ {
		var key, val []byte
		key, val, more = z.TagAttr()
		if a := attrOf(key); a != attrNone && t.has&(1<<a) == 0 {
			t.has |= 1 << a
			t.val[a] = val
		}
	}
}

// get returns an attribute's value, nil if the tag has no such attribute.
func (t *tagAttrs) get(a attr) []byte {
	if t.has&(1<<a) == 0 {
		return nil
	}
	return t.val[a]
}

func (t *tagAttrs) set(a attr) bool { return t.has&(1<<a) != 0 }
