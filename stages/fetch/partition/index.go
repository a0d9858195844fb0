// Package partition indexes the planned URLs of one fetch task.
//
// The index reads the partition's file in the plan. It finds rows by number, by URL and by host. Rows are in a scratch file, and
// memory holds about 24 bytes per URL. Package partition imports formats packages and polite
// (bands).
package partition

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
)

// Index finds the planned URLs of a partition by row, by URL and by host. It is safe for
// concurrent use.
type Index struct {
	file    *os.File // scratch file with one record for each row
	offsets []int64  // offset of each row's record in the scratch file; one more element holds the file's length
	byURL   []urlRow // rows sorted by the hash of their URL
	hosts   []Host
}

// rowCodec encodes the records of the scratch file.
var rowCodec = table.MustCodec[schema.PlannedRow]()

// urlRow maps the hash of a URL to its row.
type urlRow struct {
	hash uint64
	row  int32
}

// Host holds the planned rows of one host in the order of the plan.
type Host struct {
	Name   string
	ranges []rowRange
}

type rowRange struct {
	from, to int32
	band     polite.Band // priority band of all rows of the range
}

// Load copies the rows of a partition's file into the scratch directory and indexes them. The
// caller closes the index.
func Load(ctx context.Context, b store.Bucket, part *manifest.PlanPartition, scratch string) (*Index, error) {
	f := &part.File
	r, err := table.Open[schema.PlannedRow](ctx, b, f.Key)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // read only
	p, err := newIndex(scratch)
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
	p.sort()
	if int64(p.Len()) != f.Rows {
		return nil, errors.Join(fmt.Errorf("%q has %d rows, but the plan says %d: %w", f.Key, p.Len(), f.Rows, table.ErrCorrupt), p.Close())
	}
	return p, nil
}

func newIndex(scratch string) (*Index, error) {
	f, err := os.Create(filepath.Join(scratch, "planned"))
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	return &Index{file: f, offsets: []int64{0}}, nil
}

// One makes the index of a partition with a single URL. The caller closes the index.
func One(scratch string, row *schema.PlannedURL) (*Index, error) {
	p, err := newIndex(scratch)
	if err != nil {
		return nil, err
	}
	if err := p.add(p.file, map[string]int{}, &schema.PlannedRow{PlannedURL: *row}); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.sort()
	return p, nil
}

func (p *Index) add(w io.Writer, place map[string]int, row *schema.PlannedRow) error {
	rec := rowCodec.Append(nil, row)
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
		p.hosts = append(p.hosts, Host{Name: row.Host})
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

func (p *Index) sort() {
	slices.SortFunc(p.byURL, func(a, b urlRow) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.row, b.row))
	})
}

// Len returns the number of rows.
func (p *Index) Len() int { return len(p.offsets) - 1 }

// Row returns row n.
func (p *Index) Row(n int64) (row schema.PlannedRow, err error) {
	rec := make([]byte, p.offsets[n+1]-p.offsets[n])
	if _, err := p.file.ReadAt(rec, p.offsets[n]); err != nil {
		return row, fmt.Errorf("read planned row %d from scratch: %w", n, err)
	}
	return row, rowCodec.Decode(string(rec), &row)
}

// Has reports whether a URL is planned in this partition.
func (p *Index) Has(url string) (bool, error) {
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

// Hosts lists the hosts with planned URLs, in the order of their first rows.
func (p *Index) Hosts() []Host { return p.hosts }

// Close removes the scratch file.
func (p *Index) Close() error {
	return errors.Join(p.file.Close(), os.Remove(p.file.Name()))
}
