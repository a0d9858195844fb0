package sitemap

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAGUIDIsALinkIfItIsAURL(t *testing.T) {
	for item, want := range map[string][]string{
		`<guid>123</guid>`:                                                       nil,
		`<guid isPermaLink="true">/a/123</guid>`:                                 nil,
		`<guid>tag:example.com,2026:1</guid>`:                                    nil,
		`<guid>https://example.com/a</guid>`:                                     {"https://example.com/a"},
		`<guid isPermaLink="true">http://example.com/a</guid>`:                   {"http://example.com/a"},
		`<guid isPermaLink="false">https://example.com/a</guid>`:                 {"https://example.com/a"},
		`<guid>https://example.com/a</guid><link>/b</link>`:                      {"/b"},
		`<guid isPermaLink=false>https://example.com/?p=1</guid><link>/b</link>`: {"/b"},
	} {
		got, _ := briefs(t, "<rss><channel><item>"+item+"</item></channel></rss>", Limits{})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", item, d)
		}
	}
	got, _ := briefs(t, `<rdf:RDF><item rdf:about="https://example.com/a"/><item rdf:about="https://example.com/b"><title>B</title></item><item rdf:about="urn:c"></item></rdf:RDF>`, Limits{})
	if d := cmp.Diff([]string{"https://example.com/a", "https://example.com/b | B"}, got); d != "" {
		t.Errorf("rdf:about (-want +got):\n%s", d)
	}
}

func TestLinksHaveBasesOfTheirOwn(t *testing.T) {
	got, sum := briefs(t, `<feed xml:base="https://example.com/feeds/"><link rel=next xml:base="pages/" href="2"/>
		<entry xml:base="2026/"><link xml:base="https://other.example/x/y" href="z"/></entry>
		<entry><link xml:base="a/b" href="c?d"/><link rel=enclosure href="e.mp3" xml:base="/files/"/></entry>
		<entry><link xml:base="a/b?q" href="?d"/></entry>
		<entry><link xml:base="a/b" href="//c.example/d"/></entry>
		<entry><link xml:base="a/b" href="/c"/></entry>
		<entry><link xml:base="/a/b" href="../c %zz"/></entry>
		<entry><link href="c"/></entry></feed>`, Limits{})
	if d := cmp.Diff([]string{
		"https://other.example/x/z base=https://example.com/feeds/2026/",
		"a/c?d file=/files/e.mp3 base=https://example.com/feeds/",
		"a/b?d base=https://example.com/feeds/",
		"//c.example/d base=https://example.com/feeds/",
		"/c base=https://example.com/feeds/",
		"../c %zz base=https://example.com/feeds/",
		"c base=https://example.com/feeds/",
	}, got); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]FeedLink{{Rel: "next", Href: "2", Base: "https://example.com/feeds/pages/"}}, sum.Links); d != "" {
		t.Errorf("links (-want +got):\n%s", d)
	}
}
