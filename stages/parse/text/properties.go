package text

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// scriptID is an index of scripts.
type scriptID uint8

// scripts lists the scripts by which words are counted, with names from ISO 15924.
var scripts = [...]struct {
	name  string
	table *unicode.RangeTable
}{
	{"Zyyy", nil}, // Common and Inherited
	{"Zzzz", nil}, // any script that is not in this list
	{"Latn", unicode.Latin}, {"Grek", unicode.Greek}, {"Cyrl", unicode.Cyrillic}, {"Armn", unicode.Armenian},
	{"Hebr", unicode.Hebrew}, {"Arab", unicode.Arabic}, {"Syrc", unicode.Syriac}, {"Thaa", unicode.Thaana}, {"Nkoo", unicode.Nko},
	{"Deva", unicode.Devanagari}, {"Beng", unicode.Bengali}, {"Guru", unicode.Gurmukhi}, {"Gujr", unicode.Gujarati},
	{"Orya", unicode.Oriya}, {"Taml", unicode.Tamil}, {"Telu", unicode.Telugu}, {"Knda", unicode.Kannada},
	{"Mlym", unicode.Malayalam}, {"Sinh", unicode.Sinhala}, {"Thai", unicode.Thai}, {"Laoo", unicode.Lao}, {"Tibt", unicode.Tibetan},
	{"Mymr", unicode.Myanmar}, {"Geor", unicode.Georgian}, {"Hang", unicode.Hangul}, {"Ethi", unicode.Ethiopic},
	{"Cher", unicode.Cherokee}, {"Cans", unicode.Canadian_Aboriginal}, {"Khmr", unicode.Khmer}, {"Mong", unicode.Mongolian},
	{"Hira", unicode.Hiragana}, {"Kana", unicode.Katakana}, {"Bopo", unicode.Bopomofo}, {"Hani", unicode.Han}, {"Yiii", unicode.Yi},
	{"Tfng", unicode.Tifinagh}, {"Olck", unicode.Ol_Chiki}, {"Adlm", unicode.Adlam}, {"Tale", unicode.Tai_Le},
	{"Talu", unicode.New_Tai_Lue}, {"Lana", unicode.Tai_Tham}, {"Tavt", unicode.Tai_Viet},
}

// Indexes of some scripts.
const (
	zyyy scriptID = 0
	zzzz scriptID = 1
	latn scriptID = 2
	grek scriptID = 3
	cyrl scriptID = 4
)

// wordClass says how a rune forms words.
type wordClass uint8

const (
	separator wordClass = iota
	letter              // a letter begins and continues words
	digit               // a digit is like a letter, but a word with only digits is not a term
	extend              // a mark or a joiner continues words and never begins them
	joiner              // an apostrophe or a middle dot joins letters
	point               // a full stop or a comma joins ASCII digits
	ideograph           // a code point of Han or Hiragana is a word by itself
	katakana            // a run of Katakana is a word
	unspaced            // a run of letters and marks in a script without spaces between words
)

// property holds the properties of a rune.
type property struct {
	class  wordClass
	script scriptID
}

// unspacedScripts are written without spaces between words.
var unspacedScripts = []*unicode.RangeTable{unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tai_Le,
	unicode.New_Tai_Lue, unicode.Tai_Tham, unicode.Tai_Viet}

// propertyOf returns the properties of a rune according to Unicode's tables.
func propertyOf(r rune) property {
	switch r {
	case '\'', 0x2019, 0x00B7:
		return property{class: joiner}
	case '.', ',':
		return property{class: point}
	case 0x200C, 0x200D:
		return property{class: extend}
	case 0x30FC, 0xFF70: // the prolonged sound mark is Common but belongs to runs of Katakana (UAX #29)
		return property{katakana, zyyy}
	}
	p := property{script: scriptOfRune(r)}
	switch {
	case unicode.Is(unicode.M, r):
		p.class = extend
	case !unicode.IsLetter(r) && !unicode.IsNumber(r):
	case unicode.In(r, unicode.Han, unicode.Hiragana):
		p.class = ideograph
	case unicode.Is(unicode.Katakana, r):
		p.class = katakana
	case unicode.IsNumber(r):
		p.class = digit
	case unicode.In(r, unspacedScripts...):
		p.class = unspaced
	default:
		p.class = letter
	}
	return p
}

func scriptOfRune(r rune) scriptID {
	if unicode.In(r, unicode.Common, unicode.Inherited) {
		return zyyy
	}
	for i := range scripts {
		if t := scripts[i].table; t != nil && unicode.Is(t, r) {
			return scriptID(i)
		}
	}
	return zzzz
}

// runes holds the properties of the runes of the Basic Multilingual Plane, in pages of 256 runes.
// Each page is computed when a text first needs it.
type runes [256]struct {
	once sync.Once
	page *[256]property
}

// bmp caches properties, which never change.
var bmp runes

// The table ascii holds the properties of ASCII.
var ascii = func() (t [utf8.RuneSelf]property) {
	for c := range t {
		t[c] = propertyOf(rune(c))
	}
	return t
}()

// propertiesOf returns the properties of a rune.
func (t *runes) propertiesOf(r rune) property {
	if r > 0xFFFF {
		return propertyOf(r)
	}
	p := &t[r>>8]
	p.once.Do(func() {
		p.page = new([256]property)
		for i := range p.page {
			p.page[i] = propertyOf(r&^0xFF + rune(i))
		}
	})
	return p.page[r&0xFF]
}
