// Package inspect shows how a crawl would treat one URL, robots.txt, page or WARC file, and why.
// The package calls the same code as a crawl.
//
// The package takes a question from the command line or a line of JSON. The package gives the
// answer as a struct, as JSON or as text.
package inspect
