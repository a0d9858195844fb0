package html

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"crawlbatch.io/crawlbatch/stages/parse/fold"
)

// visibleInTree returns the visible text of x/net/html's tree, without white space. Scripts run, so the
// content of a noscript is not shown.
func visibleInTree(t *testing.T, page string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var sb strings.Builder
	for n := range root.Descendants() {
		if n.Type != html.TextNode {
			continue
		}
		shown := true
		for up := range n.Ancestors() {
			switch up.DataAtom {
			case atom.Head, atom.Title, atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Textarea, atom.Iframe, atom.Noframes, atom.Svg, atom.Math:
				shown = false
			}
		}
		if shown {
			sb.WriteString(withoutSpace(n.Data))
		}
	}
	return sb.String()
}

func withoutSpace(s string) string { return strings.Join(strings.FieldsFunc(s, fold.IsSpace), "") }

func visibleInPass(page string) (full string, h *Reader) {
	h = new(Reader)
	h.Reset(Config{MaxText: 1 << 20, MaxLinks: 1 << 10})
	return h.out.Full(h.Read([]byte(page), false)), h
}

func TestHeadsEndWhereTheBodyBegins(t *testing.T) {
	for _, tt := range []struct{ name, page, want string }{
		{"end tag", "<!doctype html><html lang=en><head><title>t</title></head><body><p>Hello", "Hello"},
		{"no end tag", "<!doctype html><html lang=en><head><title>t</title><body><p>Hello", "Hello"},
		{"no end tag and no body", "<!doctype html><html lang=en><head><title>t</title><p>Hello", "Hello"},
		{"attributes", `<html><head class=x lang="en" profile="http://example.com/"><title>t</title><body class=y>Hello`, "Hello"},
		{"upper case", "<HTML><HEAD><TITLE>t</TITLE><BODY>Hello", "Hello"},
		{"no tags of a head", "<title>t</title><p>Hello", "Hello"},
		{"only a head", "<head><title>t</title>", ""},
		{"text", "<head><title>t</title> Hello <b>world</b></head>!", "Hello world!"},
		{"reference to text", "<head><title>t</title>&amp;<title>u</title>", "&"},
		{"reference to white space", "<head>&#32;&#10;<meta name=description content=d></head>Hello", "Hello"},
		{"no-break space", "<head>\u00A0<div>Hello</div></head>", "Hello"},
		{"byte order mark", "<head>\uFEFF<title>t</title>Hello", "Hello"},
		{"all that heads hold", `<head><base href=/><basefont><bgsound><link rel=x href=y><meta name=a content=b><style>s</style><script>s</script>
			<noframes>n</noframes><template><p>t</template><noscript><p>n</noscript><title>t</title><body>Hello`, "Hello"},
		{"end tag too late", "<head><title>t</title><div>a</div></head><body>b", "a\nb"},
		{"end tag too late, after text", "<head>a<title>t</title></head>b", "ab"},
		{"body ends the head", "<head><title>t</title><body>a</head>b", "ab"},
		{"second head", "<head></head><body>a<head><title>t</title>b</head>c", "a\nbc"},
		{"head in the head", "<head><head><title>t</title></head>a", "a"},
		{"html in the head", "<head><html lang=de><title>t</title></head>a", "a"},
		{"html in the head without end tag", "<head><html><body>a", "a"},
		{"noscript with an image", "<head><noscript><img src=x>n</noscript><title>t</title></head>Hello", "Hello"},
		{"noscript, no end tag of the head", "<head><noscript><div><p>n</div></noscript><title>t</title><p>Hello", "Hello"},
		{"noscript without text", "<head><noscript><link rel=x href=y></noscript>Hello", "Hello"},
		{"noscript with a table", "<head></head><body><noscript><table><tr><td>n</noscript>Hello", "Hello"},
		{"noscript with an object", "<head><noscript><object>n</noscript>Hello", "Hello"},
		{"template with a body", "<head><template><body><div>n</div></body></template><meta><p>Hello", "Hello"},
		{"template with a table", "<head><template><table><tr><td>n</template><p>Hello", "Hello"},
		{"template with a page", "<body><template><html><head><body><p>n</template><p>Hello", "Hello"},
		{"picture", "<head><svg><title>s</title><text>s</text></svg><title>t</title></head>Hello", "Hello"},
		{"comments", "<head><!-- a --><!-- </head><p> --><title>t</title><!-- </head> --><body><!-- b -->Hello", "Hello"},
		{"link", "<head><a href=/>Hello</a></head>", "Hello"},
		{"image", "<head><img src=x><title>t</title></head>Hello", "Hello"},
		{"unknown element", "<head><x-app>Hello</x-app></head>", "Hello"},
		{"line breaks", "<head><br>Hello<br>world", "Hello\nworld"},
		{"raw text", "<head><xmp><p>Hello</xmp>", "<p>Hello"},
		{"text field and frame", "<head><textarea>n</textarea><iframe>n</iframe>Hello", "Hello"},
		{"end tags of others", "<head></p></div></title>Hello</body></html>!", "Hello!"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := visibleInPass(tt.page); got != tt.want {
				t.Errorf("visible text %q, want %q", got, tt.want)
			}
			if in := visibleInTree(t, tt.page); in != withoutSpace(tt.want) {
				t.Errorf("visible text of the tree %q, want %q", in, tt.want)
			}
		})
	}
}

// TestHeadsOfAnyPartsEndAsInATree compares pages made of random parts.
func TestHeadsOfAnyPartsEndAsInATree(t *testing.T) {
	parts := strings.Split(`<html> <html> <head> <HEAD> <head> </head> </head> </HEAD> <body> <body> </body> </html> <title>n</title> <meta> <link> <base>
		<style>n</style> <script>n</script> <noscript><b>n</b></noscript> <noscript><meta></noscript> <template><p>n</template> <template>n<body></template> <svg>n</svg>
		<svg><title>n</title></svg> <!--n--> <p> </p> <div> </div> <img> <br> </br> <b> <x-y> <span> &#32; &nbsp; a b c d e f`, " ")
	seed := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		var sb strings.Builder
		for range 1 + seed.IntN(9) {
			sb.WriteString(strings.TrimSpace(parts[seed.IntN(len(parts))]))
			if seed.IntN(4) == 0 {
				sb.WriteByte('\n')
			}
		}
		page := sb.String()
		got, _ := visibleInPass(page)
		if want := visibleInTree(t, page); withoutSpace(got) != want {
			t.Fatalf("%q: visible text %q, of the tree %q", page, got, want)
		}
	}
}

// A body tag ends the head even in a noscript that has no end tag. Browsers that run scripts show
// nothing of such a page.
func TestHeadsEndInAnOpenNoscript(t *testing.T) {
	if got, _ := visibleInPass("<head><noscript><link rel=x href=y></head><body>Hello"); got != "Hello" {
		t.Errorf("visible text %q", got)
	}
	got, h := visibleInPass("<html><head><noscript><img src=/i><meta name=description content=d><body lang=en>Hello <a href=/a>world</a>")
	if got != "Hello world" || len(h.links.raw) != 2 || h.meta.description != "d" {
		t.Errorf("visible text %q, %d links, description %q", got, len(h.links.raw), h.meta.description)
	}
}
