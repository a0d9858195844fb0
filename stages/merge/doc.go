// Package merge turns a partition's segments into sorted tables.
//
// A task reads the plan's partition file and the committed result of the partition's fetch task.
// The result lists segments of fetches, requests, captures, pages, text and links, in the order of
// recording. The task writes the partition's published parts of captures (one per subset), fetches,
// requests, text and links. It also writes the inputs of the reduce stages: the working files
// pages, hostedges, hosts and sitemaps, and the runs targets and redirects, which have a section for each
// bucket. The run targets has one row for each link target, with the sums of all links from the
// partition's pages. A popular target therefore costs a reduce task no more than any other target.
// (Rounds of format 3 and older have the working file edges, with a row for each link.)
//
// The stage promises that
//
//   - every planned URL has exactly one row of fetches. A missing, second or unplanned row
//     is an error that names the URL;
//   - a URL has at most one row of pages, one row of text and one set of links. The segments may
//     have more, if several planned URLs redirect to the URL and an attempt crashed in between. If
//     there are several documents of a URL, one document stays, with its text and links. A document
//     that was planned under its own URL is preferred, then the document whose planned URL sorts
//     first, then the document recorded first. Every response keeps its row of captures;
//   - rows are sorted as formats/catalog says, then by the rest of the row, then by the order of
//     recording, so the same segments give the same bytes;
//   - memory is bounded, because rows are sorted on disk, and sums beyond 96 MiB wait on disk to be
//     added up. Memory holds one row per host, the URLs that were fetched twice, and the URLs through
//     which chains of redirects went.
//
// In a crawl that plans only what sources list and what it finds itself (stages.Input.TakesLinks), a
// page that answered 304 has the links of its content, which the task that stored the content
// published. Of that task's part, merge reads the row groups that can hold such pages. A page that
// another request of the round brought in full has the links of that document.
//
// The links of a document are sorted as one row, because they were recorded together and in order.
//
// Package merge imports packages stages and formats.
package merge
