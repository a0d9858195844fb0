// Package fetch is the map task of a crawl: it takes one partition of planned
// URLs and ends each of them in exactly one outcome.
//
// In: a partition of a plan, the config, and a Parser. Out: raw responses as
// WARC files with an index beside each; segments of rows (fetches, requests,
// captures, pages, text, links); a checkpoint that says which of them count; and
// the task's result, a pure function of the last checkpoint.
//
// # The life of a planned URL
//
//	planned ─► robots.txt of its origin known? ─no─► that is asked first, paced like a page
//	   │                │                            └─ cannot be had ─► robots_unreachable, dns_error …
//	   │                yes
//	   │                ├─ denied ─► robots_denied
//	   │                └─ allowed ─► turn of its host ─► GET ─► answer
//	   │                                  ▲                        ├─ 2xx, wanted ─► parsed ─► ok
//	   │                                  │                        ├─ 2xx, other media type ─► mime_filtered
//	   │                                  │                        ├─ 304, as was asked ─► not_modified
//	   │                                  ├──── again, later ◄─────┤  429, 5xx, time-out: as often as allowed
//	   │                                  └──── its next hop ◄─────┤  redirect inside the domain
//	   │                                                           ├─ redirect elsewhere ─► redirected
//	   │                                                           └─ anything else ─► http_4xx, protocol_error …
//	   └─ the window closes, the host is given up, its domain is stopped ─► deferred, host_suspended, stopped
//
// A wait (for a host's delay, a retry, robots.txt) holds no slot and no
// goroutine: the URL goes back to the queue of its host (package polite).
//
// Hops of a redirect carry the cookies that the chain itself was given (RFC 6265),
// and no request any other. A URL may be asked for twice in a chain if the site has
// given it a cookie in between.
//
// # Where a payload lies
//
// Each response is a WARC record of its own, and its row of captures names that record.
// It is a revisit, which holds the head alone, where the payload is stored already:
//
//   - the content that the plan says the URL had, when its bytes are the same or the
//     server says so (304). A plan says where that content lies, and a request is
//     made conditional only if it does and the content is at most 180 days old, so
//     that what not_modified stands for can always be read, and that archives may be
//     deleted after a year;
//   - a payload of 1 KiB or more that this attempt stored before, under whatever URL
//     (the newest 16,384 are remembered).
//
// payload_warc_* of captures names the record that holds the payload then, and
// WARC-Refers-To-Target-URI and -Date say the same in the archive. The row of pages
// points to its bytes, to that record. Bodies that were cut, those without a head
// and robots.txt are always stored.
//
// # What counts
//
// A checkpoint uploads what was recorded since the one before, then swaps the
// checkpoint object. What it lists counts, nothing else; so after a crash what
// was recorded is not fetched again, and what was not is. It cuts between URLs:
// the rows of a URL whose redirects are still being followed are in memory.
//
// The task may send requests while its lease runs: from the sending of its last
// acknowledged swap, by its own monotonic clock. Each request is checked as it is
// written; none starts that could outlast the lease.
//
// # Parsing again
//
// Reparse does the same work without the wire: it takes what a fetch task stored, or
// what WARC files of others hold, and gives the same kinds of rows, parsed by the parser
// of now. It is a function of what is stored, so it needs no checkpoint, no lease and no
// epoch. Rows of fetches, requests and robots.txt stay those of the task that sent them;
// a document that cannot be read again (noarchive, damage) keeps its rows, whose
// parser_version tells.
//
// It imports packages stages and formats, and its own parts: polite (pacing),
// robots (RFC 9309), wire (HTTP), guard (addresses) and records (stored responses).
package fetch
