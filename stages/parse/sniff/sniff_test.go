package sniff

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/mediatype"
)

func TestSniff(t *testing.T) {
	const xhtml = "<?xml version='1.0' encoding='UTF-8'?>\n<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN'>\n"
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
		{"a sitemap declared as text", "text/plain; charset=utf-8", "\xEF\xBB\xBF<?xml version='1.0' encoding='UTF-8'?>\n<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>", "application/xml"},
		{"a sitemap index declared as text, after a comment", "text/plain", "<?xml version='1.0'?><!-- made by x -->\n<sitemapindex>", "application/xml"},
		{"RSS declared as text", "text/plain", "<rss version='2.0'><channel>", "application/rss+xml"},
		{"Atom declared as text", "text/plain", "<?xml version='1.0'?>\n<feed xmlns='http://www.w3.org/2005/Atom'>", "application/atom+xml"},
		{"other XML declared as text stays text", "text/plain", "<?xml version='1.0'?><note>", "text/plain"},
		{"XHTML declared as text stays text", "text/plain", xhtml + "<html xmlns='http://www.w3.org/1999/xhtml'>", "text/plain"},
		{"a sitemap in a text stays text", "text/plain", "A sitemap:\n<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>", "text/plain"},
		{"a text that begins with a tag", "text/plain", "<rss> is the element around a feed.", "text/plain"},
		{"a play that begins with a direction", "text/plain", "<feed me>\nA play", "text/plain"},
		{"a text that begins with a tag without end", "text/plain", "<urlset\n plain text", "text/plain"},
		{"a sitemap without attributes declared as text", "text/plain", "<urlset>\n<url><loc>", "application/xml"},
		{"an empty sitemap declared as text", "text/plain", "<urlset/>\n", "application/xml"},
		{"a feed with a warning declared as text", "text/plain", "<rss version='2.0'>Notice: x<channel>", "application/rss+xml"},
		{"a feed declared as text, the end of its tag out of sight", "text/plain", "<feed" + strings.Repeat(" xmlns:a='https://example.com/'", 50) + "><entry>", "application/atom+xml"},
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
		{"XHTML declared as HTML, its root out of sight", "text/html", xhtml + "<!-- " + strings.Repeat("licence ", 200) + "--><html xmlns='http://www.w3.org/1999/xhtml'>", "text/html"},
		{"XHTML that nobody has named, its root out of sight", "", xhtml + "<!-- " + strings.Repeat("licence ", 200), "text/html"},
		{"HTML with an XML declaration and no root", "text/html", "<?xml version='1.0'?><head><title>T</title>", "text/html"},
		{"HTML with an XML declaration and a comment", "text/html", "<?xml version='1.0'?><!-- " + strings.Repeat("licence ", 200) + "--><html>", "text/html"},
		{"a page with an example of a sitemap", "text/html", "<p>How to write a sitemap</p><pre><urlset> ...</pre>", "text/html"},
		{"a page with a whole sitemap in it", "", "<h1>Sitemaps</h1><xmp><?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>", "text/html"},
		{"a text with an example of a sitemap", "", "A sitemap begins with <urlset> and has", "text/plain"},
		{"Markdown with a sitemap in it", "", "# Sitemaps\n```\n<?xml version='1.0'?>\n<urlset><url><loc>", "text/plain"},
		{"a name that begins so", "", "A <urlsets><loc>", "text/plain"},
		{"a sitemap after a warning", "text/html", "<br />\n<b>Warning</b>: include(x) [<a href='function.include'>function.include</a>] in <b>/x.php</b><br />\n<urlset><url><loc>", "application/xml"},
		{"a sitemap after text", "", "Notice: x\n<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>", "application/xml"},
		{"a type of its own", "application/json; charset=utf-8", `{"a":1}`, "application/json"},
		{"gzip", "", "\x1F\x8B\x08", "application/x-gzip"},
		{"text that begins as a picture does", "text/plain", "BMW makes cars", "text/plain"},
		{"a page that begins as a sound does", "text/html", "ID3 tags are read by", "text/html"},
		{"text that nobody has named and begins as a picture does", "", "BMW makes cars", "text/plain"},
		{"a PDF that is declared as text", "text/plain; charset=utf-8", pdf, "application/pdf"},
		{"a vector picture", "image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'>", "image/svg+xml"},
		{"a vector picture after a comment", "image/svg+xml", "\n<!-- Created with Inkscape -->\n<!-- c --><svg xmlns='http://www.w3.org/2000/svg'>", "image/svg+xml"},
		{"a vector picture out of sight", "image/svg+xml", "<!-- " + strings.Repeat("licence ", 200), "image/svg+xml"},
		{"a vector picture after a comment, with a document type", "image/svg+xml", "<!-- c --><!DOCTYPE svg><svg>", "image/svg+xml"},
		{"a page under a vector picture's name", "image/svg+xml", "<!-- c -->\n<!doctype html><p>Not found", "text/html"},
		{"a page after a comment under a picture's name", "image/png", "<!-- a --> <!-- b --><div>Not found", "text/html"},
		{"two types", "text/html, text/html", "x", "text/html"},
		{"a type that is too long", "text/" + strings.Repeat("x", 200), "<p>", "text/html"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Type(tt.contentType, []byte(tt.prefix)); got != tt.want {
				t.Errorf("Sniff(%q, %q) = %q, want %q", tt.contentType, tt.prefix, got, tt.want)
			}
		})
	}
}

// TestSniffUnknown covers the table of MIME Sniffing 7.1 and the types that this package adds.
func TestSniffUnknown(t *testing.T) {
	const bin = "\x00\x01\x02\x03"
	mp3 := func(header string, size int) string { return header + strings.Repeat("\x00", size-len(header)) }
	for _, tt := range []struct{ prefix, want string }{
		{"<!DOCTYPE HTML>", "text/html"}, {" \t\r\n\f<html >", "text/html"}, {"<HeAd>", "text/html"}, {"<script src=x>", "text/html"},
		{"<iframe >", "text/html"}, {"<h1>", "text/html"}, {"<div>", "text/html"}, {"<font >", "text/html"}, {"<table>", "text/html"},
		{"<a href=x>", "text/html"}, {"<style>", "text/html"}, {"<title>", "text/html"}, {"<b>", "text/html"}, {"<body>", "text/html"},
		{"<br>", "text/html"}, {"<p>", "text/html"}, {"<!-- x", "text/html"},
		{"<p", "text/plain"}, {"<px>", "text/plain"}, {"<h2>", "text/plain"}, {"a <p>", "text/plain"}, {"<abbr>", "text/plain"},
		{" <?xml version='1.0'?><a>", "text/xml"},
		{"%PDF-1.7", "application/pdf"}, {" %PDF-1.7", "text/plain"}, {"%!PS-Adobe-3.0", "application/postscript"},
		{"\xFE\xFF\x00a", "text/plain"}, {"\xFF\xFEa\x00", "text/plain"}, {"\xEF\xBB\xBF" + bin, "text/plain"},
		{"\x00\x00\x01\x00", "image/x-icon"}, {"\x00\x00\x02\x00", "image/x-icon"}, {"BM" + bin, "image/bmp"}, {"GIF87a" + bin, "image/gif"},
		{"GIF89a" + bin, "image/gif"}, {"RIFF" + bin + "WEBPVP8 ", "image/webp"}, {"RIFF" + bin + "WEBP", "application/octet-stream"},
		{"\x89PNG\r\n\x1A\n", "image/png"}, {"\x89PNG\n\x1A\n", "application/octet-stream"}, {"\xFF\xD8\xFF\xE0", "image/jpeg"},
		{"FORM" + bin + "AIFF", "audio/aiff"}, {"ID3\x03\x00", "audio/mpeg"}, {"OggS\x00", "application/ogg"}, {"MThd\x00\x00\x00\x06", "audio/midi"},
		{"RIFF" + bin + "AVI LIST", "video/avi"}, {"RIFF" + bin + "WAVEfmt ", "audio/wave"},
		{"\x00\x00\x00\x10ftypmp42\x00\x00\x00\x00", "video/mp4"}, {"\x00\x00\x00\x14ftypxxxx\x00\x00\x00\x00mp41", "video/mp4"},
		{"\x00\x00\x00\x14ftypxxxxmp42xxxx", "application/octet-stream"}, {"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00", "application/octet-stream"},
		{"\x00\x00\x00\x11ftypmp42\x00\x00\x00\x00\x00", "application/octet-stream"},
		{"\x00\x00\x00\x14ftypisom\x00\x00\x02\x00avc1", "video/mp4"}, {"\x00\x00\x00\x10ftypavif\x00\x00\x00\x00", "image/avif"},
		{"\x00\x00\x00\x10ftypheic\x00\x00\x00\x00", "image/heic"}, {"\x00\x00\x00\x10ftypqt  \x00\x00\x00\x00", "video/quicktime"},
		{"\x00\x00\x00\x10ftypM4A \x00\x00\x00\x00", "audio/mp4"},
		{"\x1A\x45\xDF\xA3\x9F\x42\x86\x81\x01\x42\x82\x84webm\x42\x87", "video/webm"}, {"\x1A\x45\xDF\xA3\x9F\x42\x82\x40\x04\x00\x00webm", "video/webm"},
		{"\x1A\x45\xDF\xA3\x9F\x42\x82\x88matroska", "video/x-matroska"}, {"\x1A\x45\xDF\xA3\x42\x82", "video/x-matroska"},
		{mp3("\xFF\xFB\x90\x00", 417) + mp3("\xFF\xFB\x92\x00", 418), "audio/mpeg"},
		{mp3("\xFF\xF3\x40\x00", 104) + "\xFF\xF3\x40\x00", "audio/mpeg"},
		{mp3("\xFF\xFB\x90\x00", 417) + "no frame", "application/octet-stream"}, {"\xFF\xFB\x90\x00", "application/octet-stream"},
		{"\x1F\x8B\x08\x00", "application/x-gzip"}, {"PK\x03\x04\x14\x00", "application/zip"}, {"Rar!\x1A\x07\x00", "application/x-rar-compressed"},
		{"Rar!\x1A\x07\x01\x00", "application/x-rar-compressed"},
		{"PK\x03\x04" + strings.Repeat("\x00", 26) + "mimetypeapplication/epub+zipPK", "application/epub+zip"},
		{"\x00\x01\x00\x00\x00\x0C", "font/ttf"}, {"OTTO\x00", "font/otf"}, {"ttcf\x00", "font/collection"}, {"wOFF\x00", "font/woff"}, {"wOF2\x00", "font/woff2"},
		{"\x00asm\x01", "application/wasm"}, {"II*\x00", "image/tiff"}, {"fLaC\x00", "audio/flac"}, {"7z\xBC\xAF\x27\x1C\x00", "application/x-7z-compressed"},
		{"BZh91AY&SY\x01", "application/x-bzip2"}, {"\xFD7zXZ\x00", "application/x-xz"}, {"\x28\xB5\x2F\xFD\x04", "application/zstd"},
		{"{\\rtf1", "application/rtf"}, {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "application/x-ole-storage"}, {"MZ\x90\x00", "application/x-msdownload"},
		{"text\x1Bwith an escape", "text/plain"}, {"text\x08", "application/octet-stream"}, {"\xE4\xF6\xFC", "text/plain"},
	} {
		if got := Type("", []byte(tt.prefix)); got != tt.want {
			t.Errorf("%q is %s, want %s", tt.prefix[:min(len(tt.prefix), 60)], got, tt.want)
		}
	}
}

// TestSniffAndNetHTTP lists all differences between Sniff and net/http for documents without a
// declared type: Matroska other than WebM, MP3 without ID3, ISO media brands other than mp4,
// signatures of ASCII alone, EOT fonts (whose signature is only two letters), XML roots, and
// formats that net/http does not know.
func TestSniffAndNetHTTP(t *testing.T) {
	same := 0
	for i := range signatures {
		s := &signatures[i]
		doc := []byte(s.begins)
		for len(doc) < s.at {
			doc = append(doc, 0)
		}
		doc = append(append(doc, s.then...), 0)
		got, theirs := Type("", doc), mediatype.Essence(http.DetectContentType(doc))
		switch theirs {
		case got:
			same++
		case "application/octet-stream", "application/zip":
		default:
			t.Errorf("%q is %s, to net/http %s", doc, got, theirs)
		}
	}
	if same < 25 {
		t.Errorf("compared %d only", same)
	}
}

// TestAURLListMayBeCutAnywhere cuts lists within a line, also in the part that IsURLList reads.
func TestAURLListMayBeCutAnywhere(t *testing.T) {
	const first, rest = "https://example.com/", "\nhttps://example.com/page\n"
	for n := range len(rest) + 1 {
		fill := first + strings.Repeat("x", listHead-len(first)-n)
		if !IsURLList([]byte(fill+rest+rest), false) {
			t.Errorf("no list: %d bytes of a line are in the head", n)
		}
		prefix := []byte(first + strings.Repeat("x", document.SniffLen-len(first)-n) + rest[:n])
		if !IsSitemap("text/plain", prefix) {
			t.Errorf("no sitemap: the prefix ends %d bytes after a line", n)
		}
	}
	for _, tt := range []struct {
		head string
		cut  bool
		want bool
	}{
		{"https://a.example/\nhtt", true, true},
		{"https://a.example/\nhtt", false, false},
		{"https://a.example/\nhtt\n", true, false},
		{"https://a.example/\nhte", true, false},
		{"https://a.example/\r\n  ", true, true},
		{"https://a.example/lon", true, true},
		{"htt", true, false},
	} {
		if got := IsURLList([]byte(tt.head), tt.cut); got != tt.want {
			t.Errorf("%q, cut %t: %t, want %t", tt.head, tt.cut, got, tt.want)
		}
	}
}

func FuzzSniff(f *testing.F) {
	f.Add("text/html", []byte("<p>"))
	for i := range signatures {
		f.Add("", []byte(signatures[i].begins+strings.Repeat("\x00", signatures[i].at)+signatures[i].then))
	}
	f.Add("", []byte("\x00\x00\x00\x10ftypmp42\x00\x00\x00\x00"))
	f.Add("", []byte("\x1A\x45\xDF\xA3\x42\x82\x84webm"))
	f.Add("", []byte("\xFF\xFB\x90\x00"))
	f.Fuzz(func(t *testing.T, contentType string, doc []byte) {
		before := bytes.Clone(doc)
		got := Type(contentType, doc)
		if !bytes.Equal(before, doc) {
			t.Error("Sniff changed the document")
		}
		if mediatype.Essence(got) != got || got == "" {
			t.Errorf("%q is not a media type", got)
		}
		if again := Type(contentType, doc[:min(len(doc), document.SniffLen)]); again != got {
			t.Errorf("%s, by the first bytes alone %s", got, again)
		}
		if again := Type(got, doc); strings.HasPrefix(got, "image/") && again != got {
			t.Errorf("%s as detected, %s if declared so", got, again)
		}
	})
}
