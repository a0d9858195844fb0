package verify

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

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
	File   string `parquet:"warc_filename"`
	Offset int32  `parquet:"warc_record_offset"`
	Length int32  `parquet:"warc_record_length"`
	URL    string `parquet:"url"`
	Digest string `parquet:"content_digest"`

	Truncated string `parquet:"content_truncated"`
	Robots    string `parquet:"robots"` // of pages only
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

// mention is a located row of some table; captures sort before what points to them.
type mention struct {
	located
	Kind  int32
	Table string // file that holds the row
}

// The kinds of mentions.
const (
	ofCapture int32 = iota
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
	for kind, dataset := range []string{stages.FileCaptures, stages.FileFetches, stages.FilePages} {
		files, _ := r.files(dataset, "", n)
		keys := keysOf(files)
		if a.isBroken(keys...) {
			if kind == int(ofCapture) {
				return nil // without them nothing can be said
			}
			continue
		}
		if whole, err := a.mentions(ctx, r, keys, int32(kind), rows); err != nil || !whole && kind == int(ofCapture) {
			return err
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

// mentions reads the rows of files that name a record.
func (a *audit) mentions(ctx context.Context, r *round, keys []string, kind int32, rows *table.Sorter[mention]) (whole bool, err error) {
	for _, key := range keys {
		for l, err := range concat[located](ctx, a, []string{key}) {
			if err != nil {
				return false, a.skip(err, 4, records, r)
			}
			if l.File == "" && kind == ofFetch {
				continue // nothing was answered
			}
			if err := rows.Add(&mention{l, kind, key}); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// archive walks through the mentions of a partition, one WARC file at a time.
type archive struct {
	*audit
	round  *round
	warcs  map[string]int64 // files that the fetch task lists, with their sizes
	reader *warc.Reader

	key    string // of the file
	object store.Object
	window window
	index  *index // of the file; nil: it cannot be read, which was reported

	read, pointed, lines int64
}

func (c *archive) wrong(check, object string, m *mention, format string, args ...any) {
	c.report(Violation{
		Invariant: 4, Check: check, Round: c.round.number, Object: object, Row: fmt.Sprintf("%s at %d", m.URL, m.Offset), Problem: fmt.Sprintf(format, args...),
	})
}

func (c *archive) walk(ctx context.Context, rows *table.Sorter[mention]) error {
	var capture mention // that was met last
	first := true
	for m, err := range rows.Sorted(ctx) {
		if err != nil {
			return err
		}
		if first || m.File != c.key {
			if err := c.enter(ctx, m.File); err != nil {
				return err
			}
			capture, first = mention{}, false
		}
		if m.Kind != ofCapture {
			c.pointed++
			c.point(&m, &capture)
			continue
		}
		if capture.File == m.File && capture.Offset == m.Offset && capture.Length != 0 {
			c.wrong(records, m.Table, &m, "two captures name the same record, the other of %s", capture.URL)
		}
		capture = m
		if err := c.capture(&m); err != nil {
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

// enter opens the WARC file that the next mentions are of, and its index.
func (c *archive) enter(ctx context.Context, key string) error {
	if err := c.leaveFile(ctx); err != nil {
		return err
	}
	c.key = strings.Clone(key)
	size, ok := c.warcs[key]
	if !ok {
		return nil // each mention is reported
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
	c.object, c.index = nil, nil
}

// point compares a row that points to a record with the capture of that record.
func (c *archive) point(m, capture *mention) {
	what := "fetches"
	if m.Kind == ofPage {
		what = "pages"
	}
	switch {
	case capture.File != m.File || capture.Offset != m.Offset || capture.Length != m.Length:
		c.wrong(pointers, m.Table, m, "this row of %s points to the %d bytes at %d of %s, which no row of captures names", what, m.Length, m.Offset, m.File)
	case m.Kind == ofPage && m.noArchive() && !capture.withheld() && capture.Digest != emptyDigest:
		c.wrong(pointers, m.Table, m, "the page says noarchive, and its content is kept in the record that it points to")
	case m.Kind == ofPage && capture.withheld() && !m.noArchive():
		c.wrong(pointers, m.Table, m, "the content of the page is not kept, though it does not say noarchive")
	case capture.Digest != m.Digest, m.Kind == ofPage && capture.URL != m.URL:
		c.wrong(pointers, m.Table, m, "this row of %s has digest %s, the capture that it points to is of %s with digest %s", what, m.Digest, capture.URL, capture.Digest)
	}
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
	problem, err := c.record(m)
	if err != nil {
		return err
	}
	if problem != "" {
		c.wrong(records, m.File, m, "%s; what was fetched cannot be made again: restore the file", problem)
	}
	return nil
}

// record says what is wrong with a record.
func (c *archive) record(m *mention) (problem string, err error) {
	offset, length := int64(m.Offset), int64(m.Length)
	if offset < 0 || length <= 0 || offset+length > c.window.size {
		return fmt.Sprintf("%d bytes at %d are not within the file of %d bytes", length, offset, c.window.size), nil
	}
	c.reader.Reset(io.NewSectionReader(&c.window, offset, length), offset)
	e, err := c.reader.Next()
	if err == io.EOF {
		return "no record begins there", nil
	}
	var s warc.Summary
	if err == nil {
		s, err = e.Finish()
	}
	switch {
	case c.window.err != nil:
		return "", c.window.err
	case err != nil:
		return err.Error(), nil
	case s.Length != length:
		return fmt.Sprintf("the record is %d bytes long, the row says %d", s.Length, length), nil
	case e.Type != warc.Response:
		return fmt.Sprintf("the record is a %s, not a response", e.Type), nil
	case e.TargetURI() != m.URL:
		return fmt.Sprintf("the record is of %s, the row of %s", e.TargetURI(), m.URL), nil
	case s.Block != warc.Matches:
		return fmt.Sprintf("its block %s from its digest %s", s.Block, e.Header.Get(warc.FieldBlockDigest)), nil
	case m.withheld() && s.Payload != warc.Withheld: // noarchive: the digest is of what was not kept
		return "the row says that nothing of the content is kept, the record does not say so or holds some of it", nil
	case !m.withheld() && s.Payload != warc.Matches:
		return fmt.Sprintf("its payload %s from its digest %s", s.Payload, e.Header.Get(warc.FieldPayloadDigest)), nil
	case warc.Digest(e.Header.Get(warc.FieldPayloadDigest)).Value() != m.Digest:
		return fmt.Sprintf("its payload digest is %s, the row says %s", e.Header.Get(warc.FieldPayloadDigest), m.Digest), nil
	}
	return "", nil
}

// window reads an object by ranges of at least `ahead` bytes, since records are
// read in their order. It is for one goroutine.
type window struct {
	r     io.ReaderAt
	size  int64
	ahead int64

	at  int64
	buf []byte
	err error // of the store
}

// ReadAt implements io.ReaderAt.
func (w *window) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= w.size {
		return 0, io.EOF
	}
	if off < w.at || off >= w.at+int64(len(w.buf)) {
		n := min(max(w.ahead, int64(len(p))), w.size-off)
		if int64(cap(w.buf)) < n {
			w.buf = make([]byte, n)
		}
		w.at, w.buf = off, w.buf[:n]
		if m, err := w.r.ReadAt(w.buf, off); int64(m) < n {
			w.buf = w.buf[:0]
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			w.err = err
			return 0, err
		}
	}
	n := copy(p, w.buf[off-w.at:])
	if n < len(p) && off+int64(n) >= w.size {
		return n, io.EOF
	}
	if n < len(p) {
		m, err := w.ReadAt(p[n:], off+int64(n))
		return n + m, err
	}
	return n, nil
}
