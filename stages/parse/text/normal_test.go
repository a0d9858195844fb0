package text

import (
	"bytes"
	"crypto/sha1"
	"encoding/base32"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func normal(s string) string {
	var n Normal
	n.Normalize(s)
	return string(n.Bytes)
}

func TestNormalForm(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"white space alone", " \n\t ", ""},
		{"white space and case", "A  B\nC", "a b c"},
		{"no-break spaces", "  Größe\u00A0ÄÖ ", "größe äö"},
		{"simple case mapping: no final sigma", "ΑΣ", "ασ"},
		{"ideographic space", "\u3000灯塔\u3000", "灯塔"},
		{"composed", "Cafe\u0301 \u1112\u1161\u11ab", "café 한"},
		{"compatibility characters stay", "ﬁ ² ①", "ﬁ ² ①"},
		{"soft hyphens and marks of direction go", "\uFEFFWort\u00ADtrennung \u200Fשלום\u200E\u2069", "worttrennung שלום"},
		{"zero width space parts, zero width non-joiner stays", "a\u200Bb می\u200Cشود", "a b می\u200cشود"},
		{"an invisible character between spaces", "a \u2060 b", "a b"},
		{"bytes that are no UTF-8", "a\xffb", "a\uFFFDb"},
		{"İ is i by the simple mapping", "İ", "i"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := normal(tt.in); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestLineBreaksAndCompositionDoNotChangeTheDigest shows why texts are normalised.
func TestLineBreaksAndCompositionDoNotChangeTheDigest(t *testing.T) {
	const one = "Tiếng Việt\nđược viết bằng chữ Latinh. Ångström, 각 나라."
	other := strings.ToUpper(norm.NFD.String(strings.ReplaceAll(one, "\n", "  ")))
	if a, b := normal(one), normal(other); a != b {
		t.Errorf("%q and %q differ", a, b)
	}
}

func TestDigest(t *testing.T) {
	if got := Digest(nil); got != "" {
		t.Errorf("digest of no text: %q", got)
	}
	// The digest equals that of: printf abc | sha1sum | xxd -r -p | base32
	if got, want := Digest([]byte("abc")), "VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"; got != want {
		t.Errorf("digest %q, want %q", got, want)
	}
}

var (
	invisibles  = regexp.MustCompile(`[\x{AD}\x{61C}\x{200E}\x{200F}\x{202A}-\x{202E}\x{2060}\x{2066}-\x{2069}\x{FEFF}]`)
	whiteSpaces = regexp.MustCompile(`[\pZ\x{0}-\x{20}\x{85}\x{200B}]+`)
)

// byTheBook computes the normal form by the steps of the package comment.
func byTheBook(s string) string {
	s = norm.NFC.String(s)
	s = string([]rune(s)) // a byte that is not UTF-8 becomes U+FFFD
	s = invisibles.ReplaceAllString(s, "")
	s = strings.Map(unicode.ToLower, s)
	return strings.Trim(whiteSpaces.ReplaceAllString(s, " "), " ")
}

var sampleTexts = []string{
	"", "one", "One, TWO; three!\nfour 3,000.50 lamps", "L'été à Besançon — l’eau d'un côté: 25 °C", "e\u0301te\u0301 \u0301 x",
	"STRASSE Straße İstanbul ΣΊΣΥΦΟΣ Ǆ ᾈ Ⅻ", "東京は日本の首都です。ラーメン屋さん ﾗｰﾒﾝ", "ภาษาไทยไม่มี ช่องว่าง", "မြန်မာဘာသာ",
	"한국어는 띄어 씁니다", "می\u200cخواهم", "bad\xffbytes\xc3(\xe2\x82", "nul\x00nul \u0085 \u1680 \u2028 \u200b\ufeff", "a\u00adb\u2060c",
	"नमस्ते दुनिया পড়া", "col·lecció 1.5 a.b x_y ❤️ 👨\u200d👩\u200d👧", "𠀀𠀁 𝐀 𐐀", strings.Repeat("\u0301", 70) + "x", "שלום \"עולם\" צה\u05F4ל",
}

func TestNormalFormIsThatOfTheDefinition(t *testing.T) {
	for _, s := range sampleTexts {
		if got, want := normal(s), byTheBook(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
		if got := normal(normal(s)); got != normal(s) {
			t.Errorf("%q: the normal form of its normal form is %q", s, got)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if p := norm.NFC.PropertiesString(string(r)); neverCombines(r) && (!norm.NFC.IsNormalString(string(r)) || !p.BoundaryBefore() || p.CCC() != 0) {
			t.Fatalf("NFC does not leave %U alone", r)
		}
		if got, want := toLower(r), unicode.ToLower(r); got != want {
			t.Fatalf("lower(%U) = %U, want %U", r, got, want)
		}
		if got, want := r >= 0x85 && isSpace(r), r >= 0x85 && (unicode.IsSpace(r) || r == 0x200B); got != want {
			t.Fatalf("isSpace(%U) = %v", r, got)
		}
	}
}

// TestDigestOfAnotherProgram compares digests with those that Python's unicodedata and hashlib
// give.
func TestDigestOfAnotherProgram(t *testing.T) {
	for s, want := range map[string]string{
		"Cafe\u0301 au\u00A0lait\nTIẾNG": "SQMPK3OOVWNDDBHTFONRLDK5ELVAZDLK",
		"灯塔\u3000立在\u00AD岸边":             "BQ4DKETT5NEUKENQVD2E5OBV2GOP4DD5",
	} {
		if got := Digest([]byte(normal(s))); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
	sum := sha1.Sum([]byte(byTheBook("A")))
	if base32.StdEncoding.EncodeToString(sum[:]) != Digest([]byte("a")) {
		t.Error("SHA-1 in base 32")
	}
}

func FuzzNormal(f *testing.F) {
	for _, s := range sampleTexts {
		f.Add(s)
	}
	var n Normal
	f.Fuzz(func(t *testing.T, s string) {
		n.Normalize(s)
		if want := byTheBook(s); string(n.Bytes) != want {
			t.Errorf("%q: %q, want %q", s, n.Bytes, want)
		}
		if !utf8.Valid(n.Bytes) || bytes.Contains(n.Bytes, []byte("  ")) {
			t.Errorf("%q: %q", s, n.Bytes)
		}
		for _, l := range n.lines {
			if l <= 0 || int(l) >= len(n.Bytes) || n.Bytes[l-1] != ' ' {
				t.Errorf("%q: a line begins at %d of %q", s, l, n.Bytes)
			}
		}
	})
}
