package focus

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
)

func parsed(t *testing.T, text string) *Model {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTermsOfAllLanguagesAreFound(t *testing.T) {
	m := parsed(t, "\ufeff# energy\r\n1 Solar Power\r\n\n0.5 wind\n-2 horoscope\n4 Größe\n8 太陽光\n16 энергия\n32 पवन\n64 ünal")
	for text, want := range map[string]float64{
		"":                                       0,
		"SOLAR—power, wind and wind":             1.5,
		"solar-powered windows":                  0, // other words
		"power solar":                            0,
		"horoscope; solar\npower":                -1,
		"GRO\u0308ßE":                            4, // decomposed
		"日本の太陽光発電":                               8,
		"太 陽 光":                                  8,
		"太陽の光":                                   0,
		"Энергия ветра":                          16,
		"पवन ऊर्जा":                              32,
		"ｗｉｎｄ":                                   0.5, // full-width letters
		"wind\xff\xfesolar\x00power":             1.5,
		strings.Repeat("x ", maxScored) + "wind": 0, // beyond the bound
	} {
		if got := m.Score(text); got != want {
			t.Errorf("%.40q: %v, want %v", text, got, want)
		}
	}
	if got := m.Score("solar", "power"); got != 0 {
		t.Errorf("a term counts across two texts: %v", got)
	}
	if got := m.ScoreInlink("https://example.org/Gr%C3%B6%C3%9Fe/solar-power?q=wind%20%zz", &schema.Inlink{Anchors: []string{"ünal", "wind"}, SourceFocus: 3}); got != 1+0.5+64+1.5 {
		t.Errorf("a URL whose escapes are broken: %v", got)
	}
	if got := m.ScoreInlink("https://example.org/Gr%C3%B6%C3%9Fe", nil); got != 4 {
		t.Errorf("a URL with escapes: %v", got)
	}
	again := parsed(t, m.String())
	if again.String() != m.String() || again.Score("solar power wind 太陽光") != 9.5 {
		t.Errorf("%q becomes %q", m.String(), again.String())
	}
}

func TestErrorsOfAModelNameTheLine(t *testing.T) {
	many := &strings.Builder{}
	for i := range maxTerms + 1 {
		fmt.Fprintf(many, "1 t%d\n", i)
	}
	for text, want := range map[string]string{
		"":                              "no term",
		"# only a comment\n":            "no term",
		"1 solar\nwind":                 `line 2: "wind" is not a weight and a term`,
		"1 solar\nwind 2":               `line 2: "wind" is not a weight from -1000 to 1000`,
		"NaN solar":                     "line 1: ",
		"1e9 solar":                     "line 1: ",
		"-Inf solar":                    "line 1: ",
		"1 --- ":                        `line 1: the term "---" has 0 words`,
		"1 -- ?":                        `line 1: the term "-- ?" has 0 words`,
		"1 \xff":                        "line 1: ",
		"1 Solar\n\n2 SOLAR":            `line 3: the term "solar" is in line 1, too`,
		"1 " + strings.Repeat("a ", 17): "line 1: the term",
		many.String():                   "line 20001: a list has at most 20000 terms",
		strings.Repeat("#", MaxBytes+1): "more than",
	} {
		_, err := Parse(text)
		if !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %q", text, err, want)
		}
	}
}

func FuzzModel(f *testing.F) {
	f.Add("1 solar power\n-2 太陽光", "solar power 太陽光 \xff")
	f.Add("0.1 a\n0.2 b\n0.3 c", "c b a")
	f.Fuzz(func(t *testing.T, model, text string) {
		m, err := Parse(model)
		if err != nil {
			return
		}
		score := m.Score(text)
		if math.IsNaN(score) || m.Score(text) != score {
			t.Errorf("score %v", score)
		}
		again, err := Parse(m.String())
		if err != nil || again.String() != m.String() || again.Score(text) != score {
			t.Errorf("%q becomes %q: %v", model, m.String(), err)
		}
	})
}
