// Package urlfilter reads and writes the URL filter of a bucket: a Bloom filter of the URLs in the
// bucket's parts of the datasets urls and skips. For most URLs without a row in these parts, the
// filter proves that they have none. Readers then need not read the parts.
//
// The input is the URLs of both parts, in any order, with repeats. The output is one object, with
// the same bytes for the same URLs. A Filter answers "absent" or "perhaps present" for a URL. The
// answer "absent" is certain. About one absent URL in a thousand, at most, gets the answer "perhaps
// present".
//
// The file has the following big-endian fields:
//
//	magic     8 bytes   "CBKNOWN\n"
//	version   uint32    1
//	keys      uint64    number of added URLs, including repeats
//	filter              as github.com/bits-and-blooms/bloom/v3 writes it: bits, hash
//	                    functions, length (uint64 each), then the words
//	checksum  uint32    CRC-32C of everything before it
//
// Read refuses a file that is truncated, too long, damaged, of another format or of a newer version.
// The errors of Open also name the object. Package urlfilter imports formats packages.
//
// Burton H. Bloom: Space/Time Trade-offs in Hash Coding with Allowable Errors, 1970.
package urlfilter

import (
	"errors"
	"hash/crc32"
)

// ErrCorrupt means that the object is damaged or is not a URL filter.
var ErrCorrupt = errors.New("not a readable Bloom file: the object is damaged or was cut short; " +
	"restore it, or rebuild it with `crawlbatch retry --rebuild`")

const (
	magic    = "CBKNOWN\n"
	version  = 1
	keysAt   = len(magic) + 4
	filterAt = keysAt + 8
	wordsAt  = filterAt + 3*8
	sumBytes = 4

	// maxBits bounds a filter to 1 GiB, in the store and in memory. This is enough for a bucket with
	// 500 million URLs.
	maxBits = 1 << 33
	// maxHashes is the largest accepted number of hash functions. Filters that Writer makes have
	// fewer.
	maxHashes = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
