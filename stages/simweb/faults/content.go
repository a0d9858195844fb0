package faults

import (
	"bytes"
	"image"
	"image/png"
	"slices"
	"strings"
	"sync"

	"crawlbatch.io/crawlbatch/formats/schema"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// contentFaults are well-formed responses with odd content.
var contentFaults = []Fault{
	filtered("pdf", "application/pdf", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"),
	filtered("png", "image/png", string(Picture())),
	filtered("stylesheet", "text/css", "main { color: black }\n"),
	filtered("binary", "application/octet-stream", strings.Repeat("\x00\x01\xfe\xff", 512)),
	filtered("video", "video/mp4", "\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41"+strings.Repeat("\x00\xb3", 4096)),
	page("no-content-type", "HTML without a Content-Type", func(r *Response) { r.MIME = "" }),
	page("charset-latin1", "windows-1252, as the header says", func(r *Response) {
		r.MIME = "text/html; charset=iso-8859-1"
		r.Body = encode(charmap.Windows1252, stripMeta(r.Body))
	}),
	page("charset-meta", "windows-1252, as only the page says", func(r *Response) {
		r.MIME = "text/html"
		meta := []byte(`<meta charset="windows-1252">`)
		r.Body = encode(charmap.Windows1252, bytes.Replace(r.Body, []byte(metaUTF8), meta, 1))
	}),
	page("charset-bom", "UTF-8 with a byte order mark, and a header that says otherwise", func(r *Response) {
		r.MIME = "text/html; charset=iso-8859-1"
		r.Body = append([]byte("\ufeff"), r.Body...)
	}),
	page("charset-utf16", "UTF-16, little endian, with a byte order mark", func(r *Response) {
		r.MIME = "text/html; charset=utf-16"
		r.Body = encode(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), stripMeta(r.Body))
	}),
	{Name: "charset-wrong", About: "UTF-8, but the header says windows-1252 and wins", Class: Quick, Outcome: schema.OK, Status: 200,
		Page: OtherPage, alter: func(r *Response) { r.MIME = "text/html; charset=windows-1252" }},
	{Name: "empty", About: "200 with a body of no bytes", Class: Quick, Outcome: schema.OK, Status: 200, Page: EmptyPage,
		alter: func(r *Response) { r.NoPage, r.Body = true, nil }},
	page("deep", "20,000 elements within one another, before the page's own", func(r *Response) {
		const n = 20_000
		nest := strings.Repeat("<div>", n) + strings.Repeat("</div>", n)
		r.Body = bytes.Replace(r.Body, []byte("\n<body>\n"), []byte("\n<body>\n"+nest+"\n"), 1)
	}),
	page("unclosed", "list items and paragraphs without end tags", func(r *Response) {
		r.Body = bytes.ReplaceAll(bytes.ReplaceAll(r.Body, []byte("</li>"), nil), []byte("</p>"), nil)
	}),
	{Name: "large", About: "a page longer than the limit: a comment follows it", Class: Quick, Outcome: schema.OK, Status: 200,
		Page: WholePage, Truncated: schema.TruncatedLength, alter: func(r *Response) { r.Body = padded(r.Body, r.LargeBody) }},
}

// filtered returns a document of a type that crawlers do not want.
func filtered(name, mime, body string) Fault {
	return Fault{Name: name, About: mime, Class: Quick, Outcome: schema.MIMEFiltered, Status: 200, alter: func(r *Response) {
		r.NoPage, r.MIME, r.Body = true, mime, []byte(body)
	}}
}

const metaUTF8 = `<meta charset="utf-8">`

func stripMeta(html []byte) []byte { return bytes.Replace(html, []byte(metaUTF8+"\n"), nil, 1) }

// encode converts html to a charset, which must have all its characters.
func encode(e encoding.Encoding, html []byte) []byte {
	out, err := e.NewEncoder().Bytes(html)
	if err != nil { // the charset lacks a character of the vocabulary; tests find this text in the page
		return []byte("faults: " + err.Error())
	}
	return out
}

// padded appends a comment to html that makes it n bytes long.
func padded(html []byte, n int) []byte {
	const open, end = "<!-- ", " -->\n"
	fill := n - len(html) - len(open) - len(end)
	if fill <= 0 {
		return html
	}
	return slices.Concat(html, []byte(open), bytes.Repeat([]byte{'x'}, fill), []byte(end))
}

// Picture is a PNG of one transparent pixel.
var Picture = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, 1, 1))) // a Buffer never fails
	return b.Bytes()
})
