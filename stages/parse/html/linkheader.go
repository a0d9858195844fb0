package html

import (
	"net/url"
	"strings"

	"golang.org/x/text/encoding/charmap"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// linkParams holds the parameters of one link in a Link field (RFC 8288, 3.4). Parameters that the
// reader does not use are left out.
type linkParams struct {
	rel, anchor, hreflang, mediaType, title, extTitle string
}

// addHeader adds the links of a Link field (RFC 8288, B.2). If "anchor" among a link's parameters names
// another resource, the link starts from that resource and does not describe this document. Its kind is
// then KindHeader.
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
		field = p.readParams(rest)
		raw := l.addEmbedded(p.linkKind(), []byte(href), partNone)
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

// linkKind returns the kind that a link element with the same rel would have.
func (p *linkParams) linkKind() schema.LinkKind {
	if a := strings.TrimSpace(p.anchor); a != "" && a[0] != '#' { // a fragment is part of this document
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

// text returns the link's title: the value of title* if the value can be decoded, otherwise title.
func (p *linkParams) text() string {
	if s, ok := extValue(p.extTitle); ok {
		return fold.String(s, fold.MaxAnchor)
	}
	return fold.String(strings.ToValidUTF8(p.title, "\uFFFD"), fold.MaxAnchor)
}

// readParams reads the parameters of one link and returns the text after the comma that ends the
// link. If the field repeats a parameter, the first value counts (RFC 8288, 3.3 and 3.4.1).
func (p *linkParams) readParams(s string) (rest string) {
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
		if to := p.byName(name); to != nil && *to == "" {
			*to = value
		}
	}
}

// byName returns the field for a parameter, or nil if the reader does not use the parameter.
func (p *linkParams) byName(name string) *string {
	for _, f := range [...]struct {
		name string
		to   *string
	}{{"rel", &p.rel}, {"anchor", &p.anchor}, {"hreflang", &p.hreflang}, {"type", &p.mediaType}, {"title", &p.title}, {"title*", &p.extTitle}} {
		if f.name == name {
			return f.to
		}
	}
	return nil
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
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:]
		case c != '\\':
			b.WriteByte(c)
		case i+1 < len(s):
			i++
			b.WriteByte(s[i])
		}
	}
	return b.String(), ""
}

// extValue decodes a value that names its charset, such as UTF-8'en'%e2%82%ac (RFC 8187, 3.2.1). An
// older version of that RFC also allows ISO-8859-1.
func extValue(s string) (text string, ok bool) {
	charset, s, ok := strings.Cut(s, "'")
	if !ok {
		return "", false
	}
	_, s, ok = strings.Cut(s, "'") // skip the language
	if !ok {
		return "", false
	}
	s, err := url.PathUnescape(s)
	switch {
	case err != nil:
	case strings.EqualFold(charset, "utf-8"):
		return strings.ToValidUTF8(s, "\uFFFD"), true
	case strings.EqualFold(charset, "iso-8859-1"):
		s, err = charmap.ISO8859_1.NewDecoder().String(s)
		return s, err == nil
	}
	return "", false
}

// addRefresh adds the URL to which the page refreshes.
func (l *linkList) addRefresh(target string, header bool) {
	if r := l.addEmbedded(schema.KindRefresh, []byte(target), partNone); r != nil {
		r.header = header
	}
}
