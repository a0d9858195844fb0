package parse

import (
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	late := "<!doctype html>" + strings.Repeat("<script>var a = 1;</script>", 60)
	for _, tt := range []struct {
		name, contentType, body, want, charset string
	}{
		{"nothing said, ASCII", "", "abc", "abc", "UTF-8"},
		{"nothing said, UTF-8", "", "<p>größe", "<p>größe", "UTF-8"},
		{"a mark, whatever the header says", "text/html; charset=iso-8859-1", "\xEF\xBB\xBFgröße", "größe", "UTF-8"},
		{"UTF-16 by its mark", "", "\xFF\xFEa\x00\xFC\x00", "aü", "UTF-16LE"},
		{"the header before the meta element", "text/html; charset=iso-8859-2", "<meta charset=utf-8>\xB1", "<meta charset=utf-8>ą", "ISO-8859-2"},
		{"a meta element", "text/html", "<meta charset=koi8-r>\xC1", "<meta charset=koi8-r>а", "KOI8-R"},
		{"iso-8859-1 means windows-1252", "text/html; charset=ISO-8859-1", "\x80", "€", "windows-1252"},
		{"a label that nobody knows", "text/html; charset=klingon", "größe", "größe", "UTF-8"},
		{"malformed UTF-8", "text/html; charset=utf-8", "a\xE2\x82b\xFF", "a\uFFFDb\uFFFD", "UTF-8"},
		{"a meta element after a thousand bytes", "", late + "<META http-equiv=content-type content='text/html; CHARSET=shift_jis'>\x93\xFA",
			late + "<META http-equiv=content-type content='text/html; CHARSET=shift_jis'>日", "Shift_JIS"},
		{"an XML declaration", "", "<?xml version='1.0' encoding='iso-8859-5'?><html>\xD0", "<?xml version='1.0' encoding='iso-8859-5'?><html>а", "ISO-8859-5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, name := decode([]byte(tt.body), tt.contentType)
			if string(got) != tt.want || name != tt.charset {
				t.Errorf("%q as %s, want %q as %s", got, name, tt.want, tt.charset)
			}
		})
	}
}
