package urlfilter

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/bits-and-blooms/bloom/v3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// Filter is the Bloom filter of the URLs in a bucket's parts of the datasets urls and skips. A Filter
// is immutable and safe for concurrent use.
type Filter struct {
	bits *bloom.BloomFilter
	keys int64
}

// Open reads the whole object with the given key into memory. If the object is damaged or is not a
// filter, the error wraps ErrCorrupt. If the filter has another version, the error wraps
// manifest.ErrFormat.
func Open(ctx context.Context, b store.Bucket, key string) (*Filter, error) {
	o, err := b.Open(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", key, err)
	}
	f, err := Read(o, o.Size())
	if err = errors.Join(err, o.Close()); err != nil {
		return nil, fmt.Errorf("open %q: %w", key, err)
	}
	return f, nil
}

// Read reads a filter of size bytes. It allocates memory only if the header describes a file of
// exactly this size.
func Read(r io.ReaderAt, size int64) (*Filter, error) {
	if size < int64(wordsAt+sumBytes) {
		return nil, fmt.Errorf("%w (%d bytes)", ErrCorrupt, size)
	}
	var head [wordsAt]byte
	if _, err := r.ReadAt(head[:], 0); err != nil && err != io.EOF {
		return nil, err
	}
	if string(head[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w (it does not begin with the magic number)", ErrCorrupt)
	}
	if v := binary.BigEndian.Uint32(head[len(magic):]); v != version {
		if v > version {
			return nil, fmt.Errorf("it is a Bloom file of version %d, but this program supports only version %d: %w", v, version, manifest.ErrFormat)
		}
		return nil, fmt.Errorf("%w (version %d)", ErrCorrupt, v)
	}
	keys, bits := binary.BigEndian.Uint64(head[keysAt:]), binary.BigEndian.Uint64(head[filterAt:])
	hashes, length := binary.BigEndian.Uint64(head[filterAt+8:]), binary.BigEndian.Uint64(head[filterAt+16:])
	if bits < 1 || bits > maxBits || length != bits || hashes < 1 || hashes > maxHashes || keys > 1<<62 {
		return nil, fmt.Errorf("%w (%d keys, %d bits, a length of %d bits, %d hash functions)", ErrCorrupt, keys, bits, length, hashes)
	}
	if want := int64(wordsAt) + int64((bits+63)/64)*8 + sumBytes; size != want {
		return nil, fmt.Errorf("%w (%d bytes, its header asks for %d)", ErrCorrupt, size, want)
	}
	sum := crc32.New(castagnoli)
	sum.Write(head[:filterAt])
	f := &Filter{bits: new(bloom.BloomFilter), keys: int64(keys)}
	body := io.NewSectionReader(r, int64(filterAt), size-int64(filterAt+sumBytes))
	in := bufio.NewReaderSize(io.TeeReader(body, sum), 256<<10)
	if _, err := f.bits.ReadFrom(in); err != nil {
		return nil, err
	}
	var tail [sumBytes]byte
	if _, err := r.ReadAt(tail[:], size-sumBytes); err != nil && err != io.EOF {
		return nil, err
	}
	if want := binary.BigEndian.Uint32(tail[:]); sum.Sum32() != want {
		return nil, fmt.Errorf("%w (its checksum is %08x, but it states %08x)", ErrCorrupt, sum.Sum32(), want)
	}
	return f, nil
}

// Keys returns the number of added URLs, including repeats.
func (f *Filter) Keys() int64 { return f.keys }

// MayHold returns false only if the parts have no row of the URL. If it returns true, the caller must
// look for a row in the parts.
func (f *Filter) MayHold(url string) bool { return f.bits.TestString(url) }
