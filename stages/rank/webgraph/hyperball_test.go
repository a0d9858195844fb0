package webgraph

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exactHarmonic computes harmonic centrality by a breadth-first search from each vertex, against the
// direction of edges.
func exactHarmonic(names []string, edges []edge) map[string]float64 {
	sources, exact := map[string][]string{}, map[string]float64{}
	for _, e := range edges {
		sources[e.to] = append(sources[e.to], e.from)
	}
	for _, name := range names {
		distance, queue := map[string]int{name: 0}, []string{name}
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			for _, from := range sources[at] {
				if _, seen := distance[from]; !seen {
					distance[from] = distance[at] + 1
					exact[name] += 1 / float64(distance[from])
					queue = append(queue, from)
				}
			}
		}
	}
	return exact
}

// TestHarmonicCentralityIsNearTheExactOne allows each vertex an error of three standard errors plus
// 1, because the estimate of a small set may lose one vertex. It allows two standard errors for the
// mean, because vertices with a common set have a common error.
func TestHarmonicCentralityIsNearTheExactOne(t *testing.T) {
	const standardError = 0.065
	for _, c := range []struct{ vertices, edges int }{{5, 12}, {30, 60}, {400, 1200}, {3000, 9000}} {
		names, edges := randomGraph(uint64(c.vertices), c.vertices, c.edges)
		g := build(t, edges, names, nil)
		if err := g.Harmonic(t.Context()); err != nil {
			t.Fatal(err)
		}
		exact := exactHarmonic(names, edges)
		var off float64
		counted := 0
		for _, v := range vertices(t, g) {
			want := exact[v.Name]
			if want == 0 && v.Harmonic != 0 || math.Abs(v.Harmonic-want) > 3*standardError*want+1 {
				t.Errorf("%d vertices: %s has %v, not %v", c.vertices, v.Name, v.Harmonic, want)
			}
			if want > 0 {
				off, counted = off+math.Abs(v.Harmonic-want)/want, counted+1
			}
		}
		if counted == 0 || off/float64(counted) > 2*standardError {
			t.Errorf("%d vertices: the mean error of %d is %v", c.vertices, counted, off/float64(counted))
		}
	}
}

func TestCountersEstimateTheSizeOfUnions(t *testing.T) {
	var c counter
	n := uint64(0)
	for _, size := range []uint64{1, 10, 100, 500, 700, 1000, 10_000, 100_000} {
		for ; n < size; n++ {
			one := element(n)
			c.unite(&one)
			c.unite(&one)
		}
		if got := c.size(); math.Abs(got/float64(size)-1) > 3*0.065 {
			t.Errorf("%d elements are estimated as %v", size, got)
		}
	}
}

func TestDomainsFoldTheHostsOfADomain(t *testing.T) {
	g := build(t, edgesOf("www.a.test>x.b.test a.test>y.b.test x.b.test>y.b.test x.b.test>c.test c.test>www.a.test"), []string{"www.a.test", "lone.test", "x.b.test", "y.b.test"}, nil)
	b, err := g.Domains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	domains, err := b.Finish(t.Context(), "domains")
	if err != nil {
		t.Fatal(err)
	}
	if err := domains.PageRank(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := domains.Harmonic(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range vertices(t, domains) {
		got = append(got, fmt.Sprintf("%s %d hosts, %d in, %d out, %.1f", v.Name, v.Added, v.In, v.Out, v.Harmonic))
	}
	want := []string{"a.test 2 hosts, 1 in, 1 out, 1.5", "b.test 2 hosts, 1 in, 1 out, 1.5", "c.test 1 hosts, 1 in, 1 out, 1.5", "lone.test 1 hosts, 0 in, 0 out, 0.0"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	agree(t, domains, denseRanks(strings.Fields("a.test b.test c.test lone.test"), edgesOf("a.test>b.test b.test>c.test c.test>a.test")))
}
