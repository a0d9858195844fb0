// Package known is the Bloom file that stands beside a bucket's parts of urls and
// skips: it tells for most URLs that neither part has a row of them, without a look
// at the tables.
//
// In: the URLs of both parts, in any order, repeats included. Out: one object, the
// same bytes for the same URLs; and, read back, a Filter that answers "no" or "look
// it up". A "no" is certain; at most one absent URL in a thousand gets a "look it up".
//
// The file is, big endian:
//
//	magic     8 bytes   "CBKNOWN\n"
//	version   uint32    1
//	keys      uint64    URLs that were added, repeats counted
//	filter              as github.com/bits-and-blooms/bloom/v3 writes it: bits, hash
//	                    functions, length (uint64 each), then the words
//	checksum  uint32    CRC-32C of all before it
//
// A file that is short, long, damaged, foreign or of a newer version is refused with
// an error that names the object. It imports formats packages.
//
// Burton H. Bloom: Space/Time Trade-offs in Hash Coding with Allowable Errors, 1970.
package known

import "errors"

// ErrCorrupt: the object is no Bloom file of URLs, or a damaged one.
var ErrCorrupt = errors.New("not a readable Bloom file: the object is damaged or was cut short; " +
	"restore it, or remove it and rebuild it with `crawlbatch retry --rebuild`")

const (
	magic    = "CBKNOWN\n"
	version  = 1
	keysAt   = len(magic) + 4
	filterAt = keysAt + 8
	wordsAt  = filterAt + 3*8
	sumBytes = 4

	// maxBits bounds a filter, in the store and in memory, to 1 GiB: that is enough
	// for 500 million URLs a bucket.
	maxBits = 1 << 33
	// maxHashes is above what any sensible filter has.
	maxHashes = 64
)
