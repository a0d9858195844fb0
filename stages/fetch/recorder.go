package fetch

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// maxWARC is the size at which another WARC file is begun, in bytes: far below
// what INT32 offsets allow, since a record may be several MiB.
const maxWARC = 1 << 30

// recorder writes what a crawl records into the current segment.
type recorder struct {
	task      stages.Task
	plan      string
	epoch     int
	scratch   string
	version   string
	userAgent string
	clock     stages.Clock

	mu       sync.Mutex
	cur      *segment
	segments int // begun in this epoch
	warcs    int
	waiting  int64 // bytes of segments that are closed and not yet durable
	lost     error // why a segment could not be written; nothing is recorded after it, since later rows may point into its files
}

// archive implements sink.
func (r *recorder) archive(members []byte, records int, cp *warc.Capture) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	g, err := r.segment()
	if err != nil {
		return err
	}
	w, err := r.warc(g, int64(len(members)))
	if err != nil {
		return err
	}
	cp.Filename = w.key
	cp.Extent.Offset += w.offset
	if _, err := w.append(members); err != nil {
		return r.lose(err)
	}
	w.records += int64(records)
	g.bytes += int64(len(members))
	return w.index.Add(*cp)
}

// emit implements sink.
func (r *recorder) emit(b *bundle) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	g, err := r.segment()
	if err != nil {
		return err
	}
	if err := g.add(b); err != nil {
		return r.lose(err)
	}
	if b.settle != nil {
		b.settle()
	}
	return nil
}

// lose gives the current segment up: a file of it could not be written. The caller
// holds mu.
func (r *recorder) lose(err error) error {
	if r.lost == nil {
		r.lost = err
	}
	if r.cur != nil {
		r.cur.abort()
		_ = os.RemoveAll(r.cur.dir) // scratch: what stays goes with its parent
		r.cur = nil
	}
	return err
}

// segment is the current segment, begun if there is none. The caller holds mu.
func (r *recorder) segment() (*segment, error) {
	if r.lost != nil {
		return nil, r.lost
	}
	if r.cur == nil {
		dir := filepath.Join(r.scratch, fmt.Sprintf("segment-%05d", r.segments))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, r.lose(fmt.Errorf("create scratch directory: %w", err))
		}
		r.cur = newSegment(dir)
		r.segments++
	}
	return r.cur, nil
}

// warc is the file that takes n more bytes. The caller holds mu.
func (r *recorder) warc(g *segment, n int64) (*warcFile, error) {
	if k := len(g.warcs); k > 0 && g.warcs[k-1].offset+n <= maxWARC {
		return g.warcs[k-1], nil
	}
	key := layout.WARC(r.task.Crawl, r.task.Round, r.plan, r.task.Partition, r.epoch, r.warcs)
	w, err := newWARC(g.dir, key, warcinfo(key, r.version, r.userAgent, r.task.String(), r.clock.Now()))
	if err != nil {
		return nil, r.lose(err)
	}
	r.warcs++
	g.warcs = append(g.warcs, w)
	return w, nil
}

// recorded says how many URLs and bytes the current segment holds, and how many
// bytes wait to become durable, it included.
func (r *recorder) recorded() (urls, bytes, waiting int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cur == nil {
		return 0, 0, r.waiting
	}
	return r.cur.counts["urls"], r.cur.bytes, r.waiting + r.cur.bytes
}

// cut ends the current segment and gives it, its files finished; nil if it holds
// nothing. What is recorded from now on goes to the next.
// state is called at the instant of the cut.
func (r *recorder) cut(state func(*segment)) (*segment, error) {
	r.mu.Lock()
	g := r.cur
	// Without rows there is nothing to list yet: records of redirects under way
	// stay with the rows that will name them.
	if g == nil || g.empty() {
		r.mu.Unlock()
		return nil, nil
	}
	r.cur = nil
	state(g)
	number := r.segments - 1
	r.waiting += g.bytes
	r.mu.Unlock()
	if err := g.close(r.task, r.plan, r.epoch, number); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		g.abort()
		_ = os.RemoveAll(g.dir) // scratch: what stays goes with its parent
		r.waiting -= g.bytes
		return nil, r.lose(err)
	}
	return g, nil
}

// durable notes that a segment has been uploaded.
func (r *recorder) durable(g *segment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting -= g.bytes
	_ = os.RemoveAll(g.dir) // scratch: what stays goes with its parent
}

// abort removes what was not cut.
func (r *recorder) abort() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cur != nil {
		r.cur.abort()
		r.cur = nil
	}
}
