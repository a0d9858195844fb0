// Package records reads stored WARC records back in batches and processes them on all CPUs.
//
// The caller passes documents, each with the places of its records. For each document, package
// records calls Steps.Work with these records, on several goroutines, and then Steps.Emit, in the
// order of the documents. One range request reads all records that are close together in a file, so
// a few requests read a thousand pages. Memory holds at most two batches, even if the lengths in
// records are wrong.
//
// A missing or damaged record affects only its document; Raw.Err or ErrDamaged reports it. If the
// store fails or a file is missing, reading ends. Package records imports formats packages and stages.
package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/store"
)

const (
	// batchRecords and batchBytes bound a batch.
	batchRecords = 512
	batchBytes   = 32 << 20
	// maxRange limits a range request that reads several records, in bytes.
	maxRange = 8 << 20
	// maxGap is the largest gap between two records that are read by one range request, in bytes.
	// The gap usually holds request records.
	maxGap = 64 << 10
	// rangesAtATime bounds concurrent range requests.
	rangesAtATime = 8
	// openFiles limits the files that stay open between batches.
	openFiles = 32
)

// Place is the place of a record.
type Place struct {
	File           string // key of the WARC file
	Offset, Length int64  // place of the record's gzip member in the file, in bytes
}

// ErrPlace means that a record's place lies beyond the end of its file.
var ErrPlace = errors.New("the file ends before the record")

// ErrNoFile means that the store does not have a WARC file that a row names.
var ErrNoFile = errors.New("the WARC file does not exist")

// Raw is a record in its stored, compressed form.
type Raw struct {
	Place
	Bytes []byte
	Cut   bool  // whether Bytes is incomplete, because the record is longer than the archive's limit
	Err   error // why Bytes is missing; nil if Bytes is set
}

// Archive reads records of WARC files. It must be used by one goroutine only, and the caller must
// close it.
type Archive struct {
	bucket store.Bucket
	limit  int64
	open   []opened // open files, in order of last use
	ranges int64
}

type opened struct {
	key string
	store.Object
}

// NewArchive returns an Archive that reads from b, at most limit compressed bytes of each record.
func NewArchive(b store.Bucket, limit int64) *Archive { return &Archive{bucket: b, limit: limit} }

// Ranges returns the number of range requests so far.
func (a *Archive) Ranges() int64 { return a.ranges }

// Close closes the open files.
func (a *Archive) Close() {
	for _, o := range a.open {
		_ = o.Close() // nothing was written, so the error does not matter
	}
	a.open = nil
}

// file returns an open file. If too many files are open, it closes the least recently used one.
func (a *Archive) file(ctx context.Context, key string) (store.Object, error) {
	if i := slices.IndexFunc(a.open, func(o opened) bool { return o.key == key }); i >= 0 {
		o := a.open[i]
		a.open = append(slices.Delete(a.open, i, i+1), o)
		return o.Object, nil
	}
	obj, err := a.bucket.Open(ctx, key)
	if err != nil {
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("%w: %w", ErrNoFile, err)
		}
		return nil, err
	}
	if len(a.open) == openFiles {
		_ = a.open[0].Close() // nothing was written, so the error does not matter
		a.open = slices.Delete(a.open, 0, 1)
	}
	a.open = append(a.open, opened{key, obj})
	return obj, nil
}

// length returns how many bytes of a record to read.
func (a *Archive) length(p *Place) int64 { return min(p.Length, a.limit) }

// load reads the records at the given places, in any order.
func (a *Archive) load(ctx context.Context, places []Place) ([]Raw, error) {
	raws := make([]Raw, len(places))
	order := make([]int, len(places))
	for i := range places {
		raws[i].Place, order[i] = places[i], i
	}
	slices.SortFunc(order, func(i, j int) int {
		p, q := &places[i], &places[j]
		return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Offset, q.Offset), cmp.Compare(q.Length, p.Length))
	})
	for len(order) > 0 {
		key := places[order[0]].File
		n := 1
		for n < len(order) && places[order[n]].File == key {
			n++
		}
		if err := a.loadFile(ctx, key, raws, order[:n]); err != nil {
			return nil, err
		}
		order = order[n:]
	}
	return raws, nil
}

// loadFile reads raws[i] for each i in order. The records are all in the same file, and order is
// sorted by their offsets.
func (a *Archive) loadFile(ctx context.Context, key string, raws []Raw, order []int) error {
	obj, err := a.file(ctx, key)
	if err != nil {
		return err
	}
	group := errgroup.Group{}
	group.SetLimit(rangesAtATime)
	for len(order) > 0 {
		first := &raws[order[0]]
		from, to, n := first.Offset, first.Offset, 0
		for n < len(order) {
			p := &raws[order[n]].Place
			end := p.Offset + a.length(p)
			if p.Offset < 0 || p.Length <= 0 || end > obj.Size() {
				if n > 0 {
					break
				}
				raws[order[0]].Err = fmt.Errorf("record of %d bytes at offset %d of %q, which has %d bytes: %w", p.Length, p.Offset, key, obj.Size(), ErrPlace)
				n = 1
				break
			}
			if n > 0 && (p.Offset-to > maxGap || max(to, end)-from > maxRange) {
				break
			}
			to = max(to, end)
			n++
		}
		part := order[:n]
		order = order[n:]
		if first.Err != nil {
			continue
		}
		a.ranges++
		group.Go(func() error {
			buf := make([]byte, to-from)
			if m, err := obj.ReadAt(buf, from); m < len(buf) {
				if err == nil || err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return fmt.Errorf("read %d bytes at %d of %q: %w", len(buf), from, key, err)
			}
			for _, i := range part {
				r := &raws[i]
				n := a.length(&r.Place)
				r.Bytes, r.Cut = buf[r.Offset-from:][:n:n], n < r.Length
			}
			return nil
		})
	}
	return group.Wait()
}
