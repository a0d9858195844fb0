package rank

import (
	"context"
	"fmt"
	"net"
	"strings"

	"crawlbatch.io/crawlbatch/formats/inlinks"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/topics"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// Config holds the settings of rank. The results of rank depend only on its Config and inputs.
type Config struct {
	Followed []schema.LinkKind // kinds of links whose targets may be planned
}

// Run makes the inlinks and the terms of one reduce bucket. The task of bucket 0 also makes the hosts of
// all buckets.
func Run(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (*manifest.Result, error) {
	var g *graph
	var files []manifest.File
	var err error
	switch {
	case !env.Has(4):
		var hosts manifest.File
		g, hosts, err = rankBucket(ctx, env, in)
		files = append(files, hosts)
	case in.Task.Partition == 0:
		files, err = rankHosts(ctx, env, in)
	}
	if err != nil {
		return nil, err
	}
	var hosts int64
	for _, f := range files {
		if f.Dataset == stages.FileHosts {
			hosts += f.Rows
		}
	}
	linked, links, err := writeInlinks(ctx, env, in, g, cfg)
	if err != nil {
		return nil, err
	}
	r := &manifest.Result{
		Counts: []manifest.Count{{Name: "edges", N: links}, {Name: "hosts", N: hosts}, {Name: "inlinks", N: linked.Rows}},
		Files:  append(files, linked),
	}
	if topics.In(in.Plan) {
		terms, err := writeTerms(ctx, env, in)
		if err != nil {
			return nil, fmt.Errorf("terms: %w", err)
		}
		r.Counts = append(r.Counts, manifest.Count{Name: "terms", N: terms.Rows})
		r.Files = append(r.Files, terms)
	}
	return r, nil
}

// writeTerms writes the part of terms of the task's bucket.
func writeTerms(ctx context.Context, env *stages.Env, in *stages.Input) (manifest.File, error) {
	sections, _, err := stages.Sections(in.Results[stages.Merge], stages.FileTerms, in.Task.Partition)
	if err != nil {
		return manifest.File{}, err
	}
	key := layout.Table(stages.FileTerms, in.Task.Crawl, in.Task.Round, in.Task.Partition)
	return stages.Write(ctx, env, stages.FileTerms, key, []string{"language", "term"}, func(w *table.Writer[schema.Term]) error {
		return topics.Terms(in.Plan.URLs, env.Format, table.MergeSections(ctx, env.Bucket, env.Scratch, sections, schema.CompareTermPages), w.Append)
	})
}

// rankBucket computes the host graph and writes the hosts of the task's bucket, as tasks of formats
// before 4 do.
func rankBucket(ctx context.Context, env *stages.Env, in *stages.Input) (*graph, manifest.File, error) {
	g, err := loadGraph(ctx, env.Bucket, in.Results[stages.Merge])
	if err != nil {
		return nil, manifest.File{}, err
	}
	ranks, err := g.pageRank(ctx)
	if err != nil {
		return nil, manifest.File{}, err
	}
	hosts, err := writeHosts(ctx, env, in, g, ranks)
	return g, hosts, err
}

// writeHosts writes the bucket's part of the hosts dataset: the hosts with rows from merge, and the
// hosts that are only link targets.
func writeHosts(ctx context.Context, env *stages.Env, in *stages.Input, g *graph, ranks []float64) (manifest.File, error) {
	t := in.Task
	key := layout.Table(stages.FileHosts, t.Crawl, t.Round, t.Partition)
	return stages.Write(ctx, env, stages.FileHosts, key, []string{"host"}, func(w *table.Writer[schema.Host]) error {
		at := int32(0)
		write := func(h schema.Host, id int32) error {
			if urlkey.Bucket(h.Domain, in.Plan.Buckets) != t.Partition {
				return nil
			}
			h.InlinkHosts, h.OutlinkHosts, h.Rank = g.inDegree(id), int64(g.out[id]), ranks[id]
			return w.Append(&h)
		}
		// linkedOnly writes the hosts from number at up to end. They have no row from merge, because they
		// are only link targets.
		linkedOnly := func(end int32) error {
			for ; at < end; at++ {
				name := g.names[at]
				if err := write(schema.Host{Host: name, Domain: urlkey.Domain(oldHostName(name))}, at); err != nil {
					return err
				}
			}
			return nil
		}
		compare := func(a, b *schema.Host) int { return strings.Compare(a.Host, b.Host) }
		for h, err := range table.MergeFiles(ctx, env.Bucket, env.Scratch, stages.Keys(in.Results[stages.Merge], stages.FileHosts), compare) {
			if err != nil {
				return fmt.Errorf("read hosts: %w", err)
			}
			id := g.ids[h.Host]
			if id < at {
				return fmt.Errorf("host %q has rows in two partitions, but a plan assigns each host to one partition: %w", h.Host, stages.ErrPermanent)
			}
			if err := linkedOnly(id); err != nil {
				return err
			}
			at = id + 1
			if err := write(h, id); err != nil {
				return err
			}
		}
		return linkedOnly(int32(len(g.names)))
	})
}

// writeInlinks writes a row for each target of the bucket. links is the number of rows that it read:
// each is a link, or since format 4 the sum of a partition's links to a target.
func writeInlinks(ctx context.Context, env *stages.Env, in *stages.Input, g *graph, cfg Config) (f manifest.File, links int64, err error) {
	key := layout.Working(in.Task.Crawl, in.Task.Round, string(stages.Rank), stages.FileInlinks, in.Task.Partition)
	targets, summed, err := stages.Sections(in.Results[stages.Merge], stages.FileTargets, in.Task.Partition)
	if err != nil {
		return f, 0, err
	}
	f, err = stages.Write(ctx, env, stages.FileInlinks, key, stages.ByURL, func(w *table.Writer[schema.Inlink]) (err error) {
		if summed {
			links, err = addTargets(ctx, env, targets, w)
		} else {
			if g == nil { // merge ran in format 3 and wrote edges, and rank runs in a newer format
				if g, err = loadSources(ctx, env.Bucket, in.Results[stages.Merge]); err != nil {
					return err
				}
			}
			links, err = countEdges(ctx, env, in, newTarget(g, cfg), w)
		}
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
	for t, err := range table.MergeSections(ctx, env.Bucket, env.Scratch, sections, schema.CompareTargets) {
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

// countEdges adds up the edges of each target, in a round whose merge tasks wrote edges. It returns the
// number of edges.
func countEdges(ctx context.Context, env *stages.Env, in *stages.Input, t *target, w *table.Writer[schema.Inlink]) (edges int64, err error) {
	bucket := int64(in.Task.Partition)
	flush := func() error {
		if t.row.URL == "" {
			return nil
		}
		row := t.finish()
		return w.Append(&row)
	}
	for e, err := range table.MergeFiles(ctx, env.Bucket, env.Scratch, stages.Keys(in.Results[stages.Merge], stages.FileEdges),
		schema.CompareEdges, table.IntRange("target_bucket", bucket, bucket)) {
		if err != nil {
			return edges, fmt.Errorf("read edges: %w", err)
		}
		if int64(e.TargetBucket) != bucket {
			continue
		}
		edges++
		if e.Target != t.row.URL {
			if err := flush(); err != nil {
				return edges, err
			}
			t.reset(&e)
		}
		t.add(&e)
	}
	return edges, flush()
}

// oldHostName returns a host without its port, and without brackets if it is an IPv6 address with a port.
func oldHostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
