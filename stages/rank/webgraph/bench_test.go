package webgraph

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkPageRank ranks a graph of a million hosts and 20 million edges. It prints the CPU time of
// PageRank as a multiple of a bare loop over the same edges in memory, and the peak memory of the
// process until the bare loop begins.
func BenchmarkPageRank(b *testing.B) {
	const hosts, edges = 1_000_000, 20_000_000
	for b.Loop() {
		b.StopTimer()
		builder, err := NewBuilder(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		builder.DomainOf = lastLabels
		built := cpu()
		generate(b, builder, hosts, edges)
		g, err := builder.Finish(context.Background(), "bench")
		if err != nil {
			b.Fatal(err)
		}
		built = cpu() - built
		b.StartTimer()
		ranked := cpu()
		if err := g.PageRank(context.Background()); err != nil {
			b.Fatal(err)
		}
		ranked = cpu() - ranked
		b.StopTimer()
		peak := peakMemory(b)
		names, start, in, out := arrays(b, g)
		bare := cpu()
		want := bareLoop(start, in, out)
		bare = cpu() - bare
		var off float64
		i := 0
		for _, v := range vertices(b, g) {
			off += math.Abs(v.Rank - want[i])
			i++
		}
		if off > 1e-6 || i != names {
			b.Errorf("the ranks of %d hosts differ by %v from those of the bare loop", i, off)
		}
		b.ReportMetric(ranked.Seconds(), "cpu-s/rank")
		b.ReportMetric(built.Seconds(), "cpu-s/build")
		b.ReportMetric(ranked.Seconds()/bare.Seconds(), "x-bare-loop")
		b.ReportMetric(peak, "MiB-peak")
		if err := builder.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// generate adds random edges between hosts. Every host has outlinks, so that PageRank reads every
// edge in each iteration. Some hosts are much more popular than others.
func generate(b *testing.B, to *Builder, hosts, edges int) {
	r := rand.New(rand.NewPCG(1, 1))
	name := func(n int) string {
		return "www.host-" + strconv.Itoa(n) + ".example-" + strconv.Itoa(n%100_000) + ".test"
	}
	for n := range hosts {
		source, err := to.AddSource(name(n), lastLabels(name(n)))
		if err != nil {
			b.Fatal(err)
		}
		for range edges / hosts {
			target := (n + 1 + r.IntN(1000)) % hosts
			if r.IntN(4) > 0 {
				f := r.Float64()
				target = int(float64(hosts) * f * f * f)
			}
			if err := to.AddEdge(source, name(target)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// arrays loads a graph into memory in the form that the bare loop needs. The graph numbers only its
// sources, but the loop numbers all vertices. arrays therefore renumbers the sources.
func arrays(b *testing.B, g *Graph) (n int, start []int64, in, out []int32) {
	n = int(g.Vertices)
	out, start = make([]int32, n), []int64{0}
	place := make([]int32, 0, len(g.out)) // number of the vertex of each source
	lists := map[int32][]int32{}
	var dangling [][]int32
	for _, path := range []string{g.linked, g.dangling} {
		for batch, err := range readEdges(context.Background(), path) {
			if err != nil {
				b.Fatal(err)
			}
			for i, t := range batch.targets {
				if list := append([]int32(nil), batch.sourcesOf(i)...); t >= 0 {
					lists[t] = list
				} else {
					dangling = append(dangling, list)
				}
			}
		}
	}
	at, source := 0, int32(0)
	for _, v := range vertices(b, g) {
		switch {
		case v.Out > 0:
			in = append(in, lists[source]...)
			out[at] = g.out[source]
			place = append(place, int32(at))
			source++
		case v.In > 0:
			in, dangling = append(in, dangling[0]...), dangling[1:]
		}
		start = append(start, int64(len(in)))
		at++
	}
	for i, s := range in {
		in[i] = place[s]
	}
	debug.FreeOSMemory()
	return n, start, in, out
}

// cpu returns the CPU time of the process.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory returns the peak of the process's resident memory, in MiB.
func peakMemory(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}
