package sitemap

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// brief writes an entry on one line.
func brief(e *Entry) string {
	s := e.Loc
	if e.Sitemap {
		s = "sitemap " + s
	}
	for _, a := range e.Alternates {
		s += " " + a.Lang + "=" + a.Href
	}
	for _, r := range e.Images {
		s += " img=" + r.Loc + "(" + r.Text + ")"
	}
	for _, r := range e.Videos {
		s += " video=" + r.Loc + "(" + r.Text + ")"
	}
	for _, r := range e.Enclosures {
		s += " file=" + r.Loc
	}
	if e.Comments != "" {
		s += " comments=" + e.Comments
	}
	if e.Base != "" {
		s += " base=" + e.Base
	}
	if e.Title != "" {
		s += " | " + e.Title
	}
	if e.Summary != "" {
		s += " | " + e.Summary
	}
	return s
}

func briefs(t *testing.T, in string, lim Limits) (lines []string, sum Summary) {
	t.Helper()
	entries, sum, err := entriesOf(t, []byte(in), lim)
	if err != nil {
		t.Errorf("%v", err)
	}
	for i := range entries {
		lines = append(lines, brief(&entries[i]))
	}
	return lines, sum
}

func TestMalformedSitemapsOfTheWild(t *testing.T) {
	const ns = ` xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`
	const one = `<url><loc>https://example.com/a</loc></url>`
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"no namespace", "<urlset>" + one + "</urlset>", []string{"https://example.com/a"}},
		{"a namespace of somebody else's", `<urlset xmlns="http://example.com/my-own">` + one + "</urlset>", []string{"https://example.com/a"}},
		{"a prefix at the root only", "<sm:urlset>" + one + "</sm:urlset>", []string{"https://example.com/a"}},
		{"a prefix at the entries only", "<urlset><sm:url><sm:loc>/a</sm:loc></sm:url></urlset>", []string{"/a"}},
		{"upper case", "<URLSET" + ns + "><URL><LOC>/A</LOC></URL></URLSET>", []string{"/A"}},
		{"a byte order mark, then lines", "\xEF\xBB\xBF\r\n\n <?xml version='1.0'?><urlset>" + one + "</urlset>", []string{"https://example.com/a"}},
		{"two byte order marks", "\xEF\xBB\xBF\xEF\xBB\xBF<urlset>" + one + "</urlset>", []string{"https://example.com/a"}},
		{"a warning before the XML", "<br />\n<b>Warning</b>: session_start() in <b>/var/www/x.php</b> on line <b>2</b><br />\n<?xml version='1.0'?><urlset>" + one + "</urlset>", []string{"https://example.com/a"}},
		{"a notice before the root", "Notice: undefined index\n<urlset>" + one + "</urlset>", []string{"https://example.com/a"}},
		{"a stylesheet, a comment, a DOCTYPE", `<?xml version="1.0"?><?xml-stylesheet href="/s.xsl"?><!-- <url> --><!DOCTYPE urlset>` + "<urlset>" + one + "</urlset>", []string{"https://example.com/a"}},
		{"a bare ampersand", "<urlset><url><loc>/?a=1&b=2&copy=3&lt=4&amp;c=5</loc></url></urlset>", []string{"/?a=1&b=2&copy=3&lt=4&c=5"}},
		{"an ampersand escaped twice", "<urlset><url><loc>/?a=1&amp;amp;b=2</loc></url></urlset>", []string{"/?a=1&b=2"}},
		{"an escaped ampersand in CDATA", "<urlset><url><loc><![CDATA[/?a=1&amp;b=2]]></loc></url></urlset>", []string{"/?a=1&b=2"}},
		{"numeric references", "<urlset><url><loc>/&#252;&#x26;</loc></url></urlset>", []string{"/ü&"}},
		{"CDATA in the middle", "<urlset><url><loc>/a<![CDATA[?b&]]>c</loc></url></urlset>", []string{"/a?b&c"}},
		{"a comment within loc", "<urlset><url><loc>/a<!-- no -->b</loc></url></urlset>", []string{"/ab"}},
		{"sitemaps in a urlset, urls in an index", "<urlset><sitemap><loc>/s.xml</loc></sitemap>" + one + "</urlset><sitemapindex>" + one + "<sitemap><loc>/t.xml</loc></sitemap></sitemapindex>",
			[]string{"sitemap /s.xml", "https://example.com/a", "https://example.com/a", "sitemap /t.xml"}},
		{"a sitemap and then another", "<urlset>" + one + "</urlset>\n<?xml version='1.0'?>\n<urlset><url><loc>/b</loc></url></urlset>", []string{"https://example.com/a", "/b"}},
		{"no end tags at all", "<urlset><url><loc>/a<url><loc>/b", []string{"/a"}},
		{"two locs", "<urlset><url><loc>/a</loc><loc>/b</loc></url></urlset>", []string{"/a"}},
		{"cut within a loc", "<urlset>" + one + "<url><loc>https://example.com/hal", []string{"https://example.com/a"}},
		{"cut within an end tag", "<urlset>" + one + "<url><loc>/b</lo", []string{"https://example.com/a"}},
		{"octets of another charset than declared", "<?xml version='1.0' encoding='UTF-8'?><urlset><url><loc>/caf\xE9</loc></url></urlset>", []string{"/caf%E9"}},
		{"a charset that nobody knows", "<?xml version='1.0' encoding='utf8mb4'?><urlset><url><loc>/ü</loc></url></urlset>", []string{"/ü"}},
		{"declared as UTF-16, but it is not", "<?xml version='1.0' encoding='UTF-16'?><urlset><url><loc>/ü</loc></url></urlset>", []string{"/ü"}},
		{"UTF-16, little end first", "\xFF\xFE" + swap(utf16be("<urlset><url><loc>/ü</loc></url></urlset>")), []string{"/ü"}},
		{"gzip in gzip", gzipped(gzipped("<urlset>" + one)), []string{"https://example.com/a"}},
		{"an image under no prefix", "<urlset><url><image><loc>/i.png</loc></image><loc>/p</loc></url></urlset>", []string{"/p img=/i.png()"}},
		{"an image that does not end", "<urlset><url><loc>/p</loc><image:image><image:loc>/i.png</image:loc></url>" + one + "</urlset>", []string{"/p img=/i.png()", "https://example.com/a"}},
		{"NULs between", "<urlset>\x00<url>\x00<loc>/a</loc></url></urlset>", []string{"/a"}},
		{"white space and line breaks in names of tags", "<urlset\n><url ><loc\t>/a</loc ></url\n></urlset>", []string{"/a"}},
		{"text with comments", "# my pages\n\nhttps://example.com/a # no comment\n#https://example.com/no\nhttps://example.com/b", []string{"https://example.com/a", "https://example.com/b"}},
		{"text with dates", "https://example.com/a\t2024-01-01\nhttps://example.com/b 0.8\nhttps://example.com/c\n", []string{"https://example.com/a", "https://example.com/c"}},
		{"text whose lines end with CR", "https://example.com/a\rhttps://example.com/b\r\rhttps://example.com/c\r", []string{"https://example.com/a", "https://example.com/b", "https://example.com/c"}},
		{"text in Latin-1", "https://example.com/caf\xE9\n", []string{"https://example.com/caf%E9"}},
		{"text with characters that no URL has", "https://example.com/a\vb\nhttps://example.com/a\x00b\nhttps://exam\u200bple.com/\nhttps://example.com/a\u2028b\nhttps:\\\\example.com\\a\nhttps://example.com/c\x00\n\ufeffhttps://example.com/d\u200b", []string{"https://example.com/c", "https://example.com/d"}},
		{"white space around loc", "<urlset><url><loc>\n\thttps://example.com/a\r\n </loc></url></urlset>", []string{"https://example.com/a"}},
		{"a line break within loc", "<urlset><url><loc>https://example.com/a\n  b</loc></url>" + one + "</urlset>", []string{"https://example.com/a"}},
		{"a tab within loc", "<urlset><url><loc>https://example.com/b\tc</loc></url><url><loc>/b&#10;c</loc></url>" + one + "</urlset>", []string{"https://example.com/a"}},
		{"a space within loc", "<urlset><url><loc>https://example.com/a b</loc></url></urlset>", []string{"https://example.com/a b"}},
		{"an image with a line break", "<urlset><url><loc>/p</loc><image><loc>/i\n.png</loc></image><image><loc>/j.png</loc></image></url></urlset>", []string{"/p img=/j.png()"}},
		{"text in UTF-16", "\xFE\xFF" + utf16be("https://example.com/ü\nhttps://example.com/b"), []string{"https://example.com/ü", "https://example.com/b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := briefs(t, tt.in, Limits{})
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("entries (-want +got):\n%s", d)
			}
		})
	}
}

func swap(s string) string {
	b := []byte(s)
	for i := 0; i+1 < len(b); i += 2 {
		b[i], b[i+1] = b[i+1], b[i]
	}
	return string(b)
}

func TestExtensionsOfSitemaps(t *testing.T) {
	got, _ := briefs(t, `<urlset xmlns:v="http://www.google.com/schemas/sitemap-video/1.1">
<url><loc>/page</loc>
 <xhtml:link rel="alternate" hreflang="de-ch" href="/ch"/><link xmlns="http://www.w3.org/1999/xhtml" rel="ALTERNATE" hreflang="x-default" href="/x"/><xhtml:link rel="amphtml" href="/amp"/>
 <image:image><image:loc>/1.jpg</image:loc><image:caption>A &amp; B</image:caption><image:title>no</image:title></image:image><image:image><image:loc>/2.jpg</image:loc></image:image>
 <v:video><v:thumbnail_loc>/t.jpg</v:thumbnail_loc><v:player_loc allow_embed="yes"> /player?v=1 </v:player_loc><v:title>The film</v:title><v:content_loc>/film.mp4</v:content_loc>
  <v:gallery_loc>/no</v:gallery_loc><v:publication_date>2024-03-05</v:publication_date></v:video>
 <mobile:mobile/>
</url>
<url><loc>/news</loc><news:news><news:publication><news:name>Paper</news:name><news:language>en</news:language></news:publication><news:title>Head &lt;b&gt;line&lt;/b&gt;</news:title>
 <news:publication_date>2024-03-05T08:30Z</news:publication_date></news:news></url>
<url><loc>/map</loc><PageMap xmlns="x"><DataObject type="image"><Attribute name="image_src">/m.gif</Attribute><Attribute name="review">3.5</Attribute></DataObject></PageMap></url>
</urlset>`, Limits{})
	want := []string{
		"/page de-ch=/ch x-default=/x img=/1.jpg(A & B) img=/2.jpg() img=/t.jpg() video=/player?v=1(The film) video=/film.mp4()",
		"/news | Head line",
		"/map img=/m.gif()",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
}

// A modification date overrides a publication date, in any order.
func TestWhichDateOfAnEntryCounts(t *testing.T) {
	const published, modified = "2024-01-01T00:00:00Z", "2024-02-02T00:00:00Z"
	for in, want := range map[string]string{
		`<urlset><url><loc>/a</loc><lastmod>2024-02-02</lastmod><news:news><news:publication_date>2024-01-01</news:publication_date></news:news></url>`:        modified,
		`<urlset><url><loc>/a</loc><news:news><news:publication_date>2024-01-01</news:publication_date></news:news><lastmod>2024-02-02</lastmod></url>`:        modified,
		`<urlset><url><loc>/a</loc><video:video><video:publication_date>2024-01-01</video:publication_date></video:video></url>`:                               published,
		`<urlset><url><loc>/a</loc><lastmod>never</lastmod><video:video><video:publication_date>2024-01-01</video:publication_date></video:video></url>`:       published,
		`<feed><entry><link href="/a"/><updated>2024-02-02T00:00:00Z</updated><published>2024-01-01T00:00:00Z</published></entry>`:                             modified,
		`<feed version="0.3"><entry><link href="/a"/><issued>2024-01-01T00:00:00Z</issued></entry>`:                                                            published,
		`<rss><item><link>/a</link><pubDate>Mon, 01 Jan 2024 00:00:00 GMT</pubDate><atom:updated>2024-02-02T00:00:00Z</atom:updated></item>`:                   modified,
		`{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"/a","date_published":"2024-01-01T00:00:00Z","date_modified":"2024-02-02T00:00:00Z"}]}`: modified,
	} {
		got, _, err := entriesOf(t, []byte(in), Limits{})
		if err != nil || len(got) != 1 || !got[0].LastMod.Equal(at(want)) {
			t.Errorf("%s: %+v, %v; want %s", in, got, err, want)
		}
	}
}

func TestFeedsOfAllKinds(t *testing.T) {
	const rdf = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel rdf:about="/feed"><title>T</title><link>/home</link>
<description>D</description><items><rdf:Seq><rdf:li resource="/1"/></rdf:Seq></items></channel><image rdf:about="/i"><title>no</title><url>/i.png</url></image>
<item rdf:about="https://example.com/about"><title>One</title><description>First</description><dc:date>2024-03-05</dc:date></item></rdf:RDF>`
	for _, tt := range []struct {
		name, in string
		want     []string
		sum      Summary
	}{
		{"RSS 2.0 with everything", `<?xml version="1.0"?><rss version="2.0" xml:base="https://example.com/blog/"><channel><title>Blog</title><link>/</link><description>About &amp; more</description>
			<language>de-at</language><managingEditor>ann@example.com (Ann)</managingEditor><lastBuildDate>Tue, 05 Mar 2024 08:30:00 GMT</lastBuildDate>
			<atom:link href="/feed.xml" rel="self" type="application/rss+xml"/><atom:link rel="hub" href="https://hub.example.com/"/>
			<image><url>/logo.png</url><title>Logo</title><link>/logo</link></image>
			<item><title>One &amp;amp; only</title><link>1.html</link><description><![CDATA[<p>Hello, <b>wor</b>ld.</p><script>no("<p>")</script><!-- no --><p title="a>b" class=it's>Bye&nbsp;bye</p>]]></description>
			<content:encoded><![CDATA[<p>All of it</p>]]></content:encoded><media:title>no</media:title>
			<enclosure url="/1.mp3" length="7" type="audio/mpeg"/><media:content url="/1.jpg" medium="image"/><media:content url="/1.mp4" type="video/mp4"/>
			<comments>/1.html#comments</comments><slash:comments>7</slash:comments><category>x</category><source url="/other.xml"><title>no</title><link>/no</link></source></item>
			<item><title>Two</title><link>2.html</link><content:encoded>&lt;p&gt;Text of two&lt;/p&gt;</content:encoded></item></channel></rss>`,
			[]string{"1.html img=/1.jpg() file=/1.mp3 file=/1.mp4 comments=/1.html#comments base=https://example.com/blog/ | One & only | Hello, world. Bye bye",
				"2.html base=https://example.com/blog/ | Two | Text of two"},
			Summary{Kind: RSS, Entries: 2, Title: "Blog", Description: "About & more", Author: "ann@example.com (Ann)", Lang: "de-at", Updated: at("2024-03-05T08:30:00Z"),
				Links: []FeedLink{{"alternate", "/", "https://example.com/blog/"}, {"self", "/feed.xml", "https://example.com/blog/"}, {"hub", "https://hub.example.com/", "https://example.com/blog/"}}}},
		{"RSS 1.0", rdf, []string{"https://example.com/about | One | First"},
			Summary{Kind: RSS, Entries: 1, Title: "T", Description: "D", Links: []FeedLink{{Rel: "alternate", Href: "/home"}}}},
		{"RSS 0.91 with a DOCTYPE", `<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://my.netscape.com/publish/formats/rss-0.91.dtd"><rss version="0.91"><channel><title>T</title><item><title>I</title><link>/1</link></item></channel></rss>`,
			[]string{"/1 | I"}, Summary{Kind: RSS, Entries: 1, Title: "T"}},
		{"Atom with everything", `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://example.com/" xml:lang="fr"><title type="html">&lt;em&gt;Titre&lt;/em&gt;</title><subtitle>Sous</subtitle>
			<author><name>Ann</name><uri>/ann</uri></author><link rel="next" href="?page=2"/>
			<entry xml:base="2024/"><title type="xhtml"><div xmlns="x">One <b>and</b> all</div></title><link rel="enclosure" href="a.mp3"/><link href="a"/><link rel="replies" href="a/comments"/>
			<source><title>no</title><link href="/no"/></source><author><name>no</name></author>
			<content type="xhtml"><div xmlns="x"><p>A&nbsp;paragraph</p><p>An<i>other</i></p></div></content><summary>Short</summary></entry>
			<a:entry><a:title>Prefixed</a:title><a:link href="/b"/></a:entry></feed>`,
			[]string{"a file=a.mp3 comments=a/comments base=https://example.com/2024/ | One and all | Short", "/b base=https://example.com/ | Prefixed"},
			Summary{Kind: Atom, Entries: 2, Title: "Titre", Description: "Sous", Author: "Ann", Lang: "fr", Links: []FeedLink{{"next", "?page=2", "https://example.com/"}}}},
		{"broken RSS", `<rss><channel><title>T<item><title>A & B <link>/1</link><description>Half a <p>paragraph<pubDate>2024-03-05</pubDate></item><item><link>/2<title>Two</title></item>`,
			[]string{"/1 | A & B | Half a paragraph", "/2 | Two"}, Summary{Kind: RSS, Entries: 2, Title: "T"}},
		{"JSON Feed", `{"version": "https://jsonfeed.org/version/1.1", "title": "J", "description": "D", "home_page_url": "/", "feed_url": "/feed.json", "next_url": "/2.json", "language": "en",
			"authors": [{"name": "Ann"}], "icon": {"odd": [1]}, "items": [{"id": "https://example.com/1", "title": "One", "content_html": "<p>Hel<b>lo</b></p>", "image": "/1.png",
			"attachments": [{"url": "/1.mp3", "mime_type": "audio/mpeg", "title": "T"}]}, {"id": 2}, 7, {"id": 3, "url": "/3", "title": 4, "summary": "Three", "content_text": "no"}]}`,
			[]string{"https://example.com/1 img=/1.png() file=/1.mp3 | One | Hello", "/3 | Three"},
			Summary{Kind: JSON, Entries: 2, Skipped: 2, Title: "J", Description: "D", Author: "Ann", Lang: "en", Links: []FeedLink{{Rel: "alternate", Href: "/"}, {Rel: "self", Href: "/feed.json"}, {Rel: "next", Href: "/2.json"}}}},
		{"JSON Feed that is cut", `{"version":"https://jsonfeed.org/version/1","items":[{"url":"/1"},{"url":"/2`, []string{"/1"}, Summary{Kind: JSON, Entries: 1, Cut: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, sum := briefs(t, tt.in, Limits{})
			tt.sum.Charset = "utf-8"
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("entries (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.sum, sum); d != "" {
				t.Errorf("summary (-want +got):\n%s", d)
			}
		})
	}
}

func TestTextsInAWrongCharsetAreReadable(t *testing.T) {
	for in, want := range map[string]string{
		"<rss><item><title>Caf\xE9 \x93x\x94</title><link>/a</link></item></rss>":                                         "Café “x”",
		"<?xml version='1.0' encoding='windows-1251'?><rss><item><title>\xCC\xE8\xF0</title><link>/a</link></item></rss>": "Мир",
	} {
		got, _, err := entriesOf(t, []byte(in), Limits{})
		if err != nil || len(got) != 1 || got[0].Title != want {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
	// The file does not declare its charset, so the charset in Limits applies.
	got, sum, _ := entriesOf(t, []byte("<rss><item><title>\xCC\xE8\xF0</title><link>/a</link></item></rss>"), Limits{Charset: "windows-1251"})
	if len(got) != 1 || got[0].Title != "Мир" || sum.Charset != "windows-1251" {
		t.Errorf("%+v, %+v", got, sum)
	}
}

func TestASummaryIsBounded(t *testing.T) {
	got, _, _ := entriesOf(t, []byte("<rss><item><link>/a</link><description>"+strings.Repeat("wörter ", 100_000)+"</description></item></rss>"), Limits{})
	if len(got) != 1 || len(got[0].Summary) > MaxSummary || len(got[0].Summary) < MaxSummary-1 {
		t.Errorf("%d entries, a summary of %d bytes", len(got), len(got[0].Summary))
	}
}
