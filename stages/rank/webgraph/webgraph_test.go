package webgraph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edge is an edge between two vertices.
type edge struct{ from, to string }

// edgesOf parses a list such as "a>b a>c".
func edgesOf(list string) (edges []edge) {
	for _, e := range strings.Fields(list) {
		from, to, _ := strings.Cut(e, ">")
		edges = append(edges, edge{from, to})
	}
	return edges
}

// lastLabels returns the last two labels of a name.
func lastLabels(name string) string {
	labels := strings.Split(name, ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}

// build builds the graph of edges and of single vertices, and computes its ranks.
func build(t testing.TB, edges []edge, single []string, change func(*Builder)) *Graph {
	t.Helper()
	b, err := NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	b.DomainOf = lastLabels
	if change != nil {
		change(b)
	}
	for _, name := range single {
		if err := b.AddVertex(name, lastLabels(name)); err != nil {
			t.Fatal(err)
		}
	}
	sources := map[string]int32{}
	for _, e := range edges {
		source, ok := sources[e.from]
		if !ok {
			if source, err = b.AddSource(e.from, lastLabels(e.from)); err != nil {
				t.Fatal(err)
			}
			sources[e.from] = source
		}
		if err := b.AddEdge(source, e.to); err != nil {
			t.Fatal(err)
		}
	}
	g, err := b.Finish(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.PageRank(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

// vertices lists the vertices of a graph.
func vertices(t testing.TB, g *Graph) (all []Vertex) {
	t.Helper()
	for v, err := range g.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// agree compares ranks to 1e-6.
func agree(t *testing.T, g *Graph, want map[string]float64) {
	t.Helper()
	all := vertices(t, g)
	if len(all) != len(want) {
		t.Errorf("%d vertices, not %d", len(all), len(want))
	}
	var sum, off float64
	for _, v := range all {
		sum += v.Rank
		off += math.Abs(v.Rank - want[v.Name])
		if math.Abs(v.Rank-want[v.Name]) > 1e-6 {
			t.Errorf("%s: rank %.8f, not %.8f", v.Name, v.Rank, want[v.Name])
		}
	}
	if off > 1e-6 || math.Abs(sum-1) > 1e-6 {
		t.Errorf("the ranks sum to %v and differ by %v", sum, off)
	}
}

// TestPageRankOfPublishedGraphs compares ranks with values that are published or follow from the
// definition.
func TestPageRankOfPublishedGraphs(t *testing.T) {
	t.Run("Wikipedia's example", func(t *testing.T) {
		agree(t, build(t, edgesOf("B>C C>B D>A D>B E>B E>D E>F F>B F>E G>B G>E H>B H>E I>B I>E J>E K>E"), nil, nil), map[string]float64{
			"A": 0.03278149, "B": 0.38440095, "C": 0.34291029, "D": 0.03908709, "E": 0.08088569, "F": 0.03908709,
			"G": 0.01616948, "H": 0.01616948, "I": 0.01616948, "J": 0.01616948, "K": 0.01616948,
		})
	})
	t.Run("cycle", func(t *testing.T) {
		agree(t, build(t, edgesOf("a>b b>c c>d d>e e>a"), nil, nil), map[string]float64{"a": 0.2, "b": 0.2, "c": 0.2, "d": 0.2, "e": 0.2})
	})
	t.Run("no edges", func(t *testing.T) {
		agree(t, build(t, nil, []string{"a", "b", "b"}, nil), map[string]float64{"a": 0.5, "b": 0.5})
	})
	t.Run("star", func(t *testing.T) {
		// Each leaf has the rank r, and the dangling centre r + 0.85 * 100 * r.
		const r = 1 / (100 + 1 + damping*100)
		want, edges := map[string]float64{"centre": r + damping*100*r}, []edge(nil)
		for n := range 100 {
			leaf := fmt.Sprint("leaf", n)
			edges, want[leaf] = append(edges, edge{leaf, "centre"}), r
		}
		agree(t, build(t, edges, nil, nil), want)
	})
	t.Run("chain", func(t *testing.T) {
		// Without scaling, the rank of vertex n is 1 + 0.85 + … + 0.85^n.
		want, edges, rank, sum := map[string]float64{}, []edge(nil), 0.0, 0.0
		for n := range 50 {
			rank = 1 + damping*rank
			want[fmt.Sprintf("v%02d", 99-n)] = rank
			sum += rank
			if n > 0 {
				edges = append(edges, edge{fmt.Sprintf("v%02d", 100-n), fmt.Sprintf("v%02d", 99-n)})
			}
		}
		for name := range want {
			want[name] /= sum
		}
		agree(t, build(t, edges, nil, nil), want)
	})
}

// denseRanks computes PageRank by its definition: power iteration with a full matrix.
func denseRanks(names []string, edges []edge) map[string]float64 {
	n := len(names)
	index, matrix := map[string]int{}, make([][]float64, n)
	for i, name := range names {
		index[name], matrix[i] = i, make([]float64, n)
	}
	for _, e := range edges {
		matrix[index[e.from]][index[e.to]] = 1
	}
	for _, row := range matrix {
		var out float64
		for _, cell := range row {
			out += cell
		}
		for i := range row {
			if out == 0 {
				row[i] = 1 / float64(n)
			} else {
				row[i] /= out
			}
		}
	}
	rank := make([]float64, n)
	rank[0] = 1
	for range 300 {
		next := make([]float64, n)
		for i, row := range matrix {
			for j, p := range row {
				next[j] += (1-damping)/float64(n)*rank[i] + damping*p*rank[i]
			}
		}
		rank = next
	}
	ranks := map[string]float64{}
	for i, name := range names {
		ranks[name] = rank[i]
	}
	return ranks
}

// randomGraph returns a graph of n vertices, of which a part has no outlinks.
func randomGraph(seed uint64, n, edges int) (names []string, list []edge) {
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range n {
		names = append(names, fmt.Sprintf("h%d.d%d.test", i, i%7))
	}
	for range edges {
		from, to := r.IntN(1+r.IntN(n)), r.IntN(1+r.IntN(n))
		if from != to && from%3 != 0 {
			list = append(list, edge{names[from], names[to]})
		}
	}
	return names, list
}

func TestPageRankEqualsPowerIteration(t *testing.T) {
	for seed := range uint64(8) {
		n := 2 + int(seed*seed)*3
		names, edges := randomGraph(seed, n, n*int(1+seed))
		agree(t, build(t, edges, names, nil), denseRanks(names, edges))
	}
}

func TestTheOrderOfEdgesDoesNotChangeTheGraph(t *testing.T) {
	names, edges := randomGraph(3, 200, 3000)
	want := vertices(t, build(t, edges, names, nil))
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
	slices.Reverse(names)
	got := vertices(t, build(t, append(edges, edges[:500]...), names, func(b *Builder) { b.pending = 7 }))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if !slices.IsSortedFunc(got, func(a, b Vertex) int { return strings.Compare(Reverse(a.Name), Reverse(b.Name)) }) {
		t.Error("the vertices are not in the order of reversed names")
	}
}

func TestTheCapCountsTheFirstSourcesOfOtherDomains(t *testing.T) {
	var edges []edge
	for n := range 9 {
		for _, to := range []string{"target.x.test", "own.spam.test"} {
			edges = append(edges, edge{fmt.Sprintf("h%d.spam.test", 8-n), to})
		}
	}
	edges = append(edges, edge{"other.test", "target.x.test"})
	g := build(t, edges, nil, func(b *Builder) { b.SourceCap = 4 })
	if g.Edges != 4+1+9 {
		t.Errorf("%d edges count", g.Edges)
	}
	// Edges beyond the cap must not affect the ranks.
	names, counted := []string{"target.x.test", "own.spam.test", "other.test"}, []edge{{"other.test", "target.x.test"}}
	for n := range 9 {
		h := fmt.Sprintf("h%d.spam.test", n)
		names, counted = append(names, h), append(counted, edge{h, "own.spam.test"})
		if n < 4 {
			counted = append(counted, edge{h, "target.x.test"})
		}
	}
	agree(t, g, denseRanks(names, counted))
	for _, v := range vertices(t, g) {
		if strings.HasPrefix(v.Name, "h") && v.Out != 2 || v.Name == "target.x.test" && v.In != 5 || v.Name == "own.spam.test" && v.In != 9 {
			t.Errorf("%+v", v)
		}
	}
}

func TestReverseIsItsOwnInverse(t *testing.T) {
	for host, want := range map[string]string{
		"www.example.com": "com.example.www", "example.com:8080": "com.example:8080", "4.example.com": "com.example.4", "localhost": "localhost",
		"192.0.2.7": "192.0.2.7", "192.0.2.7:81": "192.0.2.7:81", "[2001:db8::1]": "[2001:db8::1]", "[2001:db8::1]:81": "[2001:db8::1]:81", "": "",
	} {
		if got := Reverse(host); got != want || Reverse(got) != host {
			t.Errorf("%q is reversed to %q, and back to %q", host, got, Reverse(got))
		}
	}
}

// bareLoop computes PageRank by power iteration over arrays in memory. It stops at the same bound
// of the error as Graph.PageRank.
func bareLoop(start []int64, in, out []int32) []float64 {
	n := len(out)
	rank, share := make([]float64, n), make([]float64, n)
	for i := range rank {
		rank[i] = 1 / float64(n)
	}
	for {
		var dangling, moved float64
		for i, r := range rank {
			if share[i] = 0; out[i] == 0 {
				dangling += r
			} else {
				share[i] = r / float64(out[i])
			}
		}
		floor := (1 - damping + damping*dangling) / float64(n)
		for d := range rank {
			var sum float64
			for _, s := range in[start[d]:start[d+1]] {
				sum += share[s]
			}
			next := floor + damping*sum
			moved += math.Abs(next - rank[d])
			rank[d] = next
		}
		if moved*damping/(1-damping) <= precision {
			return rank
		}
	}
}
