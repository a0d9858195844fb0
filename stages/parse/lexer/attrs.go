package lexer

import "bytes"

// Attr is an attribute that the lexer keeps.
type Attr uint8

// The attributes that the lexer keeps. AttrDataSrc stands for all attributes from which scripts
// load images later. AttrDataSrcset stands for all attributes with lists of such images (see
// attrNames).
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
	AttrShadowRootMode
	attrCount
)

// maxAttrs bounds the number of attributes of a tag that are read. A tag with more attributes is a
// mistake or an attack.
const maxAttrs = 256

// attrNames maps names of attributes, in lower case, to Attr.
var attrNames = map[string]Attr{
	"href":             AttrHref,
	"src":              AttrSrc,
	"srcset":           AttrSrcset,
	"imagesrcset":      AttrSrcset,  // attribute of a preload link
	"data-src":         AttrDataSrc, // scripts copy this attribute to src later
	"data-lazy-src":    AttrDataSrc,
	"data-original":    AttrDataSrc,
	"data-srcset":      AttrDataSrcset,
	"data-lazy-srcset": AttrDataSrcset,
	"rel":              AttrRel,
	"class":            AttrClass,
	"id":               AttrID,
	"role":             AttrRole,
	"style":            AttrStyle,
	"hidden":           AttrHidden,
	"name":             AttrName,
	"property":         AttrProperty,
	"content":          AttrContent,
	"http-equiv":       AttrHTTPEquiv,
	"charset":          AttrCharset,
	"lang":             AttrLang,
	"xml:lang":         AttrXMLLang,
	"hreflang":         AttrHreflang,
	"type":             AttrType,
	"alt":              AttrAlt,
	"title":            AttrTitle,
	"action":           AttrAction,
	"method":           AttrMethod,
	"data":             AttrData,
	"itemprop":         AttrItemprop,
	"datetime":         AttrDatetime,
	"pubdate":          AttrPubdate,
	"poster":           AttrPoster,
	"xlink:href":       AttrXlinkHref,
	"background":       AttrBackground,
	"shadowrootmode":   AttrShadowRootMode,
}

// longestAttr is the length of the longest name in attrNames, in bytes.
const longestAttr = 16

// attrsBy holds the names of attrNames by their length and first letter. Few names share both, so most
// attributes need no comparison.
var attrsBy = func() (by [longestAttr + 1][26][]namedAttr) {
	for name, a := range attrNames {
		n := &by[len(name)][name[0]-'a']
		*n = append(*n, namedAttr{name, a})
	}
	return by
}()

type namedAttr struct {
	name string
	attr Attr
}

// Attrs holds the attributes of a tag. If a name is repeated, the first attribute counts (HTML,
// 13.2.5.33).
type Attrs struct {
	seen uint64
	val  [attrCount][]byte
}

// keepAttr keeps an attribute with a known name and resolves the references in its value.
func (t *Attrs) keepAttr(key, value []byte) {
	var low [longestAttr]byte
	if len(key) < 2 || len(key) > len(low) {
		return
	}
	first := (key[0] | 0x20) - 'a' // upper and lower case differ in one bit
	if first >= 26 || len(attrsBy[len(key)][first]) == 0 {
		return
	}
	for i, c := range key {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		low[i] = c
	}
	a, known := Attr(0), false
	for _, n := range attrsBy[len(key)][first] {
		if known = n.name == string(low[:len(key)]); known {
			a = n.attr
			break
		}
	}
	if !known || t.seen&(1<<a) != 0 {
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

// Get returns an attribute's value, or nil if the tag does not have the attribute.
func (t *Attrs) Get(a Attr) []byte {
	if t.seen&(1<<a) == 0 {
		return nil
	}
	return t.val[a]
}

// Has reports whether the tag has the attribute a.
func (t *Attrs) Has(a Attr) bool { return t.seen&(1<<a) != 0 }

// Clear removes all attributes.
func (t *Attrs) Clear() { t.seen = 0 }

// Any reports whether the tag has an attribute with a known name.
func (t *Attrs) Any() bool { return t.seen != 0 }
