package parse

import (
	"bytes"

	"crawlbatch.io/crawlbatch/stages/parse/charset"
	"crawlbatch.io/crawlbatch/stages/parse/sniff"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// readPlain reads text with little or no markup (Markdown, CSV, source code). Every line is a
// block, and the whole text is main content. URLs in the text do not become links, because they may
// be examples or cut off. A text that consists only of URLs is a sitemap.
func readPlain(j *job) {
	if sniff.IsURLList(j.body, j.r.Cut) {
		readEntries(j)
		return
	}
	r := j.r
	r.Kind = Plain
	doc, charset := charset.Decode(j.body, j.d.ContentType)
	r.Page.Charset = charset
	if bytes.IndexByte(doc, 0) >= 0 {
		doc = bytes.ReplaceAll(doc, []byte{0}, nil)
	}
	out := j.s.html.Outline()
	out.Lines(doc)
	out.Break(text.TagNone)
	r.Text.Full = out.Full(out.All())
	r.Text.Main = r.Text.Full
	r.Cut = r.Cut || out.Cut()
	j.s.finishText(j.p, r)
	j.finish()
}
