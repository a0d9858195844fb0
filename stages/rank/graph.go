package rank

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// This file computes the ranks of hosts in rounds of a format before 4. For newer rounds, package
// webgraph computes the ranks.

// The parameters of PageRank over hosts (Page, Brin, Motwani, Winograd: The PageRank Citation
// Ranking, 1999). All links from one host to another count as one edge.
const (
	damping       = 0.85
	tolerance     = 1e-6 // largest L1 difference between the last two iterations
	maxIterations = 200  // with damping 0.85, the difference is below tolerance after about 90 iterations
)

// graph holds the links between hosts. Hosts have numbers.
type graph struct {
	names []string         // name of each host, by number; sorted after sortNames
	ids   map[string]int32 // number of each host
	// The hosts that link to host d are in[start[d]:start[d+1]], ascending.
	start []int64
	in    []int32
	out   []int32 // number of hosts to which each host links
}

// number returns the number of a host. A new host gets the next number.
func (g *graph) number(name string) int32 {
	id, ok := g.ids[name]
	if !ok {
		id, name = int32(len(g.names)), strings.Clone(name)
		g.ids[name] = id
		g.names = append(g.names, name)
	}
	return id
}

// loadGraph reads the hosts and the host edges of all partitions.
func loadGraph(ctx context.Context, b store.Bucket, merged []*manifest.Result) (*graph, error) {
	g := &graph{ids: map[string]int32{}}
	var from, to []int32 // hosts at both ends of each edge, numbered by first appearance
	for h, err := range table.Concat[schema.Host](ctx, b, stages.Keys(merged, stages.FileHosts)) {
		if err != nil {
			return nil, fmt.Errorf("read hosts: %w", err)
		}
		g.number(h.Host)
	}
	lastSource, lastID := "", int32(-1)
	for e, err := range table.Concat[schema.HostEdge](ctx, b, stages.Keys(merged, stages.FileHostEdges)) {
		if err != nil {
			return nil, fmt.Errorf("read host edges: %w", err)
		}
		if e.Source == e.Target {
			continue
		}
		if lastID < 0 || e.Source != lastSource {
			lastSource, lastID = e.Source, g.number(e.Source)
		}
		from, to = append(from, lastID), append(to, g.number(e.Target))
	}
	g.sortNames(from, to)
	g.index(from, to)
	return g, nil
}

// loadSources returns a graph without edges, with all hosts whose pages may have links.
func loadSources(ctx context.Context, b store.Bucket, merged []*manifest.Result) (*graph, error) {
	g := &graph{ids: map[string]int32{}}
	type host struct {
		Host string `parquet:"host"`
	}
	for h, err := range table.Concat[host](ctx, b, stages.Keys(merged, stages.FileHosts)) {
		if err != nil {
			return nil, fmt.Errorf("read hosts: %w", err)
		}
		g.number(h.Host)
	}
	type source struct {
		Source string `parquet:"source"`
	}
	for e, err := range table.Concat[source](ctx, b, stages.Keys(merged, stages.FileHostEdges)) {
		if err != nil {
			return nil, fmt.Errorf("read host edges: %w", err)
		}
		g.number(e.Source)
	}
	return g, nil
}

// sortNames renumbers the hosts in the order of their names, so that the order of every sum depends only
// on the graph. from and to hold the hosts of the edges.
func (g *graph) sortNames(from, to []int32) {
	order := make([]int32, len(g.names))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(g.names[a], g.names[b]) })
	rank := make([]int32, len(order))
	names := make([]string, len(order))
	for place, old := range order {
		rank[old] = int32(place)
		names[place] = g.names[old]
		g.ids[names[place]] = int32(place)
	}
	g.names = names
	for i := range from {
		from[i], to[i] = rank[from[i]], rank[to[i]]
	}
}

// index groups the edges by target. A counting sort by source, and then by target, puts the sources
// of each target in ascending order. Repeated edges count once.
func (g *graph) index(from, to []int32) {
	n := len(g.names)
	bySource := make([]int64, n+1)
	for _, s := range from {
		bySource[s+1]++
	}
	for i := range n {
		bySource[i+1] += bySource[i]
	}
	targets := make([]int32, len(from))
	next := slices.Clone(bySource[:n])
	for i, s := range from {
		targets[next[s]] = to[i]
		next[s]++
	}
	g.out = make([]int32, n)
	g.start = make([]int64, n+1)
	for s := range n {
		own := targets[bySource[s]:bySource[s+1]]
		slices.Sort(own)
		g.out[s] = int32(len(slices.Compact(own)))
		for _, d := range own[:g.out[s]] {
			g.start[d+1]++
		}
	}
	for i := range n {
		g.start[i+1] += g.start[i]
	}
	g.in = make([]int32, g.start[n])
	copy(next, g.start[:n])
	for s := range n {
		for _, d := range targets[bySource[s] : bySource[s]+int64(g.out[s])] {
			g.in[next[d]] = int32(s)
			next[d]++
		}
	}
}

// inDegree returns how many other hosts link to host d.
func (g *graph) inDegree(d int32) int64 { return g.start[d+1] - g.start[d] }

// pageRank returns the rank of each host. The ranks sum to 1. The rank of hosts without outgoing
// edges is spread evenly over all hosts.
func (g *graph) pageRank(ctx context.Context) ([]float64, error) {
	n := len(g.names)
	if n == 0 {
		return nil, nil
	}
	rank, share := make([]float64, n), make([]float64, n)
	for i := range rank {
		rank[i] = 1 / float64(n)
	}
	for range maxIterations {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var dangling float64
		for i, r := range rank {
			if g.out[i] == 0 {
				dangling += r
				share[i] = 0
			} else {
				share[i] = r / float64(g.out[i])
			}
		}
		floor := (1-damping)/float64(n) + float64(damping*dangling)/float64(n)
		var moved float64
		for d := range rank {
			var sum float64
			for _, s := range g.in[g.start[d]:g.start[d+1]] {
				sum += share[s]
			}
			next := floor + float64(damping*sum)
			moved += math.Abs(next - rank[d])
			rank[d] = next
		}
		if moved < tolerance {
			break
		}
	}
	return rank, nil
}
