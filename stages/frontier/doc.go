// Package frontier decides about every URL that a round has met. For each URL it decides the state,
// the time when the URL is due again, or the reason why the URL is not planned.
//
// A task works on one reduce bucket, which holds whole domains. The task reads the states that the
// sealed rounds left, the outcomes and redirects of this round, the targets to which its pages link
// (rank's inlinks), the ranks of hosts, and the entries that the plan refused. The task writes the
// bucket's part of the dataset urls, with a row for each URL whose state changed; the bucket's part
// of the dataset skips, with a row for each URL that was found and not planned; and a URL filter of
// both, for lookups.
//
// A URL's state is its newest row:
//
//	found ──plan──► fetched, redirected, denied, failed, gone   by its outcome
//	  ▲               │ next_due has come
//	  └── deferred ◄──┘ planned, but the window closed first
//
// A sitemap or feed of the URL's own host can announce that a fetched URL has changed. An announced
// URL is due at the time of the announced change, but at least a minimum interval after its last
// fetch. False announcements increase the minimum interval. Announcements do not change the
// interval learned from the URL's own changes.
//
// A URL's row keeps every spelling of the URL that links of its own domain (rank), sources (the
// plan and its refusals) or earlier rounds give, because robots.txt has to allow each spelling. New
// spellings cause a new row. A row with five spellings means that the URL has more than four
// spellings. A URL with too many spellings is never due again. A URL that is skipped, or that no
// followed link names, gets a row only if the URL has spellings. The row of a skipped URL has the
// state skipped. The stage decides about the URL again when a link next names the URL.
//
// All inputs are sorted by SURT and URL and merged as streams. Memory holds the current
// row, the bucket's host ranks and, if the follow policy needs them, its planned hosts and
// domains.
//
// A trap is a URL that is too long, that has too many segments, or whose segments repeat. A URL is
// also a trap if it differs only in numbers, identifiers and values from at least 50 URLs of the
// round whose pages nearly all have the same text. Only the rule of nearly the same text depends on
// the content of pages. The row's detail says why a URL is a trap.
//
// The stage promises that every target of a link of a followed kind ends in urls or in skips. URLs
// are compared in full, so no URL is lost through a hash collision. The same inputs give the same
// bytes, because the stage reads no clock and computes all times from recorded times. Package
// frontier imports stages and formats packages.
package frontier
