package planner

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/klauspost/compress/s2"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/pack"
	"crawlbatch.io/crawlbatch/planner/spool"
)

// storeRows stores rows by their cells.
func storeRows[T any](ctx context.Context, d Depot, path, name string, codec *table.Codec[T], rows iter.Seq2[T, error], cellOf func(*T) int) (manifest.File, error) {
	return storeFile(ctx, d, path, name, func(w *spool.Writer) error {
		buf := bufio.NewWriterSize(w, 64<<10)
		out, at := codec.Writer(buf), 0
		for r, err := range rows {
			if err != nil {
				return err
			}
			if cell := cellOf(&r); cell != at {
				if err := errors.Join(buf.Flush(), w.To(cell)); err != nil {
					return err
				}
				at = cell
			}
			if _, err := out.Write(&r); err != nil {
				return err
			}
		}
		return buf.Flush()
	})
}

// storeCells stores the records of a list by their cells.
func storeCells(ctx context.Context, d Depot, path, name string, l *chosenList, cells int) (manifest.File, error) {
	return storeFile(ctx, d, path, name, func(w *spool.Writer) error {
		for i := 0; i < len(l.groups); {
			cell, end := urlkey.BucketOf(l.groups[i].Hash, cells), i
			for end < len(l.groups) && urlkey.BucketOf(l.groups[end].Hash, cells) == cell {
				end++
			}
			off, to := l.groups[i].Off, l.size
			if end < len(l.groups) {
				to = l.groups[end].Off
			}
			if err := w.To(cell); err != nil {
				return err
			}
			if _, err := io.Copy(w, io.NewSectionReader(l.file, off, to-off)); err != nil {
				return err
			}
			i = end
		}
		return nil
	})
}

// storeBytes stores a text.
func storeBytes(ctx context.Context, d Depot, path, name string, text []byte) (manifest.File, error) {
	return storeFile(ctx, d, path, name, func(w *spool.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

func storeFile(ctx context.Context, d Depot, path, name string, fill func(*spool.Writer) error) (manifest.File, error) {
	w, err := spool.Create(path)
	if err != nil {
		return manifest.File{}, err
	}
	err = fill(w)
	l, failed := w.Close()
	if err = errors.Join(err, failed); err != nil {
		return manifest.File{}, errors.Join(err, os.Remove(path))
	}
	return d.Commit(ctx, l, name)
}

// fetchCells appends cells of a stored file to out.
func fetchCells(ctx context.Context, b store.Bucket, f *manifest.File, first, end int, out io.Writer) (int64, error) {
	return spool.Fetch(ctx, b, f, first, end, out)
}

func fetchBytes(ctx context.Context, b store.Bucket, f *manifest.File) ([]byte, error) {
	var out bytes.Buffer
	_, err := fetchCells(ctx, b, f, 0, 1, &out)
	return out.Bytes(), err
}

// groups visits the groups of a list.
func (s *storedList) groups(ctx context.Context, b store.Bucket, visit func(*storedGroup)) error {
	packed, err := fetchBytes(ctx, b, &s.Groups)
	if err != nil {
		return err
	}
	in := groupCodec.Reader(bufio.NewReader(bytes.NewReader(packed)))
	for {
		var g storedGroup
		switch err := in.Next(&g); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		visit(&g)
	}
}

// runs are sorted runs in one scratch file.
type runs struct {
	file *os.File
	ends []int64 // end of each run
}

func (r *runs) close() error { return errors.Join(r.file.Close(), os.Remove(r.file.Name())) }

// fetchRuns fetches some cells of each file.
func fetchRuns(ctx context.Context, b store.Bucket, path string, files []manifest.File, first, end int) (*runs, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	r, at := &runs{file: f}, int64(0)
	for i := range files {
		n, err := fetchCells(ctx, b, &files[i], first, end, f)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		at += n
		r.ends = append(r.ends, at)
	}
	return r, nil
}

// run is a table.Stream of a run.
type rowsOfRun[T any] struct{ in *table.RowReader[T] }

// Read implements table.Stream.
func (r rowsOfRun[T]) Read(batch []T) (int, error) {
	for i := range batch {
		if err := r.in.Next(&batch[i]); err != nil {
			return i, err
		}
	}
	return len(batch), nil
}

func streamOf[T any](codec *table.Codec[T], r *runs, i int) table.Stream[T] {
	begin := int64(0)
	if i > 0 {
		begin = r.ends[i-1]
	}
	return rowsOfRun[T]{codec.Reader(bufio.NewReaderSize(io.NewSectionReader(r.file, begin, r.ends[i]-begin), readAhead))}
}

func rowsOf[T any](ctx context.Context, codec *table.Codec[T], r *runs, i int) iter.Seq2[T, error] {
	return table.All(ctx, streamOf(codec, r, i))
}

// mergeRuns merges runs, and the sorted rows more, if it is not nil.
func mergeRuns[T any](ctx context.Context, codec *table.Codec[T], compare func(a, b *T) int, r *runs, more iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var streams []table.Stream[T]
		for i := range r.ends {
			streams = append(streams, streamOf(codec, r, i))
		}
		if more != nil {
			further := table.Pull(more)
			defer further.Close() //nolint:errcheck // the loop has returned its error
			streams = append(streams, further)
		}
		table.Merge(ctx, compare, streams...)(yield)
	}
}

// packGroups packs the groups of partitions, whose numbers begin with the number skipped.
func packGroups(partitions []pack.Partition, skipped int) (packed []byte) {
	for _, p := range partitions {
		packed = binary.AppendUvarint(packed, uint64(len(p.Groups)))
		before := int32(skipped)
		for _, g := range p.Groups {
			packed, before = binary.AppendUvarint(packed, uint64(g-before)), g
		}
	}
	return packed
}

// unpackGroups returns the groups of each partition that packGroups packed.
func unpackGroups(packed []byte) (partitions [][]int32) {
	next := func() int32 {
		n, size := binary.Uvarint(packed)
		packed = packed[size:]
		return int32(n)
	}
	for len(packed) > 0 {
		groups, last := make([]int32, next()), int32(0)
		for i := range groups {
			last += next()
			groups[i] = last
		}
		partitions = append(partitions, groups)
	}
	return partitions
}

// pack returns the names, compressed: for each, the place of its first entry, its length, and itself.
func (f *fileNames) pack() []byte {
	var b []byte
	for _, n := range f.files {
		b = binary.AppendUvarint(b, uint64(n.first))
		b = binary.AppendUvarint(b, uint64(len(n.name)))
		b = append(b, n.name...)
	}
	return s2.Encode(nil, b)
}

// unpack sets the names from what pack returned.
func (f *fileNames) unpack(packed []byte) error {
	b, err := s2.Decode(nil, packed)
	for err == nil && len(b) > 0 {
		first, n := binary.Uvarint(b)
		size, k := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || k <= 0 || size > uint64(len(b)-n-k) {
			return fmt.Errorf("names of files: %w", table.ErrScratch)
		}
		f.files = append(f.files, fileName{seq(first), string(b[n+k:][:size])})
		b = b[n+k+int(size):]
	}
	return err
}
