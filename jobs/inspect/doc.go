// Package inspect answers what crawlbatch makes of one URL, robots.txt or page, and why.
// It calls the code that crawls. In: a question, as a person or a line of JSON asks it.
// Out: the answer as a struct, as JSON or as text.
package inspect
