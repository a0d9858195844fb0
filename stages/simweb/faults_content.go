package simweb

import (
	"bytes"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// contentFaults are well-formed answers whose content is odd.
var contentFaults = []Fault{
	filtered("pdf", "application/pdf", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"),
	filtered("png", "image/png", string(picture())),
	filtered("stylesheet", "text/css", "main { color: black }\n"),
	filtered("binary", "application/octet-stream", strings.Repeat("\x00\x01\xfe\xff", 512)),
	filtered("video", "video/mp4", "\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41"+strings.Repeat("\x00\xb3", 4096)),
	page("no-content-type", "HTML without a Content-Type", func(_ visit, a *answer) { a.mime = "" }),
	page("charset-latin1", "windows-1252, as the header says", func(_ visit, a *answer) {
		a.mime = "text/html; charset=iso-8859-1"
		a.body = encode(charmap.Windows1252, stripMeta(a.body))
	}),
	page("charset-meta", "windows-1252, as only the page says", func(_ visit, a *answer) {
		a.mime = "text/html"
		meta := []byte(`<meta charset="windows-1252">`)
		a.body = encode(charmap.Windows1252, bytes.Replace(a.body, []byte(metaUTF8), meta, 1))
	}),
	page("charset-bom", "UTF-8 with a byte order mark, and a header that says otherwise", func(_ visit, a *answer) {
		a.mime = "text/html; charset=iso-8859-1"
		a.body = append([]byte("\ufeff"), a.body...)
	}),
	page("charset-utf16", "UTF-16, little endian, with a byte order mark", func(_ visit, a *answer) {
		a.mime = "text/html; charset=utf-16"
		a.body = encode(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), stripMeta(a.body))
	}),
	{Name: "charset-wrong", About: "UTF-8, but the header says windows-1252 and wins", Class: Quick, Outcome: schema.OK, Status: 200,
		Page: OtherPage, plain: func(_ visit, a *answer) { a.mime = "text/html; charset=windows-1252" }},
	{Name: "empty", About: "200 with a body of no bytes", Class: Quick, Outcome: schema.OK, Status: 200, Page: EmptyPage,
		plain: func(_ visit, a *answer) { a.doc, a.body = nil, nil }},
	page("deep", "20,000 elements within one another, before the page's own", func(_ visit, a *answer) {
		const n = 20_000
		nest := strings.Repeat("<div>", n) + strings.Repeat("</div>", n)
		a.body = bytes.Replace(a.body, []byte("\n<body>\n"), []byte("\n<body>\n"+nest+"\n"), 1)
	}),
	page("unclosed", "list items and paragraphs without end tags", func(_ visit, a *answer) {
		a.body = bytes.ReplaceAll(bytes.ReplaceAll(a.body, []byte("</li>"), nil), []byte("</p>"), nil)
	}),
	{Name: "large", About: "a page longer than the limit: a comment follows it", Class: Quick, Outcome: schema.OK, Status: 200,
		Page: WholePage, Truncated: schema.TruncatedLength, plain: func(v visit, a *answer) { a.body = padded(a.body, v.w.cfg.LargeBody) }},
}

// page is a fault behind which a crawler can read the page whole.
func page(name, about string, plain func(v visit, a *answer)) Fault {
	return Fault{Name: name, About: about, Class: Quick, Outcome: schema.OK, Status: 200, Page: WholePage, plain: plain}
}

// filtered is a document of a type that is not wanted.
func filtered(name, mime, body string) Fault {
	return Fault{Name: name, About: mime, Class: Quick, Outcome: schema.MIMEFiltered, Status: 200, plain: func(_ visit, a *answer) {
		a.doc, a.mime, a.body = nil, mime, []byte(body)
	}}
}

const metaUTF8 = `<meta charset="utf-8">`

func stripMeta(html []byte) []byte { return bytes.Replace(html, []byte(metaUTF8+"\n"), nil, 1) }

// encode gives html in a charset that has all its characters.
func encode(e encoding.Encoding, html []byte) []byte {
	out, err := e.NewEncoder().Bytes(html)
	if err != nil { // a mistake in the vocabulary: say so where a test sees it
		return []byte("simweb: " + err.Error())
	}
	return out
}

// padded gives html with a comment after it, n bytes in all.
func padded(html []byte, n int) []byte {
	const open, end = "<!-- ", " -->\n"
	out := append(make([]byte, 0, max(n, len(html))), html...)
	if fill := n - len(html) - len(open) - len(end); fill > 0 {
		out = append(out, open...)
		for range fill {
			out = append(out, 'x')
		}
		out = append(out, end...)
	}
	return out
}
