package schema

import (
	"fmt"
	"slices"
)

// MaxSpellings bounds the spellings of a URL that are kept and checked against robots.txt. The
// canonical URL is not one of these spellings. A URL with more spellings is not planned
// (SkipSpellings).
const MaxSpellings = 4

// Spellings is a sorted set of spellings of one URL. A set of MaxSpellings + 1 spellings means that
// the URL has too many spellings. Sets never shrink, so Overflow stays true.
type Spellings []string

// Add returns s with one more spelling and does not change s. It ignores "", which stands for the
// canonical URL.
func (s Spellings) Add(spelling string) Spellings {
	i, found := slices.BinarySearch(s, spelling)
	if found || spelling == "" || i > MaxSpellings {
		return s
	}
	grown := slices.Insert(slices.Clone(s), i, spelling)
	return grown[:min(len(grown), MaxSpellings+1)]
}

// Union returns the union of s and other.
func (s Spellings) Union(other Spellings) Spellings {
	if len(s) == 0 {
		return other
	}
	for _, o := range other {
		s = s.Add(o)
	}
	return s
}

// TooMany returns the value of the column detail in a skip with the reason SkipSpellings.
func (s Spellings) TooMany() string {
	return fmt.Sprintf("robots.txt would have to allow more than %d spellings, such as %s", MaxSpellings, s[0])
}

// Overflow reports whether the URL has more than MaxSpellings spellings.
func (s Spellings) Overflow() bool { return len(s) > MaxSpellings }
