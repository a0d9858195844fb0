// Package segments is the log of a fetch task. It appends rows and WARC records to segments in
// scratch space, uploads the segments, and lists them in a checkpoint.
//
// The log takes records of URLs, requests and robots.txt files, with their exchanges, and writes
// tables and WARC files to the store. These files become part of the task when a checkpoint lists
// their segment. Cut ends the current segment between two records, so no record is split between
// segments. Package segments imports packages stages, formats, wire and response.
//
// # Where payloads are stored
//
// Each response is one WARC record, which its row of captures names. If the payload is already
// stored, the record is a revisit with only the head. A payload counts as stored in two cases:
//
//   - The URL's earlier content, which the plan locates, is unchanged: its digest is the same, or
//     the server answered 304. A request is conditional only if that content is at most 180 days
//     old. With this limit, rows refer to no archive that is much older, so archives may be deleted
//     after a year.
//   - This attempt stored the same payload before, under any URL, and the payload has 1 KiB
//     or more. An attempt remembers its newest 16,384 payloads.
//
// For a revisit, three places name the record with the payload: the columns payload_warc_* of
// captures, the fields WARC-Refers-To-Target-URI and WARC-Refers-To-Date in the archive, and the
// row of pages. Truncated bodies, responses without a head and robots.txt are always stored whole.
package segments

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// Capture is a row of the captures dataset with its subset.
type Capture struct {
	Subset string
	schema.Capture
}

// Record is the unit that the log appends. It has a URL with its outcome and its rows, or only rows
// of requests, for example for a robots.txt or for a URL that is tried again later.
type Record struct {
	Row      int64         // number of the planned row of Fetch
	Fetch    *schema.Fetch // row of the planned URL; nil if the URL has no outcome yet
	Requests []schema.Request
	Captures []Capture
	Page     *schema.Page
	Terms    schema.WorkingColumns // of Page
	Text     *schema.Text
	Links    []schema.Link
	Robots   *schema.RobotsFile
	Sitemaps []schema.Sitemap
	// OnRecorded, if set, is called after the rows are appended, under the log's lock. A Cut
	// therefore happens before both or after both. OnRecorded must not call the log.
	OnRecorded func()
}

// Empty reports whether the record has no rows.
func (r *Record) Empty() bool {
	return r.Fetch == nil && r.Robots == nil && len(r.Requests)+len(r.Captures)+len(r.Links)+len(r.Sitemaps) == 0
}

// Sink receives the records of a fetcher. It is safe for concurrent use. An error from a method
// ends the fetcher.
type Sink interface {
	// Archive appends compressed WARC records to a file and the capture to the file's
	// index. It sets the capture's filename and offset.
	Archive(members []byte, records int, cp *warc.Capture) error
	// Emit appends all rows of a record.
	Emit(r *Record) error
}

// maxWARC limits a WARC file, in bytes, so that record offsets fit into INT32 columns.
const maxWARC = 1 << 30

// Options configures a Log.
type Options struct {
	Task      stages.Task
	Plan      string
	Epoch     int
	Scratch   string // local directory
	Version   string // version of crawlbatch, for warcinfo records
	UserAgent string // User-Agent of the crawl, for warcinfo records
	Clock     stages.Clock
	Follows   func() manifest.Position // returns the position of the last acknowledged checkpoint
}

// Log appends records to the current segment. It implements Sink.
type Log struct {
	opt Options

	mu       sync.Mutex
	cur      *Segment
	segments int   // number of segments that were begun in this epoch
	warcs    int   // number of WARC files that were begun in this epoch
	waiting  int64 // size of the finished segments that are not uploaded yet, in bytes
	lost     error // error of the first failed write; the log then refuses records, because their rows may name lost files
}

// NewLog makes a log without a segment. The caller must call Abort when it no longer needs the log.
func NewLog(opt Options) *Log { return &Log{opt: opt} }

// Archive implements Sink.
func (l *Log) Archive(members []byte, records int, cp *warc.Capture) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, err := l.segment()
	if err != nil {
		return err
	}
	w, err := l.warc(g, int64(len(members)))
	if err != nil {
		return err
	}
	cp.Filename = w.key
	cp.Extent.Offset += w.offset
	if _, err := w.Write(members); err != nil {
		return l.lose(err)
	}
	w.records += int64(records)
	g.bytes += int64(len(members))
	return w.index.Add(*cp)
}

// Emit implements Sink.
func (l *Log) Emit(r *Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, err := l.segment()
	if err != nil {
		return err
	}
	if err := g.Add(r); err != nil {
		return l.lose(err)
	}
	if r.OnRecorded != nil {
		r.OnRecorded()
	}
	return nil
}

// lose drops the current segment because one of its files could not be written. The caller holds
// l.mu.
func (l *Log) lose(err error) error {
	if l.lost == nil {
		l.lost = err
	}
	if l.cur != nil {
		l.cur.discard()
		l.cur = nil
	}
	return err
}

// segment returns the current segment, and begins one if there is none. The caller holds l.mu.
func (l *Log) segment() (*Segment, error) {
	if l.lost != nil {
		return nil, l.lost
	}
	if l.cur == nil {
		dir := filepath.Join(l.opt.Scratch, fmt.Sprintf("segment-%05d", l.segments))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, l.lose(fmt.Errorf("create scratch directory: %w", err))
		}
		l.cur = New(dir)
		l.segments++
	}
	return l.cur, nil
}

// warc returns the WARC file for the next n bytes. The caller holds l.mu.
func (l *Log) warc(g *Segment, n int64) (*warcFile, error) {
	if k := len(g.warcs); k > 0 && g.warcs[k-1].offset+n <= maxWARC {
		return g.warcs[k-1], nil
	}
	o := &l.opt
	key := layout.WARC(o.Task.Crawl, o.Task.Round, o.Plan, o.Task.Partition, o.Epoch, l.warcs)
	w, err := newWARC(g.dir, key, warcinfo(key, o.Version, o.UserAgent, o.Task.String(), o.Follows(), o.Clock.Now()))
	if err != nil {
		return nil, l.lose(err)
	}
	l.warcs++
	g.warcs = append(g.warcs, w)
	return w, nil
}

// Size returns the number of URLs and of bytes in the current segment. waiting is the number of bytes
// in all segments that are not uploaded, including the current one.
func (l *Log) Size() (urls, bytes, waiting int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur == nil {
		return 0, 0, l.waiting
	}
	return l.cur.counts["urls"], l.cur.bytes, l.waiting + l.cur.bytes
}

// Cut ends the current segment, closes its files and returns it. It returns nil if the segment has
// no rows. state returns the URLs and robots.txt files that wait for another try; Cut calls it
// under the log's lock.
func (l *Log) Cut(state func() ([]manifest.URLRetry, []manifest.OriginRetry)) (*Segment, error) {
	l.mu.Lock()
	g := l.cur
	// A segment without rows may hold WARC records of unfinished redirect chains. It stays open,
	// because the rows of these records must follow in the same segment.
	if g == nil || g.empty() {
		l.mu.Unlock()
		return nil, nil
	}
	l.cur = nil
	g.follows = l.opt.Follows().String()
	g.retries, g.robotsRetries = state()
	number := l.segments - 1
	l.waiting += g.bytes
	l.mu.Unlock()
	if err := g.Close(l.opt.Task, l.opt.Plan, l.opt.Epoch, number); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		g.discard()
		l.waiting -= g.bytes
		return nil, l.lose(err)
	}
	return g, nil
}

// Uploaded tells the log that a segment is in the store, and deletes its scratch files.
func (l *Log) Uploaded(g *Segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting -= g.bytes
	_ = os.RemoveAll(g.dir) // any leftover is removed with the scratch directory
}

// Abort drops the current segment.
func (l *Log) Abort() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur != nil {
		l.cur.discard()
		l.cur = nil
	}
}
