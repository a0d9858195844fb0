// Package http1 writes HTTP/1.1 requests and reads responses as leniently as
// browsers do.
//
// In: a Target and header fields, or the bytes that a server sent. Out: the
// request's bytes, or a Response: the head and body as received, their meaning,
// and a warning for everything malformed (Warn…). Every byte count is bounded.
// Bytes from the web never cause a panic. Content codings are left in place.
//
// It imports the standard library and package buffers.
package http1
