// Package http1 writes HTTP/1.1 requests and reads responses as leniently as
// browsers do.
//
// It turns a Target and header fields into the request's bytes, and the server's bytes into a
// Response: the head and body as received, their meaning, and a warning for every malformed part
// (Warn…). The fetcher, the reparse and the check of WARC records all read responses with this package,
// so they agree on every payload. Every byte count is limited. Bytes from the web never cause a panic. Content codings are
// not undone.
//
// Package http1 imports the standard library and package buffers.
package http1
