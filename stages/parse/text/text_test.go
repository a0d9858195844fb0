package text

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html/atom"
)

func TestLowerIsTheNormalForm(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " \n\t ": "", "A  B\nC": "a b c", "  Größe\u00A0ÄÖ ": "größe äö", "ΑΣ": "ασ", "\u3000灯塔\u3000": "灯塔",
	} {
		if got := string(Lower(nil, in)); got != want {
			t.Errorf("Lower(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDigest(t *testing.T) {
	if got := Digest(nil); got != "" {
		t.Errorf("digest of no text: %q", got)
	}
	// printf abc | sha1sum | xxd -r -p | base32
	if got, want := Digest([]byte("abc")), "VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"; got != want {
		t.Errorf("digest %q, want %q", got, want)
	}
}

func TestWordsAreCountedByScript(t *testing.T) {
	for in, want := range map[string]int32{
		"":                          0,
		"one two, three.":           3,
		"don't stop; it’s 'quoted'": 4,
		"3,000 lamps in 1999":       5,
		"well-known":                2,
		"灯塔立在":                      4,
		"灯台 lamp 灯台":                5,
		"ประภาคารตั้งอยู่":   4, // 16 letters and marks
		"маяк стоит на краю": 4,
		"नमस्ते दुनिया":      2,
		"naïve café":         2,
		"... --- !!!":        0,
	} {
		var terms Terms
		if got := terms.Count(Lower(nil, in), "eng"); got != want {
			t.Errorf("%q has %d words, want %d", in, got, want)
		}
	}
}

func TestTopTerms(t *testing.T) {
	top := func(s, lang string, n int) string {
		var terms Terms
		terms.Count(Lower(nil, s), lang)
		var out []string
		for _, x := range terms.Top(n) {
			out = append(out, fmt.Sprintf("%s %d", x.Text, x.Count))
		}
		return strings.Join(out, ", ")
	}
	for _, tt := range []struct {
		name, in, lang string
		n              int
		want           string
	}{
		{"by count, then by place", "lamp. sea. lamp. wind. sea. lamp", "eng", 3, "lamp 3, sea 2, wind 1"},
		{"stop words and short words are none, and part pairs", "the sea of the sea is at the sea", "eng", 5, "sea 3"},
		{"stop words are of a language", "der Turm und der Turm", "deu", 5, "turm 2"},
		{"pairs that occur twice", "light house. Light house, light keeper", "eng", 9, "light 3, light house 2, house 2, keeper 1"},
		{"a full stop parts a pair", "old lamp. sea old lamp. sea", "eng", 9, "lamp 2, sea 2"},
		{"ideographs come in pairs", "灯塔的光和灯塔", "zho", 5, "灯塔 2"},
		{"numbers are none", "1999 1999 1999 lamp", "eng", 5, "lamp 1"},
		{"nothing", "", "eng", 5, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := top(tt.in, tt.lang, tt.n); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestTermsGrowWithTheText(t *testing.T) {
	var sb strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&sb, "w%c%c%c ", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
	}
	var terms Terms
	low := Lower(nil, sb.String())
	if got := terms.Count(low, ""); got != 50_000 {
		t.Fatalf("%d words", got)
	}
	first := terms.Top(3)
	terms.Count([]byte("other text"), "")
	terms.Count(low, "")
	if d := cmp.Diff(first, terms.Top(3)); d != "" {
		t.Error(d)
	}
	if first[0].Count != 3 { // 50,000 words of 17,576
		t.Errorf("most frequent word counted %d times", first[0].Count)
	}
}

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
	} {
		if got := OfName([]byte(in)); got != want {
			t.Errorf("OfName(%q) = %b, want %b", in, got, want)
		}
	}
}

// outline builds an outline from a script: "<name.class" opens, ">" closes, other words
// are blocks with underscores for spaces; a leading * makes a block a link, # a heading.
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
