package manifest

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Section is the part of a run that holds the rows of one bucket. A section is a complete Parquet
// file. The sections of a run lie one after another, in the order of buckets. A bucket without rows
// has no section.
type Section struct {
	Key    string // key of the run
	Bucket int
	Rows   int64
	Offset int64 // offset of the section in the run, in bytes
	Bytes  int64
	sums   []byte // digests of the section's blocks; the first block begins where the section begins
}

// EndSection ends a section of a run: the bytes that were written after the previous section. File
// then returns a SectionIndex instead of Blocks.
func (s *Sum) EndSection(bucket int, rows int64) {
	if s.filled > 0 {
		s.endBlock()
	}
	for _, n := range []int64{int64(bucket - s.bucket), rows, s.bytes - s.section} {
		s.index = binary.AppendUvarint(s.index, uint64(n))
	}
	s.index = append(s.index, s.blocks...)
	s.blocks, s.bucket, s.section = s.blocks[:0], bucket, s.bytes
}

// Sections returns the sections of a run. A file that is not a run has no sections.
func (f *File) Sections() ([]Section, error) {
	damaged := fmt.Errorf("%q: the index of its sections does not fit its size: %w", f.Key, ErrCorrupt)
	index, err := base64.RawStdEncoding.DecodeString(f.SectionIndex)
	if err != nil {
		return nil, damaged
	}
	var sections []Section
	next := Section{Key: f.Key}
	for len(index) > 0 {
		var numbers [3]int64
		for i := range numbers {
			n, size := binary.Uvarint(index)
			if size <= 0 || n > uint64(max(f.Bytes, f.Rows, 1<<31)) {
				return nil, damaged
			}
			numbers[i], index = int64(n), index[size:]
		}
		next.Bucket += int(numbers[0])
		next.Rows, next.Bytes = numbers[1], numbers[2]
		sums := (next.Bytes + BlockBytes - 1) / BlockBytes * blockSum
		if next.Bytes == 0 || next.Bytes > f.Bytes-next.Offset || sums > int64(len(index)) {
			return nil, damaged
		}
		next.sums, index = index[:sums], index[sums:]
		sections = append(sections, next)
		next.Offset += next.Bytes
	}
	if f.SectionIndex != "" && next.Offset != f.Bytes {
		return nil, damaged
	}
	return sections, nil
}

// section is a part of an object. Its version is that of the object.
type section struct {
	*io.SectionReader
	whole store.Object
}

func (s section) Version() (store.Version, error) { return s.whole.Version() }
func (s section) Close() error                    { return s.whole.Close() }

// OpenSection opens a section of a run as an object. Its ReadAt returns only bytes that match the
// digests in s.
func OpenSection(ctx context.Context, b store.Bucket, s Section) (store.Object, error) {
	o, err := b.Open(ctx, s.Key)
	if err != nil {
		return nil, err
	}
	f := &input{File: File{Key: s.Key}, remedy: "restore it from a copy, or run `crawlbatch retry --rebuild`"}
	if c, ok := o.(*checked); ok {
		o, f = c.Object, c.file
	}
	if o.Size() < s.Offset+s.Bytes {
		return nil, errors.Join(f.changed("it has %d bytes, its section of bucket %d ends after %d", o.Size(), s.Bucket, s.Offset+s.Bytes), o.Close())
	}
	return &checked{Object: section{io.NewSectionReader(o, s.Offset, s.Bytes), o}, file: f, start: s.Offset, blocks: s.sums}, nil
}
