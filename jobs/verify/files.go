package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// The checks of files that a plan, a result or a seal lists.
const (
	filesThere  = "files are there"
	fileDigests = "file digests"
	tablesRead  = "tables can be read"
)

func isMissing(err error) bool { return errors.Is(err, store.ErrNotFound) }

// listedFile is a file and the advice for when it is gone.
type listedFile struct {
	manifest.File
	advice string
}

// listedFiles are the files that the round's documents promise, each once, by key.
func (r *round) listedFiles() []listedFile {
	var all []listedFile
	for _, p := range r.plan.Partitions {
		all = append(all, listedFile{p.File, "the plan lists it: restore it"})
		if p.Spellings != nil {
			all = append(all, listedFile{*p.Spellings, "the plan lists it: restore it"})
		}
	}
	if f := r.plan.RefusedFile; f != nil {
		all = append(all, listedFile{*f, "the plan lists it: restore it"})
	}
	for _, stage := range stages.Order {
		advice := fmt.Sprintf("%s made it: restore it, or remove what is left of it and rebuild it with `crawlbatch retry --month %s --rebuild`", stage, r.crawl)
		for _, result := range r.results[stage] {
			if result == nil {
				continue
			}
			for _, f := range result.Files {
				of := listedFile{f, advice}
				if stage == stages.Fetch && !(layout.IsReparse(r.crawl) && ownFile(r, f)) {
					of.advice = "what was fetched cannot be made again: restore it"
				}
				all = append(all, of)
			}
		}
	}
	if r.sealed != nil {
		for _, f := range r.sealed.Files {
			all = append(all, listedFile{f, "the seal lists it: restore it"})
		}
	}
	slices.SortStableFunc(all, func(a, b listedFile) int { return strings.Compare(a.Key, b.Key) })
	return slices.CompactFunc(all, func(a, b listedFile) bool { return a.Key == b.Key })
}

// checkFiles looks for every file that the round's documents list, compares the
// digests of a sample, and reads the tables among them.
func (a *audit) checkFiles(ctx context.Context, r *round) error {
	a.note(0, filesThere, "files", 0)
	a.note(0, fileDigests, "files", 0)
	a.note(0, tablesRead, "rows", 0)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.Parallel)
	files := r.listedFiles()
	var names []string
	for _, f := range files {
		names = append(names, f.Key)
	}
	for i, whole := range a.sampledOf(names) {
		g.Go(func() error { return a.checkFile(ctx, r, files[i], whole) })
	}
	return g.Wait()
}

// checkFile looks at one file; whole says whether to read all of it.
func (a *audit) checkFile(ctx context.Context, r *round, f listedFile, whole bool) error {
	if err := a.present(ctx, r, f.File, f.advice); err != nil || a.isBroken(f.Key) {
		return err
	}
	if whole {
		if err := a.compareDigest(ctx, r, f); err != nil {
			return err
		}
	}
	if !strings.HasSuffix(f.Key, ".parquet") {
		return nil
	}
	return a.readTable(ctx, r, f, whole)
}

// present reports a file that is not there with its recorded size.
func (a *audit) present(ctx context.Context, r *round, f manifest.File, advice string) error {
	a.note(0, filesThere, "files", 1)
	wrong := func(format string, args ...any) {
		a.setBroken(f.Key)
		a.report(Violation{Check: filesThere, Round: r.number, Object: f.Key, Problem: fmt.Sprintf(format, args...) + "; " + advice})
	}
	obj, err := a.Bucket.Open(ctx, f.Key)
	switch {
	case err != nil && isMissing(err):
		wrong("it is missing")
		return nil
	case err != nil && isFault(err):
		wrong("it cannot be opened: %v", err)
		return nil
	case err != nil:
		return err
	}
	if size := obj.Size(); size != f.Bytes {
		wrong("it has %d bytes, %d were recorded", size, f.Bytes)
	}
	return obj.Close()
}

// digestBuffer is the range that is read at a time, in bytes.
const digestBuffer = 4 << 20

func (a *audit) compareDigest(ctx context.Context, r *round, f listedFile) error {
	obj, err := a.Bucket.Open(ctx, f.Key)
	if err != nil {
		return a.fault(err, 0, fileDigests, r.number, f.Key)
	}
	h := sha256.New()
	_, err = io.CopyBuffer(struct{ io.Writer }{h}, io.NewSectionReader(obj, 0, obj.Size()), make([]byte, min(digestBuffer, obj.Size()+1)))
	if err = errors.Join(err, obj.Close()); err != nil {
		return a.fault(fmt.Errorf("read %q: %w", f.Key, err), 0, fileDigests, r.number, f.Key)
	}
	a.note(0, fileDigests, "files", 1)
	if sum := hex.EncodeToString(h.Sum(nil)); sum != f.SHA256 {
		a.report(Violation{Check: fileDigests, Round: r.number, Object: f.Key, Problem: fmt.Sprintf("its SHA-256 is %s, %s was recorded; %s", sum, f.SHA256, f.advice)})
	}
	return nil
}

// footer has no column that a file has, so that only the file's footer is read.
type footer struct {
	None string `parquet:"none,optional"`
}

// readTable compares the number of rows and, where the whole file is looked at,
// decodes every column of a published part.
func (a *audit) readTable(ctx context.Context, r *round, f listedFile, whole bool) error {
	t, err := table.Open[footer](ctx, a.Bucket, f.Key)
	if err != nil {
		return a.fault(err, 0, tablesRead, r.number, f.Key)
	}
	rows := t.Rows()
	if err := t.Close(); err != nil {
		return err
	}
	a.note(0, tablesRead, "rows", rows)
	if rows != f.Rows {
		a.report(Violation{Check: tablesRead, Round: r.number, Object: f.Key, Problem: fmt.Sprintf("it has %d rows, %d were recorded; %s", rows, f.Rows, f.advice)})
	}
	dataset, err := catalog.Find(f.Dataset)
	if err != nil || !whole || !strings.HasPrefix(f.Key, "tables/") {
		return nil
	}
	var columns []string
	for _, c := range dataset.Columns {
		columns = append(columns, c.Name)
	}
	var read int64
	for batch, err := range table.Scan(ctx, a.Bucket, f.Key, columns...) {
		if err != nil {
			return a.fault(err, 0, tablesRead, r.number, f.Key)
		}
		read += batch.NumRows()
	}
	if read != rows {
		a.report(Violation{Check: tablesRead, Round: r.number, Object: f.Key, Problem: fmt.Sprintf("%d of its %d rows can be read; %s", read, rows, f.advice)})
	}
	return nil
}
