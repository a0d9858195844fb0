package rewrite

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/stages"
)

// Rewriter rewrites the files of a store. It is not safe for concurrent use, because all its new content has
// one path. Copies of it with a Scratch of their own are.
type Rewriter struct {
	Bucket  store.Bucket
	Matcher *takedown.Matcher
	Scratch string // folder for the new content
	// Clusters has the new representatives of clusters whose representative goes (see FindClusters).
	Clusters *Clusters
	// Removed has the offsets of the WARC records that became tombstones, by file. Files that refer to
	// records must be rewritten after the WARC files.
	Removed map[string]map[int64]struct{}
	// DroppedRows returns the rows of a partition's plan file that went, ascending. fetches names
	// planned rows by their position.
	DroppedRows func(crawl string, round, partition int) []int32
}

// Rewritten is the new content of a file.
type Rewritten struct {
	File        manifest.File      // with the key, dataset and subset of the old file
	Path        string             // of the new content, until the next file is rewritten
	Dropped     int64              // rows, index lines, or lines of a graph
	Cleared     int64              // rows with a cell that became null
	Adjusted    int64              // other rows that got other numbers or another representative
	Mentions    int64              // cells of others that name a target and stay
	Tombstones  int64              // WARC records that became tombstones
	Removed     map[int64]struct{} // their offsets
	DroppedRows []int32            // of a plan file of URLs: positions of the rows that went
}

// File rewrites a file that a document lists. If the file does not change, the result is nil, or has no
// Path if the file mentions a target. Files of kinds without names (counts, terms, pairs of pages) never
// change.
func (r *Rewriter) File(ctx context.Context, f *manifest.File) (*Rewritten, error) {
	w, err := r.file(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("take down names in %q: %w", f.Key, err)
	}
	return w, nil
}

func (r *Rewriter) file(ctx context.Context, f *manifest.File) (*Rewritten, error) {
	switch f.Dataset {
	case stages.FileWARC:
		return r.warc(ctx, f)
	case stages.FileCDXJ:
		return r.index(ctx, f)
	case stages.FileWebGraph:
		return r.graph(ctx, f)
	case stages.FileURLFilter:
		return r.filter(ctx, f)
	}
	k, ok := kinds[kindOf(f)]
	if !ok {
		return nil, nil
	}
	return k.rewrite(ctx, r, f)
}

// kindOf returns the key in kinds for a file.
func kindOf(f *manifest.File) string {
	if strings.Contains(f.Key, "/work/") || f.Dataset == stages.FileSitemaps || (f.Dataset == stages.FilePages || f.Dataset == stages.FileText) && strings.Contains(f.Key, "/segments/") {
		return work(f.Dataset)
	}
	return f.Dataset
}

// layoutIn returns the options that give a file the layout of a stored Parquet file, and its notes.
func layoutIn(in io.ReaderAt, key string, size int64) (opts []table.WriterOption, notes [][2]string, err error) {
	f, err := parquet.OpenFile(in, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, nil, fmt.Errorf("open %q: %w: %w", key, table.ErrCorrupt, err)
	}
	meta := f.Metadata()
	if len(meta.RowGroups) > 0 {
		g := &meta.RowGroups[0]
		var sorted []string
		for _, s := range g.SortingColumns {
			sorted = append(sorted, path.Join(g.Columns[s.ColumnIdx].MetaData.PathInSchema...))
		}
		if len(sorted) > 0 {
			opts = append(opts, table.SortedBy(sorted...))
		}
		if len(g.Columns) > 0 && g.Columns[0].MetaData.Codec == format.Snappy {
			opts = append(opts, table.Fast())
		}
	}
	for _, kv := range meta.KeyValueMetadata {
		notes = append(notes, [2]string{kv.Key, kv.Value})
	}
	return opts, notes, nil
}
