package known

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/bits-and-blooms/bloom/v3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
)

// rate is the share of absent URLs that a filter is sized to let through: half of
// the 0.1 % that is promised, so that chance does not take it over.
const rate = 0.0005

// leastKeys is what a filter is sized for at least (2 kB): in fewer bits the hash
// functions fall together, and let more through.
const leastKeys = 1000

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer gathers URLs in a scratch file, since a filter is sized by their number,
// which is known last. It is for one goroutine. End it with Finish or Abort.
type Writer struct {
	path string
	file *os.File
	buf  *bufio.Writer
	keys uint64
}

// NewWriter creates the scratch file path.
func NewWriter(path string) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("filter of known URLs: %w", err)
	}
	return &Writer{path: path, file: f, buf: bufio.NewWriterSize(f, 256<<10)}, nil
}

// Add adds a URL, or the text that stands in its place.
func (w *Writer) Add(url string) error {
	var length [binary.MaxVarintLen64]byte
	if _, err := w.buf.Write(binary.AppendUvarint(length[:0], uint64(len(url)))); err != nil {
		return fmt.Errorf("filter of known URLs: %w", err)
	}
	if _, err := w.buf.WriteString(url); err != nil {
		return fmt.Errorf("filter of known URLs: %w", err)
	}
	w.keys++
	return nil
}

// Abort removes the scratch file. After Finish it does nothing.
func (w *Writer) Abort() {
	if w.file != nil {
		w.file.Close()
		os.Remove(w.path)
		w.file = nil
	}
}

// Finish creates the object key and describes it; its rows are the URLs added. It
// needs two bytes of memory a URL.
func (w *Writer) Finish(ctx context.Context, b store.Bucket, dataset, key string) (manifest.File, error) {
	defer w.Abort()
	f, err := w.filter(ctx)
	if err != nil {
		return manifest.File{}, fmt.Errorf("write %q: %w", key, err)
	}
	l, err := write(w.path+".bloom", f, w.keys)
	if err != nil {
		return manifest.File{}, fmt.Errorf("write %q: %w", key, err)
	}
	defer os.Remove(l.Path) // Commit does, unless it fails
	return table.Commit(ctx, b, l, dataset, key)
}

// filter reads the scratch file back.
func (w *Writer) filter(ctx context.Context) (*bloom.BloomFilter, error) {
	if err := w.buf.Flush(); err != nil {
		return nil, err
	}
	if _, err := w.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	bits, hashes := bloom.EstimateParameters(uint(max(w.keys, leastKeys)), rate)
	// A filter at the bound lets more through, and loses nothing.
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
		if uint64(cap(url)) < length {
			url = make([]byte, length)
		}
		url = url[:length]
		if _, err := io.ReadFull(in, url); err != nil {
			return nil, err
		}
		f.Add(url)
	}
	return f, nil
}

// write writes the file.
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
	digest, sum := sha256.New(), crc32.New(castagnoli)
	w := bufio.NewWriterSize(io.MultiWriter(out, digest, sum), 256<<10)
	head := binary.BigEndian.AppendUint32([]byte(magic), version)
	head = binary.BigEndian.AppendUint64(head, keys)
	if _, err := w.Write(head); err != nil {
		return l, err
	}
	n, err := f.WriteTo(w)
	if err != nil {
		return l, err
	}
	if err := w.Flush(); err != nil {
		return l, err
	}
	tail := binary.BigEndian.AppendUint32(nil, sum.Sum32())
	if _, err := io.MultiWriter(out, digest).Write(tail); err != nil {
		return l, err
	}
	return table.Local{
		Path: path, Rows: int64(keys), Bytes: int64(len(head)) + n + int64(len(tail)), SHA256: hex.EncodeToString(digest.Sum(nil)),
	}, nil
}
