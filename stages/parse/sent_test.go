package parse

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/document"
)

// Links of every kind say how they are written.
func TestLinksSayHowTheyAreWritten(t *testing.T) {
	const head, sitemap = `<!doctype html><head>`, `<urlset>`
	for _, tt := range []struct {
		name, contentType, body string
		header                  map[string][]string
		want                    []string // expected kind, target and sent URL of each link
	}{
		{name: "a page", contentType: "text/html", body: head + `<link rel=canonical href="/%7ec"><link rel=alternate hreflang=de href="?b&amp;a">
			<link rel=alternate type=application/rss+xml href="/%66eed"><meta http-equiv=refresh content="0; url=/%7er">
			<body><a href="/q?z=1&amp;a=2&amp;utm_source=x">q</a><a href="/q?a=2&amp;z=1">q</a><a href="/q?z=1&amp;a=2&amp;utm_source=y">q</a>
			<area href="/%41"><iframe src="/%42"></iframe><img src="/%43">`,
			header: map[string][]string{"Link": {`</%44?>; rel=next`}, "Refresh": {"0; url=/%45"}},
			want: []string{"header /D /%44?", "refresh /E /%45", "canonical /~c /%7ec", "hreflang /dir/x?a&b /dir/x?b&a", "feed /feed /%66eed",
				"a /q?a=2&z=1 /q?z=1&a=2&utm_source=x", "a /q?a=2&z=1", "a /q?a=2&z=1 /q?z=1&a=2&utm_source=y", "area /A /%41", "iframe /B /%42", "img /C /%43", "refresh /~r /%7er"}},
		{name: "relative to its base element", contentType: "text/html", body: head + `<base href="/%7Ejoe/"><body><a href="a">a</a>`,
			header: map[string][]string{"Link": {`<b>; rel=next`}},
			want:   []string{"header /dir/b", "a /~joe/a /%7Ejoe/a"}},
		{name: "in another charset", contentType: "text/html; charset=windows-1251", body: head + "<link rel=canonical href='?c=\xEF'><link rel=icon href='/i?\xEF'><base href='/b?\xEF'><body>" +
			"<a href='/\xEF?q=\xEF\xF0&amp;&#28783;'>a</a><a href='#x'>x</a><img src='/%EF?a=\xEF#\xEF'><meta http-equiv=refresh content='0; url=?r=\xEF'>",
			header: map[string][]string{"Link": {"</d?п>; rel=next"}},
			want:   []string{"header /d?%D0%BF", "canonical /b?c=%EF", "link /i?%EF", "a /%D0%BF?%26%2328783%3B&q=%EF%F0 /%D0%BF?q=%EF%F0&%26%2328783%3B", "a /b?%EF", "img /%EF?a=%EF", "refresh /b?r=%EF"}},
		{name: "in UTF-16", contentType: "text/html", body: "\xFE\xFF\x00<\x00a\x00 \x00h\x00r\x00e\x00f\x00=\x00?\x04\x3F\x00>\x00a", want: []string{"a /dir/x?%D0%BF"}},
		{name: "a sitemap", contentType: "application/xml", body: sitemap + `<url><loc>/%7Ea</loc><xhtml:link rel="alternate" hreflang="de" href="/%7Eb"/></url></urlset>`,
			want: []string{"sitemap /~a /%7Ea", "hreflang /~b /%7Eb"}},
		{name: "an index", contentType: "text/xml", body: `<sitemapindex><sitemap><loc>/%73?b&amp;a</loc></sitemap></sitemapindex>`, want: []string{"sitemapindex /s?a&b /%73?b&a"}},
		{name: "a feed", contentType: "application/rss+xml", body: `<rss xml:base="/%62log/"><channel><link>/</link><item><title>One</title><link>1</link></item></channel></rss>`,
			want: []string{"sitemap /blog/1 /%62log/1", "link /"}},
		{name: "a list", contentType: "text/plain", body: "https://example.com/%7Ea\nhttps://example.com/b\n", want: []string{"sitemap /~a /%7Ea", "sitemap /b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newParser(t).Parse(&document.Document{URL: "https://example.com/dir/x", ContentType: tt.contentType, Body: []byte(tt.body),
				Header: func(name string) []string { return tt.header[name] }})
			var got []string
			for _, l := range r.Links {
				line := string(l.Kind) + " " + l.Target[len("https://example.com"):]
				if l.Sent != "" {
					line += " " + l.Sent[len("https://example.com"):]
				}
				got = append(got, line)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("links (-want +got):\n%s", d)
			}
		})
	}
}
