// Package urlkey gives every URL its one name.
//
// In: whatever a page, a redirect, a sitemap or a list calls a URL, and the URL
// it was found on. Out: the canonical URL (what is fetched, stored and compared),
// its SURT (what tables are sorted by), its host (what is paced) and its domain
// (what is sharded), and Common Crawl's url_* columns.
//
// The canonical form is the URL Standard's (https://url.spec.whatwg.org/), and then:
//
//   - only http and https, and only hosts that DNS can look up, or IP addresses;
//   - without credentials, fragment and the host's trailing dot;
//   - percent-encoding as in RFC 3986, 6.2.2: unreserved octets decoded, hex digits
//     in upper case, unless a stray percent sign beside them could be read anew;
//   - tracking parameters stripped, empty parameters and an empty query dropped, the
//     other parameters sorted by name; those of one name keep their order.
//
// Nothing else is touched, since it may name another resource: the case of a path,
// its trailing or doubled slashes, the scheme (an https twin may differ or not
// exist; a server that has one redirects to it), the "www." of a host, index.html.
// Such twins are found later by what they contain.
//
// It promises that the canonical form of a canonical form is itself, that equal
// input gives equal output on every machine (the Public Suffix List is compiled
// in), that time and memory are linear in the input, and that no input panics. It
// imports no other package of this project.
package urlkey
