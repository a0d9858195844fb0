// Package rank counts the links among the round's pages: the inlinks of every target,
// and a PageRank of hosts.
//
// A task reads the sections of its bucket in merge's runs of targets, at most 64 at a time. It writes
// the bucket's working file inlinks, with a row for each target of the bucket. The stages frontier
// and publish join their own rows with the inlinks. The task of bucket 0 also reads merge's working
// files hostedges and hosts. It computes the host graph (package webgraph), publishes it and writes
// every bucket's part of the hosts dataset.
//
// Each task also adds up the pages of each term in the bucket's sections of merge's runs of terms, and
// writes a part of the terms dataset (package topics).
//
// All links from one host to another are one edge. At most 256 hosts of a domain count as sources
// of a host of another domain, so that a spammer gains little by naming many hosts. If more hosts of
// the domain link there, only the first 256 count, in the order of reversed host names. The column
// outlink_hosts has no such limit.
//
// In the graph of domains, all edges from hosts of one domain to hosts of another domain are one
// edge. Each host has the harmonic centrality of its domain.
//
// Targets are streamed in order. The graphs are on local disk. The host graph takes 24 bytes of
// memory for each host with outlinks, and nothing for other hosts and for edges. The domain graph
// takes about 400 bytes for each domain with outlinks and 16 for each other domain with inlinks.
// While the hosts of a bucket are written, each domain of this bucket takes about 100 bytes.
// Buffers take about 450 MiB. Ranks are always summed in the order of hosts, so that the same inputs
// give the same bytes.
//
// Package rank imports stages and formats packages.
package rank
