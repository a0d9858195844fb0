package http1

// These codes of Response.Warnings tell which part was malformed and how the reader read it.
const (
	WarnLocation         = "location"                // Location is not a valid URL; it is read as browsers read it
	WarnLocationConflict = "location-conflict"       // Locations differ; the first one that is not empty counts
	WarnLeadingBytes     = "leading-bytes"           // up to four bytes or empty lines before the status line were skipped
	WarnNoStatusLine     = "no-status-line"          // HTTP/0.9, or header lines without a status line; read as status 200
	WarnICY              = "icy-status-line"         // "ICY 200 OK" was read as HTTP/1.0
	WarnVersion          = "http-version"            // a version other than 1.0 and 1.1 was read as 1.1
	WarnStatusMissing    = "status-code-missing"     // a missing status code was read as 200
	WarnStatusLine       = "status-line"             // odd bytes around the status code were skipped
	WarnHeadTruncated    = "head-truncated"          // the connection ended inside the head, so there is no body
	WarnHeadEndMissing   = "head-end-missing"        // a document began where the empty line should be
	WarnHeaderNoColon    = "header-without-colon"    // a header line without a colon was skipped
	WarnHeaderEmptyName  = "header-without-name"     // a header line without a name was skipped
	WarnHeaderNUL        = "header-nul"              // NULs were removed
	WarnHeaderCR         = "header-bare-cr"          // a bare CR was read as a space
	WarnHeaderSpace      = "header-space-in-name"    // space between a field name and the colon was removed
	WarnHeaderFolded     = "header-folded"           // a continuation line was joined by a space
	WarnHeaderCount      = "header-count"            // fields after the first 1,024 were dropped
	WarnBareLF           = "bare-lf"                 // lines of the head ended without a CR
	WarnLengthInvalid    = "content-length-invalid"  // an invalid Content-Length was ignored
	WarnLengthConflict   = "content-length-conflict" // Content-Lengths differ; the largest counts, unless the connection ends or is silent sooner
	WarnLengthIgnored    = "content-length-ignored"  // Content-Length was ignored, because there is a Transfer-Encoding (RFC 9112, 6.3)
	WarnTransferEncoding = "transfer-encoding"       // Transfer-Encoding has codings other than chunked
	WarnNotChunked       = "not-chunked"             // a body announced as chunked was read as plain data
	WarnChunkLine        = "chunk-line"              // chunk sizes have spaces around them, or lines have no CR
	WarnChunkInvalid     = "chunk-invalid"           // the rest of the body was not read
	WarnChunkEnd         = "chunk-end"               // chunk data is not followed by CR LF
	WarnChunkOverhead    = "chunk-overhead"          // framing of more than 1 MiB; the rest of the body was not read
	WarnTrailer          = "trailer"                 // the trailer section broke off
	WarnBodyUnexpected   = "body-unexpected"         // bytes after the end of the response were not read
	WarnConnection       = "connection"              // the connection was reset during the body
)
