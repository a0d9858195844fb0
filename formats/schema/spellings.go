package schema

import (
	"fmt"
	"slices"
)

// MaxSpellings is how many spellings of a URL are kept beside the canonical one, and
// asked of robots.txt. A URL with more is not planned (SkipSpellings).
const MaxSpellings = 4

// Spellings is a set of spellings of one URL, sorted. It holds MaxSpellings and one
// more, which stands for all others: sets only grow, so Overflow stays true.
type Spellings []string

// Add is the set with another spelling; "" stands for the canonical URL, which none
// holds. The set itself is not changed.
func (s Spellings) Add(spelling string) Spellings {
	i, found := slices.BinarySearch(s, spelling)
	if found || spelling == "" || i > MaxSpellings {
		return s
	}
	grown := slices.Insert(slices.Clone(s), i, spelling)
	return grown[:min(len(grown), MaxSpellings+1)]
}

// Union is the set with all of another.
func (s Spellings) Union(other Spellings) Spellings {
	if len(s) == 0 {
		return other
	}
	for _, o := range other {
		s = s.Add(o)
	}
	return s
}

// TooMany is the detail of SkipSpellings.
func (s Spellings) TooMany() string {
	return fmt.Sprintf("robots.txt would have to allow more than %d spellings, such as %s", MaxSpellings, s[0])
}

// Overflow tells whether there are more spellings than robots.txt is asked for.
func (s Spellings) Overflow() bool { return len(s) > MaxSpellings }
