package parse

import (
	"bytes"

	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// plainHandler reads text without markup, or with so little that it is read as it stands
// (Markdown, CSV, source code): every line is a block, and all of it is main content.
// A URL in it is text, not a link: nobody has marked it up, and what looks like one
// may be an example or end in the middle. A list of URLs alone is a sitemap.
type plainHandler struct{}

func (plainHandler) types() []string { return []string{"text/*"} }

func (plainHandler) wants([]byte) bool { return true }

func (plainHandler) handle(j *job) {
	if urlList(j.body) {
		readEntries(j)
		return
	}
	r := j.r
	r.Kind = Plain
	doc, charset := decode(j.body, j.d.ContentType)
	r.Page.Charset = charset
	if bytes.IndexByte(doc, 0) >= 0 {
		doc = bytes.ReplaceAll(doc, []byte{0}, nil)
	}
	out := &j.s.html.out
	out.Lines(doc)
	out.Break(text.TagNone)
	r.Text.Full = out.Full(out.All())
	r.Text.Main = r.Text.Full
	r.Cut = r.Cut || out.Cut()
	j.s.finishText(j.p, r)
	j.s.finishMeta(j.p, r, "")
}

// urlList reports whether a text begins with lines that are URLs, and only those but
// for comments, as robots.txt has them.
func urlList(body []byte) bool {
	head := bytes.TrimPrefix(body[:min(len(body), 2048)], utf8BOM)
	n := 0
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if !bytes.HasPrefix(line, []byte("http://")) && !bytes.HasPrefix(line, []byte("https://")) || bytes.IndexByte(line, ' ') >= 0 {
			return false
		}
		n++
	}
	return n > 0
}
