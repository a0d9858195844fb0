package compact

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// dataset says how to copy a dataset.
type dataset struct {
	name   string
	maker  stages.Stage // stage that writes the parts: they have its format
	sorted []string     // columns that determine the order of rows
	lookup []string     // columns by whose values queries select rows
	copy   func(ctx context.Context, c *copying) ([]manifest.File, error)
}

// datasets lists the datasets that are copied. The datasets stages and runs have one part for each
// round and are not copied.
func datasets() []dataset {
	byURL := []string{"url_surtkey", "url"}
	byHost := []string{"url", "url_host_name", "url_host_registered_domain", "url_host_private_domain"} // columns of Common Crawl's schema
	return []dataset{
		of(stages.FileCaptures, stages.Merge, byURL, byHost, func(a, b *schema.Capture) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }),
		of(stages.FileFetches, stages.Merge, byURL, []string{"url", "host", "domain"}, func(a, b *schema.Fetch) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }),
		of(stages.FileRequests, stages.Merge, []string{"host", "start"}, []string{"url", "host"}, func(a, b *schema.Request) int {
			return cmp.Or(strings.Compare(a.Host, b.Host), cmp.Compare(a.Start, b.Start))
		}),
		of(stages.FilePages, stages.Publish, byURL, byHost, func(a, b *schema.Page) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }),
		of(stages.FileText, stages.Merge, byURL, []string{"url"}, func(a, b *schema.Text) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }),
		of(stages.FileLinks, stages.Merge, []string{"source_surtkey", "source", "ordinal"}, []string{"source", "target"}, func(a, b *schema.Link) int {
			return cmp.Or(schema.CompareURLs(a.SourceSURT, a.Source, b.SourceSURT, b.Source), cmp.Compare(a.Ordinal, b.Ordinal))
		}),
		of(stages.FileDuplicates, stages.Dedup, byURL, []string{"url", "representative"}, func(a, b *schema.Duplicate) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }),
		of(stages.FileHosts, stages.Rank, []string{"host"}, []string{"host", "domain"}, func(a, b *schema.Host) int { return strings.Compare(a.Host, b.Host) }),
		of(stages.FileDomains, stages.Publish, []string{"domain"}, []string{"domain"}, func(a, b *schema.Domain) int { return strings.Compare(a.Domain, b.Domain) }),
		of(stages.FileTerms, stages.Rank, []string{"language", "term"}, []string{"term"}, func(a, b *schema.Term) int {
			return cmp.Or(strings.Compare(a.Language, b.Language), strings.Compare(a.Term, b.Term))
		}),
		of(stages.FileURLs, stages.Frontier, byURL, []string{"url", "host", "domain"}, func(a, b *schema.URLRecord) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }),
		of(stages.FileSkips, stages.Frontier, byURL, []string{"url"}, func(a, b *schema.Skip) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }),
	}
}

// of returns the dataset of rows T that is sorted by the given columns. compare compares rows by these
// columns, and lookup lists the columns by whose values queries select rows.
func of[T any](name string, maker stages.Stage, sorted, lookup []string, compare func(a, b *T) int) dataset {
	return dataset{name, maker, sorted, lookup, func(ctx context.Context, c *copying) ([]manifest.File, error) {
		return copyRows(ctx, c, name, compare, table.SortedBy(sorted...), table.Lookup(lookup...), table.Format(c.format))
	}}
}

// copying is the copy of the parts of a dataset (and subset) of one round.
type copying struct {
	bucket  store.Bucket
	scratch string
	target  int64 // size at which a part ends, in bytes
	format  int   // schema.FormatVersion of the parts
	from    []manifest.File
	subset  string
	key     func(part int) string
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

// copyRows merges the parts into new parts, and reads the new parts to compare their rows. It returns
// the new parts.
func copyRows[T any](ctx context.Context, c *copying, name string, compare func(a, b *T) int, opts ...table.WriterOption) (files []manifest.File, err error) {
	codec, err := table.NewCodec[T]()
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(c.from))
	for i, f := range c.from {
		keys[i] = f.Key
	}
	var before, after sum
	var buf []byte
	var w *table.Writer[T]
	defer func() {
		if w != nil {
			w.Abort()
		}
	}()
	finish := func() error {
		f, err := table.Finish(ctx, w, c.bucket, name, c.key(len(files)))
		f.Subset, f.Blocks = c.subset, ""
		files, w = append(files, f), nil
		return err
	}
	for row, err := range table.MergeFiles(ctx, c.bucket, c.scratch, keys, compare) {
		if err != nil {
			return nil, err
		}
		if w == nil {
			if w, err = table.NewWriter[T](filepath.Join(c.scratch, name+".parquet"), opts...); err != nil {
				return nil, err
			}
		}
		buf = codec.Append(buf[:0], &row)
		before.add(buf)
		if err := w.Append(&row); err != nil {
			return nil, err
		}
		if before.rows%checkRows == 0 && w.Size() >= c.target {
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
	listed := int64(0)
	for _, f := range c.from {
		listed += f.Rows
	}
	written := make([]string, len(files))
	for i, f := range files {
		written[i] = f.Key
	}
	for row, err := range table.Concat[T](ctx, c.bucket, written) {
		if err != nil {
			return nil, err
		}
		buf = codec.Append(buf[:0], &row)
		after.add(buf)
	}
	if before != after || before.rows != listed {
		return nil, fmt.Errorf("%q and the other parts of %s have %d rows, the seal lists %d, and their copy has %d, or other ones: %w; look for damage with `crawlbatch verify`",
			keys[0], name, before.rows, listed, after.rows, manifest.ErrCorrupt)
	}
	return files, nil
}
