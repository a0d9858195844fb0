package lexer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// dropDifferences removes differences that do not matter: x/net/html normalises line ends and
// some NULs.
func dropDifferences(s string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD").Replace(s)
}

// lexTokens lists the lexer's tokens. netHTMLTokens lists the tokens of x/net/html. Both
// functions join adjacent texts and omit unused attributes.
func lexTokens(doc []byte) (out []string) {
	z := Lexer{Src: doc}
	for {
		switch z.Next() {
		case EndOfFile:
			return out
		case Text:
			p := z.Text
			if z.Refs {
				p = Unescape(nil, p, false)
			}
			out = addText(out, dropDifferences(string(p)))
		case StartTag:
			s := "<" + z.Name.String()
			for a := Attr(0); a < attrCount; a++ {
				if z.Attrs.Has(a) {
					s += fmt.Sprintf(" %d=%s", a, dropDifferences(string(z.Attrs.val[a])))
				}
			}
			out = append(out, s)
			if z.Name == atom.Noscript {
				z.Raw = 0
			}
		case EndTag:
			out = append(out, "</"+z.Name.String())
		}
	}
}

func addText(out []string, s string) []string {
	if n := len(out); n > 0 && strings.HasPrefix(out[n-1], "\"") {
		out[n-1] += s
		return out
	}
	return append(out, "\""+s)
}

func netHTMLTokens(doc []byte) (out []string) {
	z := html.NewTokenizer(bytes.NewReader(doc))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.TextToken:
			out = addText(out, dropDifferences(string(z.Text())))
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			a := atom.Lookup(name)
			vals := map[Attr]string{}
			for n := 0; more; n++ {
				var key, val []byte
				key, val, more = z.TagAttr()
				if at, known := attrNames[string(key)]; known {
					if _, ok := vals[at]; !ok {
						vals[at] = string(val)
					}
				}
			}
			s := "<" + a.String()
			for at := Attr(0); at < attrCount; at++ {
				if v, ok := vals[at]; ok {
					s += fmt.Sprintf(" %d=%s", at, dropDifferences(v))
				}
			}
			out = append(out, s)
			if a == atom.Noscript {
				z.NextIsNotRawText()
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			out = append(out, "</"+atom.Lookup(name).String())
		}
	}
}

func TestLexerFindsWhatXNetHTMLFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, in := range parsetest.Markup {
		if d := cmp.Diff(netHTMLTokens([]byte(in)), lexTokens([]byte(in))); d != "" {
			t.Errorf("%q (-x/net/html +lexer):\n%s", in, d)
		}
	}
	pages, _ := parsetest.Pages(t)
	for _, d := range pages {
		doc := bytes.ToValidUTF8(d.Body, []byte("\uFFFD"))
		if want, got := netHTMLTokens(doc), lexTokens(doc); !slices.Equal(want, got) {
			t.Errorf("%s (-x/net/html +lexer):\n%s", d.URL, cmp.Diff(want, got))
		}
	}
}

func FuzzLexer(f *testing.F) {
	for _, in := range parsetest.Markup {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		doc = bytes.ToValidUTF8(doc, nil)
		before := bytes.Clone(doc)
		if d := cmp.Diff(netHTMLTokens(doc), lexTokens(doc)); d != "" {
			t.Errorf("%q (-x/net/html +lexer):\n%s", doc, d)
		}
		if !bytes.Equal(doc, before) {
			t.Error("the lexer changed the document")
		}
	})
}
