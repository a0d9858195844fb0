// Package dedup groups the pages of a round whose texts are equal or nearly equal, and
// picks a representative of each group.
//
// In: merge's working pages of all partitions, and the representatives of the
// sealed rounds before. Out, each with one part per reduce bucket: the dataset duplicates,
// with a row for each page of a cluster; and the working file representatives, with the
// pages that later rounds are compared with. A page without a row has no other page in its
// cluster, except perhaps its own earlier version.
//
// # What a cluster is
//
// Two pages are alike if both have text and its digests are equal (exact), or if
// both have at least MinWords words and their fingerprints differ in at most
// MaxDistance bits (near). A sealed representative is a page of a sealed round that is
// neither a duplicate of another nor alike to an earlier representative. It never changes.
// Pages that are alike are connected. A cluster is a connected component of the round's
// pages and the sealed representatives. Two sealed representatives are never compared. A
// page that is alike to both joins their clusters in this round, but not in earlier rounds.
//
// # The representative
//
// It is a sealed representative of the oldest round in the cluster, or one of the cluster's
// pages if there is none. Among several, it is
//
//  1. one whose canonical_url does not name another page,
//  2. the one with the shortest URL, in bytes,
//  3. the one with the least URL, by bytes.
//
// So the representative of a page that was fetched again may be the page's own earlier
// version.
//
// # Columns
//
// Distance is the number of bits in which the fingerprints of page and representative
// differ; along a chain of alike pages it may exceed MaxDistance. Via is the next page on
// the way to the representative, and is alike to this page. It is the representative itself
// if this page is alike to the representative. Kind is exact if the text equals the
// representative's, else near.
//
// The search for pairs is exact (package simhash). The result depends only on the inputs.
// Memory is about 80 bytes per page and sealed representative: strings stay in files, which
// are read a second time. It imports stages and formats packages.
package dedup
