package publish

import (
	"context"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish/domains"
	"crawlbatch.io/crawlbatch/stages/topics"
)

// Run makes a partition's part of the pages dataset. The task of a bucket's first partition also makes
// the bucket's part of the domains dataset.
func Run(ctx context.Context, env *stages.Env, in *stages.Input) (*manifest.Result, error) {
	r, err := writePages(ctx, env, in)
	if err != nil || !domains.WrittenBy(in.Plan, in.Task.Partition) {
		return r, err
	}
	f, err := domains.Write(ctx, env, in, in.Plan.Partitions[in.Task.Partition].Bucket)
	if err != nil {
		return nil, err
	}
	r.Counts = append([]manifest.Count{{Name: "domains", N: f.Rows}}, r.Counts...) // sorted by name
	r.Files = append(r.Files, f)
	return r, nil
}

// change holds the columns of the urls dataset that pages have too.
type change struct {
	SURT           string        `parquet:"url_surtkey"`
	URL            string        `parquet:"url"`
	Change         schema.Change `parquet:"change,optional"`
	ChangeDistance *int32        `parquet:"change_distance,optional"`
	TitleChanged   *bool         `parquet:"title_changed,optional"`
}

// writePages makes a partition's part of the pages dataset.
func writePages(ctx context.Context, env *stages.Env, in *stages.Input) (*manifest.Result, error) {
	t := in.Task
	bucket := in.Plan.Partitions[t.Partition].Bucket
	ranks, _, err := stages.HostRanks(ctx, env, in, bucket)
	if err != nil {
		return nil, err
	}
	duplicates := table.Pull(table.Concat[schema.Duplicate](ctx, env.Bucket, stages.PartKeys(in.Results[stages.Dedup], stages.FileDuplicates, bucket)))
	defer duplicates.Close()
	inlinks := table.Pull(table.Concat[schema.Inlink](ctx, env.Bucket, stages.PartKeys(in.Results[stages.Rank], stages.FileInlinks, bucket)))
	defer inlinks.Close()
	// Rounds that were planned before format 12 have no changes.
	changes := table.Pull(table.Concat[change](ctx, env.Bucket, stages.PartKeys(in.Results[stages.Frontier], stages.FileURLs, bucket)))
	defer changes.Close()

	own := in.Results[stages.Merge][t.Partition : t.Partition+1]
	scorer := topics.NewScorer(ctx, env, in, own[0])
	defer scorer.Close()
	var indexable, copies int64
	key := layout.Table(stages.FilePages, t.Crawl, t.Round, t.Partition)
	f, err := stages.Write(ctx, env, stages.FilePages, key, stages.ByURL, func(w *table.Writer[schema.Page]) error {
		for page, err := range table.Concat[schema.Page](ctx, env.Bucket, stages.Keys(own, stages.FilePages)) {
			if err != nil {
				return fmt.Errorf("read pages: %w", err)
			}
			page.ClusterSize = 1
			if topics.In(in.Plan) {
				if page.Topics, err = scorer.Topics(page.URL); err != nil {
					return err
				}
			}
			d, err := duplicates.Find(func(d *schema.Duplicate) int { return schema.CompareURLs(d.SURT, d.URL, page.SURT, page.URL) })
			if err != nil {
				return fmt.Errorf("read duplicates: %w", err)
			}
			if d != nil {
				page.ClusterSize = d.ClusterSize
				if d.Kind != schema.DupRepresentative {
					page.DuplicateOf, page.DuplicateKind = d.Representative, string(d.Kind)
					copies++
				}
			}
			i, err := inlinks.Find(func(i *schema.Inlink) int { return schema.CompareURLs(i.SURT, i.URL, page.SURT, page.URL) })
			if err != nil {
				return fmt.Errorf("read inlinks: %w", err)
			}
			if i != nil {
				page.Inlinks = i.Inlinks
			}
			c, err := changes.Find(func(c *change) int { return schema.CompareURLs(c.SURT, c.URL, page.SURT, page.URL) })
			if err != nil {
				return fmt.Errorf("read states of URLs: %w", err)
			}
			if c != nil {
				page.Change, page.ChangeDistance, page.TitleChanged = c.Change, c.ChangeDistance, c.TitleChanged
			}
			key, err := urlkey.KeyOf(page.URL)
			if err != nil {
				return fmt.Errorf("page %q: %w: %w", page.URL, err, stages.ErrPermanent)
			}
			page.Rank = ranks[key.Host]
			if page.Indexable {
				indexable++
			}
			if err := w.Append(&page); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &manifest.Result{
		Counts: []manifest.Count{{Name: "duplicates", N: copies}, {Name: "indexable", N: indexable}, {Name: "pages", N: f.Rows}},
		Files:  []manifest.File{f},
	}, nil
}
