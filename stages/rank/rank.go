package rank

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// Config is what decides the results beside the inputs.
type Config struct {
	Followed []schema.LinkKind // kinds whose targets may be planned
}

// Run makes the inlinks and the hosts of one reduce bucket.
func Run(ctx context.Context, env *stages.Env, in *stages.Input, cfg Config) (*manifest.Result, error) {
	merged := in.Results[stages.Merge]
	g, err := loadGraph(ctx, env.Bucket, merged)
	if err != nil {
		return nil, err
	}
	ranks, err := g.pageRank(ctx)
	if err != nil {
		return nil, err
	}
	hosts, err := writeHosts(ctx, env, in, g, ranks)
	if err != nil {
		return nil, err
	}
	inlinks, edges, err := writeInlinks(ctx, env, in, g, cfg)
	if err != nil {
		return nil, err
	}
	return &manifest.Result{
		Counts: []manifest.Count{{Name: "edges", N: edges}, {Name: "hosts", N: hosts.Rows}, {Name: "inlinks", N: inlinks.Rows}},
		Files:  []manifest.File{hosts, inlinks},
	}, nil
}

// keysOf lists the objects of one kind over all partitions, in order.
func keysOf(results []*manifest.Result, dataset string) []string {
	var keys []string
	for _, r := range results {
		for _, f := range r.FilesOf(dataset) {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

// sources are open objects that are merged.
type sources[T any] struct {
	readers []*table.Reader[T]
	streams []table.Stream[T]
}

func open[T any](ctx context.Context, b store.Bucket, keys []string, opts ...table.ReaderOption) (*sources[T], error) {
	s := &sources[T]{}
	for _, key := range keys {
		r, err := table.Open[T](ctx, b, key, opts...)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.readers = append(s.readers, r)
		s.streams = append(s.streams, r)
	}
	return s, nil
}

func (s *sources[T]) Close() error {
	var errs []error
	for _, r := range s.readers {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// writeHosts writes the bucket's hosts: those of the partitions, and those that
// are only linked to.
func writeHosts(ctx context.Context, env *stages.Env, in *stages.Input, g *graph, ranks []float64) (f manifest.File, err error) {
	runs, err := open[schema.Host](ctx, env.Bucket, keysOf(in.Results[stages.Merge], stages.FileHosts))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, runs.Close()) }()
	w, err := table.NewWriter[schema.Host](filepath.Join(env.Scratch, "hosts.parquet"), table.Format(env.Format), table.SortedBy("host"))
	if err != nil {
		return f, err
	}
	defer w.Abort()
	at := int32(0)
	write := func(h schema.Host, id int32) error {
		h.InlinkHosts, h.OutlinkHosts, h.Rank = g.inDegree(id), int64(g.out[id]), ranks[id]
		return w.Append(&h)
	}
	// linkedOnly writes the hosts before end that no partition has a row of.
	linkedOnly := func(end int32) error {
		for ; at < end; at++ {
			name := g.names[at]
			domain := urlkey.Domain(hostName(name))
			if urlkey.Bucket(domain, in.Plan.Buckets) != in.Task.Partition {
				continue
			}
			if err := write(schema.Host{Host: name, Domain: domain}, at); err != nil {
				return err
			}
		}
		return nil
	}
	compare := func(a, b *schema.Host) int { return strings.Compare(a.Host, b.Host) }
	for h, err := range table.Merge(ctx, compare, runs.streams...) {
		if err != nil {
			return f, fmt.Errorf("read hosts: %w", err)
		}
		id := g.ids[h.Host]
		if id < at {
			return f, fmt.Errorf("host %q has rows in two partitions, which a plan never does: %w", h.Host, stages.ErrPermanent)
		}
		if err := linkedOnly(id); err != nil {
			return f, err
		}
		at = id + 1
		if urlkey.Bucket(h.Domain, in.Plan.Buckets) != in.Task.Partition {
			continue
		}
		if err := write(h, id); err != nil {
			return f, err
		}
	}
	if err := linkedOnly(int32(len(g.names))); err != nil {
		return f, err
	}
	t := in.Task
	return table.Finish(ctx, w, env.Bucket, stages.FileHosts, layout.Table(stages.FileHosts, t.Crawl, t.Round, t.Partition))
}

// writeInlinks writes a row for each target of the bucket.
func writeInlinks(ctx context.Context, env *stages.Env, in *stages.Input, g *graph, cfg Config) (f manifest.File, edges int64, err error) {
	bucket := int64(in.Task.Partition)
	runs, err := open[schema.Edge](ctx, env.Bucket, keysOf(in.Results[stages.Merge], stages.FileEdges),
		table.IntRange("target_bucket", bucket, bucket))
	if err != nil {
		return f, 0, err
	}
	defer func() { err = errors.Join(err, runs.Close()) }()
	w, err := table.NewWriter[schema.Inlink](filepath.Join(env.Scratch, "inlinks.parquet"), table.Format(env.Format), table.SortedBy("url_surtkey", "url"))
	if err != nil {
		return f, 0, err
	}
	defer w.Abort()
	t := newTarget(g, cfg)
	flush := func() error {
		if t.row.URL == "" {
			return nil
		}
		row := t.finish()
		return w.Append(&row)
	}
	for e, err := range table.Merge(ctx, schema.CompareEdges, runs.streams...) {
		if err != nil {
			return f, 0, fmt.Errorf("read edges: %w", err)
		}
		if int64(e.TargetBucket) != bucket {
			continue
		}
		edges++
		if e.Target != t.row.URL {
			if err := flush(); err != nil {
				return f, 0, err
			}
			t.reset(&e)
		}
		t.add(&e)
	}
	if err := flush(); err != nil {
		return f, 0, err
	}
	f, err = table.Finish(ctx, w, env.Bucket, stages.FileInlinks,
		layout.Working(in.Task.Crawl, in.Task.Round, string(stages.Rank), stages.FileInlinks, in.Task.Partition))
	return f, edges, err
}

// hostName is a host without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
