package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// The checks of invariant 4.
const (
	records  = "WARC records"
	pointers = "pointers to captures"
	indexes  = "CDXJ indexes"
)

// located is where a row says that a record lies, and what it says of it.
type located struct {
	File    string         `parquet:"warc_filename"`
	Offset  int32          `parquet:"warc_record_offset"`
	Length  int32          `parquet:"warc_record_length"`
	URL     string         `parquet:"url"`
	Digest  string         `parquet:"content_digest"`
	Revisit schema.Revisit `parquet:"revisit,optional"`

	Truncated string `parquet:"content_truncated,optional"`
	Robots    string `parquet:"robots,optional"` // of pages only
}

// emptyDigest is the digest of a payload without a byte.
const emptyDigest = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"

// withheld reports whether the row says that nothing of the content is kept.
func (l *located) withheld() bool { return l.Truncated == schema.TruncatedUnspecified }

// noArchive reports whether the row of a page says that nothing is to be kept.
func (l *located) noArchive() bool {
	for d := range strings.SplitSeq(l.Robots, ",") {
		if d == "noarchive" || d == "nocache" {
			return true
		}
	}
	return false
}

// payloadAt is where a capture that is a revisit says that its payload lies.
type payloadAt struct {
	PayloadFile   string `parquet:"payload_warc_filename,optional"`
	PayloadOffset int32  `parquet:"payload_warc_record_offset,optional"`
	PayloadLength int32  `parquet:"payload_warc_record_length,optional"`
}

// capturedAt is what is read of a row of captures.
type capturedAt struct {
	located
	payloadAt
}

// mention is a located row of some table; captures sort before what points to them.
type mention struct {
	located
	Kind  int32
	Table string // file that holds the row
}

// The kinds of mentions.
const (
	ofCapture int32 = iota
	ofPayload       // of a revisit
	ofFetch
	ofPage
)

func compareMentions(a, b *mention) int {
	return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Kind, b.Kind), strings.Compare(a.URL, b.URL))
}

// checkCaptures takes everything that a partition says of records, by WARC file
// and offset: captures, the rows that point to them, and the index beside each file.
func (a *audit) checkCaptures(ctx context.Context, r *round, n int) error {
	fetched := r.results[stages.Fetch][n]
	if fetched == nil {
		return nil
	}
	rows, err := table.NewSorter(a.Scratch, compareMentions, sortMemory)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // scratch
	files, _ := r.files(stages.FileCaptures, "", n)
	keys := keysOf(files)
	if a.isBroken(keys...) {
		return nil // without them nothing can be said
	}
	if whole, err := a.captured(ctx, r, keys, rows); err != nil || !whole {
		return err
	}
	for _, of := range []struct {
		kind    int32
		dataset string
	}{{ofFetch, stages.FileFetches}, {ofPage, stages.FilePages}} {
		files, _ := r.files(of.dataset, "", n)
		if keys := keysOf(files); !a.isBroken(keys...) {
			if err := a.mentions(ctx, r, keys, of.kind, rows); err != nil {
				return err
			}
		}
	}
	c := archive{audit: a, round: r, warcs: map[string]int64{}, reader: warc.NewReader(nil, warc.ReaderOptions{Check: true})}
	for _, f := range fetched.FilesOf(stages.FileWARC) {
		c.warcs[f.Key] = f.Bytes
	}
	defer c.leave()
	if err := c.walk(ctx, rows); err != nil {
		return err
	}
	a.note(4, records, "WARC records", c.read)
	a.note(4, pointers, "rows of fetches and pages", c.pointed)
	a.note(4, indexes, "CDXJ lines", c.lines)
	return nil
}

// captured reads the rows of captures, and where the payloads of revisits lie.
func (a *audit) captured(ctx context.Context, r *round, keys []string, rows *table.Sorter[mention]) (whole bool, err error) {
	for _, key := range keys {
		for c, err := range concat[capturedAt](ctx, a, []string{key}) {
			if err != nil {
				return false, a.skip(err, 4, records, r)
			}
			err := rows.Add(&mention{c.located, ofCapture, key})
			if err == nil && c.Revisit != "" {
				there := located{File: c.PayloadFile, Offset: c.PayloadOffset, Length: c.PayloadLength, URL: c.URL, Digest: c.Digest}
				err = rows.Add(&mention{there, ofPayload, key})
			}
			if err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// mentions reads the rows of files that point to a record.
func (a *audit) mentions(ctx context.Context, r *round, keys []string, kind int32, rows *table.Sorter[mention]) error {
	for _, key := range keys {
		for l, err := range concat[located](ctx, a, []string{key}) {
			if err != nil {
				return a.skip(err, 4, records, r)
			}
			if l.File == "" && kind == ofFetch {
				continue // nothing was answered
			}
			if err := rows.Add(&mention{l, kind, key}); err != nil {
				return err
			}
		}
	}
	return nil
}

// archive walks through the mentions of a partition, one WARC file at a time.
type archive struct {
	*audit
	round  *round
	warcs  map[string]int64 // files that the fetch task lists, with their sizes
	reader *warc.Reader

	key    string       // of the file
	object store.Object // nil: the file cannot be read, which was reported, or is not the fetch task's
	window window
	index  *index // of the file; nil: it cannot be read, which was reported
	other  bool   // the file is of another task, whose payloads revisits refer to
	missed bool   // and it could not be opened, which was reported

	read, pointed, lines int64
}

func (c *archive) wrong(check, object string, m *mention, format string, args ...any) {
	c.report(Violation{
		Invariant: 4, Check: check, Round: c.round.number, Object: object, Row: fmt.Sprintf("%s at %d", m.URL, m.Offset), Problem: fmt.Sprintf(format, args...),
	})
}

func (c *archive) walk(ctx context.Context, rows *table.Sorter[mention]) error {
	var place atPlace
	first := true
	for m, err := range rows.Sorted(ctx) {
		if err != nil {
			return err
		}
		if first || m.File != c.key {
			if err := c.enter(ctx, m.File); err != nil {
				return err
			}
			place, first = atPlace{}, false
		}
		if m.Offset != place.offset {
			place = atPlace{offset: m.Offset}
		}
		switch m.Kind {
		case ofCapture:
			if place.capture.Length != 0 {
				c.wrong(records, m.Table, &m, "two captures name the same record, the other of %s", place.capture.URL)
			}
			place.capture = m
			err = c.capture(&m)
		case ofPayload:
			err = c.payload(ctx, &m, &place)
		default:
			c.pointed++
			c.point(&m, &place)
		}
		if err != nil {
			return err
		}
	}
	// Files that no row names may hold answers whose rows were lost with their task.
	for _, key := range slices.Sorted(maps.Keys(c.warcs)) {
		if err := c.enter(ctx, key); err != nil {
			return err
		}
	}
	return c.leaveFile(ctx)
}

// atPlace is what rows say of one record.
type atPlace struct {
	offset  int32
	capture mention             // whose record it is; zero if none of the partition
	payload mention             // a revisit whose payload it holds, the last that was met
	revisit map[uint64]struct{} // hashes of the URLs of all of them
}

// enter opens the WARC file that the next mentions are of, and its index.
func (c *archive) enter(ctx context.Context, key string) error {
	if err := c.leaveFile(ctx); err != nil {
		return err
	}
	c.key = strings.Clone(key)
	if c.foreign != nil {
		return c.enterForeign(ctx, key)
	}
	size, ok := c.warcs[key]
	if !ok {
		c.other = true // opened if a revisit refers to it; other mentions are reported
		return nil
	}
	delete(c.warcs, key)
	var err error
	if c.index, err = c.loadIndex(ctx, key, size); err != nil || c.isBroken(key) {
		return err
	}
	obj, err := c.Bucket.Open(ctx, key)
	if err != nil {
		return c.fault(err, 4, records, c.round.number, key)
	}
	c.object = obj
	c.window = window{r: obj, size: obj.Size()}
	if c.Sample >= 0.5 {
		c.window.ahead = 4 << 20 // most records are read, in the order of the file
	}
	return nil
}

// leaveFile ends a WARC file: what its index lists beside the captures is looked at.
func (c *archive) leaveFile(ctx context.Context) error {
	if c.index != nil {
		if c.object != nil {
			if err := c.index.finish(ctx, c); err != nil {
				return err
			}
		}
		c.lines += int64(len(c.index.entries))
	}
	c.leave()
	return nil
}

func (c *archive) leave() {
	if c.object != nil {
		_ = c.object.Close() // it was only read
	}
	c.object, c.index, c.other, c.missed = nil, nil, false, false
}

// point compares a row that points to a record with the capture of that record. A
// page points to its bytes, which for a revisit are another capture's.
func (c *archive) point(m *mention, p *atPlace) {
	what := "fetches"
	if m.Kind == ofPage {
		what = "pages"
	}
	to := &p.capture
	if _, revisits := p.revisit[xxh3.HashString(m.URL)]; revisits && m.Kind == ofPage {
		to = &p.payload
	}
	switch {
	case to.File != m.File || to.Length != m.Length || to.Length == 0:
		c.wrong(pointers, m.Table, m, "this row of %s points to the %d bytes at %d of %s, which no row of captures names", what, m.Length, m.Offset, m.File)
	case m.Kind == ofPage && c.reparse == nil && m.noArchive() && !to.withheld() && to.Digest != emptyDigest:
		c.wrong(pointers, m.Table, m, "the page says noarchive, and its content is kept in the record that it points to")
	case m.Kind == ofPage && to.withheld() && !m.noArchive():
		c.wrong(pointers, m.Table, m, "the content of the page is not kept, though it does not say noarchive")
	case to.Digest != m.Digest, m.Kind == ofPage && to == &p.capture && to.URL != m.URL:
		c.wrong(pointers, m.Table, m, "this row of %s has digest %s, the capture that it points to is of %s with digest %s", what, m.Digest, to.URL, to.Digest)
	}
}

// payload looks for the payload of a revisit.
func (c *archive) payload(ctx context.Context, m *mention, p *atPlace) error {
	told := p.payload.Length == m.Length && p.payload.Digest == m.Digest // of another revisit already
	if p.revisit == nil {
		p.revisit = map[uint64]struct{}{}
	}
	p.payload = *m
	p.revisit[xxh3.HashString(m.URL)] = struct{}{}
	if p.capture.Length == m.Length && p.capture.Digest == m.Digest && p.capture.Revisit == "" && m.Length > 0 {
		return nil // it is looked at as that capture's
	}
	if told {
		return nil
	}
	if c.object == nil && c.other && !c.missed {
		obj, err := c.Bucket.Open(ctx, m.File)
		if err != nil {
			c.missed = true
			return c.fault(err, 4, records, c.round.number, m.File)
		}
		c.object, c.window = obj, window{r: obj, size: obj.Size()}
	}
	if c.object == nil || !c.sampled(fmt.Sprintf("%s@%d", m.File, m.Offset)) {
		return nil
	}
	c.read++
	e, problem, err := c.record(m)
	if err != nil {
		return err
	}
	if problem == "" {
		problem = holds(e, m.Digest)
	}
	if problem != "" {
		c.wrong(records, m.File, m, "the payload of a revisit should be here: %s; what was fetched cannot be made again: restore the file", problem)
	}
	return nil
}

// described says in what a record is not the one that the row of a capture describes.
func (c *archive) described(m *mention) (problem string, err error) {
	if c.foreign != nil {
		return c.describesForeign(m)
	}
	e, problem, err := c.record(m)
	if err == nil && problem == "" {
		problem = describes(e, m)
	}
	return problem, err
}

// capture reads the record of a capture, if it is one of the sample.
func (c *archive) capture(m *mention) error {
	if c.object == nil {
		if !c.isBroken(m.File) {
			c.wrong(records, m.Table, m, "its record is in %q, which the fetch task does not list", m.File)
		}
		return nil
	}
	if c.index != nil {
		c.index.compare(c, m)
	}
	if !c.sampled(fmt.Sprintf("%s@%d", m.File, m.Offset)) {
		return nil
	}
	c.read++
	problem, err := c.described(m)
	if err != nil {
		return err
	}
	if problem != "" {
		c.wrong(records, m.File, m, "%s; what was fetched cannot be made again: restore the file", problem)
	}
	return nil
}
