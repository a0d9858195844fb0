package simweb

// The vocabulary: words of two to four syllables, some 300,000 likely ones, so
// that two texts drawn from it share next to nothing.
var (
	onsets = [...]string{"b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "tr", "kl", "st", "gr"}
	vowels = [...]string{"a", "e", "i", "o", "u", "ai", "or", "en"}
	// accented ones are all in Latin-1 and composed (NFC), so that every charset
	// that the web uses can hold them and no normal form changes them.
	accented = [...]string{"a", "é", "i", "ö", "u", "ä", "è", "ñ"}
)

// language is what a page is written in: the value of its lang attribute, what
// that means in ISO-639-3, and whether its words have accents.
type language struct {
	tag, iso string
	accents  bool
}

var languages = [...]language{
	{"en", "eng", false}, {"en-GB", "eng", false}, {"en", "eng", false},
	{"de", "deu", true}, {"fr", "fra", true}, {"es-MX", "spa", true},
}

// appendWord appends the word that k chooses.
func appendWord(b []byte, k key, accents bool) []byte {
	s := stream(k)
	n := 2 + s.below(8)/4 // two or three syllables,
	if s.below(8) == 0 {
		n++ // or one more
	}
	for range n {
		b = append(b, onsets[s.below(len(onsets))]...)
		if accents && s.below(3) == 0 {
			b = append(b, accented[s.below(len(accented))]...)
		} else {
			b = append(b, vowels[s.below(len(vowels))]...)
		}
	}
	return b
}

// appendTitle appends n words, each with a capital.
func appendTitle(b []byte, k key, n int) []byte {
	for i := range n {
		if i > 0 {
			b = append(b, ' ')
		}
		at := len(b)
		b = appendWord(b, k.at(i), false)
		b[at] -= 'a' - 'A' // onsets are ASCII
	}
	return b
}

// title is n words as a string.
func title(k key, n int) string { return string(appendTitle(nil, k, n)) }
