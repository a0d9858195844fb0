package dedup

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// writer writes the parts of buckets, and counts their rows.
type writer struct {
	env     *stages.Env
	task    stages.Task
	sources []source

	files                        []manifest.File
	exact, near, representatives int64
}

// result describes the written parts. If verdicts are left, they matched no page, and result returns an
// error.
func (w *writer) result(verdicts *table.Cursor[verdict], counts []manifest.Count) (*manifest.Result, error) {
	if v, err := verdicts.Peek(); err != nil {
		return nil, err
	} else if v != nil {
		return nil, fmt.Errorf("the pages of a partition of bucket %d are not sorted by SURT and URL, %q is out of order: %w", v.Bucket, v.URL, stages.ErrPermanent)
	}
	counts = append(counts, manifest.Count{Name: countExact, N: w.exact}, manifest.Count{Name: countNear, N: w.near}, manifest.Count{Name: countRepresentatives, N: w.representatives})
	slices.SortFunc(counts, func(a, b manifest.Count) int { return strings.Compare(a.Name, b.Name) })
	return &manifest.Result{Counts: counts, Files: w.files}, nil
}

// write writes the bucket's parts of duplicates and representatives. The part of duplicates has the
// rows of the verdicts. The part of representatives has the bucket's new representatives: pages that
// are in no cluster, and the representatives of clusters that have no sealed representative.
func (w *writer) write(ctx context.Context, bucket int, verdicts *table.Cursor[verdict]) error {
	env, t := w.env, w.task
	duplicatesKey := layout.Table(stages.FileDuplicates, t.Crawl, t.Round, bucket)
	duplicates, err := stages.NewWriter[schema.Duplicate](ctx, env, stages.FileDuplicates, duplicatesKey, stages.ByURL)
	if err != nil {
		return err
	}
	defer duplicates.Abort()
	representativesKey := layout.Working(t.Crawl, t.Round, string(stages.Dedup), stages.FileRepresentatives, bucket)
	representatives, err := stages.NewWriter[schema.Representative](ctx, env, stages.FileRepresentatives, representativesKey, stages.ByURL)
	if err != nil {
		return err
	}
	defer representatives.Abort()
	for page, err := range bucketPages(ctx, env, bucket, w.sources) {
		if err != nil {
			return err
		}
		v, err := verdicts.Peek()
		if err != nil {
			return err
		}
		clustered := v != nil && v.URL == page.URL // a URL has one page
		if !clustered || v.Represents {
			w.representatives++
			if err := representatives.Append(&page); err != nil {
				return err
			}
		}
		if !clustered {
			continue
		}
		if v.Row {
			w.count(v.Kind)
			if err := duplicates.Append(&v.Duplicate); err != nil {
				return err
			}
		}
		if _, err := verdicts.Next(); err != nil {
			return err
		}
	}
	df, err := table.Finish(ctx, duplicates, env.Bucket, stages.FileDuplicates, duplicatesKey)
	if err != nil {
		return err
	}
	rf, err := table.Finish(ctx, representatives, env.Bucket, stages.FileRepresentatives, representativesKey)
	if err != nil {
		return err
	}
	w.files = append(w.files, df, rf)
	return nil
}

// count counts a row of duplicates.
func (w *writer) count(kind schema.DuplicateKind) {
	switch kind {
	case schema.DupExact:
		w.exact++
	case schema.DupNear:
		w.near++
	}
}

// bucketPages yields the bucket's pages by SURT and URL.
func bucketPages(ctx context.Context, env *stages.Env, bucket int, sources []source) iter.Seq2[row, error] {
	var keys []string
	for i := range sources {
		if s := &sources[i]; !s.sealed && s.bucket == bucket {
			keys = append(keys, s.key)
		}
	}
	key := func(k table.Key, r *row) table.Key { return k.Text(r.SURT).Text(r.URL) }
	return withText(table.MergeFiles(ctx, env.Bucket, env.Scratch, keys, key))
}
