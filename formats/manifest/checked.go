package manifest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"crawlbatch.io/crawlbatch/formats/store"
)

// ErrChanged means that an object's bytes differ from the digest or size that the writer recorded.
var ErrChanged = errors.New("the store is damaged")

// Checked is a bucket that checks the files that a task reads. After Add has received the digest of a
// file, readers get only bytes that match the digest. A larger file than 1 MiB has a digest for each
// block, so that Checked can check a part of it. If a document omits the digests of blocks (File.Blocks),
// Checked reads the whole file once before a reader gets a byte.
type Checked struct {
	store.Bucket
	files map[string]*input
}

type input struct {
	File
	remedy string

	mu    sync.Mutex // held while the whole file is read and checked
	sound bool       // the digest of this larger file matched, so it need not be checked again
}

// NewChecked returns a Checked without known files.
func NewChecked(b store.Bucket) *Checked { return &Checked{b, map[string]*input{}} }

// Add records the size and digests of files. Each error about these files ends with remedy, a text
// that says what to do. Call Add before Open.
func (c *Checked) Add(remedy string, files ...File) {
	for _, f := range files {
		c.files[f.Key] = &input{File: f, remedy: remedy}
	}
}

// Unwrap returns the bucket below.
func (c *Checked) Unwrap() store.Bucket { return c.Bucket }

// Open implements store.Bucket. If the size of a known file differs from the recorded size, the
// error wraps ErrChanged.
func (c *Checked) Open(ctx context.Context, key string) (store.Object, error) {
	f, known := c.files[key]
	o, err := c.Bucket.Open(ctx, key)
	if known && errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w, but the crawl recorded it: %s", err, f.remedy)
	}
	if err != nil || !known {
		return o, err
	}
	if o.Size() != f.Bytes {
		return nil, errors.Join(f.changed("it has %d bytes, but %d bytes were recorded", o.Size(), f.Bytes), o.Close())
	}
	blocks, err := base64.RawStdEncoding.DecodeString(f.Blocks)
	if n := (f.Bytes + BlockBytes - 1) / BlockBytes; err != nil || f.Blocks != "" && int64(len(blocks)) != n*blockSum {
		return nil, errors.Join(fmt.Errorf("open %q: the digests of its blocks do not fit its size: %w", key, ErrCorrupt), o.Close())
	}
	return &checked{Object: o, file: f, blocks: blocks}, nil
}

func (f *input) changed(format string, args ...any) error {
	return fmt.Errorf("%q: %s: %s: %w", f.Key, fmt.Sprintf(format, args...), f.remedy, ErrChanged)
}

// checked is an object whose ReadAt returns only bytes that match a recorded digest.
type checked struct {
	store.Object
	file   *input
	start  int64  // offset of the object in its file; 0 unless the object is a section of a run
	blocks []byte // digests of the blocks; if empty, only the whole file has a digest

	mu   sync.Mutex
	read bool   // the whole file was read, and body and err are the result
	body []byte // content of a file of up to 1 MiB; nil for a larger file
	err  error

	kept   []byte // a checked block, at offset keptAt
	keptAt int64
}

// ReadAt implements io.ReaderAt.
func (o *checked) ReadAt(p []byte, off int64) (int, error) {
	if len(o.blocks) > 0 {
		return o.readBlocks(p, off)
	}
	if off == 0 && int64(len(p)) >= o.Size() {
		n, err := readFull(o.Object, p[:o.Size()], 0)
		if err == nil {
			err = o.checkSum(sha256.Sum256(p[:n]))
		}
		return withEOF(p, n, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.read {
		o.body, o.err = o.readWhole()
		o.read = o.err == nil || errors.Is(o.err, ErrChanged) // any other error may be temporary, so the next call reads again
	}
	switch {
	case o.err != nil:
		return 0, o.err
	case o.body != nil:
		return bytes.NewReader(o.body).ReadAt(p, off)
	}
	return o.Object.ReadAt(p, off)
}

// readWhole reads the whole file and checks its digest. It returns the bytes of a file of up to
// 1 MiB, and nil for a larger file.
func (o *checked) readWhole() ([]byte, error) {
	f := o.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sound {
		return nil, nil
	}
	buf := make([]byte, min(o.Size(), 8*BlockBytes))
	h := sha256.New()
	for at := int64(0); at < o.Size(); {
		n, err := readFull(o.Object, buf[:min(int64(len(buf)), o.Size()-at)], at)
		if err != nil {
			return nil, err
		}
		h.Write(buf[:n])
		at += int64(n)
	}
	err := o.checkSum([sha256.Size]byte(h.Sum(nil)))
	if f.sound = err == nil && o.Size() > wholeBytes; err != nil || f.sound {
		return nil, err
	}
	return buf, nil
}

func (o *checked) checkSum(sum [sha256.Size]byte) error {
	if got := hex.EncodeToString(sum[:]); got != o.file.SHA256 {
		return o.file.changed("its SHA-256 is %s, but %s was recorded", got, o.file.SHA256)
	}
	return nil
}

// scratch holds reusable memory: the bytes that a call reads, and a hash.
type scratch struct {
	buf  []byte
	hash hash.Hash
}

var scratches = sync.Pool{New: func() any { return &scratch{hash: sha256.New()} }}

// readBlocks reads a range of a file that has digests of blocks. If the range begins in the kept
// block, readBlocks takes the first bytes from there. It reads the other blocks in one call.
func (o *checked) readBlocks(p []byte, off int64) (int, error) {
	if off < 0 || off >= o.Size() {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), o.Size()-off)]
	n := o.fromKept(want, off)
	if n < len(want) {
		if err := o.fetch(want[n:], off+int64(n)); err != nil {
			return 0, err
		}
	}
	return withEOF(p, len(want), nil)
}

// fromKept copies the first bytes of a range from the kept block, and returns their number: 0 if the
// range does not begin in this block.
func (o *checked) fromKept(p []byte, off int64) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at := off - o.keptAt; at >= 0 && at < int64(len(o.kept)) {
		return copy(p, o.kept[at:])
	}
	return 0
}

// fetch reads and checks the blocks that hold a range, and copies the range to p. If the range ends
// within a block, fetch keeps this block: the next column of a wide table often begins there.
func (o *checked) fetch(p []byte, off int64) error {
	first, end := off/BlockBytes, (off+int64(len(p))+BlockBytes-1)/BlockBytes
	start := first * BlockBytes
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	size := min(end*BlockBytes, o.Size()) - start
	if int64(cap(s.buf)) < size {
		s.buf = make([]byte, size)
	}
	buf := s.buf[:size]
	if _, err := readFull(o.Object, buf, start); err != nil {
		return err
	}
	var sum [sha256.Size]byte
	var block []byte
	for i, rest := first, buf; i < end; i++ {
		block = rest[:min(BlockBytes, len(rest))]
		s.hash.Reset()
		s.hash.Write(block)
		if !bytes.Equal(s.hash.Sum(sum[:0])[:blockSum], o.blocks[i*blockSum:(i+1)*blockSum]) {
			at := o.start + i*BlockBytes
			return o.file.changed("its bytes %d to %d have another SHA-256 than was recorded", at, at+int64(len(block)))
		}
		rest = rest[len(block):]
	}
	copy(p, buf[off-start:])
	if off+int64(len(p)) < start+size {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.kept, o.keptAt = append(o.kept[:0], block...), (end-1)*BlockBytes
	}
	return nil
}

// readFull fills p. If the object ends early, readFull returns io.ErrUnexpectedEOF.
func readFull(r io.ReaderAt, p []byte, off int64) (int, error) {
	n, err := r.ReadAt(p, off)
	switch {
	case n == len(p):
		return n, nil
	case err == nil || err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// withEOF returns the result of a ReadAt that read n bytes at the end of an object. If n < len(p),
// the error is io.EOF, because io.ReaderAt requires one.
func withEOF(p []byte, n int, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
