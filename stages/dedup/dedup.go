package dedup

import (
	"context"
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/store"
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
}

// Run finds the round's clusters and writes them as duplicates and representatives.
func Run(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (*manifest.Result, error) {
	if cfg.MaxDistance < 0 || cfg.MaxDistance > simhash.MaxDistance {
		return nil, fmt.Errorf("distance %d is not one of 0 to %d: %w", cfg.MaxDistance, simhash.MaxDistance, stages.ErrPermanent)
	}
	p, err := load(ctx, env.Bucket, sourcesOf(in), cfg)
	if err != nil {
		return nil, err
	}
	env.Progress.Add(stages.CountRows, int64(p.count()))
	c, err := findClusters(ctx, p, cfg.MaxDistance)
	if err != nil {
		return nil, err
	}
	ch, err := choose(ctx, env.Bucket, env.Scratch, p, c, cfg)
	if err != nil {
		return nil, err
	}
	defer ch.close()

	n := counts{seen: make([]bool, len(c.root))}
	var files []manifest.File
	for bucket := range in.Plan.Buckets {
		f, err := writeBucket(ctx, env, in.Task, bucket, ch, &n)
		if err != nil {
			return nil, err
		}
		files = append(files, f...)
	}
	return &manifest.Result{
		Counts: []manifest.Count{
			{Name: "clusters", N: n.clusters}, {Name: "exact", N: n.exact}, {Name: "near", N: n.near},
			{Name: "pages", N: int64(p.count() - p.sealed)}, {Name: "representatives", N: n.representatives}, {Name: "sealed", N: int64(p.sealed)},
		},
		Files: files,
	}, nil
}

// counts holds the numbers of written rows.
type counts struct {
	clusters, exact, near, representatives int64
	seen                                   []bool // for each component, whether its cluster is already counted
}

// sourcesOf lists the files to read: first the files of sealed rounds, the oldest round first, then
// this round's files by partition.
func sourcesOf(in *stages.Input) []source {
	var sources []source
	for age, sealed := range in.Earlier {
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
	return sources
}

// numbered is the row of a page with the page's number.
type numbered struct {
	page uint32
	row
}

// writeBucket writes the bucket's parts of duplicates and representatives. The first part has a row
// for each clustered page of the bucket. The second part has the bucket's new representatives.
func writeBucket(ctx context.Context, env *stages.Env, t stages.Task, bucket int, ch *choice, n *counts) ([]manifest.File, error) {
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
	for page, err := range bucketPages(ctx, env.Bucket, bucket, ch.p) {
		if err != nil {
			return nil, err
		}
		if ch.represents(page.page) {
			n.representatives++
			if err := representatives.Append(&page.row); err != nil {
				return nil, err
			}
		}
		if !ch.clustered(page.page) {
			continue
		}
		d, err := ch.row(page)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		n.count(d, ch.c.root[ch.c.class[page.page]])
		if err := duplicates.Append(d); err != nil {
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
func bucketPages(ctx context.Context, b store.Bucket, bucket int, p *pages) iter.Seq2[numbered, error] {
	return func(yield func(numbered, error) bool) {
		var streams []table.Stream[numbered]
		for i := range p.sources {
			s := &p.sources[i]
			if s.sealed || s.bucket != bucket {
				continue
			}
			rows, page := table.Pull(s.rows(ctx, b)), s.first
			defer rows.Close()
			streams = append(streams, table.Convert(rows, func(r *row) (numbered, bool) {
				page++
				return numbered{page - 1, *r}, true
			}))
		}
		compare := func(a, b *numbered) int {
			return schema.CompareURLs(a.SURT, a.URL, b.SURT, b.URL)
		}
		for m, err := range table.Merge(ctx, compare, streams...) {
			if !yield(m, err) {
				return
			}
		}
	}
}

// row returns the row of duplicates for a page in a cluster. If the cluster has only the page and
// the page's earlier version, row returns nil.
func (ch *choice) row(m numbered) (*schema.Duplicate, error) {
	root := ch.c.root[ch.c.class[m.page]]
	representative := ch.stands[root]
	source := ch.p.source(representative)
	url, err := ch.names.url(representative)
	if err != nil {
		return nil, err
	}
	d := &schema.Duplicate{
		SURT: m.SURT, URL: m.URL, Representative: string(url), Kind: schema.DupNear,
		Distance:            int32(ch.distance(m.page, representative)),
		RepresentativeCrawl: source.crawl, RepresentativeRound: int32(source.round),
		ClusterSize: int32(ch.size[root]),
	}
	if d.Representative == d.URL {
		d.Kind = schema.DupRepresentative
		if ch.size[root] == 1 && source.sealed {
			return nil, nil
		}
		return d, nil
	}
	if ch.p.digest[m.page] == ch.p.digest[representative] {
		d.Kind = schema.DupExact
	}
	if url, err = ch.names.url(ch.via(m.page, representative)); err != nil {
		return nil, err
	}
	d.Via = string(url)
	return d, nil
}

func (n *counts) count(d *schema.Duplicate, component uint32) {
	switch d.Kind {
	case schema.DupExact:
		n.exact++
	case schema.DupNear:
		n.near++
	}
	if !n.seen[component] {
		n.seen[component] = true
		n.clusters++
	}
}
