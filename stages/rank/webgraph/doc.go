// Package webgraph builds the graph of links between hosts, or between domains, on local disk, and
// computes its centralities: PageRank and harmonic centrality.
//
// The input is the names of vertices, and edges, in any order and with repetitions. The output is the
// vertices in the order of their reversed names (com.example.www), each with its degrees, its PageRank
// and its harmonic centrality.
//
//   - A Builder takes vertices and edges. A Graph is the finished graph. Graph.Domains makes the graph
//     of domains from a graph of hosts.
//   - A Graph keeps its edges in two files of Arrow record batches, grouped by target. The first
//     file holds the targets that have outlinks. The second file holds the targets without outlinks
//     (dangling).
//   - PageRank reads the first file in each iteration. Other ranks depend only on the sum of the ranks
//     of dangling vertices, which PageRank knows without these ranks. So Graph.All computes them from
//     the second file at the end.
//   - Harmonic reads both files once for each distance (HyperBall).
//
// Each vertex with outlinks takes 20 bytes of memory while the graph is built, and 24 bytes while
// PageRank runs. Memory also holds the edges of one target and fixed buffers (about 200 MiB).
// Dangling vertices and all other edges take no memory. Only Harmonic takes more: 290 bytes for
// each vertex with outlinks, 16 bytes for each dangling vertex. Its scratch file takes up to 256 bytes for each
// vertex with outlinks. Vertices are numbered by name, and
// sums follow the order of these numbers, so the same edges in any order give the same bytes.
//
// Package webgraph imports formats packages.
package webgraph
