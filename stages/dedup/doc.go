// Package dedup groups the pages of a round whose texts are equal or nearly equal, and
// picks a representative of each group.
//
// The task reads merge's working pages of all partitions, and the representatives of earlier sealed
// rounds. It writes the dataset duplicates, with a row for each page of a cluster; and the working
// file representatives, with the pages that later rounds compare with their own pages. Both have
// one part per reduce bucket. If a page has no row, its cluster has no other page, except perhaps
// an earlier version of the same page.
//
// # What a cluster is
//
// Two pages are alike if both have text and the digests of their texts are equal (exact). Two pages
// are also alike if both have at least MinWords words and their fingerprints differ in at most
// MaxDistance bits (near). A sealed representative is a page of a sealed round that is neither a
// duplicate nor alike to an earlier representative. A sealed representative never changes. Pages
// that are alike are connected. A cluster is a connected component of the round's pages and the
// sealed representatives. Two sealed representatives are never compared. If a page is alike to two
// sealed representatives, it joins their clusters in this round, but not in earlier rounds.
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
// representative if the row's page is alike to the representative. Kind is exact if the texts of
// the page and the representative are equal, else near.
//
// The search for pairs is exact (package simhash). The result depends only on the inputs. Memory is
// about 80 bytes per page and sealed representative. Strings stay in files, which dedup reads a
// second time. Package dedup imports only stages and formats packages.
package dedup
