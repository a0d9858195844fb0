// Package inspect shows how a crawl would treat one URL, robots.txt, page or WARC file, and why.
// It calls the same code as a crawl.
//
// A question comes from the command line or from a line of JSON. The answer is a struct, JSON or
// text.
package inspect
