package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// These checks read the files that a plan, a result or a seal lists.
var (
	filesThere  = Check{0, "files are there", "files"}
	fileDigests = Check{0, "file digests", "files"}
	tablesRead  = Check{0, "tables can be read", "rows"}
)

// listedFile is a file that a document lists, with the advice for a damaged file.
type listedFile struct {
	manifest.File
	advice string
}

// listedFiles returns the files that the round's documents list. Each file appears once, ordered by
// key.
func (r *Round) listedFiles() []listedFile {
	var all []listedFile
	add := func(advice string, files ...manifest.File) {
		for _, f := range files {
			all = append(all, listedFile{f, advice})
		}
	}
	const planned = "the plan lists it: restore it from a copy"
	for _, p := range r.Plan.Partitions {
		add(planned, p.File)
		if p.Spellings != nil {
			add(planned, *p.Spellings)
		}
	}
	if f := r.Plan.RefusedFile; f != nil {
		add(planned, *f)
	}
	for _, stage := range stages.Order {
		for _, result := range r.Results[stage] {
			if result == nil {
				continue
			}
			for _, f := range result.Files {
				advice := stages.RemedyFor(stage, r.Crawl, f)
				if stage != stages.Fetch {
					advice = string(stage) + " made it: " + advice
				}
				add(advice, f)
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(r.Unfinished)) {
		add("a checkpoint lists it, and fetched data cannot be made again: restore it from a copy", r.Unfinished[n].Result.Files...)
	}
	if r.Sealed != nil {
		add("the seal lists it: restore it from a copy", r.Sealed.Files...)
		for _, m := range r.Sealed.Manifests {
			add("the seal names it: "+stages.RemedyFor(stages.Publish, r.Crawl, m.File), m.File)
		}
	}
	slices.SortStableFunc(all, func(a, b listedFile) int { return strings.Compare(a.Key, b.Key) })
	return slices.CompactFunc(all, func(a, b listedFile) bool { return a.Key == b.Key })
}

// checkFiles looks for every file of the audit's share that the round's documents list. checkFiles compares the digests
// of a sample of files, and reads the tables.
func (a *Audit) checkFiles(ctx context.Context, r *Round) error {
	for _, c := range []Check{filesThere, fileDigests, tablesRead} {
		a.Count(c, 0)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.Parallel)
	files := r.listedFiles()
	for i, whole := range a.SampledOf(len(files), func(i int) string { return files[i].Key }) {
		if a.Share.HasNamed(files[i].Key) {
			g.Go(func() error { return a.checkFile(ctx, r, files[i], whole) })
		}
	}
	return g.Wait()
}

// checkFile looks for one file. If the parameter whole is true, checkFile reads the complete file.
func (a *Audit) checkFile(ctx context.Context, r *Round, f listedFile, whole bool) error {
	if err := a.CheckPresent(ctx, r, f.File, f.advice); err != nil || a.Broken(f.Key) {
		return err
	}
	if whole {
		if err := a.compareDigest(ctx, r, f); err != nil {
			return err
		}
	}
	switch {
	case f.SectionIndex != "":
		return a.readRun(ctx, r, f, whole)
	case strings.HasSuffix(f.Key, ".parquet"):
		return a.readTable(ctx, r, f, whole)
	}
	return nil
}

// CheckPresent reports a file that is missing or does not have its recorded size. The advice is
// part of the reported problem.
func (a *Audit) CheckPresent(ctx context.Context, r *Round, f manifest.File, advice string) error {
	a.Count(filesThere, 1)
	wrong := func(format string, args ...any) {
		a.setBroken(f.Key)
		a.Wrong(filesThere, r.Number, At{Object: f.Key}, "%s; %s", fmt.Sprintf(format, args...), advice)
	}
	obj, err := a.Bucket.Open(ctx, f.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		wrong("it is missing")
		return nil
	case err != nil && IsFault(err):
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

// digestBuffer is the number of bytes that the method Digest reads at a time.
const digestBuffer = 4 << 20

// Digest reads a whole object and returns its size and its hex SHA-256.
func (a *Audit) Digest(ctx context.Context, key string) (size int64, digest string, err error) {
	o, err := a.Bucket.Open(ctx, key)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	_, err = io.CopyBuffer(struct{ io.Writer }{h}, io.NewSectionReader(o, 0, o.Size()), make([]byte, min(digestBuffer, o.Size()+1)))
	if err = errors.Join(err, o.Close()); err != nil {
		return 0, "", fmt.Errorf("read %q: %w", key, err)
	}
	return o.Size(), hex.EncodeToString(h.Sum(nil)), nil
}

func (a *Audit) compareDigest(ctx context.Context, r *Round, f listedFile) error {
	_, digest, err := a.Digest(ctx, f.Key)
	if err != nil {
		return a.Fault(err, fileDigests, r.Number, f.Key)
	}
	a.Count(fileDigests, 1)
	if digest != f.SHA256 {
		a.Wrong(fileDigests, r.Number, At{Object: f.Key}, "its SHA-256 is %s, %s was recorded; %s", digest, f.SHA256, f.advice)
	}
	return nil
}

// footer is a row type with a column that no file has. Opening a file with this type therefore
// reads only the file's footer.
type footer struct {
	None string `parquet:"none,optional"`
}

// readTable compares a table's number of rows with the number in the document that lists the table.
// If the parameter whole is true, readTable also decodes every column of a published part.
func (a *Audit) readTable(ctx context.Context, r *Round, f listedFile, whole bool) error {
	t, err := table.Open[footer](ctx, a.Bucket, f.Key)
	if err != nil {
		return a.Fault(err, tablesRead, r.Number, f.Key)
	}
	rows := t.Rows()
	if err := t.Close(); err != nil {
		return err
	}
	a.Count(tablesRead, rows)
	if rows != f.Rows {
		a.Wrong(tablesRead, r.Number, At{Object: f.Key}, "it has %d rows, %d were recorded; %s", rows, f.Rows, f.advice)
	}
	if _, err := catalog.Find(f.Dataset); err != nil || !whole || !strings.HasPrefix(f.Key, "tables/") {
		return nil
	}
	read, err := table.Scan(ctx, a.Bucket, f.Key)
	if err != nil {
		return a.Fault(err, tablesRead, r.Number, f.Key)
	}
	if read != rows {
		a.Wrong(tablesRead, r.Number, At{Object: f.Key}, "%d of its %d rows can be read; %s", read, rows, f.advice)
	}
	return nil
}

// readRun compares the number of rows in a run's sections with the number in the document that
// lists the run. If the parameter whole is false, readRun opens only the last section, whose end is
// the end of the run.
func (a *Audit) readRun(ctx context.Context, r *Round, f listedFile, whole bool) error {
	sections, err := f.Sections()
	if err != nil {
		return a.Fault(err, tablesRead, r.Number, f.Key)
	}
	var recorded int64
	for i, s := range sections {
		recorded += s.Rows
		if !whole && i < len(sections)-1 {
			continue
		}
		t, err := table.OpenSection[footer](ctx, a.Bucket, s)
		if whole && errors.Is(err, manifest.ErrChanged) {
			return nil // the run's digest differs too, and the check of digests reports that
		}
		if err != nil {
			return a.Fault(err, tablesRead, r.Number, f.Key)
		}
		rows := t.Rows()
		if err := t.Close(); err != nil {
			return err
		}
		if rows != s.Rows {
			a.Wrong(tablesRead, r.Number, At{Object: f.Key}, "bucket %d has %d rows, %d were recorded; %s", s.Bucket, rows, s.Rows, f.advice)
		}
	}
	a.Count(tablesRead, recorded)
	if recorded != f.Rows {
		a.Wrong(tablesRead, r.Number, At{Object: f.Key}, "its sections have %d rows, %d were recorded; %s", recorded, f.Rows, f.advice)
	}
	return nil
}
