package publish

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// Run makes a partition's part of pages.
func Run(ctx context.Context, env *stages.Env, in *stages.Input) (*manifest.Result, error) {
	t := in.Task
	bucket := in.Plan.Partitions[t.Partition].Bucket
	ranks, err := hostRanks(ctx, env, in, bucket)
	if err != nil {
		return nil, err
	}
	duplicates := newLookup(table.Concat[schema.Duplicate](ctx, env.Bucket, keysOf(in.Results[stages.Dedup], stages.FileDuplicates, bucket)),
		func(d *schema.Duplicate) (string, string) { return d.SURT, d.URL })
	defer duplicates.stop()
	inlinks := newLookup(table.Concat[schema.Inlink](ctx, env.Bucket, keysOf(in.Results[stages.Rank], stages.FileInlinks, -1)),
		func(i *schema.Inlink) (string, string) { return i.SURT, i.URL })
	defer inlinks.stop()

	w, err := table.NewWriter[schema.Page](filepath.Join(env.Scratch, "pages.parquet"), table.Format(env.Format), table.SortedBy("url_surtkey", "url"))
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	var indexable, copies int64
	for page, err := range table.Concat[schema.Page](ctx, env.Bucket, keysOf(in.Results[stages.Merge], stages.FilePages, -1)) {
		if err != nil {
			return nil, fmt.Errorf("read pages: %w", err)
		}
		page.ClusterSize = 1
		d, err := duplicates.find(page.SURT, page.URL)
		if err != nil {
			return nil, fmt.Errorf("read duplicates: %w", err)
		}
		if d != nil {
			page.ClusterSize = d.ClusterSize
			if d.Kind != schema.DupRepresentative {
				page.DuplicateOf, page.DuplicateKind = d.Representative, string(d.Kind)
				copies++
			}
		}
		i, err := inlinks.find(page.SURT, page.URL)
		if err != nil {
			return nil, fmt.Errorf("read inlinks: %w", err)
		}
		if i != nil {
			page.Inlinks = i.Inlinks
		}
		key, err := urlkey.KeyOf(page.URL)
		if err != nil {
			return nil, fmt.Errorf("page %q: %w: %w", page.URL, err, stages.ErrPermanent)
		}
		page.Rank = ranks[key.Host]
		if page.Indexable {
			indexable++
		}
		if err := w.Append(&page); err != nil {
			return nil, err
		}
	}
	f, err := table.Finish(ctx, w, env.Bucket, stages.FilePages, layout.Table(stages.FilePages, t.Crawl, t.Round, t.Partition))
	if err != nil {
		return nil, err
	}
	return &manifest.Result{
		Counts: []manifest.Count{{Name: "duplicates", N: copies}, {Name: "indexable", N: indexable}, {Name: "pages", N: f.Rows}},
		Files:  []manifest.File{f},
	}, nil
}

// keysOf lists the objects of a dataset in the results a task reads; of part
// bucket only, unless that is negative.
func keysOf(results []*manifest.Result, dataset string, bucket int) []string {
	var keys []string
	for _, r := range results {
		if r == nil {
			continue // of a partition that this task does not read
		}
		for _, f := range r.FilesOf(dataset) {
			if bucket < 0 || strings.HasSuffix(f.Key, "/"+layout.Part(bucket)+".parquet") {
				keys = append(keys, f.Key)
			}
		}
	}
	return keys
}

// hostRanks reads the rank of each host of the bucket.
func hostRanks(ctx context.Context, env *stages.Env, in *stages.Input, bucket int) (map[string]float64, error) {
	ranks := map[string]float64{}
	for h, err := range table.Concat[schema.Host](ctx, env.Bucket, keysOf(in.Results[stages.Rank], stages.FileHosts, bucket)) {
		if err != nil {
			return nil, fmt.Errorf("read hosts: %w", err)
		}
		ranks[h.Host] = h.Rank
	}
	return ranks, nil
}

// lookup finds rows of a sorted stream for keys that ascend.
type lookup[T any] struct {
	next func() (T, error, bool)
	stop func()
	key  func(*T) (surt, url string)
	row  T
	have bool
	err  error
}

func newLookup[T any](rows iter.Seq2[T, error], key func(*T) (surt, url string)) *lookup[T] {
	l := &lookup[T]{key: key}
	l.next, l.stop = iter.Pull2(rows)
	l.advance()
	return l
}

func (l *lookup[T]) advance() {
	l.row, l.err, l.have = l.next()
}

// find returns the row of a key, nil where there is none.
func (l *lookup[T]) find(surt, url string) (*T, error) {
	for l.have {
		if l.err != nil {
			return nil, l.err
		}
		s, u := l.key(&l.row)
		switch c := cmp.Or(strings.Compare(s, surt), strings.Compare(u, url)); {
		case c == 0:
			return &l.row, nil
		case c > 0:
			return nil, nil
		}
		l.advance()
	}
	return nil, nil
}
