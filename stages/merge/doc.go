// Package merge turns a partition's segments into sorted tables.
//
// A task reads the plan's partition file and the committed result of the partition's fetch task.
// The result lists segments of fetches, requests, captures, pages, text and links, in the order of
// recording. The task writes the partition's published parts of captures (one per subset), fetches,
// requests, text and links. It also writes the inputs of the reduce stages: the working files
// pages, hostedges, hosts and sitemaps, and runs of targets and of redirects, with a section for each
// bucket. The run of targets has one row for each link target, with the sums of all links from the
// partition's pages. A popular target therefore costs a reduce task no more than any other target.
// (Rounds of format 3 and older have the working file edges, with a row for each link.)
//
// The stage promises that
//
//   - every planned URL has exactly one row of fetches. A missing, second or unplanned row
//     is an error that names the URL;
//   - a URL has at most one row of pages, one row of text and one set of links. The segments may
//     have more, if several planned URLs redirect to the URL and an attempt crashed in between. Of
//     several documents of a URL, one document stays, with its text and links. This is the document
//     that was planned under its own URL, or else the document with the first planned URL in URL
//     order, or else the document that was recorded first. Every response keeps its row of
//     captures;
//   - rows are sorted as formats/catalog says, then by the rest of the row, then by the order of
//     recording, so the same segments give the same bytes;
//   - memory is bounded, because rows are sorted on disk, and sums beyond 96 MiB are added up on
//     disk. Memory holds one row per host, the URLs that were fetched twice, and the URLs through
//     which chains of redirects went.
//
// Some crawls plan only URLs from sources and URLs that they find (stages.Input.TakesLinks). In
// such a crawl, a page that answered 304 has the links from the task that stored the page's
// content. merge reads only those row groups of that task's part that can hold such pages. If
// another request of the round got the whole page, the page has the links of that document.
//
// The links of a document are sorted as one row, because they were recorded together and in order.
//
// Package merge imports packages stages and formats.
package merge
