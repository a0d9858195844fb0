package parse

import (
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/charset"
	"crawlbatch.io/crawlbatch/stages/parse/pagehint"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// readHTML reads HTML and XHTML.
func readHTML(j *job) {
	r, h := j.r, &j.s.html
	r.Kind = HTML
	doc, charset := charset.Decode(j.body, j.d.ContentType)
	r.Page.Charset = charset
	h.SetCharset(charset)
	all := h.Read(doc, r.Page.MimeDetected == "application/xhtml+xml")
	out := h.Outline()
	r.Text.Full = out.Full(all)
	r.Text.Main = out.Main()
	if r.Text.Main == r.Text.Full {
		r.Text.Main = r.Text.Full // now both share the same memory
	}
	r.Cut = r.Cut || out.Cut()
	j.s.finishText(j.p, r)
	j.finish()
	if v, ok := out.LinkDensity(); ok {
		r.Page.LinkDensity = roundRatio(v)
	}
	if len(doc) > 0 {
		r.Page.TextRatio = roundRatio(float64(len(r.Text.Full)) / float64(len(doc)))
	}
	r.Page.PageHint = pagehint.Hint(&r.Parsed, out.Heading(), doc)
	r.Refused = r.Page.PageHint == schema.HintBlocked && pagehint.OnlyRefuses(&r.Parsed, out.Heading())
}

// finish writes the columns of the document, and the document's links.
func (j *job) finish() {
	j.r.Notes = j.s.html.Fill(&j.r.Parsed, j.p.cfg.Canonicalizer, j.d.Fetched, j.r.Kind == Sitemap || j.r.Kind == Feed)
}

// finishText computes the columns that depend on the text.
func (s *state) finishText(p *Parser, r *Result) {
	declared, source := s.html.DeclaredLanguage()
	sample := r.Text.Main
	if len(sample) < 200 {
		sample = r.Text.Full
	}
	s.normal.Normalize(r.Text.Main)
	lang := s.decideLanguage(declared, sample)
	r.inLanguage(lang, declared, source)
	r.Page.TextDigest = text.Digest(s.normal.Bytes)
	r.Page.SimHash = int64(s.hasher.Fingerprint(string(s.normal.Bytes)))
	s.writeCounts(p, r)
}

// inLanguage sets the language of the document, and the source of the language.
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
