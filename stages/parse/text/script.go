package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// script is a script that text is written in.
type script uint8

// The scripts of several languages, and the others, of which one language stands for
// nearly all that is written in it.
const (
	latin script = iota
	cyrillic
	arabic
	devanagari
	han
	kana
	tibetan
	greek
	armenian
	hebrew
	bengali
	gurmukhi
	gujarati
	oriya
	tamil
	telugu
	kannada
	malayalam
	sinhala
	thai
	lao
	burmese
	georgian
	hangul
	ethiopic
	khmer
	scriptCount
)

// scriptLanguages are the languages that a script tells.
var scriptLanguages = [scriptCount]string{greek: "ell", armenian: "hye", hebrew: "heb", bengali: "ben", gurmukhi: "pan", gujarati: "guj", oriya: "ori",
	tamil: "tam", telugu: "tel", kannada: "kan", malayalam: "mal", sinhala: "sin", thai: "tha", lao: "lao", burmese: "mya", georgian: "kat",
	hangul: "kor", ethiopic: "amh", khmer: "khm", han: "zho", kana: "jpn", tibetan: "bod"}

// scriptRange is a range of characters of a script.
type scriptRange struct {
	from, to rune
	script   script
}

// scriptRanges are in the order of their characters; those between them belong to none.
var scriptRanges = [...]scriptRange{
	{0xAA, 0x24F, latin}, {0x370, 0x3FF, greek}, {0x400, 0x52F, cyrillic}, {0x531, 0x58F, armenian}, {0x5D0, 0x5F4, hebrew},
	{0x620, 0x6FF, arabic}, {0x904, 0x97F, devanagari}, {0x985, 0x9FB, bengali}, {0xA05, 0xA75, gurmukhi}, {0xA85, 0xAF9, gujarati},
	{0xB05, 0xB71, oriya}, {0xB85, 0xBFA, tamil}, {0xC05, 0xC7F, telugu}, {0xC85, 0xCF2, kannada}, {0xD05, 0xD7F, malayalam},
	{0xD85, 0xDF4, sinhala}, {0xE01, 0xE4E, thai}, {0xE81, 0xEDF, lao}, {0xF00, 0xFBC, tibetan}, {0x1000, 0x109F, burmese},
	{0x10A0, 0x10FF, georgian}, {0x1100, 0x11FF, hangul}, {0x1200, 0x137F, ethiopic}, {0x1780, 0x17DC, khmer}, {0x1E00, 0x1EFF, latin},
	{0x1F00, 0x1FFF, greek}, {0x3041, 0x30FF, kana}, {0x3400, 0x9FFF, han}, {0xAC00, 0xD7A3, hangul}, {0xFB50, 0xFEFC, arabic},
}

// scriptOf is the script that a text is written in, and the language that it tells, ""
// if it is one of several. What is foreign in a text is mostly Latin (names, commands,
// addresses), so that letters of other scripts count twice, and ideographs, each of
// which is about a word's half, four times.
func scriptOf(s string) (best script, language string) {
	var count [scriptCount]int
	at := 0
	for _, r := range s {
		if r < utf8.RuneSelf {
			if r|0x20 >= 'a' && r|0x20 <= 'z' {
				count[latin]++
			}
			continue
		}
		if r < scriptRanges[at].from || r > scriptRanges[at].to {
			for at = 0; at < len(scriptRanges)-1 && r > scriptRanges[at].to; at++ {
			}
			if r < scriptRanges[at].from || r > scriptRanges[at].to {
				continue
			}
		}
		if unicode.IsLetter(r) {
			count[scriptRanges[at].script]++
		}
	}
	// Ideographs are Japanese where its syllables are among them.
	if count[kana]*20 > count[kana]+count[han] {
		count[kana], count[han] = count[kana]+count[han], 0
	}
	most := count[latin]
	for sc := cyrillic; sc < scriptCount; sc++ {
		n := 2 * count[sc]
		if sc == han || sc == kana || sc == hangul {
			n *= 2
		}
		if n > most {
			best, most = sc, n
		}
	}
	if best == tibetan && (strings.Contains(s, "ཨིན") || strings.Contains(s, "འབད")) {
		return best, "dzo" // "is" and "do" of Dzongkha
	}
	return best, scriptLanguages[best]
}
