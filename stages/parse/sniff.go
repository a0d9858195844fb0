package parse

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
)

// SniffLen is how many bytes of a document Sniff looks at (WHATWG MIME Sniffing, 5.2).
const SniffLen = 1445

// Sniff returns the media type of a document, without parameters, from its
// Content-Type field ("" if it has none) and its first bytes, as WHATWG MIME Sniffing
// does: a declared type holds unless it is missing, unknown, or one of those that
// servers give to everything. Beyond the standard it tells feeds, sitemaps and XHTML
// apart by their root element, and what is declared as text but begins as an archive
// or a document with a magic number.
func Sniff(contentType string, prefix []byte) string {
	if len(prefix) > SniffLen {
		prefix = prefix[:SniffLen]
	}
	essence := mediaType(contentType)
	switch essence {
	case "", "unknown/unknown", "application/unknown", "*/*", "application/octet-stream", "binary/octet-stream", "application/x-unknown":
		return unknown(prefix)
	case "text/plain":
		return plainOrNot(contentType, prefix)
	case "text/html":
		if t := rootType(prefix); t != "" && t != "text/html" && t != "application/xhtml+xml" {
			return t
		}
		if t := magic(prefix); t != "" {
			return t
		}
		return essence
	case "text/xml", "application/xml":
		if t := rootType(prefix); t != "" {
			return t
		}
		return essence
	case "application/json", "text/json":
		if isJSONFeed(prefix) {
			return "application/feed+json"
		}
		return essence
	}
	if strings.HasPrefix(essence, "image/") || strings.HasPrefix(essence, "audio/") || strings.HasPrefix(essence, "video/") {
		if t := magic(prefix); t != "" {
			return t
		}
		if looksLikeHTML(prefix) {
			return "text/html" // an error page under a picture's name
		}
	}
	return essence
}

// sniffed reports whether Sniff looks at the bytes of a document that is declared to be
// of a type.
func sniffed(essence string) bool {
	switch essence {
	case "", "unknown/unknown", "application/unknown", "*/*", "application/octet-stream", "binary/octet-stream", "application/x-unknown",
		"text/plain", "text/html", "text/xml", "application/xml", "application/json", "text/json":
		return true
	}
	return strings.HasPrefix(essence, "image/") || strings.HasPrefix(essence, "audio/") || strings.HasPrefix(essence, "video/")
}

// isJSONFeed reports whether JSON names the version of JSON Feed, which comes first.
func isJSONFeed(prefix []byte) bool {
	head := bytes.TrimLeft(bytes.TrimPrefix(prefix, utf8BOM), " \t\r\n")
	return len(head) > 0 && head[0] == '{' &&
		(bytes.Contains(head, []byte("jsonfeed.org/version/")) || bytes.Contains(head, []byte(`jsonfeed.org\/version\/`)))
}

// mediaType is the essence of a Content-Type field, lower case; "" if it is none.
func mediaType(contentType string) string {
	if i := strings.IndexAny(contentType, ";,"); i >= 0 {
		contentType = contentType[:i]
	}
	t := strings.ToLower(strings.TrimSpace(contentType))
	major, minor, ok := strings.Cut(t, "/")
	if !ok || !token(major) || !token(minor) {
		return ""
	}
	return t
}

// token reports whether s is an RFC 9110 token.
func token(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7F || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 && c != '*' {
			return false
		}
	}
	return s != "" && len(s) <= 127
}

// plainOrNot tells text from binary where a server says text/plain (7.2): older
// servers say so of whatever they do not know.
func plainOrNot(contentType string, prefix []byte) string {
	if t := magic(prefix); t != "" {
		return t
	}
	if hasBOM(prefix) || !binary(prefix) {
		return "text/plain"
	}
	if _, params, err := mime.ParseMediaType(contentType); err == nil && strings.HasPrefix(strings.ToLower(params["charset"]), "utf-16") {
		return "text/plain"
	}
	return "application/octet-stream"
}

// unknown sniffs what nobody has named (7.1).
func unknown(prefix []byte) string {
	if t := rootType(prefix); t != "" {
		return t
	}
	if looksLikeHTML(prefix) {
		return "text/html"
	}
	return mediaType(http.DetectContentType(prefix))
}

// magic is the type of a format that begins with a number of its own, "" if none.
func magic(prefix []byte) string {
	if len(prefix) == 0 || hasBOM(prefix) {
		return ""
	}
	switch t := mediaType(http.DetectContentType(prefix)); t {
	case "text/html", "text/plain", "text/xml", "application/octet-stream":
		return ""
	default:
		return t
	}
}

func hasBOM(p []byte) bool {
	return bytes.HasPrefix(p, utf8BOM) || bytes.HasPrefix(p, []byte{0xFE, 0xFF}) || bytes.HasPrefix(p, []byte{0xFF, 0xFE})
}

// binary reports whether p has a byte that text does not have (3, "binary data byte").
func binary(p []byte) bool {
	for _, c := range p {
		if c <= 8 || c == 0x0B || c >= 0x0E && c <= 0x1A || c >= 0x1C && c <= 0x1F {
			return true
		}
	}
	return false
}

func looksLikeHTML(p []byte) bool { return mediaType(http.DetectContentType(p)) == "text/html" }

// rootType is the type that an XML document's root element tells, "" if it is not XML
// or the root tells nothing. Of a sitemap the root may come late, after a warning of
// the program that makes it.
func rootType(p []byte) string {
	if t := firstRoot(p); t != "" {
		return t
	}
	if bytes.Contains(p, []byte("<urlset")) || bytes.Contains(p, []byte("<sitemapindex")) {
		return "application/xml"
	}
	return ""
}

func firstRoot(p []byte) string {
	p = bytes.TrimPrefix(p, utf8BOM)
	xml, html := false, false
	for {
		p = bytes.TrimLeft(p, " \t\r\n\f")
		end := ""
		switch {
		case bytes.HasPrefix(p, []byte("<?")):
			xml = xml || bytes.HasPrefix(p, []byte("<?xml"))
			end = "?>"
		case bytes.HasPrefix(p, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(p, []byte("<!")):
			html = html || bytes.EqualFold(p[:min(len(p), len(htmlDoctype))], htmlDoctype)
			end = ">"
		case bytes.HasPrefix(p, []byte("<")):
			t := byRoot(p[1:], xml)
			if html && (t == "" || t == "text/xml") {
				t = "text/html" // the root element may be left out
			}
			return t
		default:
			return ""
		}
		i := bytes.Index(p, []byte(end))
		if i < 0 {
			if xml {
				return "text/xml"
			}
			return ""
		}
		p = p[i+len(end):]
	}
}

var htmlDoctype = []byte("<!doctype html")

func byRoot(tag []byte, xml bool) string {
	i := bytes.IndexAny(tag, " \t\r\n\f/>")
	if i < 0 {
		i = len(tag)
	}
	name := strings.ToLower(string(tag[:min(i, 64)]))
	if j := strings.LastIndexByte(name, ':'); j >= 0 {
		name = name[j+1:]
	}
	switch name {
	case "rss", "rdf":
		if name == "rdf" && !bytes.Contains(tag, []byte("purl.org/rss")) && !bytes.Contains(tag, []byte("channel")) {
			return "application/rdf+xml"
		}
		return "application/rss+xml"
	case "feed":
		return "application/atom+xml"
	case "urlset", "sitemapindex":
		return "application/xml"
	case "html":
		if xml && bytes.Contains(tag, []byte("http://www.w3.org/1999/xhtml")) {
			return "application/xhtml+xml"
		}
		return "text/html"
	case "svg":
		if !xml {
			return ""
		}
		return "image/svg+xml"
	}
	if xml {
		return "text/xml"
	}
	return ""
}
