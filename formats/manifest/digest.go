package manifest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
)

const (
	// BlockBytes is the size of a block. A File holds a digest for each block of a large object.
	BlockBytes = 512 << 10
	// wholeBytes is the size of the largest file without digests of blocks. To check such a file,
	// a reader holds it in memory.
	wholeBytes = 1 << 20
	// blockSum is the length of a block's digest: the first 16 bytes of the block's SHA-256.
	blockSum = 16
)

// Sum computes the size and digests of an object for a File, from the bytes that are written to it.
// Write never fails.
type Sum struct {
	whole, block hash.Hash
	bytes        int64
	filled       int64  // number of bytes in the current block
	blocks       []byte // digests of the blocks of the file, or of the current section

	section int64  // start of the current section
	bucket  int    // bucket of the last section
	index   []byte // SectionIndex of the File so far
}

// NewSum returns the Sum of an empty object.
func NewSum() *Sum { return &Sum{whole: sha256.New(), block: sha256.New()} }

// Write implements io.Writer.
func (s *Sum) Write(p []byte) (int, error) {
	s.whole.Write(p)
	for rest := p; len(rest) > 0; {
		n := min(int64(len(rest)), BlockBytes-s.filled)
		s.block.Write(rest[:n])
		s.bytes += n
		if s.filled += n; s.filled == BlockBytes {
			s.endBlock()
		}
		rest = rest[n:]
	}
	return len(p), nil
}

func (s *Sum) endBlock() {
	s.blocks = append(s.blocks, s.block.Sum(nil)[:blockSum]...)
	s.block.Reset()
	s.filled = 0
}

// File returns the size and digests of the written bytes. Do not call Write after File.
func (s *Sum) File() File {
	f := File{Bytes: s.bytes, SHA256: hex.EncodeToString(s.whole.Sum(nil))}
	switch {
	case s.index != nil:
		f.SectionIndex = base64.RawStdEncoding.EncodeToString(s.index)
	case s.bytes > wholeBytes:
		if s.filled > 0 {
			s.endBlock()
		}
		f.Blocks = base64.RawStdEncoding.EncodeToString(s.blocks)
	}
	return f
}
