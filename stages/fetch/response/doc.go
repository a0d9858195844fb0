// Package response says what the end of an HTTP request means for a crawl: the URL's
// outcome, where it redirects, the cookies it sets, its stored columns and the document
// that it holds.
//
// In: an exchange of package wire, fresh or replayed from WARC, and the Parser that the
// task was given. Out: verdicts, targets and columns. Fetching and reparsing share it, so
// that a stored response means what it meant on the wire. It imports formats packages,
// wire and polite.
package response
