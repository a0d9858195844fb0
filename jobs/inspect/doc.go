// Package inspect shows how a crawl would treat one URL, robots.txt, page or WARC file, and why.
// The package uses the code of a crawl.
//
// In: a question, from the command line or as a line of JSON. Out: the answer as a struct, as JSON
// or as text.
package inspect
