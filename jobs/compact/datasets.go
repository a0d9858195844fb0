package compact

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// dataset says how to copy a dataset.
type dataset struct {
	name   string
	row    reflect.Type
	sorted []string // columns that determine the order of rows
	lookup []string // columns by whose values queries select rows
}

// datasets lists the datasets that are copied. The datasets stages and runs have one part for each
// round and are not copied.
func datasets() []dataset {
	byURL := []string{"url_surtkey", "url"}
	byHost := []string{"url", "url_host_name", "url_host_registered_domain", "url_host_private_domain"} // columns of Common Crawl's schema
	return []dataset{
		{stages.FileCaptures, reflect.TypeFor[schema.Capture](), byURL, byHost},
		{stages.FileFetches, reflect.TypeFor[schema.Fetch](), byURL, []string{"url", "host", "domain"}},
		{stages.FileRequests, reflect.TypeFor[schema.Request](), []string{"host", "start"}, []string{"url", "host"}},
		{stages.FilePages, reflect.TypeFor[schema.Page](), byURL, byHost},
		{stages.FileText, reflect.TypeFor[schema.Text](), byURL, []string{"url"}},
		{stages.FileLinks, reflect.TypeFor[schema.Link](), []string{"source_surtkey", "source", "ordinal"}, []string{"source", "target"}},
		{stages.FileDuplicates, reflect.TypeFor[schema.Duplicate](), byURL, []string{"url", "representative"}},
		{stages.FileHosts, reflect.TypeFor[schema.Host](), []string{"host"}, []string{"host", "domain"}},
		{stages.FileDomains, reflect.TypeFor[schema.Domain](), []string{"domain"}, []string{"domain"}},
		{stages.FileTerms, reflect.TypeFor[schema.Term](), []string{"language", "term"}, []string{"term"}},
		{stages.FileURLs, reflect.TypeFor[schema.URLRecord](), byURL, []string{"url", "host", "domain"}},
		{stages.FileSkips, reflect.TypeFor[schema.Skip](), byURL, []string{"url"}},
	}
}

// The columns of a copy that published parts have in their keys, as package catalog describes them.
type (
	place struct {
		Crawl string `parquet:"crawl,dict"`
		Round int32  `parquet:"round"`
	}
	placeOfCapture struct {
		Crawl  string `parquet:"crawl,dict"`
		Subset string `parquet:"subset,dict"`
		Round  int32  `parquet:"round"`
	}
)

// union returns the union of the parts of a dataset.
func (d *dataset) union() (*table.Union, error) {
	added := reflect.TypeFor[place]()
	if d.name == stages.FileCaptures {
		added = reflect.TypeFor[placeOfCapture]()
	}
	return table.NewUnion(d.row, added, d.sorted...)
}

// part is a published part, and its round.
type part struct {
	manifest.File
	round int
}

func (p *part) placed(crawl string, d *dataset) table.Placed {
	if d.name == stages.FileCaptures {
		return table.Placed{Key: p.Key, Added: placeOfCapture{crawl, p.Subset, int32(p.round)}}
	}
	return table.Placed{Key: p.Key, Added: place{crawl, int32(p.round)}}
}

// sum is a digest of a set of rows that does not depend on their order. Rows that occur several times
// count as often.
type sum struct {
	rows   int64
	lo, hi uint64
}

func (s *sum) add(row []byte) {
	h := xxh3.Hash128(binary.LittleEndian.AppendUint64(row, uint64(len(row))))
	s.rows, s.lo, s.hi = s.rows+1, s.lo+h.Lo, s.hi+h.Hi
}

// checkRows is the number of rows after which the size of a part is checked.
const checkRows = 4096

// copyRows merges parts of a dataset and subset, in the order of their rounds, into new parts, whose
// numbers begin with next. It reads the new parts to compare their rows, and returns them.
func (r *Request) copyRows(ctx context.Context, d dataset, parts []part, revision, scratch string, next int) (files []manifest.File, err error) {
	union, err := d.union()
	if err != nil {
		return nil, err
	}
	listed, from := int64(0), make([]table.Placed, len(parts))
	for i := range parts {
		listed += parts[i].Rows
		from[i] = parts[i].placed(r.Crawl, &d)
	}
	var before, after sum
	var buf []byte
	var w *table.UnionWriter
	defer func() {
		if w != nil {
			w.Abort()
		}
	}()
	finish := func() error {
		f, err := w.Finish(ctx, r.Bucket, d.name, layout.Compacted(r.Crawl, revision, d.name, next+len(files)))
		f.Subset, f.Blocks = parts[0].Subset, ""
		files, w = append(files, f), nil
		return err
	}
	for row, err := range union.Merge(ctx, r.Bucket, scratch, from) {
		if err != nil {
			return nil, err
		}
		if w == nil {
			if w, err = union.NewWriter(filepath.Join(scratch, "part.parquet"), table.Lookup(d.lookup...)); err != nil {
				return nil, err
			}
		}
		buf = union.Encode(buf[:0], row)
		before.add(buf)
		if err := w.Append(row); err != nil {
			return nil, err
		}
		if before.rows%checkRows == 0 && w.Size() >= r.Target {
			if err := finish(); err != nil {
				return nil, err
			}
		}
	}
	if w != nil {
		if err := finish(); err != nil {
			return nil, err
		}
	}
	var written []string
	for _, f := range files {
		written = append(written, f.Key)
	}
	for row, err := range union.Concat(ctx, r.Bucket, written) {
		if err != nil {
			return nil, err
		}
		buf = union.Encode(buf[:0], row)
		after.add(buf)
	}
	if before != after || before.rows != listed {
		return nil, fmt.Errorf("%q and the other parts of %s have %d rows, the seals list %d, and their copy has %d, or other ones: %w; look for damage with `crawlbatch verify`",
			parts[0].Key, d.name, before.rows, listed, after.rows, manifest.ErrCorrupt)
	}
	return files, nil
}

// bySubset divides parts by their subsets, in the order of the subsets' names.
func bySubset(parts []part) (all [][]part) {
	slices.SortStableFunc(parts, func(a, b part) int { return strings.Compare(a.Subset, b.Subset) })
	for i := range parts {
		if i == 0 || parts[i].Subset != parts[i-1].Subset {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], parts[i])
	}
	return all
}
