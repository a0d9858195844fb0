package http1

// The codes of Response.Warnings tell what was malformed and how it was read.
const (
	WarnLocation         = "location"                // not a valid URL; read as browsers read it
	WarnLocationConflict = "location-conflict"       // several different values; the first that is not empty counts
	WarnLeadingBytes     = "leading-bytes"           // up to four bytes or empty lines before the status line were skipped
	WarnNoStatusLine     = "no-status-line"          // HTTP/0.9, or header lines without a status line; read as 200
	WarnICY              = "icy-status-line"         // "ICY 200 OK": read as HTTP/1.0
	WarnVersion          = "http-version"            // neither 1.0 nor 1.1: read as 1.1
	WarnStatusMissing    = "status-code-missing"     // read as 200
	WarnStatusLine       = "status-line"             // odd bytes around the status code were skipped
	WarnHeadTruncated    = "head-truncated"          // the connection ended inside the head, so there is no body
	WarnHeadEndMissing   = "head-end-missing"        // a document began where the empty line should be
	WarnHeaderNoColon    = "header-without-colon"    // the line was skipped
	WarnHeaderEmptyName  = "header-without-name"     // the line was skipped
	WarnHeaderNUL        = "header-nul"              // NULs were removed
	WarnHeaderCR         = "header-bare-cr"          // read as a space
	WarnHeaderSpace      = "header-space-in-name"    // space before the colon was removed
	WarnHeaderFolded     = "header-folded"           // continuation line joined by a space
	WarnHeaderCount      = "header-count"            // fields after the first 1,024 were dropped
	WarnBareLF           = "bare-lf"                 // lines of the head ended without a CR
	WarnLengthInvalid    = "content-length-invalid"  // ignored
	WarnLengthConflict   = "content-length-conflict" // the largest counts, unless the connection ends sooner
	WarnLengthIgnored    = "content-length-ignored"  // there is a Transfer-Encoding too (RFC 9112, 6.3)
	WarnTransferEncoding = "transfer-encoding"       // codings other than chunked
	WarnNotChunked       = "not-chunked"             // the body was read as plain data
	WarnChunkLine        = "chunk-line"              // sizes with spaces around them, or lines without a CR
	WarnChunkInvalid     = "chunk-invalid"           // the rest of the body was not read
	WarnChunkEnd         = "chunk-end"               // no line break after chunk data
	WarnChunkOverhead    = "chunk-overhead"          // more than 1 MiB of framing; the rest was not read
	WarnTrailer          = "trailer"                 // the trailer section did not end
	WarnBodyUnexpected   = "body-unexpected"         // bytes after the end of the response were not read
	WarnConnection       = "connection"              // the connection was reset during the body
)
