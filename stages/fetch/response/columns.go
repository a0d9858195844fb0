package response

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
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

// Validators returns the ETag and the Last-Modified of a response to a request at the given time. A value is ""
// if it is missing or longer than maxValidator, or if a condition with it would say nothing about the document: an
// ETag with an element *, which stands for any document (RFC 9110, 13.1.2), or a Last-Modified after the response.
func Validators(x *wire.Exchange, at time.Time) (etag, modified string) {
	if v := x.Header.Get("ETag"); len(v) <= maxValidator && !anyTag(v) {
		etag = strings.Clone(http1.Text(v))
	}
	if v := x.Header.Get("Last-Modified"); len(v) <= maxValidator {
		if date, err := http.ParseTime(v); err != nil || !date.After(at.Add(clockSlack)) {
			modified = strings.Clone(http1.Text(v))
		}
	}
	return etag, modified
}

// clockSlack is how far a server's clock may be ahead of this one.
const clockSlack = 2 * time.Minute

// anyTag reports whether a list of entity tags has an element that stands for any document.
func anyTag(tags string) bool {
	for t := range strings.SplitSeq(tags, ",") {
		if t = strings.TrimPrefix(strings.TrimSpace(t), "W/"); t == "*" {
			return true
		}
	}
	return false
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
