package fetch

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
)

// planned holds the URLs of the partition: their records in a scratch file, and
// in memory 24 bytes a URL to find them by row and by URL.
type planned struct {
	file    *os.File
	offsets []int64 // of each row's record; one more for the end
	byURL   []urlRow
	hosts   []hostRows
	spelled *spelled // URLs that are not planned
}

// urlRow finds a row by the hash of its URL.
type urlRow struct {
	hash uint64
	row  int32
}

// hostRows are the rows of one host, in the order in which they are planned.
type hostRows struct {
	host   string
	ranges []rowRange
}

type rowRange struct {
	from, to int32
	band     polite.Band // of all its rows
}

// loadPlanned copies the rows of a partition's files into the scratch directory.
func loadPlanned(ctx context.Context, b store.Bucket, part *manifest.PlanPartition, scratch string) (*planned, error) {
	f := &part.File
	r, err := table.Open[schema.PlannedURL](ctx, b, f.Key)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // read only
	p, err := newPlanned(scratch)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(p.file, 1<<20)
	place := map[string]int{}
	for row, err := range r.All(ctx) {
		if err == nil {
			err = p.add(w, place, &row)
		}
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	if err := w.Flush(); err != nil {
		return nil, errors.Join(fmt.Errorf("write planned rows to scratch: %w", err), p.Close())
	}
	p.index()
	if int64(p.Len()) != f.Rows {
		return nil, errors.Join(fmt.Errorf("%q has %d rows, the plan says %d: %w", f.Key, p.Len(), f.Rows, table.ErrCorrupt), p.Close())
	}
	if p.spelled, err = loadSpelled(ctx, b, part.Spellings, scratch); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func newPlanned(scratch string) (*planned, error) {
	f, err := os.Create(filepath.Join(scratch, "planned"))
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	return &planned{file: f, offsets: []int64{0}}, nil
}

// onePlanned is a partition of one URL.
func onePlanned(scratch string, row *schema.PlannedURL) (*planned, error) {
	p, err := newPlanned(scratch)
	if err != nil {
		return nil, err
	}
	if err := p.add(p.file, map[string]int{}, row); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.index()
	return p, nil
}

func (p *planned) add(w io.Writer, place map[string]int, row *schema.PlannedURL) error {
	rec := appendPlanned(nil, row)
	if _, err := w.Write(rec); err != nil {
		return fmt.Errorf("write planned rows to scratch: %w", err)
	}
	n := int32(p.Len())
	p.offsets = append(p.offsets, p.offsets[n]+int64(len(rec)))
	p.byURL = append(p.byURL, urlRow{xxh3.HashString(row.URL), n})
	i, ok := place[row.Host]
	if !ok {
		i = len(p.hosts)
		place[row.Host] = i
		p.hosts = append(p.hosts, hostRows{host: row.Host})
	}
	h := &p.hosts[i]
	band := polite.BandOf(row.Priority)
	if k := len(h.ranges) - 1; k >= 0 && h.ranges[k].to == n && h.ranges[k].band == band {
		h.ranges[k].to++
	} else {
		h.ranges = append(h.ranges, rowRange{n, n + 1, band})
	}
	return nil
}

func (p *planned) index() {
	slices.SortFunc(p.byURL, func(a, b urlRow) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.row, b.row))
	})
}

// Len is the number of rows.
func (p *planned) Len() int { return len(p.offsets) - 1 }

// Row reads a row. It may be called by several goroutines at a time.
func (p *planned) Row(n int64) (schema.PlannedURL, error) {
	rec := make([]byte, p.offsets[n+1]-p.offsets[n])
	if _, err := p.file.ReadAt(rec, p.offsets[n]); err != nil {
		return schema.PlannedURL{}, fmt.Errorf("read planned row %d from scratch: %w", n, err)
	}
	return decodePlanned(rec)
}

// Has reports whether a URL is planned in this partition.
func (p *planned) Has(url string) (bool, error) {
	hash := xxh3.HashString(url)
	i, _ := slices.BinarySearchFunc(p.byURL, hash, func(e urlRow, h uint64) int { return cmp.Compare(e.hash, h) })
	for ; i < len(p.byURL) && p.byURL[i].hash == hash; i++ {
		row, err := p.Row(int64(p.byURL[i].row))
		if err != nil {
			return false, err
		}
		if row.URL == url {
			return true, nil
		}
	}
	return false, nil
}

// Close removes the scratch files.
func (p *planned) Close() error {
	return errors.Join(p.spelled.Close(), p.file.Close(), os.Remove(p.file.Name()))
}

// queue is a host's rows but those that are recorded already; a polite.Rows.
type queue struct {
	ranges   []rowRange
	recorded *roaring.Bitmap // not changed any more
	left     int
}

func newQueue(ranges []rowRange, recorded *roaring.Bitmap) *queue {
	q := &queue{ranges: slices.Clone(ranges), recorded: recorded}
	for _, r := range ranges {
		q.left += int(r.to - r.from)
		if recorded != nil {
			q.left -= int(recorded.CardinalityInRange(uint64(r.from), uint64(r.to)))
		}
	}
	return q
}

// Len is how many rows are left.
func (q *queue) Len() int { return q.left }

// Band is the band of the row that Pop gives next.
func (q *queue) Band() polite.Band {
	for len(q.ranges) > 1 && q.ranges[0].from == q.ranges[0].to {
		q.ranges = q.ranges[1:]
	}
	if len(q.ranges) == 0 {
		return polite.Batch
	}
	return q.ranges[0].band
}

// Pop takes the next row.
func (q *queue) Pop() (int64, bool) {
	for len(q.ranges) > 0 {
		r := &q.ranges[0]
		if r.from == r.to {
			q.ranges = q.ranges[1:]
			continue
		}
		n := r.from
		r.from++
		if q.recorded == nil || !q.recorded.Contains(uint32(n)) {
			q.left--
			return int64(n), true
		}
	}
	return 0, false
}

// appendPlanned encodes a row for the scratch file.
func appendPlanned(b []byte, r *schema.PlannedURL) []byte {
	for _, s := range []string{r.URL, r.SURT, r.Host, r.Domain, r.ContentDigest, r.ETag, r.LastModified, r.WARCFilename} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	for _, n := range []int32{r.Priority, r.Depth, r.Fetches, r.WARCRecordOff, r.WARCRecordLen} {
		b = binary.AppendVarint(b, int64(n))
	}
	b = binary.AppendVarint(b, r.ContentAt)
	b = binary.AppendUvarint(b, uint64(len(r.Spellings)))
	for _, s := range r.Spellings {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

var errScratch = errors.New("a scratch file is damaged")

func decodePlanned(b []byte) (r schema.PlannedURL, err error) {
	text := func() (s string, ok bool) {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return "", false
		}
		s, b = string(b[k:k+int(n)]), b[k+int(n):]
		return s, true
	}
	ok := true
	for _, s := range []*string{&r.URL, &r.SURT, &r.Host, &r.Domain, &r.ContentDigest, &r.ETag, &r.LastModified, &r.WARCFilename} {
		if *s, ok = text(); !ok {
			return r, errScratch
		}
	}
	for _, p := range []*int32{&r.Priority, &r.Depth, &r.Fetches, &r.WARCRecordOff, &r.WARCRecordLen} {
		n, k := binary.Varint(b)
		if k <= 0 {
			return r, errScratch
		}
		*p, b = int32(n), b[k:]
	}
	n, k := binary.Varint(b)
	if k <= 0 {
		return r, errScratch
	}
	r.ContentAt, b = n, b[k:]
	left, k := binary.Uvarint(b)
	if k <= 0 {
		return r, errScratch
	}
	for b = b[k:]; left > 0; left-- {
		s, ok := text()
		if !ok {
			return r, errScratch
		}
		r.Spellings = append(r.Spellings, s)
	}
	return r, nil
}
