package parse

import "testing"

func TestSniff(t *testing.T) {
	const pdf, png = "%PDF-1.4\n", "\x89PNG\x0D\x0A\x1A\x0A"
	for _, tt := range []struct{ name, contentType, prefix, want string }{
		{"what is declared", "text/html; charset=utf-8", "<p>hello", "text/html"},
		{"a declared type with capitals", "Text/HTML", "x", "text/html"},
		{"nothing declared, HTML", "", "  <!DOCTYPE html><p>", "text/html"},
		{"nothing declared, HTML after a comment", "", "<!-- c --><body>", "text/html"},
		{"nothing declared, text", "", "hello", "text/plain"},
		{"nothing declared, binary", "", "a\x00\x01", "application/octet-stream"},
		{"nothing declared, nothing there", "", "", "text/plain"},
		{"not a type", "html", "<html>", "text/html"},
		{"octet-stream that is a page", "application/octet-stream", "<html><p>", "text/html"},
		{"PDF declared as HTML", "text/html", pdf, "application/pdf"},
		{"a picture declared as text", "text/plain", png, "image/png"},
		{"binary declared as text", "text/plain", "a\x00\x01", "application/octet-stream"},
		{"HTML declared as text stays text", "text/plain", "<html><p>", "text/plain"},
		{"UTF-16 text", "text/plain; charset=utf-16le", "a\x00b\x00", "text/plain"},
		{"text with a mark", "text/plain", "\xFF\xFEa\x00", "text/plain"},
		{"a page under a picture's name", "image/jpeg", "<!doctype html><p>Not found", "text/html"},
		{"a picture under another's name", "image/jpeg", png, "image/png"},
		{"RSS declared as HTML", "text/html", "<?xml version='1.0'?><rss version='2.0'>", "application/rss+xml"},
		{"Atom declared as XML", "application/xml", "\xEF\xBB\xBF<?xml version='1.0'?>\n<!-- c -->\n<feed xmlns='http://www.w3.org/2005/Atom'>", "application/atom+xml"},
		{"a sitemap declared as HTML", "text/html", "<?xml version='1.0'?><urlset>", "application/xml"},
		{"XHTML declared as XML", "text/xml", "<?xml version='1.0'?><!DOCTYPE html><html xmlns='http://www.w3.org/1999/xhtml'>", "application/xhtml+xml"},
		{"XHTML declared as HTML", "text/html", "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>", "text/html"},
		{"other XML", "text/xml", "<?xml version='1.0'?><note>", "text/xml"},
		{"XML that is cut", "", "<?xml version='1.0'?><!-- ", "text/xml"},
		{"a type of its own", "application/json; charset=utf-8", `{"a":1}`, "application/json"},
		{"gzip", "", "\x1F\x8B\x08", "application/x-gzip"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Sniff(tt.contentType, []byte(tt.prefix)); got != tt.want {
				t.Errorf("Sniff(%q, %q) = %q, want %q", tt.contentType, tt.prefix, got, tt.want)
			}
		})
	}
}
