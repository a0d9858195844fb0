// Package response interprets the end of an HTTP request: the URL's outcome, redirect
// target, cookies, stored columns and document.
//
// In: an exchange of package wire, fresh or replayed from WARC, and the task's Parser.
// Out: verdicts, targets and columns. Packages fetch and reparse share it, so a stored
// response means the same as one from the wire. It imports formats packages, wire and
// polite.
package response
