package parse

import (
	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// htmlHandler reads HTML and XHTML.
type htmlHandler struct{}

func (htmlHandler) types() []string { return []string{"text/html", "application/xhtml+xml"} }

func (htmlHandler) wants([]byte) bool { return true }

func (htmlHandler) handle(j *job) { readHTML(j.p, j.s, j.d, j.body, j.r) }

// readHTML reads HTML and XHTML.
func readHTML(p *Parser, s *state, d *document.Document, body []byte, r *Result) {
	r.Kind = HTML
	doc, charset := decode(body, d.ContentType)
	r.Page.Charset = charset
	h := &s.html
	h.xml = r.Page.MimeDetected == "application/xhtml+xml"
	h.run(doc)
	if target, ok := parseRefresh(h.meta.refresh); ok {
		h.links.addRefresh(target, false)
	}
	all := h.out.All()
	r.Text.Full = h.out.Full(all)
	r.Text.Main = p.mainText(h, doc)
	if r.Text.Main == r.Text.Full {
		r.Text.Main = r.Text.Full // the same memory
	}
	r.Cut = r.Cut || h.out.Cut()
	s.finishText(p, r)
	s.signals(r, doc)
	s.finishMeta(p, r, all)
	if r.Page.PageHint == "" && parkedElsewhere(r) {
		r.Page.PageHint = schema.HintParked
	}
}

// mainText chooses the main content of a document that has been read.
func (p *Parser) mainText(h *htmlPass, doc []byte) string {
	if p.cfg.MainText != nil {
		if lines, err := p.cfg.MainText(doc); err == nil {
			return cut(lines, p.cfg.MaxText)
		}
	}
	return h.out.Main()
}

// finishText computes what follows from the text.
func (s *state) finishText(p *Parser, r *Result) {
	declared, source := s.html.meta.declaredLanguage()
	sample := r.Text.Main
	if len(sample) < 200 {
		sample = r.Text.Full
	}
	s.normal.Of(r.Text.Main)
	lang := s.language(declared, sample)
	r.inLanguage(lang, declared, source)
	r.Page.TextDigest = text.Digest(s.normal.Bytes)
	r.Page.SimHash = int64(s.hasher.Of(string(s.normal.Bytes)))
	s.counts(p, r)
}
