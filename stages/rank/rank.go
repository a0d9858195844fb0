package rank

import (
	"context"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/inlinks"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/topics"
	"crawlbatch.io/crawlbatch/stages"
)

// Run makes the inlinks and the terms of one reduce bucket. The task of bucket 0 also makes the hosts of
// all buckets.
func Run(ctx context.Context, env *stages.Env, in *stages.Input) (*manifest.Result, error) {
	var files []manifest.File
	if in.Task.Partition == 0 {
		var err error
		if files, err = rankHosts(ctx, env, in); err != nil {
			return nil, err
		}
	}
	var hosts int64
	for _, f := range files {
		if f.Dataset == stages.FileHosts {
			hosts += f.Rows
		}
	}
	linked, links, err := writeInlinks(ctx, env, in)
	if err != nil {
		return nil, err
	}
	terms, err := writeTerms(ctx, env, in)
	if err != nil {
		return nil, fmt.Errorf("terms: %w", err)
	}
	return &manifest.Result{
		Counts: []manifest.Count{{Name: "edges", N: links}, {Name: "hosts", N: hosts}, {Name: "inlinks", N: linked.Rows}, {Name: "terms", N: terms.Rows}},
		Files:  append(files, linked, terms),
	}, nil
}

// writeTerms writes the part of terms of the task's bucket.
func writeTerms(ctx context.Context, env *stages.Env, in *stages.Input) (manifest.File, error) {
	sections, err := stages.Sections(in.Results[stages.Merge], stages.FileTerms, in.Task.Partition)
	if err != nil {
		return manifest.File{}, err
	}
	key := layout.Table(stages.FileTerms, in.Task.Crawl, in.Task.Round, in.Task.Partition)
	return stages.Write(ctx, env, stages.FileTerms, key, []string{"language", "term"}, func(w *table.Writer[schema.Term]) error {
		return topics.Terms(in.Plan.URLs, table.MergeSections(ctx, env.Bucket, env.Scratch, sections, schema.TermPagesKey), w.Append)
	})
}

// writeInlinks writes a row for each target of the bucket. links is the number of rows that it read:
// each is the sum of a partition's links to a target.
func writeInlinks(ctx context.Context, env *stages.Env, in *stages.Input) (f manifest.File, links int64, err error) {
	key := layout.Working(in.Task.Crawl, in.Task.Round, string(stages.Rank), stages.FileInlinks, in.Task.Partition)
	targets, err := stages.Sections(in.Results[stages.Merge], stages.FileTargets, in.Task.Partition)
	if err != nil {
		return f, 0, err
	}
	f, err = stages.Write(ctx, env, stages.FileInlinks, key, stages.ByURL, func(w *table.Writer[schema.Inlink]) (err error) {
		links, err = addTargets(ctx, env, targets, w)
		return err
	})
	return f, links, err
}

// addTargets adds up the partitions' sums of each target. It returns the number of these sums.
func addTargets(ctx context.Context, env *stages.Env, sections []manifest.Section, w *table.Writer[schema.Inlink]) (sums int64, err error) {
	var sum schema.TargetLinks
	flush := func() error {
		if sum.URL == "" {
			return nil
		}
		row := inlinks.Finish(&sum)
		return w.Append(&row)
	}
	for t, err := range table.MergeSections(ctx, env.Bucket, env.Scratch, sections, schema.TargetKey) {
		if err != nil {
			return sums, fmt.Errorf("read targets: %w", err)
		}
		sums++
		if t.URL == sum.URL {
			inlinks.Add(&sum, &t)
			continue
		}
		if err := flush(); err != nil {
			return sums, err
		}
		sum = t
	}
	return sums, flush()
}
