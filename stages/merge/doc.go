// Package merge turns a partition's segments into sorted tables.
//
// In: the committed result of the partition's fetch task (segments of fetches,
// requests, captures, pages, text and links, in the order in which they were
// recorded) and the plan's partition file. Out: the partition's published parts
// of captures (one a subset), fetches, requests, text and links; and the working
// runs that the reduces read: pages, edges, hostedges and hosts.
//
// It promises that
//
//   - every planned URL has exactly one row of fetches: a missing, a second or an
//     unplanned one is an error that names the URL;
//   - a URL has at most one row of pages, one of text and one set of links. When
//     several planned URLs redirected to it and an attempt that died in between
//     had it fetched twice, the document stays that was planned under its own
//     URL, else that of the least planned URL, else the one recorded first; its
//     text and its links stay with it. Each response keeps its row of captures;
//   - rows are sorted as the catalogue says, ties by what else is in the row and
//     then by the order of recording, so that the same segments give the same bytes;
//   - memory is bounded: rows are sorted outside memory, and what is held whole
//     is a row a host, the URLs that were fetched twice, and those that a chain
//     of redirects went through.
//
// It imports packages stages and formats.
package merge
