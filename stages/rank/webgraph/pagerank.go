package webgraph

import (
	"context"
	"math"
)

// The parameters of PageRank (Page, Brin, Motwani, Winograd: The PageRank Citation Ranking, 1999).
const (
	damping       = 0.85
	precision     = 1e-7 // proven bound of the sum of the errors of all ranks, which sum to 1
	maxIterations = 200  // damping alone would halve the error every five iterations; real graphs take about 40 iterations
)

// ranks holds the PageRank of a graph before the ranks are scaled to the sum 1.
type ranks struct {
	share []float64 // rank of each source, divided by its number of targets
	total float64   // sum of all ranks
}

// PageRank computes the rank of all vertices. The rank of vertices without outlinks is spread evenly
// over all vertices.
//
// Both this spreading and random jumps give the same rank to every vertex. PageRank therefore solves
// r = (1 - damping) + damping * (shares of the sources), without the spreading, and All scales the
// ranks to the sum 1. Each iteration uses the new ranks at once (Gauss-Seidel), which takes about half as many
// iterations as the usual ones. If an iteration moves the ranks by m, then the error that is left is at
// most m * damping / (1 - damping), because no source passes on more than damping times its rank.
func (g *Graph) PageRank(ctx context.Context) error {
	g.share = make([]float64, len(g.out))
	for s := range g.share {
		g.share[s] = (1 - damping) / g.divisor(int32(s))
	}
	for range maxIterations {
		moved, err := g.iterate(ctx)
		if err != nil {
			return err
		}
		var sources float64
		for s, share := range g.share {
			if g.out[s] > 0 {
				sources += share * float64(g.out[s])
			}
		}
		g.total = (1-damping)*float64(g.Vertices) + damping*sources
		// Dangling vertices and the scaling each at most double the error.
		if 4*moved*damping/(1-damping) <= precision*g.total {
			break
		}
	}
	return nil
}

// divisor returns the number of targets of a source. If the source counts nowhere, divisor returns 1,
// because its share is then its rank.
func (g *Graph) divisor(source int32) float64 { return float64(max(g.out[source], 1)) }

// iterate computes the rank of each source once, and returns the sum of the changes.
func (g *Graph) iterate(ctx context.Context) (moved float64, err error) {
	for b, err := range readEdges(ctx, g.linked) {
		if err != nil {
			return 0, err
		}
		for i, t := range b.targets {
			n := g.divisor(t)
			next := g.received(b.sourcesOf(i)) / n
			moved += math.Abs(next-g.share[t]) * n
			g.share[t] = next
		}
	}
	return moved, nil
}

// received returns the rank of a vertex with the given sources.
func (g *Graph) received(sources []int32) float64 {
	var sum float64
	for _, s := range sources {
		sum += g.share[s]
	}
	return 1 - damping + damping*sum
}
