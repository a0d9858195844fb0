// Package dedup groups the pages of a round whose texts are equal or nearly equal, and
// picks a representative of each group.
//
// Dedup reads merge's working pages of all partitions, and the representatives of the sealed
// rounds of the last Config.Months months. It writes the dataset duplicates, with a row for
// each page of a cluster. It also writes the working file representatives, with the pages to
// which later rounds compare their own pages. The dataset and the working file have one part per
// reduce bucket. A page has no row if its cluster has no other page, or only an earlier version of
// the page.
//
// # Tasks
//
// In a round of one bucket, a single task of the stage dedup does all this. In other rounds, four stages
// share the work:
//
//   - digest has shards. A shard has a range of the text digests. Its task groups the pages of the shard
//     by text, and writes their fingerprints.
//   - similar has as many shards. The task of each shard reads all fingerprints, searches a part of the
//     keys of the search, and writes a spanning forest of the near pairs that it finds.
//   - cluster has one task. It joins the forests, and decides about each page in a cluster.
//   - dedup has a task for each bucket, which writes the bucket's parts.
//
// Both ways give the same bytes. Rounds that were planned before format 9 have a single task.
//
// # What a cluster is
//
// Two pages are alike if both have text and the digests of their texts are equal (exact). Two pages
// are also alike if both have at least MinWords words and their fingerprints differ in at most
// MaxDistance bits (near). A sealed representative is a page of a sealed round. When the round
// ended, the page was neither a duplicate nor alike to an earlier representative. A sealed
// representative never changes. Pages that are alike are connected. A cluster is a connected
// component of the round's pages and the sealed representatives. Two sealed representatives are
// never compared. A page that is alike to two sealed representatives joins their clusters in this
// round. The clusters of earlier rounds do not change.
//
// # The representative
//
// If a cluster has sealed representatives, its representative is a sealed representative of the
// oldest round. The representative of a cluster without sealed representatives is one of its pages.
// Among several candidates, the order of preference is
//
//  1. a page whose canonical_url does not name another page,
//  2. the page with the shortest URL, in bytes,
//  3. the page with the least URL, by bytes.
//
// A page that was fetched again may therefore have its own earlier version as its representative.
//
// # Columns
//
// Distance is the number of bits in which the fingerprints of the page and its representative
// differ. Along a chain of alike pages, Distance may exceed MaxDistance. Via is a page that is
// alike to the row's page and comes next on the way to the representative. Via is the
// representative if the row's page is alike to the representative. If it is not, the way follows the
// least spanning forest of the pairs of near fingerprints, in which pairs are compared by the lower
// fingerprint, then by the higher one. (Tasks of formats before 9 take the pairs in the order of the
// search.) Kind is exact if the texts of
// the page and the representative are equal, else near.
//
// # Memory
//
// The search for pairs is exact (package simhash). The result depends only on the inputs. Pages are
// sorted in scratch files: by digest, by fingerprint, by number, then by cluster. The sort by
// fingerprint forms classes. All pages of a class are alike to the same other pages. The sort by
// number finds the URLs of the members of clusters. The search reports a spanning forest for each
// group of equal keys. One union-find joins the forests, and its trees lead from each class to the
// class of the representative.
//
// These figures are for a single task, and bounds for each task of the four stages. Sorting takes about 600 MiB of memory at most. Every 8 distinct fingerprints take 9 bits more, and
// each fingerprint that is near another takes 8 bytes (16 if there are more than 2^32 of these). The
// size of a cluster does not matter, because its pages are only in sorted files. The number of
// pages is not limited. ClusterSize is at most 2^31-1, which stands for larger clusters, too.
// Scratch space is about 150 bytes for each page and sealed representative. A cluster in which a
// page and the representative are not alike needs about 300 bytes more for each page. Dedup reads
// the pages of this round three times. Package dedup imports only stages and formats packages.
package dedup
