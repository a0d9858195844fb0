package http1

import (
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/stages/fetch/wire/buffers"
)

// Truncation is the reason why bytes are missing, as a value of WARC-Truncated (WARC 1.1, 5.13). A
// Truncation is empty if no bytes are missing.
type Truncation string

// The reasons of a truncation. Complete means that no bytes are missing.
const (
	Complete        Truncation = ""
	TruncLength     Truncation = "length"      // the body is longer than the limit
	TruncTime       Truncation = "time"        // the time limit passed
	TruncDisconnect Truncation = "disconnect"  // the connection or the framing broke off
	TruncFiltered   Truncation = "unspecified" // the caller did not want the rest of the body
)

// Response is one response as received. The byte slices are valid until Release. Strings, Header
// and Warnings stay valid after Release.
type Response struct {
	// RawHead is the final response's head as received, including its empty line. RawHead is empty
	// if the response had no head at all (HTTP/0.9). Interim (1xx) responses are not kept.
	RawHead []byte

	Protocol   string // protocol in the server's spelling, such as "HTTP/1.1"; "HTTP/0.9" if there was no status line
	Status     int    // status code, 100 to 999; 0 if there was no response
	StatusText string
	Header     Header

	// Payload is the body without chunk framing. The client does not undo content codings in
	// Payload.
	Payload []byte
	// Truncated tells why bytes of Payload are missing.
	Truncated Truncation
	// Filtered marks that the caller rejected the body by its head or beginning.
	Filtered bool
	// Warnings tell which parts were malformed and how they were read, in the order found. Each
	// warning is "code" or "code: detail" (see the Warn constants).
	Warnings []string

	framing framing
}

// framing is the chunk framing of a raw body. Framing and payload are stored apart, so that each is
// in memory only once. A span adds two pieces to the raw body: the framing up to span.framing, then
// the payload up to span.payload. After the last span, the rest of the framing and the rest of the
// payload follow.
type framing struct {
	bytes []byte
	spans []span
}

// span holds the end of a piece of framing and the end of the chunk data after it. 32 bits suffice
// for both offsets.
type span struct{ framing, payload uint32 }

// maxFraming bounds the chunk-size lines, extensions and trailers of a body, in bytes. A chunk with
// one byte of data has five bytes of framing.
const maxFraming = 1 << 20

// endSpan ends a span at the current lengths of framing and payload.
func (r *Response) endSpan() {
	r.framing.spans = append(r.framing.spans, span{uint32(len(r.framing.bytes)), uint32(len(r.Payload))})
}

// RawParts iterates over the response as received, in consecutive parts of head and body. The parts
// include chunk framing. No part is empty. Parts are valid until Release.
func (r *Response) RawParts(yield func([]byte) bool) {
	if len(r.RawHead) > 0 && !yield(r.RawHead) {
		return
	}
	var last span
	end := span{uint32(len(r.framing.bytes)), uint32(len(r.Payload))}
	for _, s := range append(r.framing.spans, end) {
		if b := r.framing.bytes[last.framing:s.framing]; len(b) > 0 && !yield(b) {
			return
		}
		if b := r.Payload[last.payload:s.payload]; len(b) > 0 && !yield(b) {
			return
		}
		last = s
	}
}

// BodyMemory returns the memory in bytes that payload and framing take.
func (r *Response) BodyMemory() int64 { return int64(cap(r.Payload) + cap(r.framing.bytes)) }

// Release returns the buffers to their pool and clears the byte slices. A second
// call does nothing.
func (r *Response) Release() {
	for _, b := range [...][]byte{r.RawHead, r.Payload, r.framing.bytes} {
		buffers.Put(b)
	}
	r.RawHead, r.Payload, r.framing = nil, nil, framing{}
}

// maxWarnings bounds the warnings of one response.
const maxWarnings = 32

// Warn records a warning, unless the response already has it.
func (r *Response) Warn(code string) {
	if len(r.Warnings) < maxWarnings && !slices.Contains(r.Warnings, code) {
		r.Warnings = append(r.Warnings, code)
	}
}

// Warnf records a warning with a detail. The format must quote its arguments and bound their
// length.
func (r *Response) Warnf(code, format string, args ...any) {
	r.Warn(code + ": " + fmt.Sprintf(format, args...))
}
