// Package dedup groups the pages of a round whose texts are equal or nearly equal, and
// picks a representative of each group.
//
// Dedup reads merge's working pages of all partitions, and the representatives of the sealed
// rounds of the last Config.Months months. It writes the duplicates dataset, with a row for
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
//   - digest divides the text digests into ranges, called shards. The task of a shard groups the pages
//     whose digests are in its range by text, and writes their fingerprints.
//   - similar has the same number of tasks. Each reads all fingerprints, searches a part of the search
//     keys (package simhash), and writes a spanning forest of the near pairs that it finds.
//   - cluster has one task. It joins the forests, and decides about each page in a cluster.
//   - dedup has a task for each bucket, which writes the bucket's parts.
//
// A single task gives the same rows as the four stages.
//
// # What a cluster is
//
// Two pages are alike if both have text and the digests of their texts are equal (exact). Two pages
// are also alike if both have at least MinWords words and their fingerprints differ in at most
// MaxDistance bits (near). A sealed representative is a page of a sealed round that was in no cluster
// of that round, or was the representative of its cluster. A sealed representative never changes.
//
// The round's pages and the sealed representatives form a graph, in which an edge connects two pages
// that are alike. A cluster is a connected component of this graph. Two sealed representatives are
// never compared, but a page that is alike to both joins their clusters in this round. The clusters
// of earlier rounds do not change.
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
// The column distance is the number of bits in which the fingerprints of the page and its
// representative differ. It may exceed MaxDistance if only other pages connect the two. The column via
// is the next page on the way from the row's page to the representative. If these two are alike, via is
// the representative. Otherwise the way follows the least spanning forest of the near pairs, in which
// pairs are compared by the lower fingerprint, then by the higher one. The column kind is representative
// for the representative and for a later version of it, exact if the page and the representative have
// equal texts, else near.
//
// # Memory
//
// The search for pairs is exact (package simhash). The result depends only on the inputs. Pages are
// sorted in scratch files: by digest, by fingerprint, by number, then by cluster. The sort by
// fingerprint forms classes. All pages of a class are alike to the same other pages. The sort by
// number finds the URLs of the members of clusters. The search reports a spanning forest for each
// group of equal search keys. One union-find joins the forests, and its trees lead from each class to
// the class of the representative.
//
// These figures hold for a single task; a task of the four stages needs no more. Sorting takes at most
// about 600 MiB of memory. Every 8 distinct fingerprints take 9 bits more, and each fingerprint that is
// near another takes 8 bytes (16 if there are more than 2^32 of these). The size of a cluster does not
// matter, because its pages are only in sorted files. The number of pages is not limited. The column
// cluster_size is 2^31-1 for larger clusters, too. Scratch space is about 150 bytes for each page and
// sealed representative. A page of a cluster in which not all pages are alike to the representative
// takes about 300 bytes more. Dedup reads the pages of this round three times. Package dedup imports
// only stages and formats packages.
package dedup
