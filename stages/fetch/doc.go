// Package fetch is the map task of a crawl: it takes one partition of planned URLs and gives each
// of them exactly one outcome.
//
// A fetch task takes a partition of a plan, the config, and a parser. It writes raw responses as
// WARC files, each with an index beside it, and rows (fetches, requests, captures, pages, text,
// links) as segments. A checkpoint says which WARC files and segments count. The task's result is a
// pure function of the last checkpoint.
//
// # The life of a planned URL
//
//	planned ─► robots.txt of its origin known? ─no─► requested first, paced like a page
//	   │                │                            └─ cannot be had ─► robots_unreachable, dns_error …
//	   │                yes
//	   │                ├─ denied ─► robots_denied
//	   │                └─ allowed ─► grant of its host ─► GET ─► response
//	   │                                  ▲                        ├─ 2xx, wanted ─► parsed ─► ok
//	   │                                  │                        ├─ 2xx, other media type ─► mime_filtered
//	   │                                  │                        ├─ 304 to a conditional request ─► not_modified
//	   │                                  ├──── retry, later ◄─────┤  429, 5xx, timeout: as often as allowed
//	   │                                  └──── next hop ◄─────────┤  redirect inside the domain
//	   │                                                           ├─ redirect elsewhere ─► redirected
//	   │                                                           └─ anything else ─► http_4xx, protocol_error …
//	   └─ window closed, host given up, domain stopped ─► deferred, host_suspended, stopped
//
// A URL that waits (for a host's delay, a retry or robots.txt) holds no slot and no goroutine,
// because it goes back to its host queue (package polite). A redirect chain sends back the cookies
// that its own responses set (RFC 6265). No other request sends cookies. Normally a chain requests
// each URL once, but it may repeat a request after it has received a cookie.
//
// # What counts
//
// To make a checkpoint, the task uploads the records since the previous one, then swaps the
// checkpoint object. Records count only if this object lists them. After a crash, the next attempt
// fetches exactly the URLs that are not listed. The rows of a redirect chain stay in memory until
// the chain ends, waits for another try or is interrupted, so a crash loses them.
//
// The task may send requests while it holds its lease. Before each request is written, the task
// asks one gate. The gate refuses requests that could outlast the lease.
//
// # Packages
//
// The glossary in stages/README.md defines the words of this package: grant, segment, epoch …
//
// Package lease keeps other attempts away from the partition. Package partition indexes the URLs of
// the task. Package polite paces hosts. Packages robotscache and robots decide which requests are
// allowed. Package request sends requests (with wire and guard), and package response interprets
// how they ended. Package sitemaps fetches the sitemaps that robots.txt files name, in addition to
// the planned URLs. Package segments records the outcomes. Package status describes the task to
// people. Package fetch leads each URL through these packages. Package reparse sends no requests.
// It uses package records to read the responses that earlier crawls stored, and processes them
// again.
package fetch
