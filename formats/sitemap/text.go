package sitemap

import (
	"bytes"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/text/encoding/charmap"

	"crawlbatch.io/crawlbatch/formats/urltext"
)

// reference returns a reference as a trimmed string. It resolves &amp; once more, because a reference
// may be in CDATA or escaped twice. It percent-encodes octets that are not UTF-8, so that the server
// of the reference gets these octets. It returns "" if package urltext refuses the reference.
func reference(p []byte) string {
	if bytes.Contains(p, []byte("&amp;")) {
		p = bytes.ReplaceAll(p, []byte("&amp;"), []byte("&"))
	}
	ref, why := urltext.Field(p)
	if why != "" {
		return ""
	}
	return ref
}

// trimmedText returns a text as a trimmed string. If it is not UTF-8, it is read as windows-1252:
// most texts with a wrong label have this charset.
func trimmedText(p []byte) string {
	p = bytes.TrimSpace(p)
	if utf8.Valid(p) {
		return string(p)
	}
	if whole := trimRune(p); utf8.Valid(whole) {
		return string(whole) // a limit has cut the text within its last rune
	}
	if out, err := charmap.Windows1252.NewDecoder().Bytes(p); err == nil {
		p = out
	}
	return strings.ToValidUTF8(string(p), "\uFFFD")
}

// fold trims a text and replaces each run of white space by one space. Control characters and zero
// width spaces count as white space, as in the texts of pages.
func fold(s string) string { return strings.Join(strings.FieldsFunc(s, isSpace), " ") }

func isSpace(r rune) bool {
	return r <= ' ' || r >= 0x7F && (unicode.IsSpace(r) || r <= 0x9F || r == 0xFEFF || r == 0x200B)
}

// trimRune cuts an incomplete rune off the end of p.
func trimRune(p []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if tail := p[len(p)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return p[:len(p)-i]
			}
			break
		}
	}
	return p
}

// maxEntity is the length of the longest accepted entity name, in bytes. The longest name in HTML
// has 31 bytes.
const maxEntity = 32

// entities maps the entities of XML to their characters.
var entities = map[string]byte{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// unescape appends p to dst with the entities of XML and HTML resolved. An entity without a
// semicolon stays unchanged, so that the query ?a=1&copy=2 keeps its &copy.
func unescape(dst, p []byte) []byte { return unescapeUpTo(dst, p, math.MaxInt) }

// unescapeUpTo is like unescape, but dst gets at most max bytes in all.
func unescapeUpTo(dst, p []byte, max int) []byte {
	for len(dst) < max {
		i := bytes.IndexByte(p, '&')
		if i < 0 {
			return append(dst, p[:min(len(p), max-len(dst))]...)
		}
		dst, p = append(dst, p[:min(i, max-len(dst))]...), p[i:]
		j := bytes.IndexByte(p[:min(len(p), maxEntity+2)], ';')
		if j < 2 {
			dst, p = append(dst, '&'), p[1:]
			continue
		}
		if c, ok := entities[string(p[1:j])]; ok {
			dst = append(dst, c)
		} else if c := p[1]; c != '#' && (c|0x20 < 'a' || c|0x20 > 'z') || bytes.IndexByte(p[1:j], '&') >= 0 {
			dst, p = append(dst, '&'), p[1:]
			continue
		} else {
			dst = append(dst, html.UnescapeString(string(p[:j+1]))...)
		}
		p = p[j+1:]
	}
	return dst[:min(len(dst), max)]
}

// maxMarkup is the number of bytes of a text with markup that are read.
const maxMarkup = 64 << 10

// plain returns a text without HTML markup, with single spaces, cut to max bytes.
func plain(p []byte, max int) string {
	p = p[:min(len(p), maxMarkup)]
	if bytes.IndexByte(p, '<') < 0 && bytes.IndexByte(p, '&') < 0 {
		return cut(fold(trimmedText(p)), max)
	}
	out := make([]byte, 0, min(len(p), 2*max+maxEntity))
	skipped := ""
	for len(p) > 0 && len(out) <= 2*max {
		i := bytes.IndexByte(p, '<')
		if i < 0 {
			i = len(p)
		}
		if skipped == "" {
			out = unescape(out, p[:i])
		}
		if p = p[i:]; len(p) < 2 {
			break
		}
		switch {
		case bytes.HasPrefix(p, []byte("<!--")):
			_, p, _ = bytes.Cut(p, []byte("-->"))
		case !beginsTag(p[1]): // a < that does not begin a tag, as in "a < b"
			out, p = append(out, '<'), p[1:]
		default:
			name := bytes.ToLower(tagName(p[1:]))
			if !inline(name) {
				out = append(out, ' ')
			}
			skipped = skippedAfter(skipped, string(name), p[1] == '/')
			p = p[tagEnd(p):]
		}
	}
	return cut(fold(trimmedText(out)), max)
}

// beginsTag reports whether a < with c after it begins a tag, a declaration or similar markup.
func beginsTag(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '/' || c == '!' || c == '?'
}

// skippedAfter returns the element whose content is skipped after a tag, script or style, or "" if
// none is. name and closing describe the tag. open is the result for the previous tag.
func skippedAfter(open, name string, closing bool) string {
	switch {
	case closing && name == open:
		return ""
	case !closing && open == "" && (name == "script" || name == "style"):
		return name
	}
	return open
}

// tagName returns the name of a tag. p begins after the <, with a slash if it is an end tag.
func tagName(p []byte) []byte {
	p = bytes.TrimPrefix(p, []byte("/"))
	n := 0
	for n < len(p) && n < maxEntity && (p[n]|0x20 >= 'a' && p[n]|0x20 <= 'z' || p[n] >= '0' && p[n] <= '9') {
		n++
	}
	return p[:n]
}

// tagEnd returns the length of the tag at the beginning of p. A > inside quotes does not end the tag.
func tagEnd(p []byte) int {
	quote := byte(0)
	for i, c := range p {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && p[i-1] == '=':
			quote = c
		case c == '>':
			return i + 1
		}
	}
	return len(p)
}

// inline reports whether an HTML element may begin or end within a word.
func inline(name []byte) bool {
	switch string(name) {
	case "a", "abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "mark", "s", "small", "span", "strong", "sub", "sup", "u", "wbr":
		return true
	}
	return false
}

// cut shortens s to at most max bytes without splitting a rune.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}
