package parse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// parsePage parses a page of https://example.com/dir/page.
func parsePage(t *testing.T, body string, header map[string][]string) *Result {
	t.Helper()
	d := &document.Document{URL: "https://example.com/dir/page", ContentType: "text/html", Body: []byte(body), Fetched: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
		Header: func(name string) []string { return header[name] }}
	p := newParser(t)
	r := p.Parse(d)
	checkPromises(t, p, d, r)
	return r
}

func TestRobotsDirectives(t *testing.T) {
	for _, tt := range []struct {
		name, page          string
		header              []string
		want                string
		indexable, nofollow bool
	}{
		{"none", "", nil, "", true, false},
		{"noindex", "<meta name=robots content=NoIndex>", nil, "noindex", false, false},
		{"none means both", "<meta name=ROBOTS content='none'>", nil, "none", false, true},
		{"several elements, each directive once", "<meta name=robots content='noindex, noarchive'><meta name=robots content='nofollow,noindex'>", nil,
			"noindex,noarchive,nofollow", false, true},
		{"for us", "<meta name=ExampleBot content=nofollow>", nil, "nofollow", true, true},
		{"for another", "<meta name=otherbot content=noindex>", nil, "", true, false},
		{"header", "", []string{"noindex, nofollow"}, "noindex,nofollow", false, true},
		{"header for us", "", []string{"examplebot: noindex"}, "noindex", false, false},
		{"header for another", "", []string{"otherbot: noindex", "noarchive"}, "noarchive", true, false},
		{"header with a value", "", []string{"max-snippet: 20"}, "max-snippet: 20", true, false},
		{"header for another, then for us", "", []string{"otherbot: noindex, ExampleBot: nofollow"}, "nofollow", true, true},
		{"header and elements", "<meta name=robots content=nofollow>", []string{"examplebot: noindex"}, "noindex,nofollow", false, true},
		{"a name that begins like ours", "<meta name=examplebot2 content=noindex><meta name=example content=noindex>", []string{"examplebots: noindex"}, "", true, false},
		{"unavailable by now", "<meta name=robots content='unavailable_after: 20 Nov 2026 23:59:59 GMT'>", nil, "unavailable_after: 20 nov 2026 23:59:59 gmt", false, false},
		{"unavailable later", "<meta name=robots content='unavailable_after: 2026-11-22'>", nil, "unavailable_after: 2026-11-22", true, false},
		{"behind much else", "<meta name=robots content='" + strings.Repeat("x, ", 5000) + "noindex'>", nil, "x,noindex", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := parsePage(t, tt.page+"<a href=x>x</a>", map[string][]string{"X-Robots-Tag": tt.header})
			if r.Page.Robots != tt.want || r.Page.Indexable != tt.indexable || r.Nofollow != tt.nofollow || r.Links[0].Nofollow != tt.nofollow {
				t.Errorf("robots %q, indexable %v, nofollow %v, link nofollow %v", r.Page.Robots, r.Page.Indexable, r.Nofollow, r.Links[0].Nofollow)
			}
		})
	}
}

// TestNoArchiveWithholdsTheWords sends the word zebra in every place from which a column takes words.
func TestNoArchiveWithholdsTheWords(t *testing.T) {
	const words = `<title>A title</title><meta name=description content=zebra><meta name=keywords content=zebra><meta name=author content=zebra>
<meta property=og:title content=zebra><meta property=og:description content=zebra><meta name=twitter:title content=zebra>
<meta name=twitter:description content=zebra><script type="application/ld+json">{"@type": "Article", "headline": "zebra", "author": "zebra"}</script>
<body><p>A zebra and a zebra.<p itemprop=author>zebra</p><a href=/a title=zebra>A zebra</a><img src=/b alt=zebra><a rel=author href=/c>zebra</a>`
	const feed = `<rss version="2.0"><channel><title>A title</title><description>zebra</description><item><title>zebra</title><link>/a</link><description>zebra</description></item></channel></rss>`
	tag := func(values ...string) map[string][]string { return map[string][]string{"X-Robots-Tag": values} }
	for _, tt := range []struct {
		name, mediaType, body string
		header                map[string][]string
		want                  bool
	}{
		{"nothing", "text/html", words, nil, false},
		{"element", "text/html", "<meta name=robots content='index, NoArchive'>" + words, nil, true},
		{"element for us", "text/html", "<meta name=ExampleBot content=noarchive>" + words, nil, true},
		{"element for another", "text/html", "<meta name=googlebot content=noarchive>" + words, nil, false},
		{"second element, at the end", "text/html", "<meta name=robots content=follow>" + words + "<meta name=robots content='max-snippet:5; noarchive'>", nil, true},
		{"other name", "text/html", "<meta name=robots content='nocache'>" + words, nil, true},
		{"between spaces", "text/html", "<meta name=robots content='index nosnippet noarchive'>" + words, nil, true},
		{"header", "text/html", words, tag("noindex", "NOARCHIVE"), true},
		{"other name in the header", "text/html", words, tag("nocache"), true},
		{"header for us", "text/html", words, tag("otherbot: noindex, examplebot: nofollow, noarchive"), true},
		{"header for another", "text/html", words, tag("bingbot: noarchive, nocache"), false},
		{"none leaves it", "text/html", "<meta name=robots content=none>" + words, tag("none"), false},
		{"others leave it", "text/html", "<meta name=robots content='noindex, nosnippet, max-snippet:0, noai, noimageindex'>" + words, nil, false},
		{"plain text", "text/plain", "A zebra.", tag("noarchive"), true},
		{"feed", "application/rss+xml", feed, tag("noarchive"), true},
		{"XHTML", "application/xhtml+xml", `<html><head><meta name="robots" content="noarchive"/></head><body><p>A zebra</p></body></html>`, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &document.Document{URL: "https://example.com/dir/page", ContentType: tt.mediaType, Body: []byte(tt.body), Header: func(name string) []string { return tt.header[name] }}
			p := newParser(t)
			whole := p.Parse(d)
			p.cfg.Withhold = true
			r := p.Parse(d)
			if got := fmt.Sprintf("%+v", r); strings.Contains(got, "zebra") == tt.want || r.Text.NoArchive != tt.want {
				t.Errorf("noarchive %t, row %s", r.Text.NoArchive, got)
			}
			if got := fmt.Sprintf("%+v", whole); !strings.Contains(got, "zebra") || whole.Text.NoArchive != tt.want {
				t.Errorf("without Withhold: noarchive %t, row %s", whole.Text.NoArchive, got)
			}
			a, b := &r.Page, &whole.Page
			if a.Title != b.Title || a.WordCount != b.WordCount || a.TextDigest != b.TextDigest || a.SimHash != b.SimHash || a.Outlinks != b.Outlinks || len(r.Links) != len(whole.Links) {
				t.Errorf("other title or counts: %+v, %+v", a, b)
			}
		})
	}
}

func TestRightsAreRecorded(t *testing.T) {
	r := parsePage(t, "<meta name=tdm-reservation content=1><meta name=TDM-Policy content='https://example.com/policy.json'>", map[string][]string{
		"Content-Signal": {"search=yes, ai-train=no"}, "TDM-Reservation": {"0"}})
	if p := r.Page; p.ContentSignal != "ai-train=no,search=yes" || p.TDMReserved == nil || !*p.TDMReserved || p.TDMPolicy != "https://example.com/policy.json" {
		t.Errorf("signals %q, reserved %v, policy %q", p.ContentSignal, p.TDMReserved, p.TDMPolicy)
	}
	if p := parsePage(t, "", map[string][]string{"TDM-Reservation": {"0"}, "TDM-Policy": {"https://example.com/p"}}).Page; p.TDMReserved == nil || *p.TDMReserved || p.TDMPolicy == "" {
		t.Errorf("of the header: reserved %v, policy %q", p.TDMReserved, p.TDMPolicy)
	}
	if p := parsePage(t, "", nil).Page; p.TDMReserved != nil || p.ContentSignal != "" {
		t.Errorf("a page without these statements has the columns %+v", p)
	}
}

func TestDates(t *testing.T) {
	for _, tt := range []struct{ name, page, published, modified string }{
		{"Open Graph", "<meta property=article:published_time content=2024-03-05T08:30:00+01:00><meta property=og:updated_time content=2024-03-06>",
			"2024-03-05T07:30:00Z", "2024-03-06T00:00:00Z"},
		{"JSON-LD that is no JSON", `<script type="application/ld+json">{ "datePublished" : "2024-03-05", "dateModified": ["2024-03-06"], }</script>`,
			"2024-03-05T00:00:00Z", "2024-03-06T00:00:00Z"},
		{"microdata", "<time itemprop=datePublished datetime=2024-03-05>5 March</time><meta itemprop=dateModified content=2024-03-06>",
			"2024-03-05T00:00:00Z", "2024-03-06T00:00:00Z"},
		{"the better source counts, wherever it stands", "<meta name=date content=2020-01-01><meta property=article:published_time content=2024-03-05>",
			"2024-03-05T00:00:00Z", ""},
		{"what is no date gives way", "<meta property=article:published_time content=today><meta name=date content=2020-01-01>", "2020-01-01T00:00:00Z", ""},
		{"a time element says nothing by itself", "<time datetime=2024-03-05>", "", ""},
		{"an old one that says so", "<time pubdate datetime=2024-03-05>", "2024-03-05T00:00:00Z", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := parsePage(t, tt.page, nil)
			show := func(at schema.Time) string {
				if at == 0 {
					return ""
				}
				return at.Time().Format(time.RFC3339)
			}
			if p, m := show(r.Page.PublishedAt), show(r.Page.ModifiedAt); p != tt.published || m != tt.modified {
				t.Errorf("published %q, modified %q; want %q, %q", p, m, tt.published, tt.modified)
			}
		})
	}
}

// linkLines returns each link as a line: kind target "anchor" rel position nofollow.
func linkLines(links []schema.Link) (lines []string) {
	for _, l := range links {
		s := fmt.Sprintf("%s %s", l.Kind, strings.TrimPrefix(l.Target, "https://example.com"))
		for _, more := range []string{l.Anchor, l.Rel, l.Position, l.Hreflang} {
			if more != "" {
				s += " | " + more
			}
		}
		if l.Nofollow {
			s += " | NOFOLLOW"
		}
		lines = append(lines, s)
	}
	return lines
}

func TestLinks(t *testing.T) {
	for _, tt := range []struct {
		name, page string
		header     map[string][]string
		want       []string
		bad        int
	}{
		{"every element", `<a href=1>a</a><map><area href=2 alt=b></map><iframe src=3></iframe><img src=4><embed src=5><object data=6></object>
			<audio src=7></audio><track src=8><form action=9></form><frameset><frame src=10></frameset>`, nil,
			[]string{"a /dir/1 | a", "area /dir/2 | b", "iframe /dir/3", "img /dir/4", "media /dir/5", "media /dir/6", "media /dir/7", "media /dir/8",
				"form /dir/9", "frame /dir/10"}, 0},
		{"link elements", `<link rel=canonical href=/c><link rel="ALTERNATE" hreflang=de href=/de><link rel=alternate type="application/atom+xml" href=/f>
			<link rel="shortcut icon" href=/i><link rel=next href=/n><link href=/none><link rel=icon href="">`, nil,
			[]string{"canonical /c | canonical", "hreflang /de | alternate | de", "feed /f | alternate", "link /i | shortcut icon", "link /n | next"}, 0},
		{"Link fields", "", map[string][]string{"Link": {`</c>; rel="canonical", </de>; rel=alternate; hreflang="de", </a,b>; rel=preload;as=x`, `<//h/>; title="a, <b>"; rel=up`, "junk", "<x"}},
			[]string{"canonical /c | canonical", "hreflang /de | alternate | de", "header /a,b | preload", "header https://h/ | a, <b> | up"}, 0},
		{"Link fields with every parameter", "", map[string][]string{"Link": {
			`</t>; rel="next prefetch"; title="plain"; title*=UTF-8'de'%e2%82%ac%20rates; type="text/html"; media=print; rev=x; unknown; crossorigin`,
			`</q>; rel=next; title="a \"quoted\" \\ one, two; three"; rel=canonical`, `</e>; rel=next; title=kept; title*=UTF-8''%zz`,
			`</l>;rel=next;title*=iso-8859-1'en'%A3`, `</f>; rel=alternate; type="application/rss+xml"`, `</de>; rel = "alternate" ; hreflang = de_at`,
			`</x>; rel=alternate; hreflang=de; anchor="https://other.example/"`, `</n>; REL="NoFollow Next"`, "</b>; rel=\"\xff\"; title=\"\xfe\"", `</open>; rel="next`, `</end>; title="\`}},
			[]string{"header /t | € rates | next prefetch", `header /q | a "quoted" \ one, two; three | next`, "header /e | kept | next", "header /l | £ | next",
				"feed /f | alternate", "hreflang /de | alternate | de-AT", "header /x | alternate | de", "header /n | nofollow next | NOFOLLOW", "header /b | \ufffd | \ufffd", "header /open | next", "header /end"}, 0},
		{"a base element counts before it too, but not for header fields", "<a href=x>x</a><base href=/base/><base href=/late/>",
			map[string][]string{"Link": {"<y>; rel=next"}}, []string{"header /dir/y | next", "a /base/x | x"}, 0},
		{"a base that is no http URL is none", "<base href='data:x'><a href=x>x</a>", nil, []string{"a /dir/x | x"}, 0},
		{"an empty base is the page, and later ones do not count", "<base href=''><base href=/late/><a href=x>x</a>", nil, []string{"a /dir/x | x"}, 0},
		{"a base of white space", "<base href=' '><base href=/late/><a href=x>x</a>", nil, []string{"a /dir/x | x"}, 0},
		{"a malformed base", "<base href='http://['><base href=/late/><a href=x>x</a>", nil, []string{"a /dir/x | x"}, 0},
		{"a base that is too long", "<base href='/" + strings.Repeat("x", 20_000) + "/'><base href=/late/><a href=x>x</a>", nil, []string{"a /dir/x | x"}, 0},
		{"a base without a reference", "<base target=_top><base href=/base/><a href=x>x</a>", nil, []string{"a /base/x | x"}, 0},
		{"a base in a template", "<template><base href=/t/></template><base href=/base/><a href=x>x</a>", nil, []string{"a /base/x | x"}, 0},
		{"other schemes and what is no URL", `<a href="mailto:a@b">m</a><a href="JAVASCRIPT:x">j</a><a href="http://[">b</a><a href="tel:1">t</a><a href=x>x</a>`, nil,
			[]string{"a /dir/x | x"}, 4},
		{"anchors", "<a href=1> two\n <b>words</b>\t</a><a href=2><img src=i alt='a picture'></a><a href=3 title=tip></a><a href=4>text<img alt=no></a>", nil,
			[]string{"a /dir/1 | two words", "a /dir/2 | a picture", "img /dir/i | a picture", "a /dir/3 | tip", "a /dir/4 | text"}, 0},
		{"a link that is not ended ends at the next", "<a href=1>one<a href=2>two</a>three", nil, []string{"a /dir/1 | one", "a /dir/2 | two"}, 0},
		{"hidden links have anchors too", "<div style='color:red; DISPLAY : none !important'><a href=1>one</a></div><span hidden><a href=2>two</a></span>", nil,
			[]string{"a /dir/1 | one", "a /dir/2 | two"}, 0},
		{"rel and nofollow", "<a href=1 rel='UGC  Noopener'>1</a><a href=2 rel=sponsored>2</a><a href=3 rel=follow>3</a>", nil,
			[]string{"a /dir/1 | 1 | ugc noopener | NOFOLLOW", "a /dir/2 | 2 | sponsored | NOFOLLOW", "a /dir/3 | 3 | follow"}, 0},
		{"rel with other separators", "<a href=1 rel='nofollow,noopener'>1</a><a href=2 rel='noopener;UGC'>2</a><a href=3 rel='x,,sponsored; tag'>3</a><a href=4 rel='nofollow-not,no;follow'>4</a>",
			map[string][]string{"Link": {`</5>; rel="next,nofollow"`}},
			[]string{"header /5 | next,nofollow | NOFOLLOW", "a /dir/1 | 1 | nofollow,noopener | NOFOLLOW", "a /dir/2 | 2 | noopener;ugc | NOFOLLOW", "a /dir/3 | 3 | x,,sponsored; tag | NOFOLLOW",
				"a /dir/4 | 4 | nofollow-not,no;follow"}, 0},
		{"positions", `<header><nav><a href=1>1</a></nav><a href=2>2</a></header><main><header><a href=3>3</a></header><aside><a href=4>4</a></aside><a href=5>5</a></main>
			<footer><a href=6>6</a></footer><div role=navigation><p><a href=7>7</a></div><a href=8>8</a>`, nil,
			[]string{"a /dir/1 | 1 | nav", "a /dir/2 | 2 | header", "a /dir/3 | 3 | main", "a /dir/4 | 4 | aside", "a /dir/5 | 5 | main", "a /dir/6 | 6 | footer",
				"a /dir/7 | 7 | nav", "a /dir/8 | 8"}, 0},
		{"refresh", "<meta http-equiv=Refresh content='0; url=/r'>", map[string][]string{"Refresh": {"1", "2; url=h"}}, []string{"refresh /dir/h", "refresh /r"}, 0},
		{"srcset", "<img src=a srcset='b 1x, c 2x,d'><picture><source srcset='e,f 100w, g'></picture>", nil,
			[]string{"img /dir/a", "img /dir/b", "img /dir/c", "img /dir/d", "img /dir/e,f", "img /dir/g"}, 0},
		{"lazy images and players", "<img src='data:image/gif;base64,R0' data-src=real.jpg><iframe data-src=/player></iframe>", nil,
			[]string{"img /dir/real.jpg", "iframe /player"}, 0},
		{"what scripts put in their places", "<img src=/blank.gif data-src=1 data-srcset='2 1x, 3 2x'><img data-lazy-src=4 alt=four><img data-original=5><picture><source data-srcset='6 1x'></picture><video data-src=7><source data-src=8></video>", nil,
			[]string{"img /blank.gif", "img /dir/1", "img /dir/2", "img /dir/3", "img /dir/4 | four", "img /dir/5", "img /dir/6", "media /dir/7", "media /dir/8"}, 0},
		{"what stands there already", "<img src=1 data-src=1 srcset='2 1x' data-srcset='2 1x'><iframe src=3 data-src=3></iframe>", nil, []string{"img /dir/1", "img /dir/2", "iframe /dir/3"}, 0},
		{"pictures of other elements", "<body background=1><input type=IMAGE src=2 alt=go><input type=text src=no><table background=3><td background=4></table><video poster=5></video><svg><image href=6 /><image xlink:href=7 /><a xlink:href=8>s</a></svg><image src=9>", nil,
			[]string{"img /dir/1", "img /dir/2 | go", "img /dir/3", "img /dir/4", "img /dir/5", "img /dir/6", "img /dir/7", "a /dir/8", "img /dir/9"}, 0},
		{"what is embedded as data is no link", "<img srcset='data:image/gif;base64,R0 1x, a 2x'><script src=data:,x></script><object data=data:,y></object><embed src=data:,z>", nil, []string{"img /dir/a"}, 0},
		{"preloads", "<link rel=preload as=image href=1 imagesrcset='2 1x, 3 2x'><link rel=prefetch href=4><link rel='prev amphtml' href=5><link rel=preload as=image imagesrcset='6 1x, 7 2x'><link rel=preload as=image href='' imagesrcset=8><link imagesrcset=9>", nil,
			[]string{"link /dir/1 | preload", "img /dir/2", "img /dir/3", "link /dir/4 | prefetch", "link /dir/5 | prev amphtml", "img /dir/6", "img /dir/7", "img /dir/8"}, 0},
		{"languages of targets", "<link rel='alternate canonical' href=3 hreflang=fr><a href=1 hreflang=EN>e</a><link rel=alternate href=2 hreflang=x-default><link rel=alternate href=4 hreflang='no tag'><area href=5 hreflang=zh_hant_tw>", nil,
			[]string{"canonical /dir/3 | alternate canonical | fr", "a /dir/1 | e | en", "hreflang /dir/2 | alternate | x-default", "hreflang /dir/4 | alternate", "area /dir/5 | zh-Hant-TW"}, 0},
		{"feeds", "<link rel=alternate type='application/RSS+xml; charset=utf-8' href=1><link rel=feed href=2><link rel=alternate type=application/json href=3><link rel='alternate stylesheet' type=text/css href=4><link rel=alternate type=application/feed+json hreflang=de href=5>", nil,
			[]string{"feed /dir/1 | alternate", "feed /dir/2 | feed", "link /dir/3 | alternate", "link /dir/4 | alternate stylesheet", "feed /dir/5 | alternate | de"}, 0},
		{"texts that are cut between runes", "<a href=1 title='" + strings.Repeat("ä", 400) + "x'></a><a href=2 rel='" + strings.Repeat("x", 127) + "ä'>2</a>", nil,
			[]string{"a /dir/1 | " + strings.Repeat("ä", 256), "a /dir/2 | 2 | " + strings.Repeat("x", 127)}, 0},
		{"not taken: ping, cite, longdesc, use", "<a href=1 ping=/p>a</a><q cite=/c>q</q><img src=2 longdesc=/l><svg><use href=/u></use></svg>", nil, []string{"a /dir/1 | a", "img /dir/2"}, 0},
		{"templates hold nothing", "<template><a href=1>1</a><img src=2></template><a href=3>3</a>", nil, []string{"a /dir/3 | 3"}, 0},
		{"forms by POST lead nowhere", "<form method=POST action=/p></form><form method=get action=/g></form>", nil, []string{"form /g"}, 0},
		{"entities in references", "<a href='?a=1&amp;b=2&copy=3'>x</a>", nil, []string{"a /dir/page?a=1&b=2&copy=3 | x"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := parsePage(t, tt.page, tt.header)
			if d := cmp.Diff(tt.want, linkLines(r.Links)); d != "" {
				t.Errorf("links (-want +got):\n%s", d)
			}
			if r.BadLinks != tt.bad {
				t.Errorf("%d bad links, want %d", r.BadLinks, tt.bad)
			}
		})
	}
}

func TestReferencesThatAreTooLongAreCounted(t *testing.T) {
	r := parsePage(t, "<img src='data:image/png;base64,"+strings.Repeat("A", 16<<10)+"'><a href=/x>x</a>", nil)
	if len(r.Links) != 1 || r.BadLinks != 0 { // an embedded image (data: URL) is not a link
		t.Errorf("%d links, %d bad", len(r.Links), r.BadLinks)
	}
	if r = parsePage(t, "<a href='/"+strings.Repeat("A", 16<<10)+"'>x</a>", nil); len(r.Links) != 0 || r.BadLinks != 1 {
		t.Errorf("%d links, %d bad", len(r.Links), r.BadLinks)
	}
}

func TestFullText(t *testing.T) {
	for _, tt := range []struct{ name, page, want string }{
		{"blocks are lines", "<p>One<p>Two<br>Three<div>Four</div>Five", "One\nTwo\nThree\nFour\nFive"},
		{"white space is folded, also what is not ASCII", "<p> a \n\t b&nbsp;&nbsp;c\u3000d\u2003e </p>", "a b c d e"},
		{"inline elements do not part words", "<p>in<b>li</b>ne <i>two</i></p>", "inline two"},
		{"preformatted lines", "<pre>a  b\nc</pre>", "a b\nc"},
		{"preformatted lines, however they end", "<pre>a\r\nb\rc\n\rd</pre>", "a\nb\nc\nd"},
		{"tables are cells", "<table><tr><td>a<td>b<tr><th>c</table>", "a\nb\nc"},
		{"what is not shown", "<script>x</script><style>y</style><noscript>z</noscript><p hidden>h</p><template>t</template><p style='visibility:hidden'>v</p>shown", "shown"},
		{"hidden within a line", "a <span style='display:none'>x</span> b", "a b"},
		{"hidden within a word", "<p>a<span hidden>h</span>b</p>c", "ab\nc"},
		{"hidden twice within a word", "a<span hidden>h</span><span hidden>i<p>j</p></span>b", "ab"},
		{"hidden twice, with a space between", "a<span hidden>h</span> <span hidden>i</span>b", "a b"},
		{"hidden at a line's end", "<p>a<span hidden>h</span></p><p>b", "a\nb"},
		{"hidden at a line's beginning", "<p>a<p><span hidden>h</span>b", "a\nb"},
		{"hidden before a line break", "a<span hidden>h</span><br>b", "a\nb"},
		{"a template's text", "<template>a<p>b<title>c</title></template>d", "d"},
		{"svg and its title", "<title>T</title><svg><title>no</title><text>no</text></svg>yes", "yes"},
		{"entities", "&lt;p&gt; &eacute; &#x1F600; &unknown;", "<p> é 😀 &unknown;"},
		{"text in a head ends it, as in browsers", "<head>x</head>y", "xy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := parsePage(t, tt.page, nil).Text.Full; got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestAuthorsHaveNoMarkup(t *testing.T) {
	for _, page := range []string{
		`<meta name=author content="&lt;a href='/jane'&gt;Jane Doe&lt;/a&gt;">`,
		`<meta name=author content="<p>By Jane Doe</p>">`,
		`<meta property=article:author content="&lt;b&gt;Jane Doe&lt;/b&gt;">`,
		`<meta itemprop=author content="&lt;b&gt;Jane Doe&lt;/b&gt;">`,
		`<script type="application/ld+json">{"@type": "Article", "author": {"name": "<a href=\"/jane\">Jane Doe</a>"}}</script>`,
		`<script type="application/ld+json">{"@type": "Article", "author": "\u003cb\u003eJane Doe\u003c/b\u003e"}</script>`,
		`<script type="application/ld+json">{"@type": "Article", "author": [{"name": "&lt;i&gt;Jane Doe&lt;/i&gt;"}]}</script>`,
	} {
		r := parsePage(t, page, nil)
		if r.Page.Author != "Jane Doe" || strings.Contains(r.Page.JSONLD, "<") || strings.Contains(r.Page.JSONLD, "003c") {
			t.Errorf("%s: author %q, json_ld %s", page, r.Page.Author, r.Page.JSONLD)
		}
	}
}
