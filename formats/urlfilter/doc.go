// Package urlfilter reads and writes the Bloom filter of a bucket, which covers the bucket's parts
// of the datasets urls and skips. For most absent URLs the filter proves that neither part has a
// row, so nobody needs to read the tables.
//
// The input is the URLs of both parts, in any order, with repeats. The output is one object, with
// the same bytes for the same URLs. A Filter read from the object answers "absent" or "perhaps
// present". The answer "absent" is certain. At most one absent URL in a thousand gets the answer
// "perhaps present".
//
// The file has the following big-endian fields:
//
//	magic     8 bytes   "CBKNOWN\n"
//	version   uint32    1
//	keys      uint64    URLs that were added, repeats counted
//	filter              as github.com/bits-and-blooms/bloom/v3 writes it: bits, hash
//	                    functions, length (uint64 each), then the words
//	checksum  uint32    CRC-32C of everything before it
//
// Read refuses a file that is truncated, too long, damaged, of another format or of a newer
// version. Open adds the object's name to the error. Package urlfilter imports formats packages.
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

	// maxBits bounds a filter to 1 GiB, in the store and in memory, enough for 500 million URLs per
	// bucket.
	maxBits = 1 << 33
	// maxHashes is the largest accepted number of hash functions. Sensible filters have fewer.
	maxHashes = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
