// Package listed holds the set of the URLs that the sources of a plan list.
//
// The planner adds the URLs while it reads the sources. The sources that read earlier rounds then ask
// which URLs need their history. The memory is bounded whatever the number of URLs.
package listed

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// The defaults of New.
const (
	Few   = 100_000  // number of URLs for which a Set keeps the texts, in about 25 MiB
	Bytes = 64 << 20 // size of the filter for larger sets; with 50 million listed URLs, it answers "perhaps" for 1 % of the other URLs
)

// Set is a set of URLs that sources of the user list. A small set holds the texts of its URLs
// (see Few). A larger set holds only a Bloom filter. For some URLs that no source lists, the
// filter answers "perhaps". Such an answer costs time but does no harm. Several goroutines may call
// Add at the same time. The other methods must not be called before all URLs are added.
type Set struct {
	// WithPlanned makes the frontier also tell the history of all URLs that a round has planned,
	// because the rules of the config may turn a listed URL into one of these URLs.
	WithPlanned bool

	few int

	mu     sync.Mutex
	urls   map[string]URL // by URL; nil if there are more than few URLs
	blocks []block        // the filter; nil while urls is in use
	bytes  int64

	sorting sync.Once
	sorted  []URL // the URLs of a small set, sorted by the hashes of their domains; nil until InBucket needs them
}

// URL holds the keys of a listed URL.
type URL struct {
	URL, SURT string
	hash      uint64 // hash of the domain
}

// block is a part of the filter. All bits of a URL are in one block, which is one line of a CPU's
// cache (Putze, Sanders and Singler: Cache-, Hash- and Space-Efficient Bloom Filters, 2007).
type block [8]uint64

// New returns an empty set. It keeps the texts of up to few URLs. For more URLs, it has a
// filter of the given number of bytes.
func New(few int, bytes int64) *Set {
	return &Set{few: few, bytes: bytes, urls: map[string]URL{}}
}

// Add adds URLs. It needs no SURT.
func (l *Set) Add(keys ...urlkey.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		if l.urls == nil {
			l.mark(k.URL)
		} else if _, ok := l.urls[k.URL]; !ok {
			if len(l.urls) == l.few {
				l.condense()
				l.mark(k.URL)
				continue
			}
			url := strings.Clone(k.URL)
			surt, _ := urlkey.SURT(url) // it has one, because it has a Key
			l.urls[url] = URL{url, surt, urlkey.Hash(k.Domain)}
		}
	}
}

// condense replaces the texts of the URLs with the filter.
func (l *Set) condense() {
	l.blocks = make([]block, max(l.bytes/64, 1))
	for url := range l.urls {
		l.mark(url)
	}
	l.urls = nil
}

// bitsOf returns the block of a URL, and the numbers of the URL's six bits in this block. Each number
// takes nine bits of the result.
func (l *Set) bitsOf(url string) (*block, uint64) {
	h := xxh3.HashString128(url)
	return &l.blocks[h.Hi%uint64(len(l.blocks))], h.Lo
}

func (l *Set) mark(url string) {
	b, bits := l.bitsOf(url)
	for range 6 {
		b[bits>>6&7] |= 1 << (bits & 63)
		bits >>= 9
	}
}

// Empty reports whether the set has no URLs.
func (l *Set) Empty() bool { return l == nil || l.urls != nil && len(l.urls) == 0 }

// MayHold returns false only if no source lists the URL.
func (l *Set) MayHold(url string) bool {
	if l == nil {
		return false
	}
	if l.urls != nil {
		_, ok := l.urls[url]
		return ok
	}
	b, bits := l.bitsOf(url)
	for range 6 {
		if b[bits>>6&7]&(1<<(bits&63)) == 0 {
			return false
		}
		bits >>= 9
	}
	return true
}

// InBucket returns the listed URLs of a bucket, in the order of their SURTs. ok is false if the set
// has only a filter. Buckets are equal ranges of the hashes of domains.
func (l *Set) InBucket(bucket, buckets int) (urls []URL, ok bool) {
	if l.urls == nil {
		return nil, false
	}
	l.sorting.Do(func() {
		l.sorted = slices.SortedFunc(maps.Values(l.urls), func(a, b URL) int { return cmp.Compare(a.hash, b.hash) })
	})
	from := sort.Search(len(l.sorted), func(i int) bool { return urlkey.BucketOf(l.sorted[i].hash, buckets) >= bucket })
	to := sort.Search(len(l.sorted), func(i int) bool { return urlkey.BucketOf(l.sorted[i].hash, buckets) > bucket })
	urls = slices.Clone(l.sorted[from:to])
	slices.SortFunc(urls, func(a, b URL) int { return strings.Compare(a.SURT, b.SURT) })
	return urls, true
}
