package dedup

import (
	"context"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// Config holds the settings of dedup. The results of dedup depend only on its Config and inputs.
type Config struct {
	// MaxDistance is the largest number of bits (0 to 7 of 64) in which the fingerprints of near
	// duplicates differ.
	MaxDistance int
	// MinWords is the least number of words that a text must have to be compared by fingerprint. Shorter
	// texts may share fingerprints by chance.
	MinWords int
	// Months bounds the age of the sealed rounds whose representatives are read (stages.Since).
	Months int
}

// Run runs a task of digest, similar, cluster or dedup. Together, these tasks find the round's clusters
// and write them as duplicates and representatives.
func Run(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (*manifest.Result, error) {
	if cfg.MaxDistance < 0 || cfg.MaxDistance > simhash.MaxDistance {
		return nil, fmt.Errorf("distance %d is not between 0 and %d: %w", cfg.MaxDistance, simhash.MaxDistance, stages.ErrPermanent)
	}
	switch in.Task.Stage {
	case stages.Digest:
		return runDigest(ctx, env, in, cfg)
	case stages.Similar:
		return runSimilar(ctx, env, in, cfg)
	case stages.Cluster:
		return runCluster(ctx, env, in, cfg)
	}
	if stages.Cluster.Tasks(in.Plan) > 0 {
		return runBucket(ctx, env, in)
	}
	return runDedup(ctx, env, in, cfg)
}

// These are the names of the counts in dedup's results. If dedup has several tasks, the result of bucket
// 0 includes the counts of the stage cluster.
const (
	countClusters        = "clusters"
	countExact           = "exact"
	countNear            = "near"
	countPages           = "pages"
	countRepresentatives = "representatives"
	countSealed          = "sealed" // number of sealed representatives that were read
)

// runDedup does the work of the whole stage in a round of one bucket.
func runDedup(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (*manifest.Result, error) {
	ch, counts, err := decide(ctx, env, in, cfg)
	if err != nil {
		return nil, err
	}
	defer ch.close()
	verdicts := table.Pull(ch.verdicts.Sorted(ctx))
	defer verdicts.Close()
	w := &writer{env: env, task: in.Task, sources: ch.sources}
	if err := w.write(ctx, 0, verdicts); err != nil {
		return nil, err
	}
	return w.result(verdicts, counts)
}

// decide gives a verdict on each page of this round that is in a cluster. It also returns the numbers of
// clusters, pages and sealed representatives. The caller closes ch.
func decide(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (ch *choice, counts []manifest.Count, err error) {
	if ch, err = newChoice(env.Scratch, sourcesOf(in, cfg.Months), cfg); err != nil {
		return nil, nil, err
	}
	pages, sealed, err := ch.decide(ctx, env, in)
	if err != nil {
		ch.close()
		return nil, nil, err
	}
	return ch, []manifest.Count{{Name: countClusters, N: ch.clusters}, {Name: countPages, N: pages - sealed}, {Name: countSealed, N: sealed}}, nil
}

// decide gives a verdict on each page of this round that is in a cluster. It returns the number of pages
// with text, and how many of them are sealed representatives.
func (ch *choice) decide(ctx context.Context, env *stages.Env, in *stages.Input) (pages, sealed int64, err error) {
	c, err := newClusters(env)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	if in.Task.Stage == stages.Cluster {
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

// sourcesOf lists the files to read: first the representatives of the sealed rounds of the last months,
// the oldest round first, then the pages of this round, by partition. Zero months means all rounds.
func sourcesOf(in *stages.Input, months int) []source {
	var sources []source
	for age, sealed := range stages.Since(in.Earlier, in.Task.Crawl, months) {
		for _, f := range sealed.FilesOf(stages.FileRepresentatives) {
			sources = append(sources, source{key: f.Key, sealed: true, crawl: sealed.Crawl, round: sealed.Round, age: age})
		}
	}
	for partition, merged := range in.Results[stages.Merge] {
		if merged == nil {
			continue // a task of one bucket reads only the results of the bucket's partitions
		}
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
