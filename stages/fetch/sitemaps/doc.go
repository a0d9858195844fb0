// Package sitemaps fetches the sitemaps that robots.txt files and sitemap indexes name.
//
// It takes the URLs of Sitemap lines, the entries of index files and grants of their hosts. It
// gives rows of requests, captures and links, and rows of the working file sitemaps. The package
// promises that a crawl fetches a sitemap once, and that no host or registered domain has more
// sitemaps with an outcome than Limits allow. The fetcher asks robots.txt and the lease before each
// request. The package imports packages stages and formats, and those of fetch that make and record
// requests.
//
// # Which sitemaps are taken
//
// A sitemap belongs to the registered domain of the robots.txt or index that names it. All URLs of
// that domain are in this partition, so it can be fetched at the pace of its host. A sitemap of
// another domain is left out, although sitemaps.org allows a robots.txt to name one, because no
// partition could fetch it politely. A URL that a round of the crawl plans is left out in this round
// and later ones: its URL task fetches it, and the frontier decides when it is due again.
//
// An index may name further indexes. Each file is fetched once, so loops end. The files, decoded
// bytes and entries of each host are bounded, and so are those of all hosts of a registered domain
// together. Each round counts the files that have their outcome, and begins anew with those that failed
// for a moment. Hosts of a domain that answer at the same time may give more entries and bytes than the
// bounds, by one file each. Files beyond the bounds are not requested. If an index
// names them, the links of the index still lead the frontier to them, as to any other URL.
//
// # When they are fetched
//
// After robots.txt, the host is asked for pages and sitemaps in turn, usually first for a page. At least
// one page has its turn after each sitemap, so that neither keeps the other waiting until the window
// closes.
//
// The requests of sitemaps count for the pace and the breaker of the host. A sitemap whose request fails
// for a moment (429, 5xx, time-out, no connection) is therefore not tried again in the round, and no
// further sitemap of its host is requested in it. The next round begins with the other sitemaps.
//
// # What remains of them
//
// A sitemap has rows of requests, captures and links, but no outcome, page or text. Entries of other
// registered domains are left out, because a site may list only its own pages; images and versions in
// other languages may belong to any domain. The row in the
// working file tells the next attempt, and the next rounds of the crawl, what has happened to the
// sitemap: one that was fetched, or failed for good, is not requested again in the crawl. The next
// round tries again what failed for a moment, and what the window left. The next month knows
// nothing of these rows and requests each sitemap without conditions: a response 304 would hide what
// the sitemap lists.
package sitemaps
