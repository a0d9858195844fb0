package http1

import (
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/http1/buffers"
)

// Truncation is the reason why bytes are missing, as a value of WARC-Truncated (WARC 1.1, 5.13). It
// is empty if no bytes are missing.
type Truncation string

// The reasons. Complete means that no bytes are missing.
const (
	Complete        Truncation = ""
	TruncLength     Truncation = "length"      // the body is longer than the limit
	TruncTime       Truncation = "time"        // the time limit passed
	TruncDisconnect Truncation = "disconnect"  // the connection or the framing broke off
	TruncFiltered   Truncation = "unspecified" // the caller did not want the rest of the body
)

// Response is one response as received. Its byte slices are valid until Release; strings, Header
// and Warnings stay valid.
type Response struct {
	// RawHead is the final response's head as received, with its empty line. It is empty if there
	// was no head (HTTP/0.9). Interim (1xx) responses are not kept.
	RawHead []byte

	Protocol   string // as the server wrote it, such as "HTTP/1.1"; "HTTP/0.9" without a status line
	Status     int    // 100 to 999; 0 without a response
	StatusText string
	Header     Header

	// Payload is the body without chunk framing. Its content codings are not undone.
	Payload []byte
	// Truncated tells why bytes of Payload are missing.
	Truncated Truncation
	// Filtered marks that the caller refused the body because of its head or beginning.
	Filtered bool
	// Warnings tell which parts were malformed and how they were read, in order. Each is "code" or
	// "code: detail" (see the Warn constants).
	Warnings []string

	framing framing
}

// framing is the chunk framing of a raw body. It is stored apart from the payload, so that each is
// in memory only once. RawParts puts the raw body together span by span: the framing up to
// span.framing, then the payload up to span.payload. After the last span follow the rest of the
// framing and of the payload.
type framing struct {
	bytes []byte
	spans []span
}

// span holds two offsets: the end of a piece of framing, and the end of the chunk data that follow
// this piece. 32 bits are enough for both.
type span struct{ framing, payload uint32 }

// maxFraming limits the chunk-size lines, extensions and trailers of a body, in bytes. One byte of
// data in a chunk of its own has five bytes of framing.
const maxFraming = 1 << 20

// endSpan ends a span at the current lengths of framing and payload.
func (r *Response) endSpan() {
	r.framing.spans = append(r.framing.spans, span{uint32(len(r.framing.bytes)), uint32(len(r.Payload))})
}

// RawParts iterates over the response as received, head and body with chunk framing, in consecutive
// parts. No part is empty. Parts are valid until Release.
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

// BodyMemory returns the memory of payload and framing, in bytes.
func (r *Response) BodyMemory() int64 { return int64(cap(r.Payload) + cap(r.framing.bytes)) }

// Release returns the buffers to their pool and clears the byte slices. A second
// call does nothing.
func (r *Response) Release() {
	for _, b := range [...][]byte{r.RawHead, r.Payload, r.framing.bytes} {
		buffers.Put(b)
	}
	r.RawHead, r.Payload, r.framing = nil, nil, framing{}
}

// maxWarnings is how many warnings of a response are kept.
const maxWarnings = 32

// Warn records a warning unless the response has it already.
func (r *Response) Warn(code string) {
	if len(r.Warnings) < maxWarnings && !slices.Contains(r.Warnings, code) {
		r.Warnings = append(r.Warnings, code)
	}
}

// Warnf records a warning with a detail. The format must quote its arguments and limit their
// length.
func (r *Response) Warnf(code, format string, args ...any) {
	r.Warn(code + ": " + fmt.Sprintf(format, args...))
}
