// Package simweb is a synthetic web, with its server, for tests, the demo and
// benchmarks.
//
// In: a Config. Out: a Web, which is a pure function of it. Every host, page, link,
// duplicate, robots.txt, redirect and fault is computed from (seed, host, page) by
// hashing, so a web of a billion pages takes no memory and the same seed gives the same
// bytes everywhere. A Server serves it over HTTP/1.1, keyed by the Host header, and
// logs the requests. Package faults is the table of what servers do wrong; package truth
// computes what a correct crawler must find.
//
// # Hosts and pages
//
// Hosts are named h00017.d00016.test (a name that no DNS resolves, RFC 6761); some
// share a domain. Their sizes follow Zipf's law. Page 0 of a host is its home, "/". The
// pages of a host form a tree with eight children per page. In addition there are random
// links within and between hosts, nofollow links, links to hosts that do not exist,
// tracking parameters, fragments, and every form of reference that a base URL resolves.
// Some pages are exact copies of another page, some near copies (a few words changed,
// fingerprints at most three bits apart), and some form chains of near copies whose ends
// are farther apart than their neighbours.
//
// No result depends on the order of fetching: a redirect leads to a page that no link
// names.
//
// It imports faults and formats packages only; any test may import it.
package simweb
