package text

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// writings lists the scripts in which texts are written. The first four scripts have several
// languages each. Every other script implies one language and has the code of that language. If
// scripts have equal counts, the earlier script in this list wins.
var writings = [...]string{"Latn", "Cyrl", "Arab", "Deva", "zho", "jpn", "bod", "ell", "hye", "heb", "ben", "pan", "guj", "ori", "tam", "tel",
	"kan", "mal", "sin", "tha", "lao", "mya", "kat", "kor", "amh", "khm"}

// writingRange is a range of characters of a script.
type writingRange struct {
	from, to rune
	writing  string
}

// writingRanges are sorted by character. A character in none of the ranges counts for no script.
var writingRanges = [...]writingRange{
	{0xAA, 0x24F, "Latn"}, {0x370, 0x3FF, "ell"}, {0x400, 0x52F, "Cyrl"}, {0x531, 0x58F, "hye"}, {0x5D0, 0x5F4, "heb"},
	{0x620, 0x6FF, "Arab"}, {0x904, 0x97F, "Deva"}, {0x985, 0x9FB, "ben"}, {0xA05, 0xA75, "pan"}, {0xA85, 0xAF9, "guj"},
	{0xB05, 0xB71, "ori"}, {0xB85, 0xBFA, "tam"}, {0xC05, 0xC7F, "tel"}, {0xC85, 0xCF2, "kan"}, {0xD05, 0xD7F, "mal"},
	{0xD85, 0xDF4, "sin"}, {0xE01, 0xE4E, "tha"}, {0xE81, 0xEDF, "lao"}, {0xF00, 0xFBC, "bod"}, {0x1000, 0x109F, "mya"},
	{0x10A0, 0x10FF, "kat"}, {0x1100, 0x11FF, "kor"}, {0x1200, 0x137F, "amh"}, {0x1780, 0x17DC, "khm"}, {0x1E00, 0x1EFF, "Latn"},
	{0x1F00, 0x1FFF, "ell"}, {0x3041, 0x30FF, "jpn"}, {0x3400, 0x9FFF, "zho"}, {0xAC00, 0xD7A3, "kor"}, {0xFB50, 0xFEFC, "Arab"},
}

// writtenIn returns the language that the script of a text implies, or "" if the script implies no
// language. Foreign parts of a text are mostly Latin (names, commands, addresses), so letters of
// other scripts count twice. Ideographs count four times, because about two of them make a word.
func writtenIn(s string) (language string) {
	count := countLetters(s)
	// A text in ideographs is Japanese if it also has kana.
	if count["jpn"]*20 > count["jpn"]+count["zho"] {
		count["jpn"], count["zho"] = count["jpn"]+count["zho"], 0
	}
	best, most := writings[0], count[writings[0]]
	for _, w := range writings[1:] {
		n := 2 * count[w]
		if w == "zho" || w == "jpn" || w == "kor" {
			n *= 2
		}
		if n > most {
			best, most = w, n
		}
	}
	switch {
	case best == "bod" && (strings.Contains(s, "ཨིན") || strings.Contains(s, "འབད")):
		return "dzo" // the words for "is" and "do" in Dzongkha occur
	case slices.Contains(writings[:4], best):
		return ""
	}
	return best
}

// countLetters counts the letters of a text by script.
func countLetters(s string) map[string]int {
	var latin, at int
	var inRange [len(writingRanges)]int
	for _, r := range s {
		if r < utf8.RuneSelf {
			if r|0x20 >= 'a' && r|0x20 <= 'z' {
				latin++
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
			inRange[at]++
		}
	}
	count := map[string]int{writings[0]: latin}
	for i, n := range inRange {
		count[writingRanges[i].writing] += n
	}
	return count
}

func (w writingRange) has(r rune) bool { return r >= w.from && r <= w.to }
