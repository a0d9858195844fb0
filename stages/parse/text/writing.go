package text

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// writing is a script that text is written in.
type writing uint8

// The scripts. Latin, Cyrillic, Arabic and Devanagari serve several languages. Each other script
// serves mainly one.
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

// writingLanguages are the languages that scripts imply.
var writingLanguages = [writingCount]string{inGreek: "ell", inArmenian: "hye", inHebrew: "heb", inBengali: "ben", inGurmukhi: "pan", inGujarati: "guj", inOriya: "ori",
	inTamil: "tam", inTelugu: "tel", inKannada: "kan", inMalayalam: "mal", inSinhala: "sin", inThai: "tha", inLao: "lao", inBurmese: "mya", inGeorgian: "kat",
	inHangul: "kor", inEthiopic: "amh", inKhmer: "khm", inHan: "zho", inKana: "jpn", inTibetan: "bod"}

// writingRange is a range of characters of a script.
type writingRange struct {
	from, to rune
	writing  writing
}

// writingRanges are sorted by character. Characters outside them have no script here.
var writingRanges = [...]writingRange{
	{0xAA, 0x24F, inLatin}, {0x370, 0x3FF, inGreek}, {0x400, 0x52F, inCyrillic}, {0x531, 0x58F, inArmenian}, {0x5D0, 0x5F4, inHebrew},
	{0x620, 0x6FF, inArabic}, {0x904, 0x97F, inDevanagari}, {0x985, 0x9FB, inBengali}, {0xA05, 0xA75, inGurmukhi}, {0xA85, 0xAF9, inGujarati},
	{0xB05, 0xB71, inOriya}, {0xB85, 0xBFA, inTamil}, {0xC05, 0xC7F, inTelugu}, {0xC85, 0xCF2, inKannada}, {0xD05, 0xD7F, inMalayalam},
	{0xD85, 0xDF4, inSinhala}, {0xE01, 0xE4E, inThai}, {0xE81, 0xEDF, inLao}, {0xF00, 0xFBC, inTibetan}, {0x1000, 0x109F, inBurmese},
	{0x10A0, 0x10FF, inGeorgian}, {0x1100, 0x11FF, inHangul}, {0x1200, 0x137F, inEthiopic}, {0x1780, 0x17DC, inKhmer}, {0x1E00, 0x1EFF, inLatin},
	{0x1F00, 0x1FFF, inGreek}, {0x3041, 0x30FF, inKana}, {0x3400, 0x9FFF, inHan}, {0xAC00, 0xD7A3, inHangul}, {0xFB50, 0xFEFC, inArabic},
}

// writtenIn returns the script of a text and the language that the script implies, or "" if it
// implies none. Foreign parts of a text are mostly Latin (names, commands, addresses). So letters
// of other scripts count twice. Ideographs, each about half a word, count four times.
func writtenIn(s string) (best writing, language string) {
	count := countLetters(s)
	// Text in ideographs is Japanese if it also has kana.
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

// countLetters counts the letters of a text by script.
func countLetters(s string) (count [writingCount]int) {
	at := 0
	for _, r := range s {
		if r < utf8.RuneSelf {
			if r|0x20 >= 'a' && r|0x20 <= 'z' {
				count[inLatin]++
			}
			continue
		}
		if !writingRanges[at].has(r) {
			at, _ = slices.BinarySearchFunc(writingRanges[:], r, func(w writingRange, r rune) int { return cmp.Compare(w.to, r) })
			if at = min(at, len(writingRanges)-1); !writingRanges[at].has(r) {
				continue
			}
		}
		if unicode.IsLetter(r) {
			count[writingRanges[at].writing]++
		}
	}
	return count
}

func (w writingRange) has(r rune) bool { return r >= w.from && r <= w.to }
