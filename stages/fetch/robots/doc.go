// Package robots parses robots.txt and gives verdicts by the Robots Exclusion
// Protocol (RFC 9309).
//
// The input is the bytes of a host's /robots.txt, which may be hostile, and the product token of a
// crawler. For a URL as it is sent, package robots returns a verdict, the line that decided it,
// and content signals. For the host, it returns the sitemaps and the delay from Crawl-delay and
// Request-rate.
//
// The package promises:
//   - no input causes a panic, and the time is linear in the length of the file;
//   - the lines of a file are read as Google's open-source parser does, which tolerates typos and odd
//     lines, and nothing is allowed that Google's parser denies;
//   - /robots.txt itself is always allowed (RFC 9309, section 2.2.2);
//   - if a robots.txt cannot be fetched (5xx, no response), nothing is allowed (section 2.3.1.4).
//
// A site may write a path in its rules and in its links with different escapes. A
// comparison of raw octets alone would allow URLs that the site means to deny. A verdict therefore
// compares twice: raw octets, as Google does, and then rule and URL with normalised escapes, as RFC
// 9309 says. Each comparison has its own longest match, and both must allow the URL.
//
// Package robots finds the longest match itself. The library temoto/robotstxt rejects a whole file
// for one bad line, so it gets only cleaned values of Crawl-delay and Sitemap.
//
// Package robots imports package directives, temoto/robotstxt and x/text.
package robots
