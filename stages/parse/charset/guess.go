package charset

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/stages/parse/lexer"
	"golang.org/x/net/html/charset"
)

// maxGuessed bounds the number of bytes from which the encoding of a document is guessed.
const maxGuessed = 64 << 10

// guessEncoding returns the likely encoding of a document that declares no encoding. Zero bytes
// show UTF-16, escape sequences show ISO-2022-JP, and well-formed multi-byte characters show UTF-8.
// A text in an East Asian encoding consists mostly of that encoding's frequent characters. For all
// other texts, guessEncoding takes the single-byte encoding whose letters fit a language best.
func (u *undecoded) guessEncoding() string {
	head := u.body[:min(len(u.body), maxGuessed)]
	if name := guessUTF16(head); name != "" {
		return name
	}
	if isISO2022JP(head) {
		return "iso-2022-jp"
	}
	if u.isUTF8() {
		return "utf-8"
	}
	sample := u.fromFirst()
	if well, ill := countUTF8(sample); well > 8*ill {
		return "utf-8" // UTF-8 with a few malformed bytes
	}
	if name := guessPairs(sample); name != "" {
		return name
	}
	return guessLetters(sample)
}

// guessUTF16 recognises UTF-16 without a byte order mark. In UTF-16, each ASCII character has a
// zero byte, and markup has many ASCII characters.
func guessUTF16(p []byte) string {
	var zeros [2]int
	for i, c := range p {
		if c == 0 {
			zeros[i&1]++
		}
	}
	units := len(p) / 2
	switch {
	case units < 8:
	case zeros[1] > units/4 && zeros[0] <= zeros[1]/16:
		return "utf-16le"
	case zeros[0] > units/4 && zeros[1] <= zeros[0]/16:
		return "utf-16be"
	}
	return ""
}

// isISO2022JP reports whether the bytes are ASCII and have escape sequences that shift to JIS X
// 0208 and back.
func isISO2022JP(p []byte) bool {
	if bytes.IndexByte(p, 0x1B) < 0 || !ascii(p) {
		return false
	}
	for _, in := range [...]string{"\x1B$B", "\x1B$@"} {
		if i := bytes.Index(p, []byte(in)); i >= 0 {
			rest := p[i+len(in):]
			end := bytes.IndexByte(rest, 0x1B)
			return end > 0 && end%2 == 0 && len(rest) > end+2 && rest[end+1] == '(' && (rest[end+2] == 'B' || rest[end+2] == 'J')
		}
	}
	return false
}

// pairEncoding describes an East Asian encoding with two bytes per character.
type pairEncoding struct {
	name string
	// isPair reports whether two bytes form a character, and whether the character is
	// frequent. Frequent characters make up nearly all of a text.
	isPair func(a, b byte) (valid, frequent bool)
	// isSingle reports whether one byte with the high bit set is a whole character.
	isSingle func(a byte) bool
	kana     bool // whether every text in the encoding has kana
}

func within(c, from, to byte) bool { return c >= from && c <= to }

func noneSingle(byte) bool { return false }

// pairedEncodings lists the two-byte encodings, the preferred first. Korean comes before Chinese:
// Korean text often looks like frequent Chinese characters, but Chinese text seldom looks like
// frequent Korean characters.
var pairedEncodings = []pairEncoding{
	{"euc-jp", func(a, b byte) (bool, bool) { // kana and the characters of JIS level 1 are frequent
		return (within(a, 0xA1, 0xFE) || a == 0x8E) && within(b, 0xA1, 0xFE), within(a, 0xA4, 0xA5) || within(a, 0xB0, 0xCF) || a == 0xA1
	}, noneSingle, true},
	{"shift_jis", func(a, b byte) (bool, bool) {
		return (within(a, 0x81, 0x9F) || within(a, 0xE0, 0xFC)) && within(b, 0x40, 0xFC) && b != 0x7F, within(a, 0x81, 0x83) || within(a, 0x88, 0x97)
	}, func(a byte) bool { return within(a, 0xA1, 0xDF) }, true},
	{"euc-kr", func(a, b byte) (bool, bool) { // the syllables of KS X 1001 are frequent
		return within(a, 0x81, 0xFE) && (b >= 0xA1 && b < 0xFF || within(b|0x20, 'a', 'z') || within(b, 0x81, 0xA0)),
			within(a, 0xB0, 0xC8) && b >= 0xA1 || a == 0xA1 && b >= 0xA1
	}, noneSingle, false},
	{"gbk", func(a, b byte) (bool, bool) { // the characters of GB 2312 level 1 are frequent
		return within(a, 0x81, 0xFE) && within(b, 0x40, 0xFE) && b != 0x7F, (within(a, 0xB0, 0xD7) || a == 0xA1 || a == 0xA3) && b >= 0xA1
	}, noneSingle, false},
	{"big5", func(a, b byte) (bool, bool) { // the characters of Big5 level 1 are frequent
		return within(a, 0x81, 0xFE) && (within(b, 0x40, 0x7E) || within(b, 0xA1, 0xFE)), within(a, 0xA4, 0xC6) || a == 0xA1
	}, noneSingle, false},
}

// guessPairs returns the two-byte encoding that fits best, or "" if no encoding fits well.
func guessPairs(p []byte) string {
	best, bestScore := "", 0
	for i := range pairedEncodings {
		e := &pairedEncodings[i]
		// The encoding e replaces the best encoding so far only if e fits clearly better.
		if score := e.countPairs(p).frequentShare(e.kana); score > bestScore+20 {
			best, bestScore = e.name, score
		}
	}
	if bestScore < 800 {
		return ""
	}
	return best
}

// pairCount counts the characters of a text in a two-byte encoding, and the malformed bytes.
type pairCount struct{ pairs, frequent, single, kana, bad int }

// countPairs counts the characters of a text in the encoding. Bytes below 0x40 are not part of a
// pair, except in the rarest characters of GB 18030. If countPairs mistakes a byte for the first
// byte of a pair, it recovers at the next byte below 0x40.
func (e *pairEncoding) countPairs(p []byte) (n pairCount) {
	for i := 0; i < len(p); i++ {
		a := p[i]
		if a < utf8.RuneSelf {
			continue
		}
		last := i+1 == len(p)
		if !last {
			b := p[i+1]
			if valid, frequent := e.isPair(a, b); valid {
				n.pairs++
				if frequent {
					n.frequent++
				}
				if a == 0xA4 || a == 0x82 && b >= 0x9F {
					n.kana++
				}
				i++
				continue
			}
		}
		if e.isSingle(a) {
			n.single++
		} else if !last || a == 0xFF {
			n.bad++
		}
	}
	return n
}

// frequentShare returns the frequent characters per 1,000 characters, or 0 if the text is
// implausible.
func (n pairCount) frequentShare(kana bool) int {
	if n.pairs < 2 || n.bad > n.pairs/64 || n.single > n.pairs/2 || kana && n.kana < n.pairs/16 {
		return 0
	}
	return 1000 * n.frequent / (n.pairs + n.single)
}

// byteEncoding is a single-byte encoding with its languages.
type byteEncoding struct {
	encoding  string
	prior     int // cost of the encoding before any text is read, in bits; a rare encoding costs more
	languages string
}

// byteEncodings lists the single-byte encodings. If two encodings fit equally well, the encoding
// earlier in the list wins.
var byteEncodings = []byteEncoding{
	{"windows-1252", 0, "fra deu spa por ita nld swe dan fin cat isl est"},
	{"windows-1251", 2, "rus ukr bul srp"},
	{"windows-1250", 2, "ces slk pol hun hrv ron"},
	{"windows-1253", 2, "ell"},
	{"windows-1254", 2, "tur"},
	{"windows-1255", 2, "heb"},
	{"windows-1256", 2, "ara fas"},
	{"windows-1257", 2, "lit lav est"},
	{"windows-874", 2, "tha"},
	{"iso-8859-15", 4, "fra fin est"},
	{"iso-8859-2", 3, "ces slk pol hun hrv ron"},
	{"iso-8859-7", 3, "ell"},
	{"koi8-r", 3, "rus bul"},
	{"koi8-u", 4, "ukr"},
	{"iso-8859-5", 4, "rus ukr bul srp"},
	{"iso-8859-8", 4, "heb"},
	{"iso-8859-6", 4, "ara"},
	{"iso-8859-13", 4, "lit lav"},
	{"iso-8859-4", 6, "lit lav"},
	{"ibm866", 6, "rus bul"},
	{"x-mac-cyrillic", 6, "rus ukr bul"},
	{"macintosh", 8, "fra deu spa por ita nld swe dan"},
}

// letterOrder lists the non-ASCII letters of each language, the most frequent first.
var letterOrder = map[string]string{
	"fra": "éèàêçôîûùâëïœ«»", "deu": "üäößé", "spa": "óíáéñúü¿¡", "por": "ãçáéíõóêúâôàü", "ita": "èàùòìé", "nld": "ëéïèöüê",
	"swe": "äåöé", "dan": "øåæéö", "fin": "äöå", "cat": "óàèéíçòïúü·", "isl": "íáðéöþóúýæ", "est": "äõüöšž",
	"rus": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё", "ukr": "оаинвіетрслкдупмяьзбгчйшхцюжїєщфґ", "bul": "аиотенрсвлкдпъмзугбячйцщшюжхфь",
	"srp": "аоиенртсјувкдмплгзбчшцжћхфњљђџ", "ces": "íáéěýžřčšůúťďňó", "slk": "áíýčéúžšľťôďňóäŕĺ", "pol": "łęóążśćźń",
	"hun": "éáöőüíóúű", "hrv": "čšžćđ", "ron": "ăîțşțâţș", "ell": "αοιετσνηρπκμλςυόάγωίδέήχθύφώβξζψϊϋΐΰ",
	"tur": "ıüşğçöâî", "heb": "יוהלאמרתבשנעםדחקפגטזסכןצךףץ", "ara": "البيمرتنوةدعسفهكحقجأشصطخضإزثذىظغآئءؤ",
	"fas": "ایردنهمتوشسبکزلفگخقجعپحآطصچغضذثظژئء", "lit": "ėšųžįąūčę", "lav": "āīšēūžļķņģč",
	"tha": "านรกอเง่วมยลดสต้ทบปห์ีใคะพชัไิแจผถืุซณูขศธโฟญภษฐฏฒฉฎฆฬฝฑฤๆ็๋๊ึ",
}

// surroundings tells which kind of character stands before and after a character.
type surroundings uint8

const (
	begins      surroundings = iota // at the beginning of a word
	beginsLatin                     // at the beginning of a word, before an ASCII letter
	alone                           // with no letter before or after the character
	inner                           // after a character that is not ASCII
	innerLatin                      // after an ASCII letter
	places
)

// The costs of characters, in eighths of a bit. A character that is rare in a language has a high cost.
const (
	costUpper    = 12  // a capital at a word's beginning
	costInner    = 40  // a capital within a word
	costMixed    = 80  // a letter of another script next to an ASCII letter
	costStranger = 104 // a letter that is not in the language
	costSign     = 40  // a sign of typography: a quotation mark, a dash, a no-break space
	costSymbol   = 96  // any other sign
	costJoined   = 56  // a sign that follows a letter
	costAlone    = 32  // a Latin letter that is a word by itself; twice as much for a capital letter
	costRare     = 64  // a sign of arithmetic, currency or law
	costNothing  = 240 // a control character, or a byte to which the encoding assigns no character
)

// byteCosts holds the cost of each high byte, for one encoding and one language.
type byteCosts struct {
	encoding string
	prior    int
	cost     [places][128]uint8
}

// letterCosts returns the costs for each encoding and each of its languages.
var letterCosts = sync.OnceValue(func() (all []byteCosts) {
	for _, f := range byteEncodings {
		e, _ := charset.Lookup(f.encoding)
		for lang := range strings.FieldsSeq(f.languages) {
			c := byteCosts{encoding: f.encoding, prior: 8 * f.prior}
			order := []rune(letterOrder[lang])
			for i := range 128 {
				out, _ := e.NewDecoder().Bytes([]byte{byte(0x80 + i)})
				r, _ := utf8.DecodeRune(out)
				for at := range places {
					c.cost[at][i] = uint8(min(costOf(r, at, order), 255))
				}
			}
			all = append(all, c)
		}
	}
	return all
})

// costOf returns the cost of a character with the given surroundings. The letters of the language
// are in order, the most frequent first.
func costOf(r rune, at surroundings, order []rune) int {
	switch {
	case r == utf8.RuneError || r < 0xA0 || unicode.Is(unicode.Co, r):
		return costNothing
	case !unicode.IsLetter(r) && !unicode.IsMark(r):
		return costOfSign(r, at)
	}
	return costOfLetter(r, at, order)
}

func costOfSign(r rune, at surroundings) int {
	cost := costSymbol
	switch {
	case strings.ContainsRune("\u00A0«»“”„‘’‚–—…•·°©®№€™،؟", r):
		cost = costSign
	case strings.ContainsRune("£§±½¼¾×÷²³µ¢¥ªº¿¡†", r):
		cost = costRare
	}
	switch at {
	case alone:
		cost -= costSign / 2
	case inner, innerLatin:
		cost += costJoined
	}
	return cost
}

func costOfLetter(r rune, at surroundings, order []rune) int {
	cost := costStranger
	if rank := slices.Index(order, unicode.ToLower(r)); rank >= 0 {
		// The frequency of letters falls about exponentially with their rank. The first letter of
		// the list is a hundred times as frequent as the last letter.
		cost = 16 + 56*rank/max(len(order), 8)
	}
	upper, latin := unicode.IsUpper(r), unicode.Is(unicode.Latin, r)
	switch {
	case upper && (at == inner || at == innerLatin):
		cost += costInner
	case upper:
		cost += costUpper
	}
	switch {
	case at == alone && latin && upper:
		cost += 2 * costAlone
	case at == alone && latin:
		cost += costAlone
	case !latin && (at == beginsLatin || at == innerLatin):
		cost += costMixed
	}
	return cost
}

// guessLetters tries each encoding in each of its languages. It returns the encoding in which the
// characters outside ASCII have the lowest cost.
func guessLetters(p []byte) string {
	var count [places][128]int
	for i, c := range p {
		if c < utf8.RuneSelf {
			continue
		}
		at := alone
		switch {
		case i > 0 && lexer.IsLetter(p[i-1]):
			at = innerLatin
		case i > 0 && p[i-1] >= utf8.RuneSelf && p[i-1] != 0xA0:
			at = inner
		case i+1 < len(p) && lexer.IsLetter(p[i+1]):
			at = beginsLatin
		case i+1 < len(p) && p[i+1] >= utf8.RuneSelf && p[i+1] != 0xA0:
			at = begins
		}
		count[at][c-0x80]++
	}
	best, least := "windows-1252", -1
	costs := letterCosts()
	for i := range costs {
		c := &costs[i]
		sum := c.prior
		for at := range places {
			for b, n := range count[at] {
				sum += n * int(c.cost[at][b])
			}
		}
		if least < 0 || sum < least {
			best, least = c.encoding, sum
		}
	}
	return best
}
