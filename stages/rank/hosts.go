package rank

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/rank/webgraph"
)

// sourceHosts is the largest number of hosts of one domain that count as sources of a host of another
// domain. A spammer can make any number of hosts in a domain for free, but has to pay for each domain.
const sourceHosts = 256

// hostRow is a host of merge's results, with its bucket.
type hostRow struct {
	Bucket int32
	schema.Host
}

// hostRank holds what the host graph says about a host.
type hostRank struct {
	Bucket       int32
	Host, Domain string
	In, Out      int64
	Rank         float64
}

// domainRank holds what the domain graph says about a domain.
type domainRank struct {
	Bucket   int32
	Domain   string
	Harmonic float64
}

// roundHosts computes the rows of the hosts dataset for all buckets.
type roundHosts struct {
	env     *stages.Env
	in      *stages.Input
	graph   *webgraph.Builder
	rows    *table.Sorter[hostRow]
	ranks   *table.Sorter[hostRank]
	domains *table.Sorter[domainRank]
	files   []manifest.File
}

// rankHosts computes the round's graphs of hosts and of domains, publishes them, and writes every
// bucket's part of the hosts dataset.
func rankHosts(ctx context.Context, env *stages.Env, in *stages.Input) (_ []manifest.File, err error) {
	r := &roundHosts{env: env, in: in}
	if r.graph, err = webgraph.NewBuilder(env.Scratch); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.graph.Close()) }()
	r.graph.SourceCap, r.graph.DomainOf = sourceHosts, domainOf
	r.rows, err = table.NewSorter(env.Scratch, func(k table.Key, r *hostRow) table.Key { return k.Int(int64(r.Bucket)).Text(r.Host.Host) }, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.rows.Close()) }()
	r.ranks, err = table.NewSorter(env.Scratch, func(k table.Key, r *hostRank) table.Key { return k.Int(int64(r.Bucket)).Text(r.Host) }, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.ranks.Close()) }()
	r.domains, err = table.NewSorter(env.Scratch, func(k table.Key, r *domainRank) table.Key { return k.Int(int64(r.Bucket)) }, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.domains.Close()) }()
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	if err := r.rank(ctx); err != nil {
		return nil, err
	}
	if err := r.write(ctx); err != nil {
		return nil, err
	}
	return r.files, nil
}

// bucketOf returns the bucket of a domain.
func (r *roundHosts) bucketOf(domain string) int32 {
	return int32(urlkey.Bucket(domain, r.in.Plan.Buckets))
}

// read adds the hosts and host edges of all partitions to the graph. Only one object is open at a
// time.
func (r *roundHosts) read(ctx context.Context) error {
	merged := r.in.Results[stages.Merge]
	for h, err := range table.Concat[schema.Host](ctx, r.env.Bucket, stages.Keys(merged, stages.FileHosts)) {
		if err == nil {
			err = r.graph.AddVertex(h.Host, h.Domain)
		}
		if err == nil {
			err = r.rows.Add(&hostRow{r.bucketOf(h.Domain), h})
		}
		if err != nil {
			return fmt.Errorf("read hosts: %w", err)
		}
	}
	last, source := "", int32(-1)
	for e, err := range table.Concat[schema.HostEdge](ctx, r.env.Bucket, stages.Keys(merged, stages.FileHostEdges)) {
		if err == nil && e.Source == e.Target {
			continue
		}
		if err == nil && (source < 0 || e.Source != last) {
			last = strings.Clone(e.Source)
			source, err = r.graph.AddSource(last, domainOf(last))
		}
		if err == nil {
			err = r.graph.AddEdge(source, e.Target)
		}
		if err != nil {
			return fmt.Errorf("read host edges: %w", err)
		}
	}
	return nil
}

// rank computes the graphs of hosts and of domains. It adds the ranks of hosts to r.ranks and the
// centralities of domains to r.domains.
func (r *roundHosts) rank(ctx context.Context) error {
	g, err := r.graph.Finish(ctx, "hosts")
	if err != nil {
		return err
	}
	if err := g.PageRank(ctx); err != nil {
		return err
	}
	for v, err := range g.All(ctx) {
		if err == nil {
			err = r.ranks.Add(&hostRank{r.bucketOf(v.Domain), v.Name, v.Domain, v.In, v.Out, v.Rank})
		}
		if err != nil {
			return err
		}
	}
	if err := r.publish(ctx, "host-vertices", func(ctx context.Context, path string) (table.Local, error) { return g.WriteVertices(ctx, path, false) }); err != nil {
		return err
	}
	if err := r.publish(ctx, "host-edges", g.WriteEdges); err != nil {
		return err
	}
	return r.rankDomains(ctx, g)
}

// publish stores a text file of a graph. write writes it to path and describes it.
func (r *roundHosts) publish(ctx context.Context, name string, write func(ctx context.Context, path string) (table.Local, error)) error {
	l, err := write(ctx, filepath.Join(r.env.Scratch, name))
	if err != nil {
		return err
	}
	f, err := table.Commit(ctx, r.env.Bucket, l, stages.FileWebGraph, layout.WebGraph(r.in.Task.Crawl, r.in.Task.Round, name))
	r.files = append(r.files, f)
	return err
}

// rankDomains computes the graph of domains from the graph of hosts.
func (r *roundHosts) rankDomains(ctx context.Context, hosts *webgraph.Graph) (err error) {
	b, err := hosts.Domains(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	g, err := b.Finish(ctx, "domains")
	if err != nil {
		return err
	}
	if err := g.PageRank(ctx); err != nil {
		return err
	}
	if err := g.Harmonic(ctx); err != nil {
		return err
	}
	for v, err := range g.All(ctx) {
		if err == nil {
			err = r.domains.Add(&domainRank{r.bucketOf(v.Domain), v.Domain, v.Harmonic})
		}
		if err != nil {
			return err
		}
	}
	if err := r.publish(ctx, "domain-vertices", func(ctx context.Context, path string) (table.Local, error) { return g.WriteVertices(ctx, path, true) }); err != nil {
		return err
	}
	if err := r.publish(ctx, "domain-edges", g.WriteEdges); err != nil {
		return err
	}
	return r.publish(ctx, "domain-ranks", g.WriteRanks)
}

// write writes each bucket's part of the hosts dataset: the hosts with rows from merge, and the hosts
// that are only link targets.
func (r *roundHosts) write(ctx context.Context) error {
	ranks := table.Pull(r.ranks.Sorted(ctx))
	defer ranks.Close()
	rows := table.Pull(r.rows.Sorted(ctx))
	defer rows.Close()
	domains := table.Pull(r.domains.Sorted(ctx))
	defer domains.Close()
	for bucket := range r.in.Plan.Buckets {
		harmonic, err := harmonicOf(int32(bucket), domains)
		if err != nil {
			return err
		}
		key := layout.Table(stages.FileHosts, r.in.Task.Crawl, r.in.Task.Round, bucket)
		f, err := stages.Write(ctx, r.env, stages.FileHosts, key, []string{"host"}, func(w *table.Writer[schema.Host]) error {
			return writeBucket(w, int32(bucket), ranks, rows, harmonic)
		})
		if err != nil {
			return err
		}
		r.files = append(r.files, f)
	}
	return nil
}

// harmonicOf returns the harmonic centrality of the domains of a bucket.
func harmonicOf(bucket int32, domains *table.Cursor[domainRank]) (map[string]float64, error) {
	harmonic := map[string]float64{}
	for {
		d, err := domains.Peek()
		if err != nil || d == nil || d.Bucket != bucket {
			return harmonic, err
		}
		harmonic[d.Domain] = d.Harmonic
		_, _ = domains.Next() // cannot fail: Peek has returned this row
	}
}

// writeBucket writes the hosts of a bucket. Every host in rows is also in ranks.
func writeBucket(w *table.Writer[schema.Host], bucket int32, ranks *table.Cursor[hostRank], rows *table.Cursor[hostRow], harmonic map[string]float64) error {
	for {
		rank, err := ranks.Peek()
		if err != nil || rank == nil || rank.Bucket != bucket {
			return err
		}
		row, err := rows.Peek()
		if err != nil {
			return err
		}
		h := schema.Host{Host: rank.Host, Domain: rank.Domain}
		if row != nil && row.Bucket == bucket && row.Host.Host == rank.Host {
			h = row.Host
			_, _ = rows.Next() // cannot fail: Peek has returned this row
		}
		if row, err = rows.Peek(); err == nil && row != nil && row.Host.Host == rank.Host {
			err = fmt.Errorf("host %q has rows in two partitions, but a plan assigns each host to one partition: %w", rank.Host, stages.ErrPermanent)
		}
		if err != nil {
			return err
		}
		h.InlinkHosts, h.OutlinkHosts, h.Rank, h.Harmonic = rank.In, rank.Out, rank.Rank, harmonic[rank.Domain]
		if err := w.Append(&h); err != nil {
			return err
		}
		_, _ = ranks.Next()
	}
}

// domainOf returns the domain of a host. The domain of an IPv6 address has brackets, as that of planned
// URLs has.
func domainOf(host string) string {
	name, _ := urlkey.SplitPort(host)
	return urlkey.Domain(name)
}
