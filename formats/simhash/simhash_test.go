package simhash_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/simhash"
)

// byTheBook makes a fingerprint by following the steps of the package comment one by one.
func byTheBook(text string) uint64 {
	var words []string
	var word strings.Builder
	alone := false
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
		}
		word.Reset()
		alone = false
	}
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			end()
			continue
		}
		lower := string(unicode.ToLower(r))
		switch {
		case unicode.IsLetter(r) && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
			unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			end()
			word.WriteString(lower)
			alone = true
		case unicode.IsMark(r):
			word.WriteString(lower)
		case unicode.IsLetter(r), unicode.IsNumber(r):
			if alone {
				end()
			}
			word.WriteString(lower)
		default:
			end()
		}
	}
	end()
	if len(words) == 0 {
		return 0
	}
	size := min(3, len(words))
	var votes [64]int
	for i := 0; i+size <= len(words); i++ {
		hash := xxh3.HashString(strings.Join(words[i:i+size], " "))
		for bit := range votes {
			if hash>>bit&1 == 1 {
				votes[bit]++
			} else {
				votes[bit]--
			}
		}
	}
	var f uint64
	for bit, v := range votes {
		if v > 0 {
			f |= 1 << bit
		}
	}
	return f
}

var texts = []string{
	"", " \t\n", "!?", "one", "one two", "One, TWO; three!", "one two three four",
	"L'été à Besançon: 25 °C", "e\u0301te\u0301 ete", "\u0301 starts with a mark", "STRASSE Straße İstanbul ΣΊΣΥΦΟΣ",
	"東京は日本の首都です。ラーメン屋さん", "ภาษาไทยไม่มีช่องว่าง", "mixed東京mixed12東3", "မြန်မာဘာသာ", "한국어는 띄어 씁니다",
	"bad\xffbytes\xc3(\xe2\x82", "a\uFFFDb", "nul\x00nul", "x²y₂ Ⅻ ٣", strings.Repeat("a", 70_000), strings.Repeat("ab ", 20_000),
	strings.Repeat("語", 20_000), strings.Repeat("long"+strings.Repeat("x", 20_000)+" ", 9),
}

func TestFingerprintsAreThoseOfTheDefinition(t *testing.T) {
	var h simhash.Hasher
	for range 2 { // what the Hasher keeps from one text must not change the next fingerprint
		for _, text := range texts {
			if got, want := h.Fingerprint(text), byTheBook(text); got != want {
				t.Errorf("%.40q: %016x, want %016x", text, got, want)
			}
		}
	}
}

func FuzzHasher(f *testing.F) {
	for _, text := range texts {
		if len(text) < 1000 {
			f.Add(text)
		}
	}
	var h simhash.Hasher
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := h.Fingerprint(text), byTheBook(text); got != want {
			t.Errorf("%q: %016x, want %016x", text, got, want)
		}
	})
}

// The expected values come from another implementation (Python, xxhash 3). Fingerprints must stay
// the same for years, because new fingerprints are compared with stored ones.
func TestFingerprintsDoNotChange(t *testing.T) {
	for text, want := range map[string]uint64{
		"":                    0,
		"word":                0xe3ce369cf66c5c55,
		"Two words":           0xc6a748cef3b57855,
		"The quick brown fox": 0x4884401b808c8001,
		"the QUICK, brown fox jumps over the lazy dog": 0x5cc1c8efc0c9b905,
		"東京は日本の首都":                                     0x058018d2d0809878,
	} {
		var h simhash.Hasher
		if got := h.Fingerprint(text); got != want {
			t.Errorf("%q: %#016x, want %#016x", text, got, want)
		}
	}
}

// prose makes n words from a vocabulary.
func prose(r *rand.Rand, n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("w%d", r.IntN(5000))
	}
	return words
}

func TestNearTextsAreNearAndOthersFar(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var h simhash.Hasher
	for range 50 {
		words := prose(r, 1500)
		text := h.Fingerprint(strings.Join(words, " "))
		words[r.IntN(len(words))] = "changed"
		if d := simhash.Distance(text, h.Fingerprint(strings.Join(words, ", "))); d > 6 {
			t.Errorf("one word of 1500 changed: distance %d", d)
		}
		if d := simhash.Distance(text, h.Fingerprint(strings.Join(prose(r, 1500), " "))); d < 12 {
			t.Errorf("another text: distance %d", d)
		}
	}
}

func TestHasherDoesNotAllocate(t *testing.T) {
	var h simhash.Hasher
	text := strings.Join(prose(rand.New(rand.NewPCG(5, 6)), 3000), " ") + "東京は日本の首都"
	h.Fingerprint(text)
	if n := testing.AllocsPerRun(10, func() { h.Fingerprint(text) }); n > 0 {
		t.Errorf("%v allocations a text", n)
	}
}

func BenchmarkHasher(b *testing.B) {
	for name, text := range map[string]string{
		"ascii": strings.Join(prose(rand.New(rand.NewPCG(5, 6)), 1000), " "),
		"han":   strings.Repeat("東京は日本の首都", 300),
	} {
		b.Run(name, func(b *testing.B) {
			var h simhash.Hasher
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				h.Fingerprint(text)
			}
		})
	}
}
