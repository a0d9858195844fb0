package charset

import (
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
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
		{"the header says windows-1251 of UTF-8", "text/html; charset=windows-1251", "Привет, мир, и вот ещё слова", "Привет, мир, и вот ещё слова", "UTF-8"},
		{"the header says GBK of UTF-8", "text/html; charset=gbk", "<p>灯塔矗立在海角的尽头，夜里远在海上也能看见它的光。", "<p>灯塔矗立在海角的尽头，夜里远在海上也能看见它的光。", "UTF-8"},
		{"the header says Big5 of UTF-8", "text/html; charset=big5", "<p>灯塔矗立在海角的尽头，夜里远在海上也能看见它的光。", "<p>灯塔矗立在海角的尽头，夜里远在海上也能看见它的光。", "UTF-8"},
		{"the meta element says Shift_JIS of UTF-8", "", "<meta charset=shift_jis><p>灯台は岬の先に立ち、夜には遠い海からその光が見える。", "<meta charset=shift_jis><p>灯台は岬の先に立ち、夜には遠い海からその光が見える。", "UTF-8"},
		{"the header says EUC-JP of UTF-8", "text/html; charset=euc-jp", "灯台は岬の先に立ち、夜には遠い海からその光が見える。", "灯台は岬の先に立ち、夜には遠い海からその光が見える。", "UTF-8"},
		{"the header says EUC-KR of UTF-8", "text/html; charset=euc-kr", "등대는 곶의 끝에 서 있고 밤에는 먼 바다에서도 빛이 보인다.", "등대는 곶의 끝에 서 있고 밤에는 먼 바다에서도 빛이 보인다.", "UTF-8"},
		{"the header says ISO-8859-1 of UTF-8 that is cut within a character", "text/html; charset=iso-8859-1", "größe, gr\xC3", "größe, gr\uFFFD", "UTF-8"},
		{"the header says GBK of UTF-8 that is cut within a character", "text/html; charset=gbk", "<p>灯塔矗立在海角的尽头，夜里远在海上\xE4\xB9", "<p>灯塔矗立在海角的尽头，夜里远在海上\uFFFD", "UTF-8"},
		{"the meta element says windows-1251 of UTF-8 that is cut within a character", "", "<meta charset=windows-1251>" + strings.Repeat("灯", 16) + "\xF0\x9F\x92",
			"<meta charset=windows-1251>" + strings.Repeat("灯", 16) + "\uFFFD", "UTF-8"},
		{"windows-1252 with one letter outside ASCII, the last", "text/html; charset=iso-8859-1", "caf\xE9", "café", "windows-1252"},
		{"nothing said, one letter outside ASCII, the last", "", "le caf\xE9", "le café", "windows-1252"},
		{"the header says UTF-16 of ASCII", "text/html; charset=utf-16", "<p>Hello, world", "<p>Hello, world", "UTF-8"},
		{"the header says UTF-16 of UTF-8 with a zero", "text/html; charset=utf-16le", strings.Repeat("größe ", 40) + "\x00", strings.Repeat("größe ", 40) + "\x00", "UTF-8"},
		{"the header says UTF-16 of windows-1252", "text/html; charset=utf-16be", "<p>Hello, gr\xF6\xDFe", "<p>Hello, größe", "windows-1252"},
		{"the header says the wrong end first", "text/html; charset=utf-16le", "\x00<\x00p\x00>\x00\xFC\x00 \x00x\x00y\x00z", "<p>ü xyz", "UTF-16BE"},
		{"two characters may be an accident", "text/html; charset=gbk", "\xC1\xAA\xCD\xA8", "联通", "GBK"},
		{"UTF-8 with a byte of another", "text/html", "größe größe größe größe gr\xF6\xDF größe größe größe größe größe größe größe größe größe",
			"größe größe größe größe gr\uFFFD\uFFFD größe größe größe größe größe größe größe größe größe", "UTF-8"},
		{"a meta element in a comment is none", "", "<!-- <meta charset=koi8-r> --><meta charset=iso-8859-2>\xB1", "<!-- <meta charset=koi8-r> --><meta charset=iso-8859-2>ą", "ISO-8859-2"},
		{"the first meta element that names one counts", "", "<meta charset=x><meta charset=iso-8859-2><meta charset=koi8-r>\xB1",
			"<meta charset=x><meta charset=iso-8859-2><meta charset=koi8-r>ą", "ISO-8859-2"},
		{"a script that speaks of charsets declares none", "", "<script charset=koi8-r>var charset;</script>\xCF\xF0\xE8\xE2\xE5\xF2",
			"<script charset=koi8-r>var charset;</script>Привет", "windows-1251"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, name := Decode([]byte(tt.body), tt.contentType)
			if string(got) != tt.want || name != tt.charset {
				t.Errorf("%q as %s, want %q as %s", got, name, tt.want, tt.charset)
			}
		})
	}
}

// TestGuessOfShortTexts guesses the encoding of texts of one or two sentences.
func TestGuessOfShortTexts(t *testing.T) {
	for _, tt := range []struct{ text, encodings string }{
		{"It’s a café, “cheap” — from £10 to £20, © 2026.", "windows-1252"},
		{"Prices: £100, £200, £350 and £4,000. 20 °C. § 5. ½ price.", "windows-1252 iso-8859-1"},
		{"Only 99 € a month, not 199 €!", "windows-1252 iso-8859-15"},
		{"Die größten Bäume stehen früh im Jahr schön grün.", "windows-1252 iso-8859-1"},
		{"Ça a été décidé à l'unanimité, où que vous soyez, même là-bas.", "windows-1252 iso-8859-1"},
		{"El niño comió mañana, ¿no? ¡Sí, señor! También está aquí.", "windows-1252 iso-8859-1"},
		{"Não há informações disponíveis; é só à tarde, então.", "windows-1252 iso-8859-1"},
		{"Å være eller ikke være, det er spørsmålet på norsk også.", "windows-1252 iso-8859-1"},
		{"Þetta er íslenska og það er gott að geta lesið hana.", "windows-1252 iso-8859-1"},
		{"Příliš žluťoučký kůň úpěl ďábelské ódy, říká se.", "windows-1250 iso-8859-2"},
		{"Zażółć gęślą jaźń, powiedział, że się śmieje z książki.", "windows-1250 iso-8859-2"},
		{"Az árvíztűrő tükörfúrógép szép, és mindenki szereti őt.", "windows-1250 iso-8859-2"},
		{"Šta je to što se događa, možda će biti dobro veče.", "windows-1250 iso-8859-2"},
		{"Съешь же ещё этих мягких французских булок, да выпей чаю.", "windows-1251 koi8-r iso-8859-5 ibm866 x-mac-cyrillic"},
		{"Привет", "windows-1251 koi8-r"},
		{"НОВОСТИ И ПОГОДА НА СЕГОДНЯ, главное за день.", "windows-1251"},
		{"Чуєш їх, доцю, га? Кумедна ж ти, прощайся без ґольфів! Її є.", "windows-1251 koi8-u"},
		{"Ξεσκεπάζω την ψυχοφθόρα βδελυγμία και την αφήνω εδώ.", "windows-1253 iso-8859-7"},
		{"Pijamalı hasta yağız şoföre çabucak güvendi, öyle değil mi?", "windows-1254 iso-8859-9"},
		{"דג סקרן שט בים מאוכזב ולפתע מצא חברה", "windows-1255"},
		{"نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر", "windows-1256 iso-8859-6"},
		{"Įlinkdama fechtuotojo špaga sublykčiojusi pragręžė apvalų arbūzą, žmogus.", "windows-1257"},
		{"เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน", "windows-874"},
		{"色は匂へど散りぬるを、我が世誰ぞ常ならむ。", "shift_jis euc-jp iso-2022-jp"},
		{"키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.", "euc-kr"},
		{"天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。我们的网站有很多人。", "gbk gb18030"},
		{"天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。我們的網站有很多人。", "big5"},
	} {
		for label := range strings.FieldsSeq(tt.encodings) {
			e, _ := parsetest.Encoding(t, label)
			body, err := e.NewEncoder().String("<p>" + tt.text + "</p>")
			if err != nil {
				t.Fatalf("%s: %q: %v", label, tt.text, err)
			}
			if got, name := Decode([]byte(body), "text/html"); string(got) != "<p>"+tt.text+"</p>" {
				t.Errorf("%q in %s is taken for %s: %q", tt.text, label, name, got)
			}
		}
	}
}
