// Package urlkey makes canonical URLs and the keys that derive from them.
//
// The input is a reference in a page, a redirect, a sitemap or a list, and the URL of this document.
// The output is the canonical URL (to fetch, store and compare), its SURT (the sort key of tables),
// its host (the unit of pacing), its domain (the unit of sharding), and Common Crawl's url_* columns.
//
// The canonical form is the form of the URL Standard (https://url.spec.whatwg.org/) with the
// following rules:
//
//   - only http and https, and only hosts that DNS can look up, or IP addresses;
//   - without credentials, fragment and the host's trailing dot;
//   - percent-encoding as in RFC 3986, 6.2.2: unreserved octets are decoded, and hex digits are in
//     upper case. An octet stays encoded if it would form an escape with a stray percent sign before
//     it;
//   - without tracking parameters, empty parameters and an empty query; the other parameters are
//     sorted by name, and parameters of the same name keep their order.
//
// The canonical form keeps everything else, such as the case of a path, trailing or doubled slashes,
// "www." and index.html, because a URL without them may be another resource. It also keeps the
// scheme, because the same URL with https may have other content or may not exist. The dedup stage
// finds URLs with the same content.
//
// Rules are further steps, which merge URLs that usually have the same content. Each rule is off
// unless the caller asks for it.
//
// With the same rules, a canonical URL is its own canonical form. Equal input gives equal output on
// every machine, because the Public Suffix List is compiled in. Time and memory are linear in the
// input, and no input causes a panic. Package urlkey imports no other package of this project.
package urlkey
