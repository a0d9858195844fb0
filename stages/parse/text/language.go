package text

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/abadojack/whatlanggo"
	"golang.org/x/text/language"
)

// maxSample bounds the part of a text that Detect reads, in bytes.
const maxSample = 1 << 10

// leastText is the length of the shortest text whose language is guessed, in bytes.
const leastText = 24

// Declared returns the ISO-639-3 code of the first BCP 47 tag in a list. It accepts common
// misspellings ("en_US"). If the tag is not a language, the result is "".
func Declared(tag string) string {
	tag = strings.TrimSpace(tag)
	if i := strings.IndexAny(tag, "-_,; "); i >= 0 {
		tag = tag[:i]
	}
	if len(tag) < 2 || len(tag) > 3 {
		return ""
	}
	base, err := language.ParseBase(tag)
	if err != nil {
		return ""
	}
	switch code := base.ISO3(); code {
	case "und", "mul", "zxx", "mis", "root":
		return ""
	default:
		return macro(code)
	}
}

// Detect guesses the language of a text. If the text is too short or the language is unclear, the
// result is "". Equal texts give equal guesses.
//
// If only one language uses the script, the script decides. If several languages use the script,
// function words and special letters decide (type scorer). If the text has too few of these, or the
// scorer does not know the language, three-letter sequences decide (package whatlanggo). They come
// last, because they confuse similar languages.
func Detect(s string) string {
	s = middleSample(s)
	if len(s) < leastText {
		return ""
	}
	if language := writtenIn(s); language != "" {
		return language
	}
	t := languages()
	score, first, second := t.scoreLanguages(s)
	best, points := t.languages[first], score[first]
	if points >= surePoints && 3*points >= 4*score[second] {
		return best
	}
	info := whatlanggo.Detect(s)
	if info.Lang < 0 || info.Confidence <= 0 { // with confidence 0, whatlanggo picks one of several equally good languages
		if points >= leastPoints {
			return best
		}
		return ""
	}
	guess := macro(info.Lang.Iso6393())
	at, known := slices.BinarySearch(t.languages, guess)
	switch {
	case points < leastPoints, !known && info.Confidence > 0.2:
		return guess
	case known && 4*score[at] >= 3*points && (score[at] == points || whatlanggo.CodeToLang(best) >= 0):
		return guess // both methods know the languages, and the words fit the guess nearly as well as best
	}
	return best
}

// A language with at least surePoints wins by its words and letters alone. A language with at least
// leastPoints wins only if package whatlanggo does not contradict it.
const (
	surePoints  = 3 * wordPoints
	leastPoints = wordPoints
)

var languages = sync.OnceValue(newScorer)

// middleSample returns a sample of a text. The sample leaves out the first lines, because these
// are often names and dates.
func middleSample(s string) string {
	if len(s) <= maxSample {
		return s
	}
	if skip := min(200, len(s)-maxSample); skip > 0 {
		for skip < len(s) && !utf8.RuneStart(s[skip]) {
			skip++
		}
		s = s[skip:]
	}
	end := min(maxSample, len(s))
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// macrolanguages maps the codes of tags and detectors to the codes in content_languages. The table
// maps languages to their macrolanguages, and ISO-639-2/B codes to ISO-639-3 codes.
var macrolanguages = map[string]string{
	"cmn": "zho", "yue": "zho", "arb": "ara", "azj": "aze", "pes": "fas", "prs": "fas", "nob": "nor", "ydd": "yid", "ekk": "est",
	"lvs": "lav", "uzn": "uzb", "zlm": "msa", "khk": "mon",
	"alb": "sqi", "arm": "hye", "baq": "eus", "bur": "mya", "chi": "zho", "cze": "ces", "dut": "nld", "fre": "fra", "geo": "kat",
	"ger": "deu", "gre": "ell", "ice": "isl", "mac": "mkd", "mao": "mri", "may": "msa", "per": "fas", "rum": "ron", "slo": "slk",
	"tib": "bod", "wel": "cym",
}

// macro returns the code of a language in content_languages.
func macro(code string) string { return cmp.Or(macrolanguages[code], code) }

// Language chooses between the declared language (ISO-639-3, or "" if none) and the language of the
// text s. The declared language wins unless the text has a script in which that language is not
// written. A declaration may be wrong, because some sites use a template that declares the language
// of its authors.
func Language(declared, s string) string {
	if declared == "" {
		return Detect(s)
	}
	part := middleSample(s)
	latin, other := 0, 0
	for _, r := range part {
		if r < utf8.RuneSelf {
			if r|0x20 >= 'a' && r|0x20 <= 'z' {
				latin++
			}
		} else if unicode.IsLetter(r) {
			if r < 0x250 || r >= 0x1E00 && r < 0x1F00 {
				latin++
			} else {
				other++
			}
		}
	}
	if latin+other < 40 {
		return declared
	}
	script, _ := language.Make(declared).Script()
	if (script.String() == "Latn" && other > 2*latin) || (script.String() != "Latn" && latin > 9*other) {
		if guess := Detect(s); guess != "" {
			return guess
		}
	}
	return declared
}
