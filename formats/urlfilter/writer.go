package urlfilter

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"github.com/bits-and-blooms/bloom/v3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
)

// rate is the share of absent URLs that are expected to get the answer "perhaps present". It is half of
// the promised share, because the real share varies by chance.
const rate = 0.0005

// A filter of fewer than leastKeys URLs has the size of a filter of leastKeys URLs (2 kB). In a
// smaller filter, the hash functions would often give the same bit, and more absent URLs would get
// the answer "perhaps present".
const leastKeys = 1000

// Writer collects URLs in a scratch file. Finish builds the filter, because its size depends on the
// number of URLs. Only one goroutine may use a Writer. The caller ends a Writer with Finish or Abort.
type Writer struct {
	file *os.File // scratch file, nil after Finish or Abort
	buf  *bufio.Writer
	keys uint64 // number of added URLs
}

// NewWriter returns a Writer and creates its scratch file path.
func NewWriter(path string) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("URL filter: %w", err)
	}
	return &Writer{file: f, buf: bufio.NewWriterSize(f, 256<<10)}, nil
}

// Add adds a URL. For a row of skips without a URL, the caller passes the text in its place.
func (w *Writer) Add(url string) error {
	var length [binary.MaxVarintLen64]byte
	w.buf.Write(binary.AppendUvarint(length[:0], uint64(len(url)))) // nolint:errcheck // the next write returns the same error
	if _, err := w.buf.WriteString(url); err != nil {
		return fmt.Errorf("URL filter: %w", err)
	}
	w.keys++
	return nil
}

// Abort removes the scratch file. After Finish, it does nothing.
func (w *Writer) Abort() {
	if w.file != nil {
		w.file.Close()
		os.Remove(w.file.Name())
		w.file = nil
	}
}

// Finish builds the filter, stores it as the object with the given key, and returns the object's
// description. Its field Rows is the number of added URLs. Finish takes two bytes of memory per URL.
func (w *Writer) Finish(ctx context.Context, b store.Bucket, dataset, key string) (manifest.File, error) {
	defer w.Abort()
	f, err := w.filter(ctx)
	if err != nil {
		return manifest.File{}, fmt.Errorf("write %q: %w", key, err)
	}
	l, err := write(w.file.Name()+".bloom", f, w.keys)
	if err != nil {
		return manifest.File{}, fmt.Errorf("write %q: %w", key, err)
	}
	defer os.Remove(l.Path) // for the case that Commit fails
	return table.Commit(ctx, b, l, dataset, key)
}

// filter builds the filter from the scratch file.
func (w *Writer) filter(ctx context.Context) (*bloom.BloomFilter, error) {
	if err := w.buf.Flush(); err != nil {
		return nil, err
	}
	if _, err := w.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	bits, hashes := bloom.EstimateParameters(uint(max(w.keys, leastKeys)), rate)
	// If maxBits limits the filter, more absent URLs get the answer "perhaps present". The answer
	// "absent" stays certain.
	f := bloom.New(min(bits, maxBits), min(hashes, maxHashes))
	in := bufio.NewReaderSize(w.file, 256<<10)
	var url []byte
	for n := range w.keys {
		if n%(1<<16) == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		length, err := binary.ReadUvarint(in)
		if err != nil {
			return nil, err
		}
		url = slices.Grow(url[:0], int(length))[:length]
		if _, err := io.ReadFull(in, url); err != nil {
			return nil, err
		}
		f.Add(url)
	}
	return f, nil
}

// write writes the filter to the scratch file path.
func write(path string, f *bloom.BloomFilter, keys uint64) (l table.Local, err error) {
	out, err := os.Create(path)
	if err != nil {
		return l, err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			os.Remove(path)
		}
	}()
	digest, sum := manifest.NewSum(), crc32.New(castagnoli)
	w := bufio.NewWriterSize(io.MultiWriter(out, digest, sum), 256<<10)
	head := binary.BigEndian.AppendUint32([]byte(magic), version)
	head = binary.BigEndian.AppendUint64(head, keys)
	if _, err := w.Write(head); err != nil {
		return l, err
	}
	if _, err := f.WriteTo(w); err != nil {
		return l, err
	}
	if err := w.Flush(); err != nil {
		return l, err
	}
	tail := binary.BigEndian.AppendUint32(nil, sum.Sum32())
	if _, err := io.MultiWriter(out, digest).Write(tail); err != nil {
		return l, err
	}
	return table.LocalOf(path, int64(keys), digest), nil
}
