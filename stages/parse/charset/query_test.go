package charset

import (
	"strings"
	"testing"
)

func TestQueriesAreInTheCharsetOfTheDocument(t *testing.T) {
	for _, tt := range []struct{ charset, ref, want string }{
		{"windows-1251", "/s?q=привет", "/s?q=%EF%F0%E8%E2%E5%F2"},
		{"windows-1251", "/привет?q=при вет&b=мир#привет", "/привет?q=%EF%F0%E8 %E2%E5%F2&b=%EC%E8%F0#привет"},
		{"windows-1251", "/привет#a?q=привет", "/привет#a?q=привет"},
		{"windows-1251", "привет", "привет"},
		{"windows-1251", "/s?q=%D0%BF&amp", "/s?q=%D0%BF&amp"},
		{"windows-1251", "?灯я💡", "?%26%2328783%3B%FF%26%23128161%3B"},
		{"windows-1251", "?\uFFFD", "?%26%2365533%3B"},
		{"windows-1252", "?q=€é", "?q=%80%E9"},
		{"ISO-8859-2", "?q=łé", "?q=%B3%E9"},
		{"KOI8-R", "?q=я", "?q=%D1"},
		{"Shift_JIS", "?q=表", "?q=%95\\"},
		{"EUC-JP", "?q=表", "?q=%C9%BD"},
		{"ISO-2022-JP", "?q=a表b", "?q=a%1B$BI=%1B(Bb"},
		{"ISO-2022-JP", "?q=表💡表", "?q=%1B$BI=%1B(B%26%23128161%3B%1B$BI=%1B(B"},
		{"GBK", "?q=灯€", "?q=%B5%C6%80"},
		{"GB18030", "?q=灯💡", "?q=%B5%C6%949%D95"},
		{"Big5", "?q=燈", "?q=%BFO"},
		{"EUC-KR", "?q=한", "?q=%C7%D1"},
		{"UTF-8", "?q=привет", "?q=привет"},
		{"UTF-16LE", "?q=привет", "?q=привет"},
		{"UTF-16BE", "?q=привет", "?q=привет"},
		{"replacement", "?q=привет", "?q=привет"},
		{"", "?q=привет", "?q=привет"},
		{"unknown", "?q=привет", "?q=привет"},
	} {
		if got := string(NewQueryEncoder(tt.charset).Encode([]byte(tt.ref))); got != tt.want {
			t.Errorf("%s: %s: %s, want %s", tt.charset, tt.ref, got, tt.want)
		}
	}
}

// TestMissingCharactersCostNoAllocations encodes long runs of characters, some of which the character set lacks. A
// buffer for each of these, as long as the rest of the run, would make the time quadratic.
func TestMissingCharactersCostNoAllocations(t *testing.T) {
	const n = 1000
	for _, tt := range []struct{ charset, run, want string }{
		{"windows-1253", "灯", "%26%2328783%3B"},
		{"windows-1253", "灯λ", "%26%2328783%3B%EB"},
		{"EUC-JP", "💡表", "%26%23128161%3B%C9%BD"},
		{"ISO-2022-JP", "表💡", "%1B$BI=%1B(B%26%23128161%3B"},
	} {
		q := NewQueryEncoder(tt.charset)
		ref := []byte("?" + strings.Repeat(tt.run, n))
		if got, want := string(q.Encode(ref)), "?"+strings.Repeat(tt.want, n); got != want {
			t.Errorf("%s: %d times %s: %.99s", tt.charset, n, tt.run, got)
		}
		if allocs := testing.AllocsPerRun(1, func() { q.Encode(ref) }); allocs > 20 {
			t.Errorf("%s: %d times %s: %.0f allocations", tt.charset, n, tt.run, allocs)
		}
	}
	if got, want := string(NewQueryEncoder("ISO-2022-JP").Encode([]byte("?"+strings.Repeat("表", n)))), "?%1B$B"+strings.Repeat("I=", n)+"%1B(B"; got != want {
		t.Errorf("a long run: %.99s", got)
	}
}
