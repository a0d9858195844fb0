package source

import "testing"

// The place of a row in a table is the text of its key.
func TestTheKeyOfARowIsOneText(t *testing.T) {
	for want, key := range map[string][]string{
		"17":                   {"17"},
		"example.org,17":       {"example.org", "17"},
		"0xFF00,é":             {"\xff\x00", "é"},
		"":                     {""},
		"2026-11-25,0x80,long": {"2026-11-25", "\x80", "long"},
	} {
		if got := keyText(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}
