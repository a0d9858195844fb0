// Package domains makes a bucket's part of the domains dataset: a row for each registered domain with
// planned URLs in the round.
//
// The input is fetches, requests and pages of the bucket's partitions (from merge), the bucket's
// duplicates (from dedup) and hosts (from rank), and the bucket's rows of domains of the last 16
// sealed rounds. The output is the bucket's part, sorted by domain.
//
// Each row of the input becomes facts: a domain, the name of a figure, and a number to add to it.
// Rows of one domain mostly follow each other, so their facts are added up before they are sorted by
// domain on local disk. Memory therefore holds the figures of one domain and a sort, whatever the
// number of domains. All numbers are whole and are added, so the order of partitions, of rows and of
// facts does not matter. Only ranks are fractions: they are added in the order of hosts.
//
// Percentiles come from a histogram whose bins divide each power of two into 32 equal parts. A
// percentile is the middle of the bin with the nearest rank, which is at most 1/64 (1.6 %) off. Lists
// of languages, addresses and networks name the 8 most frequent; a number tells about the others.
//
// Package domains imports stages and formats packages.
package domains
