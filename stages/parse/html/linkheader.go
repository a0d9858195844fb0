package html

import (
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// linkParams are the parameters of a link of a Link field that are looked at (RFC
// 8288, 3.4); media says nothing about the target, and rev is deprecated.
type linkParams struct {
	rel, anchor, hreflang, mediaType, title, extTitle string
}

// addHeader adds the links of a Link field (RFC 8288, B.2). A link whose context is
// another resource (anchor=) is no statement about this document: it is kept as one of
// the field and no more.
func (l *linkList) addHeader(field string) {
	if len(field) > maxHref {
		field = field[:maxHref]
	}
	for {
		i := strings.IndexByte(field, '<')
		if i < 0 {
			return
		}
		href, rest, ok := strings.Cut(field[i+1:], ">")
		if !ok {
			return
		}
		var p linkParams
		field = p.read(rest)
		raw := l.add(p.kind(), []byte(href), partNone)
		if raw == nil {
			continue
		}
		raw.header = true
		raw.rel, raw.nofollow = l.keepRel([]byte(strings.ToValidUTF8(p.rel, "\uFFFD")))
		if p.hreflang != "" && len(p.hreflang) <= text.MaxLanguageTag {
			raw.hreflang = l.keep([]byte(p.hreflang))
		}
		if title := p.text(); title != "" {
			raw.alt = l.keep([]byte(fold.Cut(title, fold.MaxAnchor)))
		}
	}
}

// kind is what the field's link is, as a link element with the same rel would be.
func (p *linkParams) kind() schema.LinkKind {
	if a := strings.TrimSpace(p.anchor); a != "" && a[0] != '#' { // a fragment is of this document
		return schema.KindHeader
	}
	alternate := false
	for w := range strings.FieldsSeq(p.rel) {
		switch strings.ToLower(w) {
		case "canonical":
			return schema.KindCanonical
		case "alternate":
			alternate = true
		}
	}
	if alternate {
		if k := alternateKind([]byte(p.mediaType), p.hreflang != ""); k != schema.KindLink {
			return k
		}
	}
	return schema.KindHeader
}

// text is the link's title: title* where it can be read, else title.
func (p *linkParams) text() string {
	if s, ok := extValue(p.extTitle); ok {
		return fold.String(s, fold.MaxAnchor)
	}
	return fold.String(strings.ToValidUTF8(p.title, "\uFFFD"), fold.MaxAnchor)
}

// read takes the parameters of a link apart, up to the comma that ends it, and
// returns what follows. Of each the first counts (RFC 8288, 3.3 and 3.4.1).
func (p *linkParams) read(s string) (rest string) {
	for {
		s = strings.TrimLeft(s, " \t;")
		if s == "" || s[0] == ',' {
			return s
		}
		i := strings.IndexAny(s, "=;,")
		if i < 0 {
			return ""
		}
		name := strings.ToLower(strings.TrimSpace(s[:i]))
		if s[i] != '=' {
			s = s[i:]
			continue
		}
		var value string
		value, s = paramValue(strings.TrimLeft(s[i+1:], " \t"))
		var to *string
		switch name {
		case "rel":
			to = &p.rel
		case "anchor":
			to = &p.anchor
		case "hreflang":
			to = &p.hreflang
		case "type":
			to = &p.mediaType
		case "title":
			to = &p.title
		case "title*":
			to = &p.extTitle
		default:
			continue
		}
		if *to == "" {
			*to = value
		}
	}
}

// paramValue reads a token or a quoted string (RFC 9110, 5.6.4).
func paramValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexAny(s, ";,")
		if i < 0 {
			i = len(s)
		}
		return strings.TrimSpace(s[:i]), s[i:]
	}
	s = s[1:]
	i := strings.IndexAny(s, `"\`)
	if i < 0 {
		return s, ""
	}
	if s[i] == '"' {
		return s[:i], s[i+1:]
	}
	var b strings.Builder
	for {
		b.WriteString(s[:i])
		if s = s[i:]; s[0] == '"' {
			return b.String(), s[1:]
		}
		if len(s) < 2 {
			return b.String(), ""
		}
		b.WriteByte(s[1])
		s = s[2:]
		if i = strings.IndexAny(s, `"\`); i < 0 {
			b.WriteString(s)
			return b.String(), ""
		}
	}
}

// extValue decodes a value with its charset, UTF-8”%e2%82%ac (RFC 8187, 3.2.1); ISO-8859-1
// is what senders before it might write.
func extValue(s string) (text string, ok bool) {
	charset, s, ok := strings.Cut(s, "'")
	if !ok {
		return "", false
	}
	_, s, ok = strings.Cut(s, "'") // past the language
	if !ok {
		return "", false
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			hi, lo := -1, -1
			if i+2 < len(s) {
				hi, lo = strings.IndexByte(hexDigits, lowerByte(s[i+1])), strings.IndexByte(hexDigits, lowerByte(s[i+2]))
			}
			if hi < 0 || lo < 0 {
				return "", false
			}
			c = byte(hi<<4 | lo)
			i += 2
		}
		out = append(out, c)
	}
	switch strings.ToLower(charset) {
	case "utf-8":
		return strings.ToValidUTF8(string(out), "\uFFFD"), true
	case "iso-8859-1":
		var b strings.Builder
		for _, c := range out {
			b.WriteRune(rune(c))
		}
		return b.String(), true
	}
	return "", false
}

const hexDigits = "0123456789abcdef"

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// addRefresh adds where the page refreshes to.
func (l *linkList) addRefresh(target string, header bool) {
	if r := l.add(schema.KindRefresh, []byte(target), partNone); r != nil {
		r.header = header
	}
}
