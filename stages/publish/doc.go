// Package publish makes a round's published pages from the results of the other stages, and seals
// the round.
//
// A task reads a partition's working file pages (from merge), the duplicates (from dedup), inlinks and
// hosts (from rank) and states of URLs (from frontier) of the partition's bucket, and terms (from
// rank), by which it weighs the topics of the pages (package topics). The states say how the
// pages have changed. The task reads the working file twice: first it looks for families of soft 404s
// (see familyPaths). The task writes the partition's part of
// the pages dataset, sorted by (url_surtkey, url). The task of a bucket's first partition also writes
// the bucket's part of the domains dataset (package domains). When all stages have their results, a
// Sealing makes the round's seal. The seal names manifests: Parquet objects that list the files of
// the round, sorted by bucket.
//
// Pages, duplicates, inlinks and states are sorted by SURT and URL, so a task joins them as streams. Memory
// holds a batch of rows of each input and the ranks of the bucket's hosts. A Sealing holds about 300
// bytes for each file that the seal lists, and one manifest of at most about 2 MiB. The pages depend
// only on committed results, so every attempt writes the same bytes. Package publish imports stages
// and formats packages.
package publish
