package planner

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/s2"
	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
)

// Elsewhere runs tasks that sort and write the files of a plan's partitions. Other processes may do so.
// Only one goroutine may call Write and Place.
type Elsewhere interface {
	// Store stores a local file with the rows of a partition of the plan m, for WritePart. Several
	// goroutines may call Store.
	Store(ctx context.Context, m *manifest.Plan, partition int, path string) error
	// Write runs the tasks that call WritePart, after Store has stored the rows of all partitions. It returns the
	// files of the partitions, in any order.
	Write(ctx context.Context, m *manifest.Plan, parts *manifest.PlanParts) ([]manifest.PlanPart, error)
	// Place copies the files from, which Write returned, to the keys of the files to, in the same order.
	Place(ctx context.Context, m *manifest.Plan, from []manifest.File, to []*manifest.File) error
}

// writeElsewhere has tasks write the files of the partitions.
func (p *Plan) writeElsewhere(ctx context.Context, r *rules, req Request, from *picked, partitions []partition) error {
	m := &p.manifest
	parts := &manifest.PlanParts{Format: m.Format, BeforeFormat8: r.BeforeFormat8, Hide: from.names.hide, Names: from.names.pack(), Parts: make([]manifest.PlanPart, len(partitions))}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(r.Workers)
	for i := range partitions {
		g.Go(func() error {
			path := filepath.Join(req.Scratch, "rows-"+layout.Part(i))
			rows, left, err := from.writeRows(gctx, path, partitions[i].groups)
			if err == nil {
				parts.Parts[i] = manifest.PlanPart{Partition: i, Rows: rows, Left: left}
				err = req.Elsewhere.Store(gctx, m, i, path)
			}
			return errors.Join(err, os.Remove(path))
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	written, err := req.Elsewhere.Write(ctx, m, parts)
	if err != nil {
		return err
	}
	for _, w := range written {
		if w.Partition < 0 || w.Partition >= len(partitions) || w.URLs == nil || w.URLs.Rows != partitions[w.Partition].urls {
			return fmt.Errorf("a task wrote wrong files of partition %d: %w", w.Partition, table.ErrDiffers)
		}
		m.Partitions[w.Partition].File, m.Partitions[w.Partition].Spellings = *w.URLs, w.Spellings
	}
	for i := range m.Partitions {
		q := &m.Partitions[i]
		if q.File.Key == "" {
			return fmt.Errorf("no task wrote partition %d: %w", i, table.ErrDiffers)
		}
		for _, f := range []*manifest.File{&q.File, q.Spellings} {
			if f != nil {
				p.placed = append(p.placed, *f)
				f.Key = "" // the plan's ID does not depend on where a task wrote
			}
		}
	}
	return nil
}

// writeRows writes a file with the records of some groups: those that are planned, then the others that
// have spellings. It returns the numbers of both.
func (p *picked) writeRows(ctx context.Context, path string, groups []int32) (rows, left int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, 0, fmt.Errorf("create scratch file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := s2.NewWriter(f, s2.WriterConcurrency(1))
	buf := make([]byte, readAhead)
	copyAll := func(l *chosenList, indices iter.Seq[int32]) (n int64, err error) {
		for i := range indices {
			end := l.size
			if int(i)+1 < len(l.groups) {
				end = l.groups[i+1].off
			}
			off := l.groups[i].off
			// The struct hides the method ReadFrom, which would begin a block of s2 for each group.
			if _, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{io.NewSectionReader(l.file, off, end-off)}, buf); err != nil {
				return n, fmt.Errorf("write scratch file: %w", err)
			}
			if n += l.groups[i].urls; ctx.Err() != nil {
				return n, ctx.Err()
			}
		}
		return n, nil
	}
	if rows, err = copyAll(p.chosen, slices.Values(groups)); err != nil {
		return rows, left, err
	}
	for _, l := range p.left {
		n, err := copyAll(l, l.matchingIndices(p.chosen, groups))
		if left += n; err != nil {
			return rows, left, err
		}
	}
	return rows, left, out.Close()
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

// partMemory is the memory in which WritePart sorts, in bytes.
const partMemory = 128 << 20

// WritePart writes the files of one partition to the directory scratch, from its rows that a process of the
// same version has stored. The path of spellings is empty if there is no such file. The argument round is
// the crawl and round of the plan, such as 2026-11.0.
func WritePart(ctx context.Context, scratch, round string, parts *manifest.PlanParts, part *manifest.PlanPart, rows io.Reader) (urls, spellings table.Local, err error) {
	r := rules{Config: Config{Format: parts.Format, BeforeFormat8: parts.BeforeFormat8}}
	names := &fileNames{round: round, hide: parts.Hide}
	if err := names.unpack(parts.Names); err != nil {
		return urls, spellings, err
	}
	w := partitionWriter{scratch, partMemory, r.fileFormat(), names}
	in := recordCodec.Reader(bufio.NewReaderSize(s2.NewReader(rows), readAhead))
	read := func(n int64) func(visit func(*record) error) error {
		return func(visit func(*record) error) error {
			var u record
			for i := range n {
				if i%1024 == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				err := in.Next(&u)
				if err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				if err == nil {
					err = visit(&u)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	return w.writeFiles(ctx, part.Partition, read(part.Rows), read(part.Left), part.Left > 0)
}
