// Package publish joins what the stages of a round found about each page into the
// published pages, and seals the round.
//
// In: a partition's working file pages (merge), and its bucket's duplicates (dedup),
// inlinks and hosts (rank). Out: the partition's part of pages, sorted by (url_surtkey,
// url); and, once every stage has its results, the seal.
//
// All inputs are sorted by SURT and URL, so the join streams: memory holds a batch of rows
// of each input and the ranks of the bucket's hosts. Pages and seal depend only on
// committed results, so every attempt gets the same bytes. It imports stages and formats
// packages.
package publish
