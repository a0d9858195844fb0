package charset

import (
	"bytes"

	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

// maxPrescan is the number of bytes in which prescan looks for a charset declaration. The standard
// says 1,024, but some pages have scripts before the declaration.
const maxPrescan = 16 << 10

// prescan returns the label of the encoding that a document declares (HTML, 13.2.3.2, "prescan a
// byte stream to determine its encoding"). The result is "" if the document declares no encoding
// that the Encoding Standard knows. As in the standard, prescan accepts a meta element inside a
// script or style, but not inside a comment or attribute.
func prescan(body []byte) string {
	head := body[:min(len(body), maxPrescan)]
	if bytes.HasPrefix(head, []byte("<\x00?\x00x\x00")) {
		return "" // the bytes are UTF-16 without a byte order mark, which guessEncoding recognises
	}
	for z := (lexer.Lexer{Src: head}); ; {
		switch z.Next() {
		case lexer.EndOfFile:
			return xmlEncoding(head)
		case lexer.StartTag:
			z.Raw = 0
			if z.Name != atom.Meta {
				continue
			}
			label := bytes.TrimFunc(z.Attrs.Get(lexer.AttrCharset), fold.IsSpace)
			if !z.Attrs.Has(lexer.AttrCharset) {
				if !bytes.EqualFold(z.Attrs.Get(lexer.AttrHTTPEquiv), []byte("content-type")) {
					continue
				}
				label = charsetOf(z.Attrs.Get(lexer.AttrContent))
			}
			if e, _ := charset.Lookup(string(label)); e != nil {
				return string(label)
			}
		}
	}
}

var charsetKey = []byte("charset")

// charsetOf returns the character encoding that the content of a meta element names (HTML, 2.5.5),
// or nil if there is none.
func charsetOf(content []byte) []byte {
	for {
		i := indexFold(content, charsetKey)
		if i < 0 {
			return nil
		}
		content = bytes.TrimLeft(content[i+len(charsetKey):], " \t\r\n\f")
		if len(content) == 0 || content[0] != '=' {
			continue
		}
		content = bytes.TrimLeft(content[1:], " \t\r\n\f")
		if len(content) == 0 {
			return nil
		}
		if q := content[0]; q == '"' || q == '\'' {
			end := bytes.IndexByte(content[1:], q)
			if end < 0 {
				return nil
			}
			return content[1 : 1+end]
		}
		if end := bytes.IndexAny(content, "; \t\r\n\f"); end >= 0 {
			content = content[:end]
		}
		return content
	}
}

// xmlEncoding returns the encoding that an XML declaration names, or "" if the declaration is
// missing or the encoding unknown.
func xmlEncoding(head []byte) string {
	if !bytes.HasPrefix(head, []byte("<?xml")) {
		return ""
	}
	decl, _, ok := bytes.Cut(head, []byte{'>'})
	if !ok {
		return ""
	}
	_, value, ok := bytes.Cut(decl, []byte("encoding"))
	value = bytes.TrimLeft(value, " \t\r\n")
	if !ok || len(value) == 0 || value[0] != '=' {
		return ""
	}
	value = bytes.TrimLeft(value[1:], " \t\r\n")
	if len(value) < 2 || value[0] != '"' && value[0] != '\'' {
		return ""
	}
	label, _, ok := bytes.Cut(value[1:], value[:1])
	if !ok {
		return ""
	}
	if e, _ := charset.Lookup(string(label)); e == nil {
		return ""
	}
	return string(label)
}

// indexFold returns the index at which p contains the key, ignoring case, or -1 if p does not
// contain it.
func indexFold(p, key []byte) int {
	for i := 0; i+len(key) <= len(p); i++ {
		if p[i]|0x20 == key[0]|0x20 && bytes.EqualFold(p[i:i+len(key)], key) {
			return i
		}
	}
	return -1
}
