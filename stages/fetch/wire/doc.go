// Package wire makes HTTP/1.1 requests and keeps what came back as it was on
// the wire.
//
// In: one Request (method, URL, header fields) and a context. Out: one Exchange:
// the bytes sent, the response head and body exactly as received (chunk framing
// included), what they mean (status, header, payload, decoded body, digest),
// how the connection was made (address, TLS, timings), what was malformed and
// salvaged (Warnings), and whether something is missing (Truncated). Redirects
// are not followed, cookies not kept, nothing is retried, but for a kept
// connection that died before it answered.
//
// # Promises
//
//   - Every byte count is bounded: the head by MaxHeader, payload and decoded
//     body by MaxBody each, decoding by MaxRatio too, the memory of all
//     exchanges together by Memory. Every wait is bounded by Timeouts.
//   - Do always returns an Exchange that is not nil, holding what is known even
//     when there is an error (address, timings, bytes). Release it once.
//   - An error is an *Error whose Kind is one of the sentinels below. Bytes from
//     the web never cause a panic.
//   - What browsers accept is accepted. A response that net/http would drop
//     (two Content-Lengths, "ICY 200 OK", no status line, header lines without
//     a colon, NUL in the head, chunk lines ending in a bare LF, …) is salvaged
//     and says so in Warnings; where nothing can be made of it, ErrProtocol
//     says why.
//   - Every address that is dialled has passed the guard, after DNS; a target
//     named by ConnectTo and a configured proxy need not.
//   - Request.OnWrite is called right before the first byte of a request is
//     written: pace is measured there, and an error from it stops the request.
//
// # Reading an Exchange
//
// RawHead, Payload and Body are valid until Release. Payload is the body without
// chunk framing, still content-encoded; Body is Payload decoded, the same bytes
// when there was nothing to decode. WriteRaw gives the response as received.
//
// WriteRaw begins with the status line unless the response had none
// (HTTP/0.9): its RawHead is empty then.
//
// This package imports the standard library, golang.org/x/net/dns/dnsmessage,
// the decoders of github.com/klauspost/compress and
// github.com/andybalholm/brotli, and package guard. It must not import stages
// beside it.
package wire
