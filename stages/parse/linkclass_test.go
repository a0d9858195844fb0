package parse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// smallParser returns a parser that keeps ten links per page.
func smallParser(t *testing.T) *Parser {
	t.Helper()
	canon, err := urlkey.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Canonicalizer: canon, MaxLinks: 10})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhatAPageEmbedsGivesWayToItsLinks(t *testing.T) {
	many := func(n int, s string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, s, i)
		}
		return b.String()
	}
	images, links := many(30, "<img src=/i%d>"), many(30, "<a href=/a%d>x</a>")
	for _, tt := range []struct {
		name, page         string
		want               map[schema.LinkKind]int
		over               int
		canonical, refresh string
	}{
		{"images only", images, map[schema.LinkKind]int{schema.KindImg: 10}, 20, "", ""},
		{"room is for hyperlinks first", images + many(4, "<a href=/a%d>x</a>"), map[schema.LinkKind]int{schema.KindA: 4, schema.KindImg: 6}, 24, "", ""},
		{"hyperlinks fill it", images + links, map[schema.LinkKind]int{schema.KindA: 10}, 50, "", ""},
		{"what the page says of itself has its place", "<link rel=canonical href=/c>" + images + links + "<meta http-equiv=refresh content='0; url=/r'><link rel=alternate hreflang=de href=/de>",
			map[schema.LinkKind]int{schema.KindCanonical: 1, schema.KindRefresh: 1, schema.KindHreflang: 1, schema.KindA: 7}, 53, "https://example.com/c", "https://example.com/r"},
		{"its declarations take no more than a tenth from hyperlinks", many(30, "<link rel=alternate hreflang=de href=/de%d>") + links,
			map[schema.LinkKind]int{schema.KindHreflang: 1, schema.KindA: 9}, 50, "", ""},
		{"and the room that those leave", many(30, "<link rel=alternate hreflang=de href=/de%d>") + images + many(3, "<a href=/a%d>x</a>"),
			map[schema.LinkKind]int{schema.KindHreflang: 7, schema.KindA: 3}, 53, "", ""},
		{"what has no target takes no room", many(20, "<a href=mailto:a%d>x</a>") + many(5, "<a href='Java\nScript:a%d'>x</a><img src='blob:x'><iframe src=about:blank></iframe>") + many(10, "<a href=/a%d>x</a>"), map[schema.LinkKind]int{schema.KindA: 10}, 0, "", ""},
		{"canonicals that are none", strings.Repeat("<link rel=canonical href=mailto:x>", 12) + "<link rel=canonical href=/c>", map[schema.LinkKind]int{schema.KindCanonical: 1}, 0, "https://example.com/c", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := smallParser(t)
			d := &document.Document{URL: "https://example.com/", ContentType: "text/html", Body: []byte(tt.page)}
			r := p.Parse(d)
			checkPromises(t, p, d, r)
			got := map[schema.LinkKind]int{}
			for _, l := range r.Links {
				got[l.Kind]++
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || r.OverLinks != tt.over {
				t.Errorf("%d beyond the limit, want %d; links (-want +got):\n%s", r.OverLinks, tt.over, diff)
			}
			if r.Page.CanonicalURL != tt.canonical || r.Refresh != tt.refresh {
				t.Errorf("canonical %q, refresh %q", r.Page.CanonicalURL, r.Refresh)
			}
			if len(r.Links) > 10 {
				t.Errorf("%d links", len(r.Links))
			}
		})
	}
}

func TestTheDefaultLimitLosesNothingThatAPageDeclares(t *testing.T) {
	page := "<link rel=canonical href=/c>" + strings.Repeat("<img src=/i>", 12_000) + `<link rel=alternate hreflang=de href=/de><link rel=alternate type=application/rss+xml href=/f>
		<link rel=icon href=/i.ico><a href=/a>x</a><meta http-equiv=refresh content="0; url=/r">`
	r := parsePage(t, page, nil)
	got := map[schema.LinkKind]int{}
	for _, l := range r.Links {
		got[l.Kind]++
	}
	want := map[schema.LinkKind]int{schema.KindImg: 10_000 - 5, schema.KindCanonical: 1, schema.KindHreflang: 1, schema.KindFeed: 1, schema.KindA: 1, schema.KindRefresh: 1}
	if diff := cmp.Diff(want, got); diff != "" || r.OverLinks != 2_005+1 {
		t.Errorf("%d beyond the limit; links (-want +got):\n%s", r.OverLinks, diff)
	}
	if r.Page.CanonicalURL != "https://example.com/c" || r.Page.RefreshURL != "https://example.com/r" || r.Page.Favicon != "https://example.com/i.ico" || r.Page.Outlinks != 12_006 {
		t.Errorf("%+v", pageColumns(r, "canonical_url", "refresh_url", "favicon", "outlinks"))
	}
}

// A page may declare its own URL as canonical, even if rules would change the URL in a link to it.
func TestAPageThatDeclaresItselfCanonical(t *testing.T) {
	canon, err := urlkey.NewWithRules(nil, urlkey.Rules{TrailingSlash: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Canonicalizer: canon, MaxLinks: 10})
	if err != nil {
		t.Fatal(err)
	}
	for href, want := range map[string]string{
		"/dir/": "https://example.com/dir/", "/dir": "https://example.com/dir/", "/other/": "https://example.com/other",
	} {
		r := p.Parse(&document.Document{URL: "https://example.com/dir/", ContentType: "text/html", Body: []byte("<link rel=canonical href=" + href + ">")})
		if got := r.Page.CanonicalURL; got != want {
			t.Errorf("%s: canonical URL %q, want %q", href, got, want)
		}
	}
}

func TestACanonicalURLIsDeclaredInTheHead(t *testing.T) {
	const link = `<link rel=canonical href=/c>`
	for page, want := range map[string]bool{
		link:                  true,
		"<html><head>" + link: true,
		"<head><title>T</title><script>x()</script><style>y</style><base href=/><meta charset=utf-8>" + link: true,
		"<head><noscript><img src=pixel><iframe src=x></iframe>text</noscript>" + link:                       true,
		"<head></head>" + link + "<body>":                           true,
		"<head><div></div><img src=x>" + link + "</head>":           true,
		"<head></head><body><div></div>text" + link:                 true,
		"<head></head><body><div class=comments>" + link + "</div>": false,
		"<body><article><p>" + link:                                 false,
		"<p>" + link:                                                false,
		"<table><tr><td>" + link:                                    false,
		"<template>" + link + "</template>":                         false,
		"<svg>" + link + "</svg>":                                   false,
	} {
		r := parsePage(t, page, nil)
		if got := r.Page.CanonicalURL == "https://example.com/c"; got != want {
			t.Errorf("%s: canonical URL %q", page, r.Page.CanonicalURL)
		}
	}
	r := parsePage(t, "<body><div>"+link+"</div>", nil)
	if len(r.Links) != 1 || r.Links[0].Kind != schema.KindLink || r.Links[0].Rel != "canonical" {
		t.Errorf("what does not count is a link of another kind: %+v", r.Links)
	}
}
