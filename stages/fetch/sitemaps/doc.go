// Package sitemaps fetches the sitemaps that robots.txt files and sitemap indexes name.
//
// It takes the URLs of Sitemap lines, the entries of index files and grants of their hosts. Its
// results are rows of requests, captures and links, and rows of the working file sitemaps. The
// package promises that a crawl fetches a sitemap once. It also promises that no host or registered
// domain has more sitemaps with an outcome than Limits allow. The fetcher checks robots.txt and
// the lease before each request. The package imports packages stages and formats, and the packages of
// fetch that make and record requests.
//
// # Which sitemaps are taken
//
// A sitemap belongs to the registered domain of the robots.txt or index that names it. All URLs of
// that domain are in this partition, so the sitemap can be fetched at the pace of its host. A
// sitemap of another domain is left out, because no partition could fetch it politely. sitemaps.org
// permits a robots.txt to name one. If a round of the crawl plans the URL of a sitemap, the sitemap
// is left out in that round and in later rounds: the URL task fetches it, and the frontier decides
// when it is due again.
//
// An index may name further indexes. Each file is fetched once, so loops end. The files, decoded
// bytes and entries of each host are bounded, and so are those of all hosts of a registered domain
// together. A file counts as soon as it has its outcome. A file that failed temporarily no longer counts
// in the next round, which requests it again. If hosts of a domain answer at the same time, their
// entries and bytes may exceed the bounds by one file for each host. Files beyond the bounds are not
// requested. If an index names such a file, the frontier still finds its URL among the links.
//
// # When they are fetched
//
// After robots.txt, the host gets requests for pages and sitemaps in turn, usually first for a
// page. After each sitemap, the next request is for a page, so that neither kind waits until the
// window closes.
//
// The requests of sitemaps count for the pace and the breaker of the host. If the request for a
// sitemap fails temporarily (429, 5xx, time-out, no connection), the round does not repeat it and
// requests no further sitemap of its host. The next round begins with the other sitemaps.
//
// # What remains of them
//
// A sitemap has rows of requests, captures and links, but none of fetches, pages or text. Entries of
// other registered domains are left out, because a site may list only its own pages; images and
// versions in other languages may belong to any domain. The row in the working file tells the next
// attempt, and the next rounds of the crawl, the outcome of the sitemap. A sitemap that was
// fetched, or failed for good, is not requested again in the crawl. The next round tries sitemaps
// again that failed temporarily or that the window left out. The next month does not read these
// rows, and requests each sitemap unconditionally, because a 304 response would hide its entries.
package sitemaps
