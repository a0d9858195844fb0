// Package rank counts the links among the round's pages: the inlinks of every target,
// and a PageRank of hosts.
//
// A task reads merge's working files targets (only the bucket's row groups), hostedges and hosts. The
// task writes the bucket's part of the published hosts, and the bucket's working file inlinks, with
// a row for each target of the bucket. The stages frontier and publish join their own rows with the
// inlinks.
//
// Targets are streamed in order, so memory holds the sources of one target (bounded) and the host
// graph. The graph takes 12 bytes per edge, and 16 bytes plus the name per host. Every task
// computes the PageRank of the whole host graph and writes only its own hosts, so no task waits for
// another. The host graph is much smaller than the link graph. Ranks are summed in the order of
// hosts, whatever the parallelism, so that the same inputs give the same bytes.
//
// Package rank imports stages and formats packages.
package rank
