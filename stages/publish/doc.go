// Package publish makes a round's published pages from the results of the other stages, and seals
// the round.
//
// A task reads a partition's working file pages (from merge), and its bucket's duplicates (from
// dedup), inlinks and hosts (from rank). The task writes the partition's part of the dataset pages,
// sorted by (url_surtkey, url). After every stage has its results, Seal makes the
// round's seal.
//
// All inputs are sorted by SURT and URL, so they are joined as streams. Memory holds a batch of
// rows of each input and the ranks of the bucket's hosts. Pages and seal depend only on committed
// results, so every attempt gets the same bytes. Package publish imports stages and formats
// packages.
package publish
