// Package merge turns a partition's segments into sorted tables.
//
// A task reads the plan's partition file and the committed result of the partition's fetch task.
// The result lists segments of fetches, requests, captures, pages, text and link sets, in the order of
// recording. The task writes the partition's published parts of captures (one per subset), fetches,
// requests, text and links. It also writes the inputs of the reduce stages: the working files
// pages, hostedges, hosts and sitemaps, and runs of targets and of redirects, with a section for each
// bucket. The run of targets has one row for each link target, with the sums of all links from the
// partition's pages. So a target with many links costs a reduce task no more than any other target.
// The task also writes a run of terms: how many pages have each term (package topics).
//
// The stage promises that
//
//   - every planned URL has exactly one row of fetches. A missing, second or unplanned row
//     is an error that names the URL;
//   - a URL has at most one row of pages, one row of text and the links of one document. The segments
//     may have several documents of a URL, if several planned URLs redirect to the URL and an attempt
//     crashed in between. Then one document stays, with its text and links: the document that was
//     planned under its own URL, or else the document whose planned URL comes first in byte order, or
//     else the document that was recorded first. Every response keeps its row of captures;
//   - rows are sorted as formats/catalog says. Ties are broken by further columns, then by the order
//     of recording, so the same segments give the same bytes;
//   - memory is bounded, because rows are sorted on disk, and sums beyond 96 to 256 MiB are added up
//     on disk. Memory holds one row per host, the URLs that were fetched twice, 16 bytes for each document
//     with links, and the URLs through which chains of redirects went.
//
// A page that answered 304 gets the links that the page had when
// its content was stored. The task that stored the content published them in its part of links. merge
// reads only those row groups of this part that can hold such pages. If another request of the round
// got the whole page, the page has the links of that document instead.
//
// The links of a document were recorded together and in order, so the sort moves them as one row, or
// as a few if they are many.
//
// Package merge imports packages stages and formats.
package merge
