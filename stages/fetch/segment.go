package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// segment is what is recorded between two checkpoints: files in scratch space,
// made when their first row comes.
type segment struct {
	dir     string
	format  int         // of its tables; 0: the newest
	tables  []tableFile // in the order in which they were begun
	warcs   []*warcFile
	rows    *roaring.Bitmap // planned rows whose outcome is recorded
	counts  map[string]int64
	bytes   int64
	retries []manifest.URLRetry // what waits to be tried again when the segment is cut
	origins []manifest.OriginRetry
	closed  []closedFile    // after close: what is still to be uploaded
	files   []manifest.File // uploaded

	fetches  *table.Writer[schema.Fetch]
	requests *table.Writer[schema.Request]
	captures map[string]*table.Writer[schema.Capture] // by subset
	pages    *table.Writer[schema.WorkingPage]
	text     *table.Writer[schema.Text]
	links    *table.Writer[schema.Link]
	robots   *table.Writer[schema.RobotsFile]
}

// tableFile is a table of the segment, whatever its rows.
type tableFile struct {
	dataset, subset string
	close           func() (table.Local, error)
	abort           func()
}

// closedFile is a finished file with the key that it will have.
type closedFile struct {
	local                table.Local
	dataset, subset, key string
}

func newSegment(dir string) *segment {
	return &segment{dir: dir, rows: roaring.New(), counts: map[string]int64{}, captures: map[string]*table.Writer[schema.Capture]{}}
}

// empty reports whether the segment has nothing that could count.
func (g *segment) empty() bool { return len(g.tables) == 0 }

// open begins a table of the segment.
func open[T any](g *segment, w **table.Writer[T], dataset, subset string) (*table.Writer[T], error) {
	if *w != nil {
		return *w, nil
	}
	name := dataset
	if subset != "" {
		name += "-" + subset
	}
	n, err := table.NewWriter[T](filepath.Join(g.dir, name+".parquet"), table.Format(g.format))
	if err != nil {
		return nil, err
	}
	*w = n
	g.tables = append(g.tables, tableFile{dataset, subset, n.Close, n.Abort})
	return n, nil
}

// add writes the rows of a bundle.
func (g *segment) add(b *bundle) error {
	if b.fetch != nil {
		w, err := open(g, &g.fetches, stages.FileFetches, "")
		if err == nil {
			err = w.Append(b.fetch)
		}
		if err != nil {
			return err
		}
		g.rows.Add(uint32(b.row))
		g.counts["urls"]++
		g.counts[stages.CountOutcomes+string(b.fetch.Outcome)]++
	}
	if err := appendAll(g, &g.requests, stages.FileRequests, b.requests); err != nil {
		return err
	}
	for i := range b.captures {
		subset := b.captures[i].subset
		w := g.captures[subset]
		w, err := open(g, &w, stages.FileCaptures, subset)
		if err != nil {
			return err
		}
		g.captures[subset] = w
		if err := w.Append(&b.captures[i].Capture); err != nil {
			return err
		}
	}
	if b.page != nil {
		if err := appendAll(g, &g.pages, stages.FilePages, []schema.WorkingPage{schema.Working(b.page, b.terms)}); err != nil {
			return err
		}
	}
	if b.text != nil {
		if err := appendAll(g, &g.text, stages.FileText, []schema.Text{*b.text}); err != nil {
			return err
		}
		g.bytes += int64(len(b.text.Main) + len(b.text.Full))
	}
	g.counts["requests"] += int64(len(b.requests))
	g.counts["captures"] += int64(len(b.captures))
	g.counts["links"] += int64(len(b.links))
	for i := range b.requests {
		g.counts["bytes"] += b.requests[i].BytesReceived
	}
	if b.page != nil {
		g.counts["pages"]++
	}
	if b.robots != nil {
		g.bytes += int64(len(b.robots.Body))
		if err := appendAll(g, &g.robots, stages.FileRobots, []schema.RobotsFile{*b.robots}); err != nil {
			return err
		}
	}
	g.bytes += 256 * int64(len(b.links)+len(b.requests)+len(b.captures)+1)
	return appendAll(g, &g.links, stages.FileLinks, b.links)
}

func appendAll[T any](g *segment, w **table.Writer[T], dataset string, rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	t, err := open(g, w, dataset, "")
	if err != nil {
		return err
	}
	return t.Write(rows)
}

// close finishes the files. Afterwards the segment can be uploaded.
func (g *segment) close(t stages.Task, plan string, epoch, number int) error {
	for i, w := range g.warcs {
		files, err := w.close(g.dir)
		if err != nil {
			return err
		}
		g.closed = append(g.closed, files...)
		g.warcs[i] = nil
	}
	for _, f := range g.tables {
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

// upload creates the segment's files in the store. After an error it may be
// called again.
func (g *segment) upload(ctx context.Context, b store.Bucket) error {
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

// abort gives the segment up and removes its files.
func (g *segment) abort() {
	for _, f := range g.tables {
		f.abort()
	}
	for _, w := range g.warcs {
		if w != nil {
			w.abort()
		}
	}
	for _, f := range g.closed {
		_ = os.Remove(f.local.Path) // scratch: what stays goes with its directory
	}
}

// warcFile is a WARC file that is being written.
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
	f, err := os.Create(filepath.Join(dir, filepath.Base(key)))
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	w := &warcFile{key: key, file: f, hash: sha256.New()}
	out, err := warc.NewWriter(writerFunc(w.append), warc.Options{})
	if err == nil {
		_, err = out.Write(info)
	}
	if err != nil {
		w.abort()
		return nil, err
	}
	w.records = 1
	return w, nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (w *warcFile) append(p []byte) (int, error) {
	n, err := w.file.Write(p)
	w.hash.Write(p[:n])
	w.offset += int64(n)
	if err != nil {
		return n, fmt.Errorf("write %q to scratch: %w", w.key, err)
	}
	return n, nil
}

// close finishes the file and its index.
func (w *warcFile) close(dir string) ([]closedFile, error) {
	if err := w.file.Close(); err != nil {
		return nil, fmt.Errorf("write %q to scratch: %w", w.key, err)
	}
	out := []closedFile{{
		table.Local{Path: w.file.Name(), Rows: w.records, Bytes: w.offset, SHA256: hex.EncodeToString(w.hash.Sum(nil))},
		stages.FileWARC, "", w.key,
	}}
	key := layout.CDXJ(w.key)
	f, err := os.Create(filepath.Join(dir, filepath.Base(key)))
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
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
		table.Local{Path: f.Name(), Rows: int64(w.index.Len()), Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))},
		stages.FileCDXJ, "", key,
	}), nil
}

func (w *warcFile) abort() {
	_ = w.file.Close()
	_ = os.Remove(w.file.Name()) // scratch: what stays goes with its directory
}
