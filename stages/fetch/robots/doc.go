// Package robots reads robots.txt and gives verdicts by the Robots Exclusion
// Protocol (RFC 9309).
//
// In: the bytes a host answered for /robots.txt, as hostile as the web makes
// them, and the product token of a crawler. Out: for a URL and its spellings
// whether it may be requested and the line that decided, and its content
// signals; the pause that Crawl-delay and Request-rate ask for; the sitemaps.
//
// It promises: no panic and time linear in the file for any bytes; by the reading
// Google, verdicts equal to those of Google's open-source parser, its tolerance for
// typos and odd lines included; by the reading Every, no verdict that allows more;
// /robots.txt itself may always be asked for (RFC 9309, section 2.2.2); a download
// that failed is never taken for "allowed" (section 2.3.1.4).
//
// Crawlers canonicalize URLs and sites do not canonicalize rules, so one comparison
// of octets lets URLs through that the site means to deny. Every therefore asks
// twice: with octets as they stand, as Google does, and with the escapes of both
// sides in one form, as RFC 9309 does. Each comparison takes its own longest match. A
// different order of parameters is a different path to both, so a URL that was given
// in another order, or other escapes, is asked about in that spelling too.
//
// The longest match is decided here. Crawl-delay and Sitemap values are read by
// temoto/robotstxt from text that this package has cleaned, since that library
// gives up a whole file over one bad line.
//
// It imports the standard library, package directives and temoto/robotstxt.
package robots
