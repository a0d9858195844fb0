package text

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/language"
)

func TestDetect(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"too little", "der die das", ""},
		{"numbers", strings.Repeat("1234 5678 ", 20), ""},
		{"Danish", "Hvis du ikke kan huske, hvad der blev sagt, må du spørge dem, som var der af egen vilje.", "dan"},
		{"Norwegian", "Hvis du ikke kan huske hva som ble sagt, må du spørre dem som var der av egen vilje.", "nor"},
		{"Swedish", "Om du inte kan minnas vad som blev sagt, måste du fråga dem som var där av egen vilja.", "swe"},
		{"Czech", "Pokud si nemůžete vzpomenout, co bylo řečeno, musíte se zeptat těch, kteří tam byli.", "ces"},
		{"Slovak", "Ak si nemôžete spomenúť, čo bolo povedané, musíte sa opýtať tých, ktorí tam boli.", "slk"},
		{"Slovenian", "Če se ne morete spomniti, kaj je bilo rečeno, morate vprašati tiste, ki so bili tam.", "slv"},
		{"Croatian", "Ako se ne možete sjetiti što je rečeno, morate pitati one koji su bili tamo; tko zna gdje je mjesto.", "hrv"},
		{"Serbian in Cyrillic", "Ако не можете да се сетите шта је речено, морате питати оне који су били тамо.", "srp"},
		{"Portuguese", "Se você não se lembra do que foi dito, tem que perguntar às pessoas que também estavam lá.", "por"},
		{"Galician", "Se non lembra o que se dixo, ten que preguntarlles ás persoas que tamén estaban alí; unha delas xa o sabe.", "glg"},
		{"Spanish", "Si no recuerda lo que se dijo, tiene que preguntar a las personas que también estaban allí.", "spa"},
		{"Catalan", "Si no recorda el que es va dir, ha de preguntar-ho a les persones que també hi eren amb aquest.", "cat"},
		{"Indonesian", "Jika Anda tidak ingat apa yang dikatakan, Anda harus bertanya kepada mereka karena bisa saja berkas hilang.", "ind"},
		{"Malay", "Jika anda tidak ingat apa yang dikatakan, sila tanya mereka kerana fail ialah perkara yang boleh hilang daripada anda.", "msa"},
		{"Russian", "Если вы не помните, что было сказано, спросите тех, кто там был, это поможет.", "rus"},
		{"Ukrainian", "Якщо ви не пам'ятаєте, що було сказано, запитайте тих, хто там був, це допоможе.", "ukr"},
		{"Belarusian", "Калі вы не памятаеце, што было сказана, спытайце тых, хто там быў, гэта дапаможа.", "bel"},
		{"Bulgarian", "Ако не си спомняте какво е казано, попитайте тези, които са били там, това ще помогне.", "bul"},
		{"Arabic", "إذا كنت لا تتذكر ما قيل، فعليك أن تسأل الذين كانوا هناك في ذلك الوقت.", "ara"},
		{"Persian", "اگر به یاد ندارید که چه گفته شد، باید از کسانی که آنجا بودند بپرسید.", "fas"},
		{"Urdu", "اگر آپ کو یاد نہیں کہ کیا کہا گیا تھا تو ان لوگوں سے پوچھیں جو وہاں تھے۔", "urd"},
		{"Hindi", "अगर आपको याद नहीं है कि क्या कहा गया था, तो उन लोगों से पूछें जो वहाँ थे।", "hin"},
		{"Armenian", "Եթե չեք հիշում, թե ինչ է ասվել, հարցրեք նրանց, ովքեր այնտեղ էին։", "hye"},
		{"Japanese", "何が言われたか思い出せない場合は、そこにいた人々に尋ねなければなりません。", "jpn"},
		{"Chinese", "如果您不记得说了什么，您必须询问当时在那里的人们，他们会告诉您事情的经过。", "zho"},
		{"Korean", "무슨 말을 했는지 기억나지 않으면 그곳에 있던 사람들에게 물어봐야 합니다.", "kor"},
		{"Dzongkha", "འདི་གིས་ཁྱོད་ལུ་ཕན་ཐོགས་འོང་ནི་ཨིན། ཡིག་ཆ་འདི་ནང་ལཱ་འབད་དགོཔ་ཨིན།", "dzo"},
		{"Chinese among English names", "使用 Apache HTTP Server 和 Debian GNU/Linux 的用户应该首先阅读这份文件，然后再安装软件包。", "zho"},
	} {
		if got := Detect(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestScoredLanguagesAreLanguages checks the tables of the scorer.
func TestScoredLanguagesAreLanguages(t *testing.T) {
	scores, words := newScorer(), readLists("languages.txt")
	if len(scores.languages) > maxLanguages {
		t.Fatalf("%d languages, room for %d", len(scores.languages), maxLanguages)
	}
	for lang, list := range words {
		if base, err := language.ParseBase(lang); err != nil || base.ISO3() != lang {
			t.Errorf("%q is not a code of ISO 639-3", lang)
		}
		if lang != strings.ToLower(macro(lang)) {
			t.Errorf("%s is stored as %s", lang, macro(lang))
		}
		if list != strings.ToLower(list) {
			t.Errorf("%s: a word has a capital", lang)
		}
	}
	for lang := range readLists("letters.txt") {
		if _, ok := words[lang]; !ok {
			t.Errorf("%s has letters but no words", lang)
		}
	}
	for _, lang := range writings[4:] {
		if base, err := language.ParseBase(lang); err != nil || base.ISO3() != lang {
			t.Errorf("%q is not a code of ISO 639-3", lang)
		}
	}
	for _, r := range writingRanges {
		if !slices.Contains(writings[:], r.writing) {
			t.Errorf("the script %q of U+%04X is not listed", r.writing, r.from)
		}
	}
	for i := 1; i < len(writingRanges); i++ {
		if writingRanges[i].from <= writingRanges[i-1].to {
			t.Errorf("the range from U+%04X is out of order", writingRanges[i].from)
		}
	}
}

func FuzzDetect(f *testing.F) {
	f.Add("Hvis du ikke kan huske, hvad der blev sagt")
	f.Add("何が言われたか 무슨 ཨིན \u200c\u0300 \xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Detect(s)
		if got != Detect(s) {
			t.Error("the same text gave two different languages")
		}
		if got != "" && (len(got) != 3 || !utf8.ValidString(got)) {
			t.Errorf("%q is not a language", got)
		}
		if declared := Language("deu", s); declared == "" {
			t.Error("a declared language got lost")
		}
	})
}
