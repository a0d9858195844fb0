package wire

import (
	"fmt"
	"slices"
)

// The codes of Exchange.Warnings: what was malformed, and how it was taken.
const (
	WarnLocation          = "location"                // not as a URL may be written: taken as browsers do
	WarnLocationConflict  = "location-conflict"       // several that differ: the first that is not empty counts
	WarnLeadingBytes      = "leading-bytes"           // up to four bytes or empty lines before the status line: skipped
	WarnNoStatusLine      = "no-status-line"          // HTTP/0.9, or header lines at once: taken as 200
	WarnICY               = "icy-status-line"         // "ICY 200 OK": taken as HTTP/1.0
	WarnVersion           = "http-version"            // neither 1.0 nor 1.1: taken as 1.1
	WarnStatusMissing     = "status-code-missing"     // taken as 200
	WarnStatusLine        = "status-line"             // odd bytes around the status code: skipped
	WarnHeadTruncated     = "head-truncated"          // the connection ended inside the head: no body
	WarnHeadEndMissing    = "head-end-missing"        // a document began where the empty line should be
	WarnHeaderNoColon     = "header-without-colon"    // the line was skipped
	WarnHeaderEmptyName   = "header-without-name"     // the line was skipped
	WarnHeaderNUL         = "header-nul"              // NULs were removed
	WarnHeaderCR          = "header-bare-cr"          // taken as a space
	WarnHeaderSpace       = "header-space-in-name"    // space before the colon: trimmed
	WarnHeaderFolded      = "header-folded"           // continuation line joined by a space
	WarnHeaderCount       = "header-count"            // fields beyond the first 1,024 were left out
	WarnBareLF            = "bare-lf"                 // lines of the head ended without a CR
	WarnLengthInvalid     = "content-length-invalid"  // ignored
	WarnLengthConflict    = "content-length-conflict" // the largest was awaited, the connection's end accepted
	WarnLengthIgnored     = "content-length-ignored"  // Transfer-Encoding given as well (RFC 9112, 6.3)
	WarnTransferEncoding  = "transfer-encoding"       // codings other than chunked
	WarnNotChunked        = "not-chunked"             // the body was taken as it is
	WarnChunkLine         = "chunk-line"              // sizes with spaces around them, or lines without a CR
	WarnChunkInvalid      = "chunk-invalid"           // the rest of the body was left
	WarnChunkEnd          = "chunk-end"               // no line break after chunk data
	WarnChunkOverhead     = "chunk-overhead"          // more than 1 MiB of framing: the rest was left
	WarnTrailer           = "trailer"                 // the trailer section did not end
	WarnBodyUnexpected    = "body-unexpected"         // bytes after the end of the response: not read
	WarnConnection        = "connection"              // reset while reading
	WarnCodingUnknown     = "coding-unknown"          // the body was left as it is
	WarnCodingFalse       = "coding-false"            // the body is not encoded so: left as it is
	WarnCodingTruncated   = "coding-truncated"        // what could be decoded was kept
	WarnCodingCorrupt     = "coding-corrupt"          // likewise
	WarnCodingTrailing    = "coding-trailing"         // bytes after the encoded body were skipped
	WarnCodingTooMany     = "coding-too-many"         // more than five: the body was left as it is
	WarnDecompressionBomb = "decompression-bomb"      // cut at MaxRatio
)

// maxWarnings bounds the warnings of one exchange.
const maxWarnings = 32

// warn records a warning once.
func (x *Exchange) warn(code string) {
	if len(x.Warnings) < maxWarnings && !slices.Contains(x.Warnings, code) {
		x.Warnings = append(x.Warnings, code)
	}
}

// warnf records a warning with what it is about: args are quoted by the format
// and must be bounded by it.
func (x *Exchange) warnf(code, format string, args ...any) {
	x.warn(code + ": " + fmt.Sprintf(format, args...))
}
