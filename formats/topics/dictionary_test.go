package topics

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestADictionaryNumbersTextsAsAMapDoes adds texts in random order, most of them several times, and clears the
// dictionary in between.
func TestADictionaryNumbersTextsAsAMapDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var d dictionary
	for _, distinct := range []int{0, 1, 767, 768, 769, 100_000, 10} {
		want := map[string]int32{}
		for range 3 * distinct {
			text := fmt.Sprint("text ", r.IntN(distinct))
			if r.IntN(distinct) == 0 {
				text = ""
			}
			number, known := want[text]
			if n := d.known([]byte(text)); known != (n >= 0) || known && n != number {
				t.Fatalf("of %d texts, %q has the number %d before it is added again; want %d, %t", distinct, text, n, number, known)
			}
			if !known {
				number = int32(len(want))
				want[text] = number
			}
			if n, added := d.number([]byte(text)); n != number || added == known {
				t.Fatalf("of %d texts, %q has the number %d, added %t; want %d, %t", distinct, text, n, added, number, !known)
			}
		}
		for text, number := range want {
			if got := string(d.text(number)); got != text {
				t.Errorf("of %d texts, number %d is %q, want %q", distinct, number, got, text)
			}
		}
		if d.known([]byte("unknown")) >= 0 || len(d.ends) != len(want) {
			t.Errorf("%d texts are %d, and an unknown one is known: %t", len(want), len(d.ends), d.known([]byte("unknown")) >= 0)
		}
		d.clear()
	}
}
