// Package simweb is a synthetic web: the other end of the wire for tests, the
// demo and benchmarks.
//
// In: a Config. Out: a Web, which is a pure function of it: every host, page,
// link, duplicate, robots.txt, redirect and fault is computed from (seed, host,
// page) by hashing, so that a web of a billion pages costs no memory and the same
// seed gives the same bytes everywhere. A Server serves it over HTTP/1.1, keyed by
// the Host header, and keeps a log of what was asked. Truth says what a correct
// crawler must find.
//
// # What the web holds
//
// Hosts are named h00017.d00016.test (a name that no DNS resolves, RFC 6761);
// some share a domain. Their sizes follow Zipf's law. Page 0 of a host is its
// home, "/". The pages of a host form a tree, eight children to a page; beside it
// there are random links within and between hosts, links that say nofollow,
// links to hosts that do not exist, tracking parameters, fragments, and every way
// to write a reference that a base URL resolves. Some pages are exact copies of
// another page, some near copies (a few words changed, the fingerprints at most
// three bits apart), some form chains of near copies whose ends are farther apart
// than their neighbours.
//
// What misbehaves stands in one table, Faults: a name, a URL form, and the
// outcome that a correct crawler records.
//
// # The rules of a crawl that Truth applies
//
//   - A planned URL whose host's robots.txt answers 5xx is robots_unreachable;
//     one that a rule denies is robots_denied with the rule; 4xx means no rules.
//   - Redirects inside the domain are followed, at most MaxRedirects of them. Per
//     hop, in this order: a Location that names no http or https URL is a
//     protocol_error; a URL met before in the chain is redirect_limit; another
//     domain, or a target that is planned in this round, is redirected; one hop
//     too many is redirect_limit; then robots.txt of the target's host is asked.
//   - final_url is the URL whose answer came last, http_status its status; both
//     are empty where no answer came at all. A URL denied before it was asked has
//     neither; one denied at a later hop has those of the hop before.
//   - pages.url is the final URL; its depth is that of the planned URL.
//   - Links are recorded in document order, those to http and https only; a page
//     whose meta robots says nofollow makes all its links nofollow.
//   - The next round plans every target of a followed kind that some link of the
//     round names without nofollow, redirect targets of redirected URLs and
//     redirect hops that were denied or gave no answer among them, unless it was planned before or answered as a final URL. Its depth is
//     one more than the least depth of those links' pages. What is not planned is
//     skipped, with the first reason that holds: nofollow (of all its links),
//     out_of_scope, depth.
//   - Duplicates are the connected components of the round's pages and of the
//     pages of earlier rounds that stand for themselves or for others, under equal
//     text digest or, among texts of at least MinWords words, a Hamming distance
//     of at most MaxDistance. A page without text is in no cluster. Pages of earlier
//     rounds are not compared with one another.
//
// The web is made so that no answer depends on the order of fetching: a page that
// redirects leads to a page of its own which nothing else names.
//
// It imports formats packages only; any test may import it.
package simweb
