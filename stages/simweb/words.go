package simweb

// The vocabulary has about 300,000 likely words of two to four syllables, so two random texts have
// almost no words in common.
var (
	onsets = [...]string{"b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "tr", "kl", "st", "gr"}
	vowels = [...]string{"a", "e", "i", "o", "u", "ai", "or", "en"}
	// The accented vowels are in Latin-1 and composed (NFC). So every charset of the web has them,
	// and normalisation does not change them.
	accented = [...]string{"a", "é", "i", "ö", "u", "ä", "è", "ñ"}
)

// language is the language of a page: its lang attribute, its ISO 639-3 code, and whether its words
// have accents.
type language struct {
	tag, iso string
	accents  bool
}

var languages = [...]language{
	{"en", "eng", false}, {"en-GB", "eng", false}, {"en", "eng", false},
	{"de", "deu", true}, {"fr", "fra", true}, {"es-MX", "spa", true},
}

// appendWord appends the word that k chooses. For speed, it uses one hash per word: six bits for
// the length, and fourteen bits for each syllable.
func appendWord(b []byte, k key, accents bool) []byte {
	x := mix(uint64(k))
	n := 2 + int(x>>2&1) // two or three syllables
	if x>>3&7 == 0 {
		n++ // some words have one more syllable
	}
	for x >>= 6; n > 0; n-- {
		b = append(b, onsets[(x>>6&0xff)*uint64(len(onsets))>>8]...)
		if accents && x>>3&7 < 3 {
			b = append(b, accented[x&7]...)
		} else {
			b = append(b, vowels[x&7]...)
		}
		x >>= 14
	}
	return b
}

// appendTitle appends n words with capital initials.
func appendTitle(b []byte, k key, n int) []byte {
	for i := range n {
		if i > 0 {
			b = append(b, ' ')
		}
		at := len(b)
		b = appendWord(b, k.at(i), false)
		b[at] -= 'a' - 'A' // the first letter of a word is always ASCII
	}
	return b
}

// title returns n words with capital initials.
func title(k key, n int) string { return string(appendTitle(nil, k, n)) }
