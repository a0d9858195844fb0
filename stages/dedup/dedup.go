package dedup

import (
	"context"
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// Config holds the settings of dedup. The results of dedup depend only on its Config and inputs.
type Config struct {
	// MaxDistance is the largest number of bits (0 to 7, of 64) in which the fingerprints of near
	// duplicates differ.
	MaxDistance int
	// MinWords is the least number of words of a text that is compared by fingerprint. Shorter
	// texts share fingerprints by chance.
	MinWords int
	// Months bounds the age of the sealed rounds whose representatives are read (stages.Since).
	Months int
}

// Run runs a task of digest, similar or dedup. The task of dedup finds the round's clusters and writes
// them as duplicates and representatives.
func Run(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (*manifest.Result, error) {
	if cfg.MaxDistance < 0 || cfg.MaxDistance > simhash.MaxDistance {
		return nil, fmt.Errorf("distance %d is not between 0 and %d: %w", cfg.MaxDistance, simhash.MaxDistance, stages.ErrPermanent)
	}
	switch in.Task.Stage {
	case stages.Digest:
		return runDigest(ctx, env, in, cfg)
	case stages.Similar:
		return runSimilar(ctx, env, in, cfg)
	}
	return runDedup(ctx, env, in, cfg)
}

// runDedup runs the task of the stage dedup.
func runDedup(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (*manifest.Result, error) {
	sources := sourcesOf(in, cfg.Months)
	ch, err := newChoice(env.Scratch, sources, cfg)
	if err != nil {
		return nil, err
	}
	defer ch.close()
	pages, sealed, err := ch.decide(ctx, env, in)
	if err != nil {
		return nil, err
	}
	verdicts := table.Pull(ch.verdicts.Sorted(ctx))
	defer verdicts.Close()
	var files []manifest.File
	for bucket := range in.Plan.Buckets {
		f, err := ch.writeBucket(ctx, env, in.Task, bucket, verdicts)
		if err != nil {
			return nil, err
		}
		files = append(files, f...)
	}
	if v, err := verdicts.Peek(); err != nil {
		return nil, err
	} else if v != nil {
		return nil, fmt.Errorf("the pages of a partition of bucket %d are not sorted by SURT and URL, %q is out of order: %w", v.Bucket, v.URL, stages.ErrPermanent)
	}
	return &manifest.Result{
		Counts: []manifest.Count{
			{Name: "clusters", N: ch.clusters}, {Name: "exact", N: ch.exact}, {Name: "near", N: ch.near},
			{Name: "pages", N: pages - sealed}, {Name: "representatives", N: ch.representatives}, {Name: "sealed", N: sealed},
		},
		Files: files,
	}, nil
}

// decide gives a verdict on each page of this round that is in a cluster. It returns the number of pages
// with text, and how many of them are sealed representatives.
func (ch *choice) decide(ctx context.Context, env *stages.Env, in *stages.Input) (pages, sealed int64, err error) {
	c, err := newClusters(env)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	if stages.Digest.Tasks(in.Plan) > 0 {
		ch.trees, err = c.gather(ctx, env, in)
	} else {
		ch.trees, err = c.find(ctx, env, ch.sources, ch.cfg)
	}
	if err != nil {
		return 0, 0, err
	}
	env.Progress.Add(stages.CountRows, c.pages)
	if err := ch.collect(ctx, env.Bucket, c.members); err != nil {
		return 0, 0, err
	}
	c.close()
	return c.pages, c.sealed, ch.choose(ctx)
}

// sourcesOf lists the files to read: first the files of sealed rounds of the last months, the oldest first, then
// this round's files by partition.
func sourcesOf(in *stages.Input, months int) []source {
	var sources []source
	for age, sealed := range stages.Since(in.Earlier, in.Task.Crawl, months) {
		for _, f := range sealed.FilesOf(stages.FileRepresentatives) {
			sources = append(sources, source{key: f.Key, sealed: true, crawl: sealed.Crawl, round: sealed.Round, age: age})
		}
	}
	for partition, merged := range in.Results[stages.Merge] {
		for _, f := range merged.FilesOf(stages.FilePages) {
			sources = append(sources, source{
				key: f.Key, crawl: in.Task.Crawl, round: in.Task.Round,
				age: len(in.Earlier), bucket: in.Plan.Partitions[partition].Bucket,
			})
		}
	}
	for i := range sources {
		sources[i].number(i)
	}
	return sources
}

// writeBucket writes the bucket's parts of duplicates and representatives. The first part has a row
// for each clustered page of the bucket. The second part has the bucket's new representatives: pages
// that are in no cluster, and the representatives of clusters that have no sealed representative.
func (ch *choice) writeBucket(ctx context.Context, env *stages.Env, t stages.Task, bucket int, verdicts *table.Cursor[verdict]) ([]manifest.File, error) {
	duplicatesKey := layout.Table(stages.FileDuplicates, t.Crawl, t.Round, bucket)
	duplicates, err := stages.NewWriter[schema.Duplicate](ctx, env, stages.FileDuplicates, duplicatesKey, stages.ByURL)
	if err != nil {
		return nil, err
	}
	defer duplicates.Abort()
	representativesKey := layout.Working(t.Crawl, t.Round, string(stages.Dedup), stages.FileRepresentatives, bucket)
	representatives, err := stages.NewWriter[schema.Representative](ctx, env, stages.FileRepresentatives, representativesKey, stages.ByURL)
	if err != nil {
		return nil, err
	}
	defer representatives.Abort()
	for page, err := range bucketPages(ctx, env, bucket, ch.sources) {
		if err != nil {
			return nil, err
		}
		v, err := verdicts.Peek()
		if err != nil {
			return nil, err
		}
		clustered := v != nil && v.URL == page.URL // a URL has one page
		if !clustered || v.Represents {
			ch.representatives++
			if err := representatives.Append(&page); err != nil {
				return nil, err
			}
		}
		if !clustered {
			continue
		}
		if v.Row {
			if err := duplicates.Append(&v.Duplicate); err != nil {
				return nil, err
			}
		}
		if _, err := verdicts.Next(); err != nil {
			return nil, err
		}
	}
	df, err := table.Finish(ctx, duplicates, env.Bucket, stages.FileDuplicates, duplicatesKey)
	if err != nil {
		return nil, err
	}
	rf, err := table.Finish(ctx, representatives, env.Bucket, stages.FileRepresentatives, representativesKey)
	if err != nil {
		return nil, err
	}
	return []manifest.File{df, rf}, nil
}

// bucketPages yields the bucket's pages by SURT and URL.
func bucketPages(ctx context.Context, env *stages.Env, bucket int, sources []source) iter.Seq2[row, error] {
	var keys []string
	for i := range sources {
		if s := &sources[i]; !s.sealed && s.bucket == bucket {
			keys = append(keys, s.key)
		}
	}
	compare := func(a, b *row) int { return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL) }
	return withText(table.MergeFiles(ctx, env.Bucket, env.Scratch, keys, compare))
}
