package parse

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// even makes texts comparable: x/net/html normalises line ends and some NULs.
func even(s string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD").Replace(s)
}

// lexed lists the tokens of the lexer, theirs those of x/net/html: texts that follow
// one another joined, attributes that nobody looks at left out.
func lexed(doc []byte) (out []string) {
	z := lexer{src: doc}
	for {
		switch z.next() {
		case endOfFile:
			return out
		case textToken:
			p := z.text
			if z.refs {
				p = unescape(nil, p, false)
			}
			out = addText(out, even(string(p)))
		case startTag:
			s := "<" + z.name.String()
			for a := attr(0); a < attrCount; a++ {
				if z.attrs.set(a) {
					s += fmt.Sprintf(" %d=%s", a, even(string(z.attrs.val[a])))
				}
			}
			out = append(out, s)
			if z.name == atom.Noscript {
				z.raw = 0
			}
		case endTag:
			out = append(out, "</"+z.name.String())
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

func theirs(doc []byte) (out []string) {
	z := html.NewTokenizer(bytes.NewReader(doc))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.TextToken:
			out = addText(out, even(string(z.Text())))
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			a := atom.Lookup(name)
			vals := map[attr]string{}
			for n := 0; more; n++ {
				var key, val []byte
				key, val, more = z.TagAttr()
				if at := attrOf(key); at != attrNone {
					if _, ok := vals[at]; !ok {
						vals[at] = string(val)
					}
				}
			}
			s := "<" + a.String()
			for at := attr(0); at < attrCount; at++ {
				if v, ok := vals[at]; ok {
					s += fmt.Sprintf(" %d=%s", at, even(v))
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

var lexerCases = []string{
	"a<b>c</b >d</>e< f<3 </3>g<", "a</", "<a", "<a href", "<a href=", "<a href='x", "<p/><br / >", "<A HREF=X hReF=y>", "<a =b href = c>", "<a href=/x/>",
	"<a href=\"a&amp;b&copy=1&copy;&copyx&notit;&#65;&#x42&lt&fjlig;&semi;&nbsp\">", "&amp;&copy=1&copyx&notit;&#65;&#x42z&#0;&#x80;&unknown;&", "<!-->a<!--->b<!-- c --!>d<!-- e -- > f -->g<!--!>h-->i",
	"<!doctype html>x<!foo>y<?xml v?>z", "<title>a&lt;b</titl></title >c", "<script>a</script>b", "<script><!-- <script> </script> --> </script>x",
	"<script><!-- <script></script></script>x", "<script><!--<5 <script></script>y</script>", "<script><!-- --!></script>x", "<script><!-->x</script>y",
	"<script><!-- <scriptx </script>z", "<style></style/>x</style>", "<textarea></textareaX>&amp;</textarea>", "<plaintext></plaintext>&amp;", "<noscript><p>x</noscript>y",
	"<iframe><p></iframe>", "<xmp>&lt;</XMP>x", "<a title=a\x00b href='x\r\ny'>", "<script/>x</script>", "<a/href=x/src=y>", "<img src=a\"b'c>",
	"<script></SCRIPT>x", "<!---->a", "<!-- a -->b<!--", "<!--a--!", "<![CDATA[x]]>", "<script><!--</script>x-->",
}

func TestLexerFindsWhatXNetHTMLFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, in := range lexerCases {
		if d := cmp.Diff(theirs([]byte(in)), lexed([]byte(in))); d != "" {
			t.Errorf("%q (-x/net/html +lexer):\n%s", in, d)
		}
	}
	for _, d := range samplePages(t) {
		doc, _ := decode(d.Body, d.ContentType)
		if want, got := theirs(doc), lexed(doc); !slices.Equal(want, got) {
			t.Errorf("%s (-x/net/html +lexer):\n%s", d.URL, cmp.Diff(want, got))
		}
	}
}

func FuzzLexer(f *testing.F) {
	for _, in := range lexerCases {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		doc = bytes.ToValidUTF8(doc, nil)
		before := bytes.Clone(doc)
		if d := cmp.Diff(theirs(doc), lexed(doc)); d != "" {
			t.Errorf("%q (-x/net/html +lexer):\n%s", doc, d)
		}
		if !bytes.Equal(doc, before) {
			t.Error("the lexer changed the document")
		}
	})
}
