package parse

import "crawlbatch.io/crawlbatch/stages/parse/text"

// maxLanguageTag is how long a language tag may be, bytes: RFC 5646, 4.4.1, asks for 35.
const maxLanguageTag = 35

// languageTag writes a BCP 47 tag in its usual letter case (RFC 5646, 2.1.1): de,
// pt-BR, zh-Hant-TW; x-default, and underscores for hyphens, are taken too. It is ""
// for what is no tag.
func languageTag(p []byte) string {
	if len(p) == 0 {
		return ""
	}
	var out [maxLanguageTag]byte
	n, start, parts, single := 0, 0, 0, false
	p = trimSpaces(p)
	if len(p) == 0 || len(p) > len(out) {
		return ""
	}
	end := func() bool {
		switch size := n - start; {
		case size == 0 || size > 8, parts == 0 && !isLetter(out[0]):
			return false
		case parts > 0 && size == 2 && !single && isLetter(out[start]): // a region
			out[start] -= 'a' - 'A'
			if isLetter(out[start+1]) {
				out[start+1] -= 'a' - 'A'
			}
		case parts > 0 && size == 4 && !single && isLetter(out[start]): // a script
			out[start] -= 'a' - 'A'
		case size == 1: // what follows is private, or of an extension
			single = true
		}
		parts++
		return true
	}
	for _, c := range p {
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c == '_' || c == '-':
			if !end() {
				return ""
			}
			out[n] = '-'
			n++
			start = n
			continue
		case (c < 'a' || c > 'z') && (c < '0' || c > '9'):
			return ""
		}
		out[n] = c
		n++
	}
	if !end() || parts == 1 && n == 1 {
		return ""
	}
	return string(out[:n])
}

func trimSpaces(p []byte) []byte {
	for len(p) > 0 && p[0] <= ' ' {
		p = p[1:]
	}
	for len(p) > 0 && p[len(p)-1] <= ' ' {
		p = p[:len(p)-1]
	}
	return p
}

// declaredLanguage is the language that the document declares (ISO-639-3), and what
// declares it: the html element, then Content-Language, then a meta element. The first
// that names a language counts.
func (m *meta) declaredLanguage() (code, source string) {
	for _, d := range [...]struct{ tag, source string }{{m.lang, "html"}, {m.headerLang, "header"}, {m.metaLang, "meta"}} {
		if code = text.Declared(d.tag); code != "" {
			return code, d.source
		}
	}
	return "", ""
}

// inLanguage notes the language of the document, and what says so.
func (r *Result) inLanguage(lang, declared, source string) {
	r.Text.Language, r.Page.Language, r.Page.Languages = lang, lang, lang
	switch lang {
	case "":
	case declared:
		r.Page.LanguageSource = source
	default:
		r.Page.LanguageSource = "text"
	}
}
