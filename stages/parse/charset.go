package parse

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

// latePrescan is how far a meta element is looked for that names the charset, bytes.
// The standard asks for 1,024; pages put scripts before it.
const latePrescan = 16 << 10

// decode returns body as UTF-8, and the name of its character set as cc-index writes
// it (UTF-8, ISO-8859-2, windows-1252, Shift_JIS). The order is
// that of the Encoding Sniffing Algorithm (HTML, 13.2.3.2): byte order mark,
// Content-Type, meta element, then what the bytes look like. It does not change
// body, and returns body itself where it is valid UTF-8.
func decode(body []byte, contentType string) ([]byte, string) {
	e, name := encodingOf(body, contentType)
	if name == "utf-8" {
		body = bytes.TrimPrefix(body, utf8BOM)
		if utf8.Valid(body) {
			return body, "UTF-8"
		}
		e = unicode.UTF8 // its decoder puts U+FFFD for what is malformed
	}
	out, err := e.NewDecoder().Bytes(body)
	if err != nil && len(out) == 0 { // no decoder of the standard's fails; keep what can be kept
		out = body
	}
	if !utf8.Valid(out) {
		out = bytes.ToValidUTF8(out, []byte("\uFFFD"))
	}
	return bytes.TrimPrefix(out, utf8BOM), displayName(name)
}

// displayName writes a name of the Encoding Standard as IANA registers it.
func displayName(name string) string {
	switch {
	case name == "shift_jis":
		return "Shift_JIS"
	case name == "big5":
		return "Big5"
	case strings.HasPrefix(name, "windows-"), strings.HasPrefix(name, "x-"), name == "macintosh":
		return name
	}
	return strings.ToUpper(name)
}

var (
	utf8BOM    = []byte("\xEF\xBB\xBF")
	charsetKey = []byte("charset")
)

func encodingOf(body []byte, contentType string) (encoding.Encoding, string) {
	e, name, certain := charset.DetermineEncoding(body, contentType)
	if certain || name != "windows-1252" {
		return e, name
	}
	// Declared in a meta element, or nothing but a last resort?
	head := body[:min(len(body), 1024)]
	if containsFold(head, charsetKey) {
		return e, name
	}
	valid := utf8.Valid(body)
	if valid && bytes.ContainsFunc(body, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return unicode.UTF8, "utf-8"
	}
	for at := len(head); at < min(len(body), latePrescan); {
		i := indexFold(body[at:min(len(body), latePrescan)], []byte("<meta"))
		if i < 0 {
			break
		}
		at += i
		tag := body[at:min(len(body), at+512)]
		if j := bytes.IndexByte(tag, '>'); j >= 0 {
			tag = tag[:j+1]
		}
		if containsFold(tag, charsetKey) {
			if e, name, _ := charset.DetermineEncoding(tag, ""); name != "" {
				return e, name
			}
		}
		at += len("<meta")
	}
	if bytes.HasPrefix(head, []byte("<?xml")) {
		if i := bytes.Index(head, []byte("encoding=")); i >= 0 && len(head) > i+10 {
			label, _, _ := bytes.Cut(head[i+10:], head[i+9:i+10])
			if e, name := charset.Lookup(string(label)); e != nil {
				return e, name
			}
		}
	}
	if valid {
		return unicode.UTF8, "utf-8" // ASCII
	}
	if g, n := guess(body[:min(len(body), 64<<10)]); g != nil {
		return g, n
	}
	return e, name
}

// guess tells a charset by statistics; nil if they say too little.
func guess(body []byte) (encoding.Encoding, string) {
	all, err := chardet.NewHtmlDetector().DetectAll(body)
	if err != nil {
		return nil, ""
	}
	// The guesses are made side by side: those that are equally sure come in any order.
	best := chardet.Result{Confidence: 29}
	for _, r := range all {
		if r.Confidence > best.Confidence || r.Confidence == best.Confidence && r.Charset < best.Charset {
			best = r
		}
	}
	e, name := charset.Lookup(best.Charset)
	if e == nil || name == "utf-8" || name == "replacement" || strings.HasPrefix(name, "utf-16") {
		return nil, ""
	}
	return e, name
}

func containsFold(p, lowerKey []byte) bool { return indexFold(p, lowerKey) >= 0 }

// indexFold is where p has key, whatever the case of its ASCII letters; key is lower case.
func indexFold(p, key []byte) int {
	for i := 0; i+len(key) <= len(p); i++ {
		if p[i]|0x20 == key[0]|0x20 && bytes.EqualFold(p[i:i+len(key)], key) {
			return i
		}
	}
	return -1
}
