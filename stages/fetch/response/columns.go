package response

import (
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/http1"
)

// Failure holds the columns error and error_detail. Many URLs have the same Phrase; Detail is
// specific to one URL.
type Failure struct{ Phrase, Detail string }

// Failed returns a failure with a formatted detail.
func Failed(phrase, format string, args ...any) Failure {
	return Failure{phrase, fmt.Sprintf(format, args...)}
}

func (f Failure) String() string {
	if f.Detail == "" {
		return f.Phrase
	}
	return f.Phrase + ": " + f.Detail
}

// DigestValue returns a digest without its algorithm label, as in cc-index.
func DigestValue(d string) string { return warc.Digest(d).Value() }

// Truncation returns why a body is incomplete, as a value of content_truncated. It returns "" for a
// whole body.
func Truncation(x *wire.Exchange) string {
	switch x.BodyTruncated {
	case http1.TruncLength, http1.TruncTime, http1.TruncDisconnect:
		return string(x.BodyTruncated)
	}
	return ""
}

// maxValidator limits a stored ETag or Last-Modified, in bytes. Later requests send these values
// back to the server.
const maxValidator = 512

// Validators returns the ETag and the Last-Modified of a response. A value is "" if it is missing
// or longer than maxValidator.
func Validators(x *wire.Exchange) (etag, modified string) {
	if v := x.Header.Get("ETag"); len(v) <= maxValidator {
		etag = strings.Clone(http1.Text(v))
	}
	if v := x.Header.Get("Last-Modified"); len(v) <= maxValidator {
		modified = strings.Clone(http1.Text(v))
	}
	return etag, modified
}

// maxErrorText limits the text of a failure in a row, in bytes.
const maxErrorText = 500

// Bounded makes a failure's text fit into a column: valid UTF-8 of at most maxErrorText bytes.
func Bounded(s string) string {
	s = http1.Text(s)
	if len(s) <= maxErrorText {
		return s
	}
	cut := maxErrorText
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut]
}
