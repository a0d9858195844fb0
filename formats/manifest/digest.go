package manifest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
)

const (
	// BlockBytes is the size of the blocks of which a File has digests.
	BlockBytes = 512 << 10
	// wholeBytes is the size up to which a file needs no blocks: a reader reads it at once.
	wholeBytes = 1 << 20
	// blockSum is the number of bytes that a File keeps of a block's SHA-256.
	blockSum = 16
)

// Sum computes what a File records of an object's bytes. It is an io.Writer that never fails.
type Sum struct {
	whole, block hash.Hash
	bytes        int64
	blocks       []byte
}

// NewSum returns the Sum of no bytes.
func NewSum() *Sum { return &Sum{whole: sha256.New(), block: sha256.New()} }

// Write implements io.Writer.
func (s *Sum) Write(p []byte) (int, error) {
	s.whole.Write(p)
	for rest := p; len(rest) > 0; {
		n := min(int64(len(rest)), BlockBytes-s.bytes%BlockBytes)
		s.block.Write(rest[:n])
		if s.bytes += n; s.bytes%BlockBytes == 0 {
			s.endBlock()
		}
		rest = rest[n:]
	}
	return len(p), nil
}

func (s *Sum) endBlock() {
	s.blocks = append(s.blocks, s.block.Sum(nil)[:blockSum]...)
	s.block.Reset()
}

// File returns the file's size and digests. Write nothing after it.
func (s *Sum) File() File {
	f := File{Bytes: s.bytes, SHA256: hex.EncodeToString(s.whole.Sum(nil))}
	if s.bytes > wholeBytes {
		if s.bytes%BlockBytes > 0 {
			s.endBlock()
		}
		f.Blocks = base64.RawStdEncoding.EncodeToString(s.blocks)
	}
	return f
}
