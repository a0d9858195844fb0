package html

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/charset"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
)

var absolute, web = regexp.MustCompile(`(?i)^[a-z][a-z0-9+.-]*:`), regexp.MustCompile(`(?i)^https?:`)

// treeSays reads x/net/html's tree of a page. hrefs lists the http and https links in document order,
// unchanged. words is the text without white space, including hidden text.
func treeSays(t *testing.T, page []byte) (hrefs []string, words string) {
	t.Helper()
	root, err := html.ParseWithOptions(bytes.NewReader(page), html.ParseOptionEnableScripting(false))
	if err != nil {
		t.Fatal(err)
	}
	var sb strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch n.Type {
		case html.TextNode:
			sb.WriteString(strings.Join(strings.FieldsFunc(n.Data, fold.IsSpace), ""))
			return
		case html.ElementNode:
			switch n.DataAtom {
			case atom.Script, atom.Style, atom.Template, atom.Title, atom.Textarea, atom.Iframe, atom.Noembed, atom.Noframes,
				atom.Svg, atom.Math, atom.Object, atom.Video, atom.Audio, atom.Canvas, atom.Xmp:
				if n.DataAtom == atom.Template || n.Namespace == "" && n.DataAtom != atom.Svg {
					return
				}
			case atom.A:
				for _, a := range n.Attr {
					if a.Key == "href" {
						if ref := strings.TrimFunc(a.Val, fold.IsSpace); !absolute.MatchString(ref) || web.MatchString(ref) {
							hrefs = append(hrefs, ref)
						}
						break
					}
				}
			}
			if n.DataAtom == atom.Svg || n.DataAtom == atom.Math {
				return
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	return hrefs, sb.String()
}

func TestTokenPassFindsWhatTheTreeHas(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	links := 0
	pages, real := parsetest.Pages(t)
	for _, page := range pages {
		doc, _ := charset.Decode(page.Body, "text/html")
		wantHrefs, wantText := treeSays(t, doc)
		var h Reader
		h.Reset(Config{MaxText: 64 << 20, MaxLinks: 1 << 20})
		h.readDocument(doc)
		links += len(wantHrefs)
		var hrefs []string
		for _, l := range h.links.raw {
			if l.kind == schema.KindA {
				hrefs = append(hrefs, string(h.links.str(l.href)))
			}
		}
		if d := cmp.Diff(wantHrefs, hrefs); d != "" {
			t.Errorf("%s: links of the tree (-) and of the pass (+):\n%s", page.Name, d)
		}
		gotText := strings.Join(strings.FieldsFunc(h.out.All(), fold.IsSpace), "")
		if gotText != wantText {
			i := 0
			for i < min(len(gotText), len(wantText)) && gotText[i] == wantText[i] {
				i++
			}
			t.Errorf("%s: text differs at %d of %d, %d\ntree %.120q\npass %.120q", page.Name, i, len(wantText), len(gotText), wantText[i:], gotText[i:])
		}
	}
	least := 2000
	if real {
		least += 5000
	}
	if links < least {
		t.Errorf("compared %d links only", links)
	}
}
