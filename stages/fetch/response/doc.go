// Package response interprets the end of an HTTP request: the URL's outcome, redirect
// target, cookies, stored columns and document.
//
// The input is an exchange of package wire, fresh or replayed from WARC, and the task's Parser. The
// output is the outcome of the URL, whether to retry it, what the result means for the health of the
// host (type Verdict), targets of redirects, and columns.
// Packages fetch and reparse share this code, so a stored response is treated like a fetched one.
// Package response imports packages wire, polite and robots, and packages of formats.
package response
