package segments

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/localfile"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// Segment holds the records between two checkpoints in scratch files. A table gets its file with
// its first row.
type Segment struct {
	dir           string
	tables        []tableFile // tables in the order of their first rows
	warcs         []*warcFile
	rows          *roaring.Bitmap // planned rows whose outcome the segment records
	counts        map[string]int64
	bytes         int64                  // approximate size of rows and WARC records, in bytes
	follows       string                 // position of the last acknowledged checkpoint when the segment was finished; "" for a reparse
	retries       []manifest.URLRetry    // URLs that waited for another try when the segment was finished
	robotsRetries []manifest.OriginRetry // robots.txt files that waited for another try when the segment was finished
	closed        []closedFile           // files that are closed but not uploaded yet
	files         []manifest.File        // uploaded files

	fetches  *table.Writer[schema.Fetch]
	requests *table.Writer[schema.Request]
	captures map[string]*table.Writer[schema.Capture] // writers of captures, by subset
	pages    *table.Writer[schema.WorkingPage]
	text     *table.Writer[schema.WorkingText]
	sets     *table.Writer[schema.LinkSet]
	robots   *table.Writer[schema.RobotsFile]
	sitemaps *table.Writer[schema.Sitemap]
}

// tableFile is a table of the segment with any type of row.
type tableFile struct {
	dataset, subset string
	note            func(key, value string)
	close           func() (table.Local, error)
	abort           func()
}

// closedFile is a finished file with its key in the store.
type closedFile struct {
	local                table.Local
	dataset, subset, key string
}

// New makes a segment in a directory.
func New(dir string) *Segment {
	return &Segment{dir: dir, rows: roaring.New(), counts: map[string]int64{}, captures: map[string]*table.Writer[schema.Capture]{}}
}

// empty reports whether the segment has no rows.
func (g *Segment) empty() bool { return len(g.tables) == 0 }

// open returns a table of the segment. It creates the table if *w is nil.
func open[T any](g *Segment, w **table.Writer[T], dataset, subset string) (*table.Writer[T], error) {
	if *w != nil {
		return *w, nil
	}
	name := dataset
	if subset != "" {
		name += "-" + subset
	}
	var opts []table.WriterOption
	switch dataset {
	case stages.FileText:
		opts = append(opts, table.Fast()) // rows without Main take less space even so (see schema.WorkingText)
	case stages.FileLinkSets:
		opts = append(opts, table.Packed())
	}
	n, err := table.NewWriter[T](filepath.Join(g.dir, name+".parquet"), opts...)
	if err != nil {
		return nil, err
	}
	*w = n
	g.tables = append(g.tables, tableFile{dataset, subset, n.Note, n.Close, n.Abort})
	return n, nil
}

// Counts returns the segment's counts so far, by name.
func (g *Segment) Counts() map[string]int64 { return g.counts }

// Files returns the segment's uploaded files.
func (g *Segment) Files() []manifest.File { return g.files }

// Add appends the rows of a record. It does not call OnRecorded.
func (g *Segment) Add(b *Record) error {
	if b.Fetch != nil {
		w, err := open(g, &g.fetches, stages.FileFetches, "")
		if err == nil {
			err = w.Append(b.Fetch)
		}
		if err != nil {
			return err
		}
		g.rows.Add(uint32(b.Row))
		g.counts["urls"]++
		g.counts[stages.CountOutcomes+string(b.Fetch.Outcome)]++
	}
	if err := appendAll(g, &g.requests, stages.FileRequests, b.Requests); err != nil {
		return err
	}
	for i := range b.Captures {
		subset := b.Captures[i].Subset
		w := g.captures[subset]
		w, err := open(g, &w, stages.FileCaptures, subset)
		if err != nil {
			return err
		}
		g.captures[subset] = w
		if err := w.Append(&b.Captures[i].Capture); err != nil {
			return err
		}
	}
	if b.Page != nil {
		if err := appendAll(g, &g.pages, stages.FilePages, []schema.WorkingPage{schema.Working(b.Page, b.Terms)}); err != nil {
			return err
		}
	}
	if b.Text != nil {
		if err := appendAll(g, &g.text, stages.FileText, []schema.WorkingText{schema.NewWorkingText(b.Text)}); err != nil {
			return err
		}
		g.bytes += int64(len(b.Text.Main) + len(b.Text.Full))
	}
	g.counts["requests"] += int64(len(b.Requests))
	g.counts["captures"] += int64(len(b.Captures))
	g.counts["links"] += int64(len(b.Links))
	for i := range b.Requests {
		g.counts["bytes"] += b.Requests[i].BytesReceived
	}
	if b.Page != nil {
		g.counts["pages"]++
	}
	if b.Robots != nil {
		g.bytes += int64(len(b.Robots.Body))
		if err := appendAll(g, &g.robots, stages.FileRobots, []schema.RobotsFile{*b.Robots}); err != nil {
			return err
		}
	}
	if err := appendAll(g, &g.sitemaps, stages.FileSitemaps, b.Sitemaps); err != nil {
		return err
	}
	g.bytes += 256 * int64(len(b.Links)+len(b.Requests)+len(b.Captures)+len(b.Sitemaps)+1)
	for set := range schema.LinkSets(b.Links) {
		if err := appendAll(g, &g.sets, stages.FileLinkSets, []schema.LinkSet{set}); err != nil {
			return err
		}
	}
	return nil
}

func appendAll[T any](g *Segment, w **table.Writer[T], dataset string, rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	t, err := open(g, w, dataset, "")
	if err != nil {
		return err
	}
	return t.Write(rows)
}

// Close finishes the files and sets their keys, which contain task, plan, epoch and number.
func (g *Segment) Close(t stages.Task, plan string, epoch, number int) error {
	for i, w := range g.warcs {
		files, err := w.close(g.dir)
		if err != nil {
			return err
		}
		g.closed = append(g.closed, files...)
		g.warcs[i] = nil
	}
	for _, f := range g.tables {
		if g.follows != "" {
			f.note(followsKey, g.follows)
		}
		local, err := f.close()
		if err != nil {
			return err
		}
		name := f.dataset
		if f.subset != "" {
			name += "-" + f.subset
		}
		key := layout.Segment(t.Crawl, t.Round, plan, t.Partition, epoch, number, name)
		g.closed = append(g.closed, closedFile{local, f.dataset, f.subset, key})
	}
	return nil
}

// Upload creates the segment's files in the store. If it fails, another call uploads the remaining
// files.
func (g *Segment) Upload(ctx context.Context, b store.Bucket) error {
	for len(g.closed) > 0 {
		f := g.closed[0]
		m, err := table.Commit(ctx, b, f.local, f.dataset, f.key)
		if err != nil {
			return err
		}
		m.Subset = f.subset
		g.files = append(g.files, m)
		g.closed = g.closed[1:]
	}
	return nil
}

// Abort removes the segment's files.
func (g *Segment) Abort() {
	for _, f := range g.tables {
		f.abort()
	}
	for _, w := range g.warcs {
		if w != nil {
			w.abort()
		}
	}
	for _, f := range g.closed {
		_ = os.Remove(f.local.Path) // any leftover is removed with the scratch directory
	}
}

// discard removes the segment's files and its directory.
func (g *Segment) discard() {
	g.Abort()
	_ = os.RemoveAll(g.dir) // any leftover is removed with the scratch directory
}

// List adds the uploaded segment to a checkpoint: its files, rows and counts.
func (g *Segment) List(d *manifest.Checkpoint) error {
	if len(g.files) > 0 && slices.ContainsFunc(d.Files, func(f manifest.File) bool { return f.Key == g.files[0].Key }) {
		return nil // an earlier swap listed the segment, but the store's answer was lost
	}
	d.Files = slices.Concat(d.Files, g.files)
	slices.SortFunc(d.Files, func(a, b manifest.File) int { return strings.Compare(a.Key, b.Key) })
	recorded, err := d.RecordedRows()
	if err != nil {
		return err
	}
	recorded.Or(g.rows)
	recorded.RunOptimize()
	if d.Recorded, err = recorded.ToBytes(); err != nil {
		return err
	}
	d.Counts = sum(d.Counts, g.counts)
	d.Retries, d.Robots = g.retries, g.robotsRetries
	if !g.rows.IsEmpty() {
		d.Stalled = 0
	}
	return nil
}

// sum adds two sets of counts by name and sorts the result.
func sum(counts []manifest.Count, more map[string]int64) []manifest.Count {
	all := maps.Clone(more)
	for _, c := range counts {
		all[c.Name] += c.N
	}
	out := make([]manifest.Count, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, manifest.Count{Name: name, N: all[name]})
	}
	return out
}

// warcFile is an unfinished WARC file.
type warcFile struct {
	key     string
	file    *os.File
	hash    hash.Hash
	offset  int64
	records int64
	index   warc.Index
}

// newWARC begins a WARC file with its warcinfo record.
func newWARC(dir, key string, info *warc.Record) (*warcFile, error) {
	f, err := store.CreateFile(filepath.Join(dir, filepath.Base(key)))
	if err != nil {
		return nil, err
	}
	w := &warcFile{key: key, file: f, hash: sha256.New()}
	if _, err := warc.NewWriter(w).Write(info); err != nil {
		w.abort()
		return nil, err
	}
	w.records = 1
	return w, nil
}

// Write appends to the WARC file.
func (w *warcFile) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	w.hash.Write(p[:n])
	w.offset += int64(n)
	if err != nil {
		return n, fmt.Errorf("write %q to scratch: %w", w.key, err)
	}
	return n, nil
}

// close finishes the WARC file and its index.
func (w *warcFile) close(dir string) ([]closedFile, error) {
	if err := w.file.Close(); err != nil {
		return nil, fmt.Errorf("write %q to scratch: %w", w.key, err)
	}
	out := []closedFile{{
		table.Local{Path: w.file.Name(), Rows: w.records, Bytes: w.offset, SHA256: hex.EncodeToString(w.hash.Sum(nil)), Linkable: true},
		stages.FileWARC, "", w.key,
	}}
	key := layout.CDXJ(w.key)
	f, err := store.CreateFile(filepath.Join(dir, filepath.Base(key)))
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	n, err := w.index.WriteTo(io.MultiWriter(f, sum))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("write %q to scratch: %w", key, err)
	}
	return append(out, closedFile{
		table.Local{Path: f.Name(), Rows: int64(w.index.Len()), Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil)), Linkable: true},
		stages.FileCDXJ, "", key,
	}), nil
}

func (w *warcFile) abort() {
	_ = w.file.Close()
	_ = os.Remove(w.file.Name()) // any leftover is removed with the scratch directory
}

// NoRoom reports whether an error means that a file system or quota is full.
func NoRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// ScratchError turns the error of a full scratch directory into one that wraps
// stages.ErrInterrupted and says what to do. It returns other errors unchanged, also those of a full store.
func ScratchError(err error, scratch string) error {
	if err = localfile.NameScratch(err, scratch); errors.Is(err, localfile.ErrScratch) {
		return fmt.Errorf("%w: %w", err, stages.ErrInterrupted)
	}
	return err
}
