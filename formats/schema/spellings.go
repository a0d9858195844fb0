package schema

import (
	"fmt"
	"slices"
)

// MaxSpellings is the largest number of spellings of a URL that are kept and checked against
// robots.txt, besides the canonical URL. A URL with more spellings is not planned (SkipSpellings).
const MaxSpellings = 4

// Spellings is a sorted set of spellings of one URL, without the canonical URL. It holds at most
// MaxSpellings + 1 spellings: so many mean that the URL has too many.
type Spellings []string

// Add returns a copy of s with one more spelling. If the set is then too large, Add drops the last
// spelling in the sort order. Add ignores "", which stands for the canonical URL.
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
