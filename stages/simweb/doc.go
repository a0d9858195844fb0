// Package simweb is a synthetic web, with its server, for tests, the demo and
// benchmarks.
//
// New makes a Web from a Config. The Web computes every host, page, link, duplicate, robots.txt,
// redirect and fault from (seed, host, page) by hashing. So a web of a billion pages takes no
// memory, and the same seed gives the same bytes everywhere. A Server serves the Web over HTTP/1.1,
// selects the host by the Host header, and logs the requests. Package faults lists the mistakes
// that the server makes on purpose. Package truth computes the result of a correct crawl.
//
// # Hosts and pages
//
// Hosts have names such as h00017.d00016.test, which no DNS resolves (RFC 6761). Some hosts share a
// domain. The sizes of hosts follow Zipf's law. Page 0 of a host is its home page, "/". The pages
// of a host form a tree with eight children per page. Pages also have random links within and
// between hosts, nofollow links, links to hosts that do not exist, tracking parameters, fragments,
// and every form of relative reference. Some pages are exact copies of another page. Some are near
// copies: a few words differ, and the fingerprints are at most three bits apart. Some form chains
// of near copies, whose ends differ more than neighbours do.
//
// No result depends on the order of fetching, because a redirect leads to a page that no link
// names, or to a page that a crawler plans anyway (faults.Planned).
//
// Package simweb imports only faults and formats packages. Any test may import simweb.
package simweb
