// Package wire makes HTTP/1.1 requests and keeps the responses byte for byte.
//
// A Client takes one Request (method, URL, header fields) and a context, and returns one Exchange.
// The Exchange holds the bytes sent, and the response head and body exactly as received, with chunk
// framing. It also holds their meaning (status, header, payload, decoded body, digest) and the
// connection (address, TLS, timings). Warnings lists the malformed parts, and Truncated says
// whether bytes are missing. Package wire does not follow redirects or keep cookies. It repeats a
// request only if a kept connection ends before the server responds.
//
// # Promises
//
//   - Every byte count has a limit: 256 KiB for the head, MaxBody for the payload and for the
//     decoded body. The ratio of decoding beyond 5 MiB and the memory of all exchanges (Memory) have limits too.
//     Timeouts limit every wait.
//   - Do always returns an Exchange that is not nil. Even after an error, it holds all known facts
//     (address, timings, bytes). The caller releases it once.
//   - An error is an *Error whose Kind is one of the sentinels below. Bytes from
//     the web never cause a panic.
//   - The client accepts the responses that browsers accept. It salvages responses that net/http
//     drops, and reports the faults in Warnings: two Content-Lengths, "ICY 200 OK", no status line,
//     header lines without a colon, NUL in the head, chunk lines ending in a bare LF, … For an
//     unusable response, ErrProtocol says why.
//   - Every address that is dialled, or sent to the proxy in CONNECT, has passed the guard
//     after DNS. Targets named by ConnectTo and the configured proxy are exempt. With
//     ProxyFilters, the proxy looks up hosts of plain http again, and the guard does not see that
//     result.
//   - The client calls Request.OnWrite right before it writes the first byte of a request, so that
//     the caller can keep its pace. An error from OnWrite stops the request.
//
// # Packages
//
// Package wire makes the exchange with the help of dial (connections), coding (content codings),
// http1 (the syntax of requests and responses), dns (look-ups) and buffers (pooled memory). Package
// wire imports dial, coding, http1, dns, buffers, guard and the standard library. It must not
// import other stages.
package wire
