package text

import (
	"strings"
	"testing"
)

func TestLanguageTags(t *testing.T) {
	for in, want := range map[string]string{
		"de": "de", "EN-us": "en-US", "pt_BR": "pt-BR", "zh-hant-tw": "zh-Hant-TW", "X-Default": "x-default", "es-419": "es-419", " fr ": "fr", "sl-rozaj-biske": "sl-rozaj-biske",
		"de-de-1996": "de-DE-1996", "en-a-bbb-x-ab-cdef": "en-a-bbb-x-ab-cdef", "de-19": "de-19",
		"": "", "-": "", "de-": "", "-de": "", "d": "", "de--at": "", "de at": "", "français": "", "19-de": "", "abcdefghi": "", strings.Repeat("ab-", 12) + "c": "",
	} {
		if got := LanguageTag([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
