package text

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func count(s, language string) (*Terms, int32) {
	var n Normal
	var t Terms
	n.Normalize(s)
	return &t, t.Count(&n, language)
}

func scriptsOf(t *Terms) string {
	var out []string
	for _, s := range t.Scripts() {
		out = append(out, fmt.Sprint(s.Script, " ", s.Words))
	}
	return strings.Join(out, ", ")
}

func TestWordsAreCountedByScript(t *testing.T) {
	for _, tt := range []struct {
		in      string
		want    int32
		scripts string
	}{
		{"", 0, ""},
		{"... --- !!! ❤️ 👨‍👩‍👧", 0, ""},
		{"one two, three.", 3, "Latn 3"},
		{"don't stop; it’s 'quoted'", 4, "Latn 4"},
		{"3,000.5 lamps in 1999", 4, "Zyyy 2, Latn 2"},
		{"no.space after.stop", 4, "Latn 4"},
		{"well-known low_line", 4, "Latn 4"},
		{"col·lecció", 1, "Latn 1"},
		{"Wort\u00ADtren\u00ADnung", 1, "Latn 1"},
		{"灯塔立在", 4, "Hani 4"},
		{"灯台 lamp 灯台", 5, "Hani 4, Latn 1"},
		{"これはラーメンです", 6, "Hira 5, Kana 1"},
		{"ラーメン・カレー", 2, "Kana 2"},
		{"ประภาคารตั้งอยู่", 4, "Thai 4"}, // the run has 16 letters and marks
		{"ប្រទេស ខ្មែរ", 4, "Khmr 4"},
		{"маяк стоит на краю", 4, "Cyrl 4"},
		{"ο φάρος και the lamp", 5, "Grek 3, Latn 2"},
		{"नमस्ते दुनिया", 2, "Deva 2"},
		{"한국어는 띄어 씁니다", 3, "Hang 3"},
		{"می\u200cخواهم بروم", 2, "Arab 2"},
		{"שלום עולם", 2, "Hebr 2"},
		{"naïve café cafe\u0301", 3, "Latn 3"},
		{"ᏣᎳᎩ ꓡꓲꓢꓴ", 2, "Zzzz 1, Cher 1"},
		{"𐌰a 𐌰1 1a", 3, "Latn 2, Zzzz 1"},
	} {
		terms, n := count(tt.in, "eng")
		if got := scriptsOf(terms); n != tt.want || got != tt.scripts {
			t.Errorf("%q has %d words (%s), want %d (%s)", tt.in, n, got, tt.want, tt.scripts)
		}
	}
}

// naiveScripts lists the scripts of the package comment, with the names of Go's tables.
var naiveScripts = map[string]string{"Latn": "Latin", "Cyrl": "Cyrillic", "Grek": "Greek", "Arab": "Arabic", "Hebr": "Hebrew",
	"Deva": "Devanagari", "Beng": "Bengali", "Hang": "Hangul", "Thai": "Thai", "Mymr": "Myanmar", "Hira": "Hiragana",
	"Kana": "Katakana", "Hani": "Han"}

// kindByTheBook classifies a code point by the definition of words in the package comment.
func kindByTheBook(r rune) string {
	is := func(names ...string) bool {
		for _, n := range names {
			if unicode.Is(unicode.Scripts[n], r) {
				return true
			}
		}
		return false
	}
	switch {
	case unicode.IsMark(r) || r == 0x200C || r == 0x200D:
		return "mark"
	case r == 0x30FC || r == 0xFF70:
		return "kana"
	case !unicode.IsLetter(r) && !unicode.IsNumber(r):
		return ""
	case is("Han", "Hiragana"):
		return "ideograph"
	case is("Katakana"):
		return "kana"
	case unicode.IsNumber(r):
		return "number"
	case is("Thai", "Lao", "Khmer", "Myanmar", "Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet"):
		return "unspaced"
	}
	return "letter"
}

// wordsByTheBook is a second, slow implementation of eachWord. It looks for the places between code
// points at which no word ends.
func wordsByTheBook(normal string) (out []string) {
	runes := []rune(normal)
	kinds := make([]string, len(runes)) // kind of each character; a mark within a word gets the kind of the character before
	for i, r := range runes {
		kinds[i] = kindByTheBook(r)
	}
	for i := 0; i < len(runes); {
		if kinds[i] == "" || kinds[i] == "mark" {
			i++
			continue
		}
		j := i + 1
		last := kinds[i]
		for ; j < len(runes); j++ {
			k := kinds[j]
			alpha := (last == "letter" || last == "number")
			switch {
			case k == "mark":
				continue
			case alpha && (k == "letter" || k == "number"):
			case k == last && (k == "kana" || k == "unspaced"):
			case strings.ContainsRune("'’·", runes[j]) && last == "letter" && j+1 < len(runes) && kinds[j+1] == "letter":
				continue
			case strings.ContainsRune(".,", runes[j]) && j+1 < len(runes) && runes[j-1] >= '0' && runes[j-1] <= '9' && runes[j+1] >= '0' && runes[j+1] <= '9':
				continue
			default:
				goto ended
			}
			last = k
		}
	ended:
		out = append(out, string(runes[i:j]))
		i = j
	}
	return out
}

func wordsOf(normal string) (out []string) {
	eachWord([]byte(normal), func(w *word) { out = append(out, normal[w.start:w.end]) })
	return out
}

func TestWordsAreThoseOfTheDefinition(t *testing.T) {
	for _, s := range sampleTexts {
		if d := cmp.Diff(wordsByTheBook(normal(s)), wordsOf(normal(s))); d != "" {
			t.Errorf("%q: %s", s, d)
		}
	}
}

func FuzzWords(f *testing.F) {
	for _, s := range sampleTexts {
		f.Add(s, "eng")
	}
	f.Add("l'eau d'un dell'acqua l' l’é", "fra")
	f.Fuzz(func(t *testing.T, s, language string) {
		s = normal(s)
		if d := cmp.Diff(wordsByTheBook(s), wordsOf(s)); d != "" {
			t.Errorf("%q: %s", s, d)
		}
		terms, n := count(s, language)
		var sum int32
		for _, c := range terms.Scripts() {
			sum += c.Words
		}
		if sum != n {
			t.Errorf("%q: %d words, %d by script", s, n, sum)
		}
		for _, x := range terms.Top(50) {
			if x.Count < 1 || x.Text == "" || !utf8.ValidString(x.Text) {
				t.Errorf("%q: term %q %d", s, x.Text, x.Count)
			}
		}
		if r, ok := terms.StopRatio(); ok && !(r >= 0 && r <= 1) {
			t.Errorf("%q: stop word ratio %v", s, r)
		}
	})
}

func TestPropertiesAreUnicodes(t *testing.T) {
	for c := range rune(utf8.RuneSelf) {
		if got, want := ascii[c], propertyOf(c); got != want {
			t.Errorf("%q: %v, want %v", c, got, want)
		}
	}
	for name, long := range naiveScripts {
		for _, r := range []rune{'a', 'я', 'ω', 'م', 'ש', 'क', 'ক', '한', 'ก', 'မ', 'あ', 'ア', '漢'} {
			if (scripts[bmp.propertiesOf(r).script].name == name) != unicode.Is(unicode.Scripts[long], r) {
				t.Errorf("%c: %s", r, name)
			}
		}
	}
	if scripts[latn].name != "Latn" || scripts[grek].name != "Grek" || scripts[cyrl].name != "Cyrl" {
		t.Error("indexes of scripts")
	}
}
