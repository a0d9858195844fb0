// Package inspect shows what crawlbatch makes of one URL, robots.txt, page or WARC file, and why,
// with the code that a crawl uses.
//
// In: a question, from the command line or as a line of JSON. Out: the answer as a struct, as JSON
// or as text.
package inspect
