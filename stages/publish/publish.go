package publish

import (
	"context"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/topics"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish/domains"
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
	LinksAdded     *int32        `parquet:"links_added,optional"`
	LinksRemoved   *int32        `parquet:"links_removed,optional"`
}

// duplicate holds the columns of the duplicates dataset that pages have too.
type duplicate struct {
	SURT           string               `parquet:"url_surtkey"`
	URL            string               `parquet:"url"`
	Representative string               `parquet:"representative"`
	Kind           schema.DuplicateKind `parquet:"kind"`
	ClusterSize    int32                `parquet:"cluster_size"`
}

// inlinks holds the columns of the working file inlinks that pages have too. The anchors are most of its bytes.
type inlinks struct {
	SURT    string `parquet:"url_surtkey"`
	URL     string `parquet:"url"`
	Inlinks int64  `parquet:"inlinks"`
}

// joiner adds to pages, in the order of their URLs, what the other stages found about them.
type joiner struct {
	duplicates *table.Cursor[duplicate]
	inlinks    *table.Cursor[inlinks]
	changes    *table.Cursor[change]
	ranks      map[string]float64
	families   families
	copies     int64 // number of pages that have another representative
}

// openJoiner opens the inputs of a task besides the pages with the given keys.
func openJoiner(ctx context.Context, env *stages.Env, in *stages.Input, pages []string) (j *joiner, err error) {
	bucket := in.Plan.Partitions[in.Task.Partition].Bucket
	keys := func(from stages.Stage, dataset string) []string {
		return stages.PartKeys(in.Results[from], dataset, bucket)
	}
	j = &joiner{}
	if j.ranks, _, err = stages.HostRanks(ctx, env, in, bucket); err != nil {
		return nil, err
	}
	if j.families, err = learnFamilies(ctx, env, pages, keys(stages.Dedup, stages.FileDuplicates)); err != nil {
		return nil, err
	}
	j.duplicates = table.Pull(table.Concat[duplicate](ctx, env.Bucket, keys(stages.Dedup, stages.FileDuplicates)))
	j.inlinks = table.Pull(table.Concat[inlinks](ctx, env.Bucket, keys(stages.Rank, stages.FileInlinks)))
	j.changes = table.Pull(table.Concat[change](ctx, env.Bucket, keys(stages.Frontier, stages.FileURLs)))
	return j, nil
}

// Close closes the inputs.
func (j *joiner) Close() {
	j.duplicates.Close()
	j.inlinks.Close()
	j.changes.Close()
}

// join fills the columns of a page that other stages compute.
func (j *joiner) join(page *schema.Page) error {
	page.ClusterSize = 1
	d, err := j.duplicates.Find(func(d *duplicate) int { return schema.CompareURLs(d.SURT, d.URL, page.SURT, page.URL) })
	if err != nil {
		return fmt.Errorf("read duplicates: %w", err)
	}
	if d != nil {
		page.ClusterSize = d.ClusterSize
		if page.Soft404Family, err = j.families.has(page, d.Representative); err != nil {
			return err
		}
		if d.Kind != schema.DupRepresentative {
			page.DuplicateOf, page.DuplicateKind = d.Representative, string(d.Kind)
			j.copies++
		}
	}
	i, err := j.inlinks.Find(func(i *inlinks) int { return schema.CompareURLs(i.SURT, i.URL, page.SURT, page.URL) })
	if err != nil {
		return fmt.Errorf("read inlinks: %w", err)
	}
	if i != nil {
		page.Inlinks = i.Inlinks
	}
	c, err := j.changes.Find(func(c *change) int { return schema.CompareURLs(c.SURT, c.URL, page.SURT, page.URL) })
	if err != nil {
		return fmt.Errorf("read states of URLs: %w", err)
	}
	if c != nil {
		page.Change, page.ChangeDistance, page.TitleChanged = c.Change, c.ChangeDistance, c.TitleChanged
		page.LinksAdded, page.LinksRemoved = c.LinksAdded, c.LinksRemoved
	}
	key, err := urlkey.KeyOf(page.URL)
	if err != nil {
		return fmt.Errorf("page %q: %w: %w", page.URL, err, stages.ErrPermanent)
	}
	page.Rank = j.ranks[key.Host]
	return nil
}

// writePages makes a partition's part of the pages dataset.
func writePages(ctx context.Context, env *stages.Env, in *stages.Input) (*manifest.Result, error) {
	t := in.Task
	pages := stages.Keys(in.Results[stages.Merge][t.Partition:t.Partition+1], stages.FilePages)
	j, err := openJoiner(ctx, env, in, pages)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	scorer := topics.NewScorer(ctx, env.Bucket, pages, stages.Keys(in.Results[stages.Rank], stages.FileTerms))
	defer scorer.Close()
	var indexable int64
	key := layout.Table(stages.FilePages, t.Crawl, t.Round, t.Partition)
	f, err := stages.Write(ctx, env, stages.FilePages, key, stages.ByURL, func(w *table.Writer[schema.Page]) error {
		for page, err := range table.Concat[schema.Page](ctx, env.Bucket, pages) {
			if err != nil {
				return fmt.Errorf("read pages: %w", err)
			}
			if err := j.join(&page); err != nil {
				return err
			}
			var ok bool
			if page.Topics, ok, err = scorer.Topics(page.URL); err != nil {
				return fmt.Errorf("topics: %w", err)
			} else if !ok {
				return fmt.Errorf("the page %q differs between two readings of its file: %w", page.URL, stages.ErrPermanent)
			}
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
		Counts: []manifest.Count{{Name: "duplicates", N: j.copies}, {Name: "indexable", N: indexable}, {Name: "pages", N: f.Rows}},
		Files:  []manifest.File{f},
	}, nil
}
