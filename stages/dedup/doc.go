// Package dedup groups the pages of a round that say the same, or nearly, and
// picks the page that stands for each group.
//
// In: merge's working pages of all partitions, and the representatives of the
// sealed rounds before. Out, one part a reduce bucket (of the partition's domains)
// each: the dataset duplicates, a row for each page of a cluster; and the working
// file representatives, the pages that later rounds are compared with. A cluster
// of one page that has no earlier representative but itself has no row.
//
// # What a cluster is
//
// Two pages are alike if both have text and its digests are equal (exact), or if
// both have at least MinWords words and their fingerprints differ in at most
// MaxDistance bits (near). A sealed representative is a page of a sealed round
// that is no duplicate of another and was alike to no representative before it; it
// never changes. A cluster is a connected component of the round's pages and the
// sealed representatives by likeness, where two sealed representatives are not
// compared: a page may be alike to both and so join their clusters in this round,
// not in theirs.
//
// # Who stands for it
//
// The oldest of the cluster's sealed representatives (by round), or where there
// is none one of its pages; among several
//
//  1. one that does not name another page as its canonical_url,
//  2. the one with the shortest URL, in bytes,
//  3. the one with the least URL, by bytes.
//
// A page that was fetched anew and is alike to its own sealed self may so be its
// own representative, of an earlier crawl.
//
// # What a row says
//
// Distance is that of the page's fingerprint to the representative's; along a
// chain it may exceed MaxDistance. Via is a page, or a sealed representative, that
// this one is alike to and that is a step nearer to the representative: the
// representative itself where the page is alike to it. Kind is exact where the
// text is the representative's, else near.
//
// Pairs are found exactly (package simhash). The result depends on the inputs
// alone. Memory is about 80 bytes a page and sealed representative: strings stay
// in files and are streamed a second time. It imports stages and formats packages.
package dedup
