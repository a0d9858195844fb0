package text

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

func topOf(s, lang string, n int) string {
	terms, _ := count(s, lang)
	var out []string
	for _, x := range terms.Top(n) {
		out = append(out, fmt.Sprintf("%s %d", x.Text, x.Count))
	}
	return strings.Join(out, ", ")
}

func TestTopTerms(t *testing.T) {
	for _, tt := range []struct {
		name, in, lang string
		n              int
		want           string
	}{
		{"by count, then by place", "lamp. sea. lamp. wind. sea. lamp", "eng", 3, "lamp 3, sea 2, wind 1"},
		{"stop words and short words are none, and part pairs", "the sea of the sea is at the sea", "eng", 5, "sea 3"},
		{"stop words are of a language", "der Turm und der Turm", "deu", 5, "turm 2"},
		{"a stop word with a curly apostrophe", "don’t don't lamp", "eng", 5, "lamp 1"},
		{"pairs that occur twice", "light house. Light house, light keeper", "eng", 9, "light 3, light house 2, house 2, keeper 1"},
		{"a pair has the place of its first word", "alpha, delta; delta. omega. alpha gamma. alpha gamma", "eng", 9, "alpha 3, alpha gamma 2, delta 2, gamma 2, omega 1"},
		{"pairs with the same first word", "lamp. sea. lamp wind lamp sea lamp wind lamp sea", "eng", 4, "lamp 5, sea 3, lamp wind 2, lamp sea 2"},
		{"a full stop parts a pair", "old lamp. sea old lamp. sea", "eng", 9, "old 2, old lamp 2, lamp 2, sea 2"},
		{"the end of a block parts a pair", "old lamp\nsea old lamp\nsea", "eng", 9, "old 2, old lamp 2, lamp 2, sea 2"},
		{"a block that begins with a mark", "old lamp\n«sea» old lamp\n«sea»", "eng", 9, "old 2, old lamp 2, lamp 2, sea 2"},
		{"what an apostrophe elides is no part", "l'eau, l’eau d'un phare. L'eau du phare", "fra", 9, "eau 3, phare 2"},
		{"nor does it part a pair", "palais l'élysée, palais l’Élysée", "fra", 9, "palais 2, palais élysée 2, élysée 2"},
		{"in English it is one", "O'Brien o'brien", "eng", 9, "o'brien 2"},
		{"Han code points come in pairs", "灯塔的光和灯塔", "zho", 5, "灯塔 2"},
		{"pairs of Han end with the block", "灯塔\n灯塔\n塔灯", "zho", 5, "灯塔 2"},
		{"particles and endings of Japanese are none, Katakana are words", "ラーメンを食べます。ラーメンは食べません。", "jpn", 5, "ラーメン 2"},
		{"Korean words of two syllables", "등대 등대 빛 빛", "kor", 5, "등대 2"},
		{"Thai runs that recur between spaces", "ประภาคาร ประภาคารตั้งอยู่ริมทะเล ประภาคาร", "tha", 5, "ประภาคาร 2"},
		{"Khmer with zero width spaces", "ប្រទេស\u200Bកម្ពុជា ប្រទេស\u200Bថៃ", "khm", 5, "ប្រទេស 2"},
		{"without a list of stop words short ones are none", "wai wai whare", "mri", 5, "whare 1"},
		{"a language near to another has its list", "dei ikkje lys lys", "nno", 5, "lys 2, dei 1"},
		{"numbers are none and part pairs", "1999 1999 lamp 2000 sea lamp 2001 sea", "eng", 5, "lamp 2, sea 2"},
		{"English words in another language", "the lamp and the lampa, this lampa", "hrv", 5, "lampa 2, lamp 1"},
		{"Khmer stop words", "បាន\u200Bប្រទេស បាន\u200Bប្រទេស", "khm", 5, "ប្រទេស 2"},
		{"nothing", "", "eng", 5, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := topOf(tt.in, tt.lang, tt.n); got != tt.want {
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
	var n, other Normal
	n.Normalize(sb.String())
	if got := terms.Count(&n, ""); got != 50_000 {
		t.Fatalf("%d words", got)
	}
	first := terms.Top(3)
	other.Normalize("other text")
	terms.Count(&other, "")
	terms.Count(&n, "")
	if d := cmp.Diff(first, terms.Top(3)); d != "" {
		t.Error(d)
	}
	if first[0].Count != 3 { // the text has 50,000 words, of which 17,576 are different
		t.Errorf("most frequent word counted %d times", first[0].Count)
	}
}

// allLists returns the lists of all languages.
func allLists() map[string]*stopList {
	all := map[string]*stopList{}
	for lang := range stopLists() {
		all[lang] = stopWordsOf(lang)
	}
	return all
}

func TestStopWordsAreWordsOfLanguages(t *testing.T) {
	all := allLists()
	if len(all) < 30 {
		t.Errorf("%d lists", len(all))
	}
	for lang, list := range all {
		if base, err := language.ParseBase(lang); err != nil || macro(base.ISO3()) != lang {
			t.Errorf("%s is not an ISO-639-3 code that Declared or Detect return", lang)
		}
		if len(list.set) < 20 {
			t.Errorf("%s has %d words", lang, len(list.set))
		}
		for w := range list.set {
			if w != normal(w) {
				t.Errorf("%s: %q is not in the normal form", lang, w)
			}
			got := wordsOf(w)
			if (len(got) != 1 || got[0] != w) && !strings.HasSuffix(w, "'") && !strings.Contains(w, "'") {
				t.Errorf("%s: %q is read as %q", lang, w, got)
			}
		}
	}
	for from, to := range nearLanguages {
		if all[to] == nil || all[from] != nil {
			t.Errorf("%s is near to %s", from, to)
		}
	}
}

func TestStopRatio(t *testing.T) {
	for _, tt := range []struct {
		in, lang string
		least    float64
		most     float64
	}{
		{"The lighthouse stands at the end of the cape, and its light can be seen far out at sea, every night of the year.", "eng", .5, .7},
		{"Der Leuchtturm steht am Ende des Kaps, und sein Licht ist weit draußen auf dem Meer zu sehen.", "deu", .45, .7},
		{"Lamps, bulbs, shades, cables, fuses, switches, sockets", "eng", 0, 0},
		{"灯塔矗立在海角的尽头，它的光在远处的海上也可以看到。", "zho", .15, .4},
	} {
		terms, _ := count(tt.in, tt.lang)
		if got, ok := terms.StopRatio(); !ok || got < tt.least || got > tt.most {
			t.Errorf("%q: %.2f, %v", tt.in, got, ok)
		}
	}
	for _, lang := range []string{"", "mri", "tha", "khm"} {
		terms, _ := count("he whare nui ประภาคาร", lang)
		if got, ok := terms.StopRatio(); ok {
			t.Errorf("%q has no list, and the ratio %v", lang, got)
		}
	}
}

// BenchmarkOddTexts counts terms in texts that are made to be slow. The time per byte must not grow
// with the length.
func BenchmarkOddTexts(b *testing.B) {
	distinct := func(n int) string {
		var sb strings.Builder
		for i := range n {
			fmt.Fprintf(&sb, "%x ", i*2654435761)
		}
		return sb.String()
	}
	for _, n := range []int{20_000, 320_000} {
		for name, s := range map[string]string{
			"apostrophes": strings.Repeat("a'", n), "points": strings.Repeat("1.", n), "marks": strings.Repeat("\u0301", n),
			"elisions": strings.Repeat("l'x ", n), "hyphens": strings.Repeat("a\u00AD", n), "lines": strings.Repeat("x\n", n),
			"jamo": strings.Repeat("\u1100\u1161", n), "distinct": distinct(n / 4), "cyrillic": strings.Repeat("маяк стоит ", n/8),
			"han": strings.Repeat("灯塔立在", n/8), "prose": strings.Repeat("the lamp of a lighthouse ", n/16),
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				var norm Normal
				var terms Terms
				b.SetBytes(int64(len(s)))
				b.ReportAllocs()
				for b.Loop() {
					norm.Normalize(s)
					terms.Count(&norm, "fra")
					terms.Top(50)
				}
			})
		}
	}
}

func TestStopListsAreComposedWhenTheyAreRead(t *testing.T) {
	for lang, list := range allLists() {
		for w := range list.set {
			if !norm.NFC.IsNormalString(w) {
				t.Errorf("%s: %q", lang, w)
			}
		}
	}
}
