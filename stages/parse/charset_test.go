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
		{"a header with more after it", "text/html; x=y; Charset = \"koi8-r\" ; q=1", "\xC1", "а", "KOI8-R"},
		{"two types in a header", "text/html; charset=koi8-r, text/html", "\xC1", "а", "KOI8-R"},
		{"a header that is cut", "text/html; charset=\"koi8-r", "\xC1", "а", "KOI8-R"},
		{"UTF-16, big end first, by its mark", "text/html; charset=utf-8", "\xFE\xFF\x00a\x00\xFC", "aü", "UTF-16BE"},
		{"UTF-16 by the header", "text/html; charset=utf-16", "a\x00\xFC\x00", "aü", "UTF-16LE"},
		{"UTF-16 without a mark", "", "<\x00h\x00t\x00m\x00l\x00>\x00\xFC\x00 \x00x\x00", "<html>ü x", "UTF-16LE"},
		{"UTF-16 without a mark, big end first", "", "\x00<\x00h\x00t\x00m\x00l\x00>\x00\xFC\x00 \x00x", "<html>ü x", "UTF-16BE"},
		{"UTF-16 that ends within a character", "", "\xFF\xFEa\x00\xFC", "a\uFFFD", "UTF-16LE"},
		{"UTF-16 that ends within a pair", "", "\xFF\xFEa\x00\x3D\xD8", "a\uFFFD", "UTF-16LE"},
		{"a meta element that says UTF-16 can be read, so it is UTF-8", "", "<meta charset=utf-16>ü", "<meta charset=utf-16>ü", "UTF-8"},
		{"a meta element that says x-user-defined means windows-1252", "", "<meta charset=x-user-defined>\x80", "<meta charset=x-user-defined>€", "windows-1252"},
		{"x-user-defined in the header is what it is", "text/html; charset=x-user-defined", "a\x80", "a\uF780", "x-user-defined"},
		{"an encoding that must not be decoded", "text/html; charset=iso-2022-kr", "\x1B$)C<script>", "\uFFFD", "replacement"},
		{"one in a meta element", "", "<meta charset=hz-gb-2312>~{<script>", "\uFFFD", "replacement"},
		{"nothing in an encoding that must not be decoded", "text/html; charset=replacement", "", "", "replacement"},
		{"ISO-2022-JP by its escapes", "", "<p>\x1B$BF|K\\\x1B(B</p>", "<p>日本</p>", "ISO-2022-JP"},
		{"ISO-2022-JP that does not return", "text/html; charset=iso-2022-jp", "a\x1B$BF|", "a日", "ISO-2022-JP"},
		{"ISO-2022-JP with an escape that is none", "text/html; charset=iso-2022-jp", "a\x1B(Zb", "a\uFFFD(Zb", "ISO-2022-JP"},
		{"an escape is not ISO-2022-JP", "", "\x1B[1mbold\x1B$Bx", "\x1B[1mbold\x1B$Bx", "UTF-8"},
		{"the header says UTF-8 of windows-1251", "text/html; charset=utf-8", "\xCF\xF0\xE8\xE2\xE5\xF2, \xEC\xE8\xF0! \xC8 \xE2\xEE\xF2", "Привет, мир! И вот", "windows-1251"},
		{"the header says UTF-8, the meta element what it is", "text/html; charset=utf-8", "<meta charset=windows-1251>\xCF\xF0\xE8\xE2\xE5\xF2 \xEC\xE8\xF0",
			"<meta charset=windows-1251>Привет мир", "windows-1251"},
		{"the header says ISO-8859-1 of UTF-8", "text/html; charset=iso-8859-1", "größe", "größe", "UTF-8"},
		{"UTF-8 with a byte of another", "text/html", "größe größe größe größe gr\xF6\xDF größe größe größe größe größe größe größe größe größe",
			"größe größe größe größe gr\uFFFD\uFFFD größe größe größe größe größe größe größe größe größe", "UTF-8"},
		{"a meta element in a comment is none", "", "<!-- <meta charset=koi8-r> --><meta charset=iso-8859-2>\xB1", "<!-- <meta charset=koi8-r> --><meta charset=iso-8859-2>ą", "ISO-8859-2"},
		{"the first meta element that names one counts", "", "<meta charset=x><meta charset=iso-8859-2><meta charset=koi8-r>\xB1",
			"<meta charset=x><meta charset=iso-8859-2><meta charset=koi8-r>ą", "ISO-8859-2"},
		{"a script that speaks of charsets declares none", "", "<script charset=koi8-r>var charset;</script>\xCF\xF0\xE8\xE2\xE5\xF2",
			"<script charset=koi8-r>var charset;</script>Привет", "windows-1251"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, name := decode([]byte(tt.body), tt.contentType)
			if string(got) != tt.want || name != tt.charset {
				t.Errorf("%q as %s, want %q as %s", got, name, tt.want, tt.charset)
			}
		})
	}
}
