package fetchcheck

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/directives"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// locatedRecord holds the columns of a row that give the place and the description of a record.
type locatedRecord struct {
	File    string         `parquet:"warc_filename"`
	Offset  int32          `parquet:"warc_record_offset"`
	Length  int32          `parquet:"warc_record_length"`
	URL     string         `parquet:"url"`
	Sent    string         `parquet:"sent,optional"`
	Digest  string         `parquet:"content_digest"`
	Revisit schema.Revisit `parquet:"revisit,optional"`

	Truncated string `parquet:"content_truncated,optional"`
	Robots    string `parquet:"robots,optional"`  // value of the page's robots rules; only for pages
	Earlier   bool   `parquet:"earlier,optional"` // whether the response belongs to an earlier round; only for sitemaps
}

// emptyDigest is the digest of an empty payload.
const emptyDigest = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"

// withheld reports whether the row says that the content was not stored.
func (l *locatedRecord) withheld() bool { return l.Truncated == schema.TruncatedUnspecified }

// noArchive reports whether the page asks not to be stored.
func (l *locatedRecord) noArchive() bool {
	return directives.NoArchive(l.Robots)
}

// keepsNoArchive reports whether the crawl also stores the content of pages that ask not to be stored.
func (c *archive) keepsNoArchive() bool {
	return c.Config != nil && c.Config.Store.NoArchive == config.NoArchiveKeep
}

// payloadAt holds the columns of a revisit's row that locate the revisit's payload.
type payloadAt struct {
	PayloadFile   string `parquet:"payload_warc_filename,optional"`
	PayloadOffset int32  `parquet:"payload_warc_record_offset,optional"`
	PayloadLength int32  `parquet:"payload_warc_record_length,optional"`
}

// capturedAt holds the columns of the captures dataset that invariant 4 needs.
type capturedAt struct {
	locatedRecord
	payloadAt
}

// recordRef is a row of any table that gives the place of a WARC record. In the sort order, the
// capture of a record comes before the rows that point to it.
type recordRef struct {
	locatedRecord
	Kind  int32
	Table string // key of the file that holds the row
}

// These are the kinds of a recordRef.
const (
	ofCapture int32 = iota
	ofPayload       // a revisit that names the place of its payload
	ofFetch
	ofPage
	ofSitemap
)

func refKey(k table.Key, r *recordRef) table.Key {
	return k.Text(r.File).Int(int64(r.Offset)).Int(int64(r.Kind)).Text(r.URL)
}

// recordsAreWhereRowsSay reads a partition's captures and the rows that point to them, in the order
// of WARC file and offset. The check also reads the index beside each WARC file.
func recordsAreWhereRowsSay(ctx context.Context, a *audit.Audit, r *audit.Round, n int) error {
	p, err := r.Partition(ctx, n)
	if err != nil || p.Fetched == nil {
		return err
	}
	rows, err := table.NewSorter(a.Scratch, refKey, audit.SortMemory)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // the sorter holds only temporary data
	keys, _ := p.Files(stages.FileCaptures, "")
	if a.Broken(keys...) {
		return nil // the captures are unreadable, so there is nothing to compare with
	}
	if err := addCaptures(ctx, a, keys, r.Forgot, rows); err != nil {
		return err
	}
	for _, of := range []struct {
		kind    int32
		dataset string
	}{{ofFetch, stages.FileFetches}, {ofPage, stages.FilePages}, {ofSitemap, stages.FileSitemaps}} {
		keys, _ := p.Files(of.dataset, "")
		if of.kind == ofSitemap {
			keys = segmentsOf(&p, of.dataset) // not the rows of merge, which may name an earlier request of the sitemap
		}
		if !a.Broken(keys...) {
			if err := a.Skip(addPointers(ctx, a, keys, of.kind, r.Forgot, rows), recordsMatch, r); err != nil {
				return err
			}
		}
	}
	c := archive{Audit: a, round: r, warcs: map[string]int64{}, reader: warc.NewReader(nil, warc.ReaderOptions{Check: true})}
	for _, f := range p.Fetched.FilesOf(stages.FileWARC) {
		c.warcs[f.Key] = f.Bytes
	}
	defer c.leave()
	if err := c.walk(ctx, rows); err != nil {
		return err
	}
	a.Count(recordsMatch, c.read)
	a.Count(pointersMatch, c.pointed)
	a.Count(indexesMatch, c.lines)
	return nil
}

// addCaptures adds captures and the payloads of revisits to a sorter. After a takedown, a revisit may have
// no payload.
func addCaptures(ctx context.Context, a *audit.Audit, keys []string, takenDown bool, rows *table.Sorter[recordRef]) error {
	return audit.Each(ctx, a, keys, func(key string, c *capturedAt) error {
		err := rows.Add(&recordRef{c.locatedRecord, ofCapture, key})
		if err == nil && c.Revisit != "" && (c.PayloadFile != "" || !takenDown) {
			there := locatedRecord{File: c.PayloadFile, Offset: c.PayloadOffset, Length: c.PayloadLength, URL: c.URL, Digest: c.Digest}
			err = rows.Add(&recordRef{there, ofPayload, key})
		}
		return err
	})
}

// addPointers reads files, and adds each of their rows that points to a record to the sorter. After a
// takedown, the payload of a page may be gone.
func addPointers(ctx context.Context, a *audit.Audit, keys []string, kind int32, takenDown bool, rows *table.Sorter[recordRef]) error {
	return audit.Each(ctx, a, keys, func(key string, l *locatedRecord) error {
		if l.File == "" && (kind != ofPage || takenDown) || l.Earlier && kind == ofSitemap {
			return nil // a row without a response of this round does not point to a record
		}
		return rows.Add(&recordRef{*l, kind, key})
	})
}

// archive reads the recordRefs of a partition in order, one WARC file at a time.
type archive struct {
	*audit.Audit
	round  *audit.Round
	warcs  map[string]int64 // sizes of the WARC files that the fetch task lists
	reader *warc.Reader

	key    string       // key of the open file
	object store.Object // the open file; nil if the file was reported as unreadable, or belongs to another task and is not open yet
	window window
	index  *index // index of the file; nil if the index was reported as unreadable
	other  bool   // true: another task wrote the file, so only payloads of revisits may be in it
	tried  bool   // true: the check has tried to open the other task's file, and has reported a failure

	read, pointed, lines int64
}

func (c *archive) wrong(check audit.Check, object string, m *recordRef, format string, args ...any) {
	c.Wrong(check, c.round.Number, audit.At{Object: object, Row: fmt.Sprintf("%s at %d", m.URL, m.Offset)}, format, args...)
}

func (c *archive) walk(ctx context.Context, rows *table.Sorter[recordRef]) error {
	var place atPlace
	first := true
	for m, err := range rows.Sorted(ctx) {
		if err != nil {
			return err
		}
		if first || m.File != c.key {
			if err := c.openFile(ctx, m.File); err != nil {
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
				c.wrong(recordsMatch, m.Table, &m, "two captures name the same record, the other of %s", place.capture.URL)
			}
			place.capture = m
			err = c.capture(&m)
		case ofPayload:
			err = c.payload(ctx, &m, &place)
		default:
			c.pointed++
			c.comparePointer(&m, &place)
		}
		if err != nil {
			return err
		}
	}
	// walk also reads files that no row names. Such a file may have responses whose rows were lost
	// in a crash.
	for _, key := range slices.Sorted(maps.Keys(c.warcs)) {
		if err := c.openFile(ctx, key); err != nil {
			return err
		}
	}
	return c.leaveFile(ctx)
}

// atPlace holds the rows about one record.
type atPlace struct {
	offset  int32
	capture recordRef           // the capture of the record; zero if the partition has no capture of the record
	payload recordRef           // the last revisit whose payload is in the record
	revisit map[uint64]struct{} // hashes of the URLs of all revisits whose payload is in the record
}

// openFile opens the WARC file of the next recordRefs, and the file's index.
func (c *archive) openFile(ctx context.Context, key string) error {
	if err := c.leaveFile(ctx); err != nil {
		return err
	}
	c.key = strings.Clone(key)
	if c.External != nil {
		return c.open(ctx, c.External, key) // an external file has no index
	}
	size, ok := c.warcs[key]
	if !ok {
		c.other = true // payload opens the file for a revisit; capture reports a capture in it
		return nil
	}
	delete(c.warcs, key)
	var err error
	if c.index, err = c.loadIndex(ctx, key, size); err != nil || c.Broken(key) {
		return err
	}
	err = c.open(ctx, c.Bucket, key)
	if c.Sample >= 0.5 {
		c.window.ahead = 4 << 20 // with a large sample, the check reads most records in file order
	}
	return err
}

// open opens a WARC file, or reports an unreadable file.
func (c *archive) open(ctx context.Context, b store.Bucket, key string) error {
	obj, err := b.Open(ctx, key)
	if err != nil {
		return c.Fault(err, recordsMatch, c.round.Number, key)
	}
	c.object, c.window = obj, window{r: obj, size: obj.Size()}
	return nil
}

// leaveFile checks the index lines whose records no capture names, and closes the WARC file.
func (c *archive) leaveFile(ctx context.Context) error {
	if c.index != nil {
		if c.object != nil {
			if err := c.index.checkUnnamed(ctx, c); err != nil {
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
		_ = c.object.Close() // closing a file that was only read cannot lose data
	}
	c.object, c.index, c.other, c.tried = nil, nil, false, false
}

// comparePointer compares a row with the capture of the record to which the row points. The row of a
// page points to the record with the page's payload. If the page was revisited, this record belongs to
// another capture.
func (c *archive) comparePointer(m *recordRef, p *atPlace) {
	what := "fetches"
	switch m.Kind {
	case ofPage:
		what = "pages"
	case ofSitemap:
		what = "sitemaps"
	}
	to := &p.capture
	if _, revisits := p.revisit[xxh3.HashString(m.URL)]; revisits && m.Kind == ofPage {
		to = &p.payload
	}
	switch {
	case to.File != m.File || to.Length != m.Length || to.Length == 0:
		c.wrong(pointersMatch, m.Table, m, "this row of %s points to the %d bytes at %d of %s, which no row of captures names", what, m.Length, m.Offset, m.File)
	case m.Kind == ofPage && c.Reparse == nil && m.noArchive() && !c.keepsNoArchive() && !to.withheld() && to.Digest != emptyDigest:
		c.wrong(pointersMatch, m.Table, m, "the page says noarchive, but the record that it points to stores its content")
	case m.Kind == ofPage && to.withheld() && !m.noArchive():
		c.wrong(pointersMatch, m.Table, m, "the content of the page is not stored, though it does not say noarchive")
	case to.Digest != m.Digest, m.Kind != ofFetch && to == &p.capture && to.URL != m.URL:
		c.wrong(pointersMatch, m.Table, m, "this row of %s has digest %s, the capture that it points to is of %s with digest %s", what, m.Digest, to.URL, to.Digest)
	case m.Kind == ofPage && to == &p.capture && to.Sent != m.Sent:
		c.wrong(pointersMatch, m.Table, m, "this page was sent as %s, the capture that it points to as %s", cmp.Or(m.Sent, m.URL), cmp.Or(to.Sent, to.URL))
	}
}

// payload checks the record that contains the payload of a revisit.
func (c *archive) payload(ctx context.Context, m *recordRef, p *atPlace) error {
	same := p.payload.Length == m.Length && p.payload.Digest == m.Digest // true: an earlier revisit has the same payload
	if p.revisit == nil {
		p.revisit = map[uint64]struct{}{}
	}
	p.payload = *m
	p.revisit[xxh3.HashString(m.URL)] = struct{}{}
	if p.capture.Length == m.Length && p.capture.Digest == m.Digest && p.capture.Revisit == "" && m.Length > 0 {
		return nil // the check of this capture has covered the payload
	}
	if same {
		return nil
	}
	if c.object == nil && c.other && !c.tried {
		c.tried = true
		if err := c.open(ctx, c.Bucket, m.File); err != nil {
			return err
		}
	}
	if c.object == nil {
		return nil
	}
	const what = "the payload of a revisit should be here: "
	if c.External != nil {
		return c.examine(m, what, c.describesPayload)
	}
	return c.examine(m, what, func(m *recordRef) (string, error) {
		return c.checkRecord(m, func(r wholeRecord, m *recordRef) string { return checkPayload(r, m.Digest) })
	})
}

// capture checks the record of a capture.
func (c *archive) capture(m *recordRef) error {
	if c.object == nil {
		if !c.Broken(m.File) {
			c.wrong(recordsMatch, m.Table, m, "its record is in %q, which the fetch task does not list", m.File)
		}
		return nil
	}
	if c.index != nil {
		c.index.compare(c, m)
	}
	if c.External != nil {
		return c.examine(m, "", c.describesExternal)
	}
	return c.examine(m, "", func(m *recordRef) (string, error) { return c.checkRecord(m, compareRecord) })
}

// examine reads the record to which m refers if the record is in the sample, and reports a problem
// of the record.
func (c *archive) examine(m *recordRef, what string, problemOf func(*recordRef) (string, error)) error {
	if !c.Sampled(fmt.Sprintf("%s@%d", m.File, m.Offset)) {
		return nil
	}
	c.read++
	problem, err := problemOf(m)
	if err == nil && problem != "" {
		c.wrong(recordsMatch, m.File, m, "%s%s; fetched data cannot be recreated: restore the file from a copy", what, problem)
	}
	return err
}
