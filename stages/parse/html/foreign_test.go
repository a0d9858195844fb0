package html

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hrefsOf returns the references of the links of a page, in document order.
func hrefsOf(h *Reader) string {
	var hrefs []string
	for i := range h.links.raw {
		hrefs = append(hrefs, string(h.links.str(h.links.raw[i].href)))
	}
	return strings.Join(hrefs, " ")
}

func TestDeclarativeShadowRootsAreContent(t *testing.T) {
	for _, tt := range []struct{ name, page, text, hrefs string }{
		{"open", `<p>a<my-x><template shadowrootmode=open><style>p{}</style><a href=/s>in</a></template></my-x>b`, "ainb", "/s"},
		{"closed, in capitals", `<div><TEMPLATE shadowRootMode=Closed><p>in</TEMPLATE></div>`, "in", ""},
		{"slotted children", `<my-x><template shadowrootmode=open><h2>Head</h2><slot></slot></template><p>light <a href=/l>l</a></my-x><p>after`, "Head|light l|after", "/l"},
		{"open elements end with it", `<div><template shadowrootmode=open><ul><li><p>in</template><p>out</div>`, "in|out", ""},
		{"does not end the elements around it", `<p>one<my-x><template shadowrootmode=open></p><p>in</template></my-x>two`, "one|in|two", ""},
		{"nested", `<my-x><template shadowrootmode=open><p>a</p><my-y><template shadowrootmode=closed><p>b<a href=/b>c</a></template></my-y><p>d</template></my-x>`, "a|bc|d", "/b"},
		{"ordinary template", `<div><template><p>in<a href=/s>s</a></template>out</div>`, "out", ""},
		{"older attribute", `<div><template shadowroot=open>in</template>out</div>`, "out", ""},
		{"other mode", `<div><template shadowrootmode=yes>in</template><template shadowrootmode>in</template>out</div>`, "out", ""},
		{"in an ordinary template", `<template><div><template shadowrootmode=open>in<a href=/s>s</a></template>in</div></template>out`, "out", ""},
		{"an ordinary template in it", `<div><template shadowrootmode=open>a<template>no<a href=/n>n</a></template>b</template>c</div>`, "abc", ""},
		{"in a head", `<head><template shadowrootmode=open>in</template></head>out`, "out", ""},
		{"in svg", `<svg><template shadowrootmode=open>in</template></svg>out`, "out", ""},
		{"hidden host", `<div hidden><template shadowrootmode=open>in</template></div>out`, "out", ""},
		{"without an end", `<div><template shadowrootmode=open>in <b>all`, "in all", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			full, h := visibleInPass(tt.page)
			if d := cmp.Diff([]string{strings.ReplaceAll(tt.text, "|", "\n"), tt.hrefs}, []string{full, hrefsOf(h)}); d != "" {
				t.Error(d)
			}
		})
	}
	if _, h := visibleInPass(`<div><template shadowrootmode=open><title>no</title><base href=/no><link rel=canonical href=/c></template></div><title>yes</title>`); h.meta.title != "yes" || h.links.based {
		t.Errorf("title %q, base %t: a shadow root is not the document's own tree", h.meta.title, h.links.based)
	}
	h := new(Reader)
	h.Reset(Config{MaxText: 1 << 20, MaxLinks: 9})
	if all := h.Read([]byte(`<html><body><div><template shadowrootmode="open">in</template>out</div></body></html>`), true); all != "out\n" {
		t.Errorf("in XHTML, which has no declarative shadow roots: %q", all)
	}
}

func TestElementsOfSVGAndMathMLAreNotThoseOfHTML(t *testing.T) {
	for _, tt := range []struct{ name, page, text, hrefs, base, title string }{
		{"base in svg", `<svg><base href=/no></svg><base href=/yes>t`, "t", "", "/yes", ""},
		{"base in math", `<math><base href=/no></math>t<base href=/yes>`, "t", "", "/yes", ""},
		{"base in foreignObject", `<svg><foreignObject><base href=/yes></foreignObject></svg>t`, "t", "", "/yes", ""},
		{"base after svg within it", `<svg><g><svg/><base href=/no/></g></svg>t`, "t", "", "", ""},
		{"title in svg", `<svg><title>no</title></svg><title>yes</title>t`, "t", "", "", "yes"},
		{"title in math", `<math><title>no</title></math><title>yes</title>t`, "t", "", "", "yes"},
		{"title without an end", `<svg><title>no</svg><p>t`, "t", "", "", ""},
		{"style without an end", `<svg><style>p{}</svg><p>t`, "t", "", "", ""},
		{"script without an end", `<svg><script>x()</svg><p>t`, "t", "", "", ""},
		{"textarea and iframe", `<math><textarea>no<iframe src=/i></math><p>t`, "t", "", "", ""},
		{"a", `<svg><a xlink:href=/x><text>no</text></a><a href=/h></a></svg>t`, "t", "/x /h", "", ""},
		{"link", `<svg><link rel=stylesheet href=/no></svg><link rel=stylesheet href=/yes>t`, "t", "/yes", "", ""},
		{"image", `<svg><image href=/i /></svg>t`, "t", "/i", "", ""},
		{"frame in foreignObject", `<svg><foreignObject><div><iframe src=/f>x</iframe></div></foreignObject></svg>t`, "t", "/f", "", ""},
		{"foreignObject without an end", `<svg><foreignObject><div>no</svg>t`, "t", "", "", ""},
		{"foreignObject outside", `<foreignObject>in</foreignObject>t`, "int", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			full, h := visibleInPass(tt.page)
			if d := cmp.Diff([]string{tt.text, tt.hrefs, tt.base, tt.title}, []string{full, hrefsOf(h), string(h.links.str(h.links.base)), h.meta.title}); d != "" {
				t.Error(d)
			}
		})
	}
	if _, h := visibleInPass(`<svg><meta name=robots content=noindex></svg>`); !h.meta.robots.NoIndex {
		t.Error("a meta element ends svg, so it counts")
	}
}

func TestNULsDoNotPartWords(t *testing.T) {
	for _, tt := range []struct{ page, text, title string }{
		{"<p>wo\x00rd \x00\x00 an\x00\x00other", "word another", ""},
		{"<pre>wo\x00rd\nli\x00ne", "word\nline", ""},
		{"<p>w&#0;d", "w\uFFFDd", ""},
		{"<title>wo\x00rd</title>\x00<p>t", "t", "wo\uFFFDrd"},
		{"<table>\x00<td>wo\x00<b>rd</table>", "word", ""},
		{"<p>\x00", "", ""},
	} {
		if full, h := visibleInPass(tt.page); full != tt.text || h.meta.title != tt.title {
			t.Errorf("%q: text %q, title %q", tt.page, full, h.meta.title)
		}
	}
}
