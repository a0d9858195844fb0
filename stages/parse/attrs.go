package parse

import "bytes"

// attr is an attribute that the pass looks at.
type attr uint8

const (
	attrHref attr = iota
	attrSrc
	attrSrcset
	attrDataSrc
	attrDataSrcset
	attrRel
	attrClass
	attrID
	attrRole
	attrStyle
	attrHidden
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
	attrBackground
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
	case "srcset", "imagesrcset": // of a preload link
		return attrSrcset
	case "data-src", "data-lazy-src", "data-original": // what scripts put into src later
		return attrDataSrc
	case "data-srcset", "data-lazy-srcset":
		return attrDataSrcset
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
	case "background":
		return attrBackground
	}
	return attrNone
}

// tagAttrs are the attributes of a tag, as they stand in the document. Of attributes
// with the same name the first counts (HTML, 13.2.5.33).
type tagAttrs struct {
	has uint64
	val [attrCount][]byte
}

// put keeps an attribute that is looked at.
func (t *tagAttrs) put(key, value []byte) {
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
	if a == attrNone || t.has&(1<<a) != 0 {
		return
	}
	t.has |= 1 << a
	if bytes.IndexByte(value, '&') >= 0 {
		value = unescape(make([]byte, 0, len(value)), value, true)
	}
	if bytes.IndexByte(value, 0) >= 0 {
		value = bytes.ReplaceAll(value, []byte{0}, []byte("\uFFFD"))
	}
	t.val[a] = value
}

// get returns an attribute's value, nil if the tag has no such attribute.
func (t *tagAttrs) get(a attr) []byte {
	if t.has&(1<<a) == 0 {
		return nil
	}
	return t.val[a]
}

func (t *tagAttrs) set(a attr) bool { return t.has&(1<<a) != 0 }
