// Package robots parses robots.txt and gives verdicts by the Robots Exclusion
// Protocol (RFC 9309).
//
// Package robots takes the bytes of a host's /robots.txt, which may be hostile, and the product
// token of a crawler. For a URL and its spellings it returns a verdict, the line that decided, and
// content signals. For the host it returns the delay of Crawl-delay and Request-rate, and the
// sitemaps.
//
// The package promises:
//   - no input causes a panic, and the time is linear in the length of the file;
//   - with the reading Google, verdicts equal those of Google's open-source parser, which tolerates
//     typos and odd lines;
//   - the reading Every allows nothing that Google denies;
//   - /robots.txt itself is always allowed (RFC 9309, section 2.2.2);
//   - a failed download never means "allowed" (section 2.3.1.4).
//
// Crawlers canonicalize URLs, but sites do not canonicalize the URLs in their rules. Therefore, if
// only raw octets were compared, URLs would be allowed that the site means to deny. The reading
// Every makes two comparisons. One compares raw octets, as Google does. The other one first
// normalises the escapes of rule and URL, as RFC 9309 does. Each of the two comparisons uses its
// own longest match. For both comparisons, a different order of parameters makes a different path.
// The reading Every therefore also checks the spellings in which sources wrote the URL.
//
// Package robots finds the longest match itself. The library temoto/robotstxt rejects a whole file
// if one line is bad. Therefore the library gets only cleaned values of Crawl-delay and Sitemap.
//
// Package robots imports the standard library, package directives and temoto/robotstxt.
package robots
