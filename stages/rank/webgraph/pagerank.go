package webgraph

import (
	"context"
	"math"
)

// The parameters of PageRank (Page, Brin, Motwani, Winograd: The PageRank Citation Ranking, 1999).
const (
	damping       = 0.85
	precision     = 1e-7 // PageRank stops when the errors of all ranks add up to at most this; the ranks sum to 1
	maxIterations = 200  // 15 iterations make the error about ten times smaller
)

// ranks holds the PageRank of a graph.
type ranks struct {
	share []float64 // rank of each source, divided by its number of targets
	floor float64   // rank of a vertex without inlinks
}

// PageRank computes the rank of all vertices. The rank of vertices without outlinks is spread evenly
// over all vertices.
//
// PageRank stores only the ranks of vertices with outlinks. All ranks sum to 1, so the other vertices
// together have the rest, and the next iteration needs only their sum. Let m be the sum of the changes
// of all ranks in an iteration. Each iteration shrinks differences by the factor damping, so the error
// after it is at most m * damping / (1 - damping).
func (g *Graph) PageRank(ctx context.Context) error {
	n := float64(g.Vertices)
	g.share = make([]float64, len(g.out))
	for s := range g.share {
		g.share[s] = 1 / n / g.divisor(int32(s))
	}
	g.setFloor()
	next := make([]float64, len(g.out))
	for range maxIterations {
		moved, err := g.iterate(ctx, next)
		if err != nil {
			return err
		}
		g.setFloor()
		// moved counts only vertices with outlinks. The ranks of all others change by at most
		// 2 * damping * moved: once through the floor, and once through the shares that they receive.
		if (1+2*damping)*moved*damping/(1-damping) <= precision {
			break
		}
	}
	return nil
}

// divisor returns the number of targets of a source. If the source counts for no target, divisor
// returns 1, and the source's share is its rank.
func (g *Graph) divisor(source int32) float64 { return float64(max(g.out[source], 1)) }

// setFloor computes the floor from the ranks of the sources.
func (g *Graph) setFloor() {
	rest := 1.0
	for s, share := range g.share {
		rest -= float64(share * float64(g.out[s]))
	}
	g.floor = (1 - damping + float64(damping*max(rest, 0))) / float64(g.Vertices)
}

// iterate does one iteration: it computes the new rank of each source, sets g.share, and returns the sum
// of the changes of these ranks. next is a buffer with an element for each source.
func (g *Graph) iterate(ctx context.Context, next []float64) (moved float64, err error) {
	for s := range next {
		next[s] = g.floor
	}
	for b, err := range readEdges(ctx, g.linked) {
		if err != nil {
			return 0, err
		}
		for i, t := range b.targets {
			next[t] = g.received(b.sourcesOf(i))
		}
	}
	for s, rank := range next {
		n := g.divisor(int32(s))
		moved += math.Abs(rank - float64(g.share[s]*n))
		g.share[s] = rank / n
	}
	return moved, nil
}

// received returns the rank of a vertex with the given sources.
func (g *Graph) received(sources []int32) float64 {
	var sum float64
	share := g.share
	for _, s := range sources {
		sum += share[s]
	}
	return g.floor + float64(damping*sum)
}
