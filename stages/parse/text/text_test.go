package text

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html/atom"
)

func TestDeclaredLanguage(t *testing.T) {
	for in, want := range map[string]string{"en": "eng", "EN-us": "eng", "en_GB": "eng", "de, en": "deu", "deu": "deu", "ger": "deu", "zh-Hant": "zho",
		"nb": "nor", "iw": "heb", "": "", "und": "", "english": "", "x": "", "xx": "", "{{lang}}": ""} {
		if got := Declared(in); got != want {
			t.Errorf("Declared(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLanguageOfText(t *testing.T) {
	const ru = "Маяк стоит на краю земли, и свет его виден далеко в море. Смотритель записывал погоду каждый день."
	const en = "The lighthouse stands at the end of the cape, and its light can be seen far out at sea, every night of the year."
	for _, tt := range []struct{ name, declared, text, want string }{
		{"a declaration", "deu", en, "deu"},
		{"none, text", "", en, "eng"},
		{"none, no text", "", "", ""},
		{"none, little text", "", "ok", ""},
		{"a declaration of another script", "eng", ru, "rus"},
		{"a declaration of another script, Latin text", "ara", en, "eng"},
		{"a declaration and little text", "eng", "Маяк", "eng"},
		{"Japanese is told from Chinese by its syllables", "", strings.Repeat("灯台は岬の先に立っていて、その光は遠くの海からも見える。", 3), "jpn"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Language(tt.declared, tt.text); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestHintsOfNames(t *testing.T) {
	for in, want := range map[string]Hint{
		"related-posts": Clutter, "post__share": Clutter, "socialShare": Clutter, "relatedposts": 0, "ad": Clutter, "side ad-box": Clutter,
		"bOfADvBY": 0, "header": 0, "loading": 0, "": 0, "COMMENTS": Clutter, "img-caption": Caption,
		"newsCaption": Caption, "social-media-embed": 0, "embed": 0, "page-footer": Clutter | Imprint, "cookie-notice": Clutter | Imprint,
	} {
		if got := OfName([]byte(in)); got != want {
			t.Errorf("OfName(%q) = %b, want %b", in, got, want)
		}
	}
}

// outline builds an outline from a script: "<name.class" opens an element and ">" closes the
// element. All other words of the script are blocks, with underscores in place of spaces. A block
// that begins with * is a link, and a block that begins with # is a heading.
func outline(script string) *Outline {
	var o Outline
	o.Reset(1 << 20)
	for _, w := range strings.Fields(script) {
		switch {
		case w == ">":
			o.Break(TagNone)
			o.Close()
		case strings.HasPrefix(w, "<"):
			o.Break(TagNone)
			name, class, _ := strings.Cut(w[1:], ".")
			a := atom.Lookup([]byte(name))
			o.Open(a, OfElement(a)|OfName([]byte(class)))
		default:
			tag := TagParagraph
			if strings.HasPrefix(w, "#") {
				tag, w = TagHeading, w[1:]
			} else if strings.HasPrefix(w, "!") {
				tag, w = TagHeading1, w[1:]
			}
			o.Break(tag)
			o.SetLink(strings.HasPrefix(w, "*"))
			o.Text([]byte(strings.ReplaceAll(strings.TrimPrefix(w, "*"), "_", " ")))
			o.SetLink(false)
			o.Break(TagNone)
		}
	}
	return &o
}

func TestMainContent(t *testing.T) {
	const p1 = "The_ledger_begins_on_a_winter_morning,_with_the_wind_from_the_north."
	const p2 = "Nobody_knows_who_ruled_the_columns,_but_the_keeper_filled_them."
	plain := func(s string) string { return strings.ReplaceAll(s, "_", " ") }
	for _, tt := range []struct{ name, script, want string }{
		{"nothing", "", ""},
		{"a main element amid nav and footer is the content, whole", "<body <nav *Home > <main !Title Short. *a_link > <footer " + p1 + " > >", "Title\nShort.\na link"},
		{"an article alone is as good", "<body <article !Title Short. > <aside " + p1 + " > >", "Title\nShort."},
		{"several articles are not", "<body <article Short. > <article " + p1 + " > >", plain(p1)},
		{"a main element with clutter is searched", "<body <main !Title " + p1 + " <div.share *Share_this > <div.related " + p2[:40] + " > > >", plain(p1)},
		{"text outside of main makes it a candidate among others", "<body <div *Menu_of_links_that_is_long > <main " + p1 + " > >", plain(p1)},
		{"the element with the prose", "<body <div *One *Two > <div !Title " + p1 + " #Next " + p2 + " > <div.sidebar " + p2 + " > >", plain(p1 + "\nNext\n" + p2)},
		{"prose in two elements is found in what holds both", "<body <div <div " + p1 + " > <div " + p2 + " > > <div.footer " + p1[:30] + " > >", plain(p1 + "\n" + p2)},
		{"clutter that holds most of the page is none", "<body <div.comments " + p1 + " " + p2 + " > >", plain(p1 + "\n" + p2)},
		{"a footer by its name, though it holds half of the prose", "<body <div " + p1 + " > <div.page-footer " + p2 + " > >", plain(p1)},
		{"headings that nothing follows", "<body " + p1 + " #Related #More >", plain(p1)},
		{"a page without prose", "<body Hello. *A_link_only >", "Hello."},
		{"links alone", "<body *One *Two >", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := outline(tt.script).Main(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestOutlineKeepsToItsLimits(t *testing.T) {
	var o Outline
	o.Reset(16)
	o.Text([]byte("four five six seven"))
	o.Break(TagNone)
	if got := o.Full(o.All()); got != "four five six" || !o.Cut() {
		t.Errorf("%q, cut %v", got, o.Cut())
	}
	o.Reset(16)
	o.Text([]byte("four overlong-words are no sieve"))
	o.Break(TagNone)
	o.Text([]byte("a b"))
	o.Break(TagNone)
	if got := o.Full(o.All()); got != "four" || !o.Cut() {
		t.Errorf("%q, cut %v: no beginning of the text", got, o.Cut())
	}
	o.Reset(16)
	for range maxElems + 10 {
		o.Open(atom.Div, 0)
	}
	o.Text([]byte("x"))
	o.Break(TagNone)
	for range maxElems + 20 {
		o.Close()
	}
	if got := o.Full(o.All()); got != "x" || len(o.elems) != maxElems || o.cur != 0 {
		t.Errorf("%q in %d elements, %d open", got, len(o.elems), o.cur)
	}
}

// FuzzOutline builds an outline from bytes. The chosen text must consist of visible lines, in their
// order.
func FuzzOutline(f *testing.F) {
	f.Add([]byte("\x00a text of some length that reads like prose, as it has words\x01\x05\x02more\x03\x04"))
	f.Add([]byte("\x00\x10\x20\x30x\x01y\x02z\x03\x06\x07"))
	atoms := []atom.Atom{atom.Div, atom.Main, atom.Article, atom.Nav, atom.Footer, atom.P, atom.Section, atom.Aside}
	hints := []Hint{0, Hidden, Clutter, Clutter | Imprint, Caption, Control, InMain, InArticle}
	var o Outline
	f.Fuzz(func(t *testing.T, script []byte) {
		o.Reset(1 << 12)
		for i := 0; i < len(script); i++ {
			switch b := script[i]; b & 7 {
			case 0, 1:
				a := atoms[b>>3&7]
				o.Open(a, OfElement(a)|hints[b>>5])
			case 2:
				o.Close()
			case 3:
				o.Break(Tag(b>>3) % (TagQuote + 1))
			case 4:
				o.SetLink(b&8 != 0)
			default:
				end := min(len(script), i+1+int(b>>2))
				o.Text(script[i+1 : end])
				i = end - 1
			}
		}
		o.Break(TagNone)
		full := o.Full(o.All())
		rest := strings.Split(full, "\n")
		for line := range strings.SplitSeq(o.Main(), "\n") {
			if line == "" {
				continue
			}
			i := slices.Index(rest, line)
			if i < 0 {
				t.Fatalf("%q is not a line of %q, or not in order", line, full)
			}
			rest = rest[i+1:]
		}
		if v, ok := o.LinkDensity(); ok && !(v >= 0 && v <= 1) || ok != (full != "") {
			t.Errorf("link density %v, %v of %q", v, ok, full)
		}
		_ = o.Heading()
	})
}
