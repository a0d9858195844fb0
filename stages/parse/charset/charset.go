// Package charset finds the character encoding of a document, declared or not, and decodes the
// document to UTF-8.
package charset

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// maxDecoded bounds a decoded body, in bytes of UTF-8. The bytes after maxDecoded are dropped. A
// page's stored text is much shorter than maxDecoded.
const maxDecoded = 64 << 20

// Decode returns the body as UTF-8, and the name of the body's character set in the spelling of
// Common Crawl's index (UTF-8, ISO-8859-2, windows-1252, Shift_JIS). It does not change body. If
// body is already valid UTF-8, Decode returns the same slice.
func Decode(body []byte, contentType string) ([]byte, string) {
	u := undecoded{body: body}
	e, name := u.sniffEncoding(contentType)
	if name == "utf-8" {
		body = bytes.TrimPrefix(body, fold.BOM)
		if u.isUTF8() {
			return body, "UTF-8"
		}
		e = unicode.UTF8 // the decoder of UTF-8 replaces malformed bytes by U+FFFD
	}
	return bytes.TrimPrefix(transcode(e, body), fold.BOM), Name(name)
}

// transcode decodes the body to at most maxDecoded bytes of UTF-8.
func transcode(e encoding.Encoding, body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	decoder := e.NewDecoder().Transformer
	out := make([]byte, 0, min(len(body)+len(body)/8+64, maxDecoded))
	for done := 0; ; {
		n, read, err := decoder.Transform(out[len(out):cap(out)], body[done:], true)
		out, done = out[:len(out)+n], done+read
		if err != transform.ErrShortDst || cap(out) == maxDecoded {
			break // out has the whole body or is full: decoders of the Encoding Standard do not fail
		}
		// The rest of the body probably grows by the same factor as the decoded part.
		more := (len(body)-done)*len(out)/max(done, 1)*9/8 + 64
		out = slices.Grow(out, min(more, maxDecoded-len(out)))
		out = out[:len(out):min(cap(out), maxDecoded)]
	}
	if !utf8.Valid(out) { // maxDecoded has cut the last character
		out = bytes.ToValidUTF8(out, []byte("\uFFFD"))
	}
	return out
}

// Name returns a name of the Encoding Standard in the spelling that IANA registers.
func Name(name string) string {
	switch {
	case name == "shift_jis":
		return "Shift_JIS"
	case name == "big5":
		return "Big5"
	case name == "ibm866":
		return "IBM866"
	case strings.HasPrefix(name, "windows-"), strings.HasPrefix(name, "x-"), name == "macintosh", name == "replacement":
		return name
	}
	return strings.ToUpper(name)
}

// undecoded is a body whose encoding is not known yet.
type undecoded struct {
	body           []byte
	whole          []byte // the body without an incomplete last character, as in UTF-8 that was cut
	checked, valid bool   // whether isCutUTF8 was called, and its result
}

// isUTF8 reports whether the body is well-formed UTF-8.
func (u *undecoded) isUTF8() bool { return u.isCutUTF8() && len(u.whole) == len(u.body) }

// isCutUTF8 reports whether the body is well-formed UTF-8 but for its end, which may be within a
// character. Only the first call checks the body.
func (u *undecoded) isCutUTF8() bool {
	if !u.checked {
		i := len(u.body) - 1
		for i > len(u.body)-utf8.UTFMax && i > 0 && !utf8.RuneStart(u.body[i]) {
			i--
		}
		u.whole = u.body
		if i >= 0 && !utf8.FullRune(u.body[i:]) {
			u.whole = u.body[:i]
		}
		u.checked, u.valid = true, utf8.Valid(u.whole)
	}
	return u.valid
}

// sniffEncoding runs the Encoding Sniffing Algorithm (HTML, 13.2.3.2). The algorithm tries the
// byte order mark, then the Content-Type, then a meta element or XML declaration. If none of
// them names an encoding, guessEncoding decides from the bytes.
//
// Unlike the standard, this method ignores a declaration that the bytes contradict:
//   - UTF-8, if most bytes are not UTF-8 (some servers declare it for everything);
//   - windows-1252 (or its labels iso-8859-1 and ascii), if all bytes are well-formed UTF-8 (many
//     servers declare one of these labels by default);
//   - another encoding with one or two bytes per character, if all bytes are well-formed UTF-8 and
//     have more multi-byte characters than chance allows (see utf8Proof);
//   - UTF-16, if the zero bytes of ASCII characters are missing, or are where the other byte order
//     has them.
//
// UTF-8 that the end of the body cuts within a character is well-formed here.
func (u *undecoded) sniffEncoding(contentType string) (encoding.Encoding, string) {
	switch body := u.body; {
	case bytes.HasPrefix(body, fold.BOM):
		return unicode.UTF8, "utf-8"
	case bytes.HasPrefix(body, []byte{0xFE, 0xFF}):
		return charset.Lookup("utf-16be")
	case bytes.HasPrefix(body, []byte{0xFF, 0xFE}):
		return charset.Lookup("utf-16le")
	}
	e, name := charset.Lookup(mediatype.Charset(contentType))
	if e != nil && !u.contradicts(name) {
		return e, name
	}
	if label := prescan(u.body); label != "" {
		// The prescan reads a document as ASCII, so a document in which it finds a meta element is
		// not UTF-16. The encoding x-user-defined is meant for scripts, so a document that declares
		// it is read as windows-1252.
		e, name = charset.Lookup(label)
		if strings.HasPrefix(name, "utf-16") {
			e, name = unicode.UTF8, "utf-8"
		} else if name == "x-user-defined" {
			e, name = charset.Lookup("windows-1252")
		}
		if e != nil && !u.contradicts(name) {
			return e, name
		}
	}
	return charset.Lookup(u.guessEncoding())
}

// contradicts reports whether the bytes contradict a declared encoding.
func (u *undecoded) contradicts(name string) bool {
	switch name {
	case "utf-8":
		if u.isUTF8() {
			return false
		}
		well, ill := countUTF8(u.fromFirst())
		return ill >= 8 && ill > well
	case "windows-1252":
		return u.isCutUTF8() && !ascii(u.whole)
	case "utf-16le", "utf-16be":
		head := u.body[:min(len(u.body), maxGuessed)]
		if seen := guessUTF16(head); seen != "" {
			return seen != name
		}
		return bytes.Count(head, []byte{0})*zeroShare < len(head)
	case "x-user-defined", "replacement": // x-user-defined and replacement are never declared by mistake
		return false
	}
	if !u.isCutUTF8() {
		return false
	}
	well, _ := countUTF8(u.fromFirst())
	return well >= utf8Proof
}

// utf8Proof is the number of well-formed multi-byte characters that prove UTF-8, even if the document
// declares another encoding.
const utf8Proof = 16

// At least 1 of 64 bytes of a document in UTF-16 is zero, because each space, digit or character of
// markup has a zero byte.
const zeroShare = 64

// fromFirst returns the part of the body from the byte before the first byte outside ASCII. The
// part has at most maxGuessed bytes.
func (u *undecoded) fromFirst() []byte {
	i := 0
	for i+256 <= len(u.body) && ascii(u.body[i:i+256]) {
		i += 256
	}
	for i < len(u.body) && u.body[i] < utf8.RuneSelf {
		i++
	}
	i = max(0, i-1)
	return u.body[i:min(len(u.body), i+maxGuessed)]
}

// ascii reports whether p is ASCII.
func ascii(p []byte) bool {
	for len(p) >= 8 {
		if (p[0]|p[1]|p[2]|p[3]|p[4]|p[5]|p[6]|p[7])&0x80 != 0 {
			return false
		}
		p = p[8:]
	}
	for _, c := range p {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// countUTF8 returns the number of well-formed multi-byte characters and of malformed bytes in p.
func countUTF8(p []byte) (well, ill int) {
	for i := 0; i < len(p); {
		if p[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(p[i:])
		switch {
		case n > 1:
			well++
		case r == utf8.RuneError && !utf8.FullRune(p[i:]):
			return well, ill // the end of p cuts the last character
		default:
			ill++
		}
		i += n
	}
	return well, ill
}
