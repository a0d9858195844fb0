package topics

import (
	"math"
	"math/bits"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/logarithm"
)

// maxSampled is the largest number of sampled pages in a language.
const maxSampled = 10_000_000

// countedLevels is the number of levels below top that a large round counts.
const countedLevels = 4

// sample says which pages of a round count.
type sample struct {
	floor, top int32 // lowest level that counts, and the level that stands for all levels from there on
	most       int64 // largest number of sampled pages in a language
}

// sampleOf returns the sample of a round with the given number of planned URLs. A round has at most one
// page for each of them. Half of most is left for chance: fewer than most pages have the level top.
func sampleOf(urls, most int64) sample {
	s := sample{most: most}
	if urls <= most {
		return s
	}
	for urls>>s.top > most/2 {
		s.top++
	}
	s.floor = max(0, s.top-countedLevels)
	return s
}

// level returns the level at which a page counts. ok is false if the page does not count.
func (s sample) level(url string) (level int32, ok bool) {
	if s.top == 0 {
		return 0, true
	}
	level = min(int32(bits.LeadingZeros64(xxh3.HashString(url))), s.top)
	return level, level >= s.floor
}

// MinPages returns the least number of pages that a term must have to count, among n sampled pages.
func MinPages(n int64) int64 {
	// Every publish task reads all terms. A page has at most 128, so fewer than 12.8 million count in a language.
	return max(min(1+n/1000, 5), n/100_000)
}

// microIDF returns the inverse document frequency of a term in millionths.
func microIDF(n, df int64) int64 {
	return int64(math.Round(1e6 * (1 + logarithm.Of(float64(1+n)/float64(1+df)))))
}
