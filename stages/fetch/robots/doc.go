// Package robots parses robots.txt and gives verdicts by the Robots Exclusion
// Protocol (RFC 9309).
//
// In: the bytes of a host's /robots.txt, which may be hostile, and the product token
// of a crawler. Out: for a URL and its spellings a verdict, the line that decided, and
// content signals; the delay of Crawl-delay and Request-rate; the sitemaps.
//
// It promises:
//   - no input makes it panic, and it takes time linear in the file;
//   - with the reading Google, verdicts equal those of Google's open-source parser,
//     including its tolerance for typos and odd lines;
//   - the reading Every allows nothing that Google denies;
//   - /robots.txt itself is always allowed (RFC 9309, section 2.2.2);
//   - a failed download never means "allowed" (section 2.3.1.4).
//
// Crawlers canonicalize URLs, but sites do not canonicalize rules. So a comparison of raw
// octets alone allows URLs that the site means to deny. Every therefore compares twice: raw
// octets, as Google does, and both sides with normalised escapes, as RFC 9309 does. Each
// comparison takes its own longest match. For both comparisons, another order of parameters
// is another path. So Every also checks the spellings in which sources wrote the URL.
//
// This package finds the longest match itself. temoto/robotstxt parses only the values of
// Crawl-delay and Sitemap, from cleaned text, because it rejects a whole file that has one
// bad line.
//
// It imports the standard library, package directives and temoto/robotstxt.
package robots
