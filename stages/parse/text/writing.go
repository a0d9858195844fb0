package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// writing is a script that text is written in, as far as it tells a language.
type writing uint8

// The scripts of several languages, and the others, of which one language stands for
// nearly all that is written in it.
const (
	inLatin writing = iota
	inCyrillic
	inArabic
	inDevanagari
	inHan
	inKana
	inTibetan
	inGreek
	inArmenian
	inHebrew
	inBengali
	inGurmukhi
	inGujarati
	inOriya
	inTamil
	inTelugu
	inKannada
	inMalayalam
	inSinhala
	inThai
	inLao
	inBurmese
	inGeorgian
	inHangul
	inEthiopic
	inKhmer
	writingCount
)

// writingLanguages are the languages that a script tells.
var writingLanguages = [writingCount]string{inGreek: "ell", inArmenian: "hye", inHebrew: "heb", inBengali: "ben", inGurmukhi: "pan", inGujarati: "guj", inOriya: "ori",
	inTamil: "tam", inTelugu: "tel", inKannada: "kan", inMalayalam: "mal", inSinhala: "sin", inThai: "tha", inLao: "lao", inBurmese: "mya", inGeorgian: "kat",
	inHangul: "kor", inEthiopic: "amh", inKhmer: "khm", inHan: "zho", inKana: "jpn", inTibetan: "bod"}

// writingRange is a range of characters of a script.
type writingRange struct {
	from, to rune
	writing  writing
}

// writingRanges are in the order of their characters; those between them belong to none.
var writingRanges = [...]writingRange{
	{0xAA, 0x24F, inLatin}, {0x370, 0x3FF, inGreek}, {0x400, 0x52F, inCyrillic}, {0x531, 0x58F, inArmenian}, {0x5D0, 0x5F4, inHebrew},
	{0x620, 0x6FF, inArabic}, {0x904, 0x97F, inDevanagari}, {0x985, 0x9FB, inBengali}, {0xA05, 0xA75, inGurmukhi}, {0xA85, 0xAF9, inGujarati},
	{0xB05, 0xB71, inOriya}, {0xB85, 0xBFA, inTamil}, {0xC05, 0xC7F, inTelugu}, {0xC85, 0xCF2, inKannada}, {0xD05, 0xD7F, inMalayalam},
	{0xD85, 0xDF4, inSinhala}, {0xE01, 0xE4E, inThai}, {0xE81, 0xEDF, inLao}, {0xF00, 0xFBC, inTibetan}, {0x1000, 0x109F, inBurmese},
	{0x10A0, 0x10FF, inGeorgian}, {0x1100, 0x11FF, inHangul}, {0x1200, 0x137F, inEthiopic}, {0x1780, 0x17DC, inKhmer}, {0x1E00, 0x1EFF, inLatin},
	{0x1F00, 0x1FFF, inGreek}, {0x3041, 0x30FF, inKana}, {0x3400, 0x9FFF, inHan}, {0xAC00, 0xD7A3, inHangul}, {0xFB50, 0xFEFC, inArabic},
}

// writtenIn is the script that a text is written in, and the language that it tells, ""
// if it is one of several. What is foreign in a text is mostly Latin (names, commands,
// addresses), so that letters of other scripts count twice, and ideographs, each of
// which is about a word's half, four times.
func writtenIn(s string) (best writing, language string) {
	var count [writingCount]int
	at := 0
	for _, r := range s {
		if r < utf8.RuneSelf {
			if r|0x20 >= 'a' && r|0x20 <= 'z' {
				count[inLatin]++
			}
			continue
		}
		if r < writingRanges[at].from || r > writingRanges[at].to {
			for at = 0; at < len(writingRanges)-1 && r > writingRanges[at].to; at++ {
			}
			if r < writingRanges[at].from || r > writingRanges[at].to {
				continue
			}
		}
		if unicode.IsLetter(r) {
			count[writingRanges[at].writing]++
		}
	}
	// Ideographs are Japanese where its syllables are among them.
	if count[inKana]*20 > count[inKana]+count[inHan] {
		count[inKana], count[inHan] = count[inKana]+count[inHan], 0
	}
	most := count[inLatin]
	for sc := inCyrillic; sc < writingCount; sc++ {
		n := 2 * count[sc]
		if sc == inHan || sc == inKana || sc == inHangul {
			n *= 2
		}
		if n > most {
			best, most = sc, n
		}
	}
	if best == inTibetan && (strings.Contains(s, "ཨིན") || strings.Contains(s, "འབད")) {
		return best, "dzo" // "is" and "do" of Dzongkha
	}
	return best, writingLanguages[best]
}
