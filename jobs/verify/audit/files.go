package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/scan"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// These checks read the files that a plan, a result or a seal lists.
var (
	filesThere  = Check{0, "files are there", "files"}
	fileDigests = Check{0, "file digests", "files"}
	tablesRead  = Check{0, "tables can be read", "rows"}
)

// listedFile is a file that a document of a round lists.
type listedFile struct {
	manifest.File
	Round  int32
	From   int32  // kind of the document; if several documents list a file, the one with the least From and Task counts
	Task   int32  // number of the task with the file in its result
	Advice string // advice for a damaged file
}

// These are the kinds of documents that list files. The kind of a result is fromResult plus the index
// of its stage in stages.Order.
const (
	fromPlan       = 0
	fromResult     = 1
	fromCheckpoint = 100
	fromSeal       = 101
)

func listedKey(k table.Key, f *listedFile) table.Key {
	return k.Int(int64(f.Round)).Text(f.Key).Int(int64(f.From)).Int(int64(f.Task))
}

// startList makes an empty list of files. A list that does not fit into memory goes to local disk.
func (a *Audit) startList() (err error) {
	a.close()
	a.files, err = table.NewSorter(a.Scratch, listedKey, SortMemory)
	return err
}

func (a *Audit) close() {
	if a.files != nil {
		_ = a.files.Close() // the sorter holds only temporary data
		a.files = nil
	}
	for _, f := range a.opened {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	a.opened = nil
}

// list adds to the list the files that a document names, if the document's round is audited.
func (a *Audit) list(r *Round, from, task int32, advice string, files ...manifest.File) error {
	if a.Round >= 0 && a.Round != r.Number {
		return nil
	}
	for _, f := range files {
		if err := a.files.Add(&listedFile{f, int32(r.Number), from, task, advice}); err != nil {
			return err
		}
	}
	return nil
}

func (a *Audit) listPlan(r *Round) error {
	var files []manifest.File
	for _, p := range r.Plan.Partitions {
		files = append(files, p.File)
	}
	return a.list(r, fromPlan, 0, "the plan lists it: restore it from a copy", append(files, r.Plan.Lists()...)...)
}

func (a *Audit) listResult(r *Round, stage stages.Stage, n int, result *manifest.Result) error {
	from := fromStage(stage)
	for _, f := range result.Files {
		advice := stages.RemedyFor(stage, r.Crawl, f)
		if stage != stages.Fetch {
			advice = string(stage) + " made it: " + advice
		}
		if err := a.list(r, from, int32(n), advice, f); err != nil {
			return err
		}
	}
	return nil
}

// listSealed adds the files and the manifests of a seal to the list. To save memory, it then removes
// from r.Sealed the files that no later round reads.
func (a *Audit) listSealed(r *Round) error {
	if r.Sealed == nil {
		return nil
	}
	if err := a.list(r, fromSeal, 0, "the seal lists it: restore it from a copy", r.Sealed.Files...); err != nil {
		return err
	}
	for _, m := range r.Sealed.Manifests {
		if err := a.list(r, fromSeal, 0, "the seal names it: "+stages.RemedyFor(stages.Publish, r.Crawl, m.File), m.File); err != nil {
			return err
		}
	}
	if c := a.compaction; roundstate.Covers(c, a.Ledger) && c.Rounds[0].Round == r.Number {
		advice := fmt.Sprintf("it is a part of the compacted copy: make the copy again with `crawlbatch compact --month %s`; the published parts are not affected", a.Crawl)
		if err := a.list(r, fromSeal, 0, advice, c.Files...); err != nil {
			return err
		}
	}
	sealed := *r.Sealed
	sealed.Files = nil
	for _, f := range r.Sealed.Files {
		if stages.ReadLater(f) {
			sealed.Files = append(sealed.Files, f)
		}
	}
	r.Sealed = &sealed
	return nil
}

// listed yields the files that the documents of the audited rounds list, ordered by round and key.
// Each file of a round appears once.
func (a *Audit) listed(ctx context.Context) iter.Seq2[*listedFile, error] {
	return func(yield func(*listedFile, error) bool) {
		var last *listedFile
		for f, err := range a.files.Sorted(ctx) {
			if err == nil && last != nil && last.Round == f.Round && last.Key == f.Key {
				continue
			}
			last = &f
			if !yield(last, err) || err != nil {
				return
			}
		}
	}
}

// checkFiles looks for every listed file of the audit's share. It compares the digests of a sample of
// these files, with at least one file of each round, and reads the tables.
func (a *Audit) checkFiles(ctx context.Context, rounds []*Round) error {
	for _, c := range []Check{filesThere, fileDigests, tablesRead} {
		a.Count(c, 0)
	}
	byNumber := map[int32]*Round{}
	for _, r := range rounds {
		byNumber[int32(r.Number)] = r
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.Parallel)
	check := func(f *listedFile, whole bool) {
		if f != nil && a.Share.HasNamed(f.Key) {
			do := a.checkFile
			if strings.HasPrefix(f.Key, layout.CompactedDir(a.Crawl)) {
				do = a.checkCopied
			}
			g.Go(func() error { return do(ctx, byNumber[f.Round], f, whole) })
		}
	}
	var spare *listedFile // of the round's files outside the sample, the one with the least fraction
	round, sampled := int32(-1), false
	var failed error
	for f, err := range a.listed(ctx) {
		if err != nil {
			failed = err
			break
		}
		if f.Round != round {
			check(spare, !sampled)
			spare, round, sampled = nil, f.Round, false
		}
		if a.Sampled(f.Key) {
			check(f, true)
			sampled = true
			continue
		}
		if spare == nil || fraction(f.Key) < fraction(spare.Key) {
			spare, f = f, spare
		}
		check(f, false)
	}
	check(spare, !sampled)
	if err := g.Wait(); err != nil {
		return err // the cause; the loop over the list ended only because of it
	}
	return failed
}

// madeBy names a task by its round, its stage (as listedFile.From) and its number.
type madeBy struct{ round, from, task int32 }

func fromStage(stage stages.Stage) int32 {
	return fromResult + int32(slices.Index(stages.Order, stage))
}

// Decoded records that a check has read all rows of the parts of a task. Decoding them again would prove
// nothing more.
func (a *Audit) Decoded(t stages.Task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decoded[madeBy{int32(t.Round), fromStage(t.Stage), int32(t.Partition)}] = struct{}{}
}

// deferred reports whether a file is decoded only after the checks, and only if no check has read
// all its rows.
func (a *Audit) deferred(f *listedFile) bool {
	return a.defers && f.From > fromStage(stages.Fetch) && f.From < fromCheckpoint
}

// decodeRest decodes the deferred parts that no check has read.
func (a *Audit) decodeRest(ctx context.Context) error {
	if !a.defers {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.Parallel)
	var failed error
	for f, err := range a.listed(ctx) {
		if err != nil {
			failed = err
			break
		}
		_, done := a.decoded[madeBy{f.Round, f.From, f.Task}]
		if !done && a.deferred(f) && isPart(f) && !a.Broken(f.Key) && !a.pruned.Has(f.Key) {
			g.Go(func() error { return a.decode(ctx, f) })
		}
	}
	return cmp.Or(g.Wait(), failed)
}

// checkFile looks for one file. If whole is true, it also reads the complete file.
func (a *Audit) checkFile(ctx context.Context, r *Round, f *listedFile, whole bool) error {
	if a.pruned.Has(f.Key) {
		a.notePruned(f.Key)
		return nil
	}
	if err := a.CheckPresent(ctx, r, f.File, f.Advice); err != nil || a.Broken(f.Key) {
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

// checkCopied is checkFile for a part of the compacted copy. If compact has replaced the copy since the
// audit read the ledger, compact deletes its parts, so their faults do not count.
func (a *Audit) checkCopied(ctx context.Context, r *Round, f *listedFile, whole bool) error {
	alone := New(a.Options)
	if err := alone.checkFile(ctx, r, f, whole); err != nil {
		return err
	}
	if alone.Report().Found() > 0 {
		l, err := ledger.Load(ctx, a.Bucket, a.Crawl)
		if err != nil {
			return a.Fault(err, filesThere, r.Number, layout.Ledger(a.Crawl))
		}
		if e := l.Of(manifest.EntryCompacted); e == nil || e.Object != a.copy {
			a.CountNote("{n} parts of the compacted copy were not checked, because compact replaced the copy meanwhile, such as {example}", f.Key)
			return nil
		}
	}
	a.add(alone.findings())
	return nil
}

// CheckPresent reports a file that is missing or does not have its recorded size. The report ends with
// the advice.
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
		wrong("it has %d bytes, but %d were recorded", size, f.Bytes)
	}
	return obj.Close()
}

// digestBuffers holds the buffers of Digest.
var digestBuffers = sync.Pool{New: func() any { return new([4 << 20]byte) }}

// Digest reads a whole object and returns its size and its SHA-256. If blocks is
// true, Digest also returns the digests of the blocks.
func (a *Audit) Digest(ctx context.Context, key string, blocks bool) (manifest.File, error) {
	o, err := a.Bucket.Open(ctx, key)
	if err != nil {
		return manifest.File{}, err
	}
	whole, sum, buf := sha256.New(), manifest.NewSum(), digestBuffers.Get().(*[4 << 20]byte)
	defer digestBuffers.Put(buf)
	var to io.Writer = whole
	if blocks {
		to = sum
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, io.NewSectionReader(o, 0, o.Size()), buf[:])
	if err = errors.Join(err, o.Close()); err != nil {
		return manifest.File{}, fmt.Errorf("read %q: %w", key, err)
	}
	if blocks {
		return sum.File(), nil
	}
	return manifest.File{Bytes: o.Size(), SHA256: hex.EncodeToString(whole.Sum(nil))}, nil
}

func (a *Audit) compareDigest(ctx context.Context, r *Round, f *listedFile) error {
	got, err := a.Digest(ctx, f.Key, f.Blocks != "")
	if err != nil {
		return a.Fault(err, fileDigests, r.Number, f.Key)
	}
	a.Count(fileDigests, 1)
	switch {
	case got.SHA256 != f.SHA256:
		a.Wrong(fileDigests, r.Number, At{Object: f.Key}, "its SHA-256 is %s, but %s was recorded; %s", got.SHA256, f.SHA256, f.Advice)
	case got.Blocks != f.Blocks:
		a.Wrong(fileDigests, r.Number, At{Object: f.Key}, "its SHA-256 is as recorded, but the recorded digests of its blocks are those of other bytes: the document that lists it is damaged")
	}
	return nil
}

// footer is a row type whose only column is in no file. A table that is opened with this type
// therefore reads only the footer of the file.
type footer struct {
	None string `parquet:"none,optional"`
}

// readTable compares a table's number of rows with the number in the document that lists the table.
// If whole is true, readTable also decodes every column of a published part.
func (a *Audit) readTable(ctx context.Context, r *Round, f *listedFile, whole bool) error {
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
		a.Wrong(tablesRead, r.Number, At{Object: f.Key}, "it has %d rows, but %d were recorded; %s", rows, f.Rows, f.Advice)
	}
	if !whole || !isPart(f) || a.deferred(f) {
		return nil
	}
	return a.decode(ctx, f)
}

// isPart reports whether a file is a published part of a dataset.
func isPart(f *listedFile) bool {
	_, err := catalog.Find(f.Dataset)
	return err == nil && strings.HasPrefix(f.Key, "tables/") && strings.HasSuffix(f.Key, ".parquet")
}

// decode decodes every column of a part. readTable has compared the number of rows in the footer.
func (a *Audit) decode(ctx context.Context, f *listedFile) error {
	if _, err := scan.Table(ctx, a.Bucket, f.Key); err != nil {
		return a.Fault(err, tablesRead, int(f.Round), f.Key)
	}
	return nil
}

// readRun compares the number of rows in a run's sections with the number in the document that
// lists the run. If whole is false, readRun opens only the last section, whose end is
// the end of the run.
func (a *Audit) readRun(ctx context.Context, r *Round, f *listedFile, whole bool) error {
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
			return nil // the digest of the whole run differs too, and compareDigest reports this
		}
		if err != nil {
			return a.Fault(err, tablesRead, r.Number, f.Key)
		}
		rows := t.Rows()
		if err := t.Close(); err != nil {
			return err
		}
		if rows != s.Rows {
			a.Wrong(tablesRead, r.Number, At{Object: f.Key}, "bucket %d has %d rows, but %d were recorded; %s", s.Bucket, rows, s.Rows, f.Advice)
		}
	}
	a.Count(tablesRead, recorded)
	if recorded != f.Rows {
		a.Wrong(tablesRead, r.Number, At{Object: f.Key}, "its sections have %d rows, but %d were recorded; %s", recorded, f.Rows, f.Advice)
	}
	return nil
}
