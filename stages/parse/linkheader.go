package parse

import (
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// addHeader adds the links of a Link field (RFC 8288).
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
		var rel, hreflang string
		rel, hreflang, field = linkParams(rest)
		kind := schema.KindHeader
		for w := range strings.FieldsSeq(rel) {
			switch {
			case w == "canonical":
				kind = schema.KindCanonical
			case w == "alternate" && hreflang != "" && kind == schema.KindHeader:
				kind = schema.KindHreflang
			}
		}
		if raw := l.add(kind, []byte(href), partNone); raw != nil {
			raw.rel, raw.nofollow = l.keepRel([]byte(rel))
			raw.header = true
		}
	}
}

// linkParams reads the parameters of a link up to the comma that ends it.
func linkParams(s string) (rel, hreflang, rest string) {
	for {
		s = strings.TrimLeft(s, " \t;")
		if s == "" || s[0] == ',' {
			return rel, hreflang, s
		}
		i := strings.IndexAny(s, "=;,")
		if i < 0 {
			return rel, hreflang, ""
		}
		name := strings.ToLower(strings.TrimSpace(s[:i]))
		if s[i] != '=' {
			s = s[i:]
			continue
		}
		s = strings.TrimLeft(s[i+1:], " \t")
		var value string
		if strings.HasPrefix(s, `"`) {
			value, s, _ = strings.Cut(s[1:], `"`)
		} else {
			if i = strings.IndexAny(s, ";,"); i < 0 {
				i = len(s)
			}
			value, s = strings.TrimSpace(s[:i]), s[i:]
		}
		switch {
		case name == "rel" && rel == "":
			rel = strings.ToLower(value)
		case name == "hreflang":
			hreflang = value
		}
	}
}

// addRefresh adds where the page refreshes to.
func (l *linkList) addRefresh(target string, header bool) {
	if r := l.add(schema.KindRefresh, []byte(target), partNone); r != nil {
		r.header = header
	}
}
