package response

import (
	"strconv"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// Document converts a response to the form that parsers take. sent is "" if the canonical URL was sent.
func Document(url, sent string, x *wire.Exchange, depth int32, fetched time.Time) *document.Document {
	return &document.Document{
		URL: url, Sent: sent, ContentType: x.Header.Get("Content-Type"), Body: x.Body, Depth: depth, Fetched: fetched,
		Header: func(name string) (values []string) {
			for value := range x.Header.Values(name) {
				values = append(values, http1.Text(value))
			}
			return values
		},
	}
}

// Prefix returns the part of a body from which the media type is detected.
func Prefix(body []byte) []byte { return body[:min(len(body), document.SniffLen)] }

// Sniff detects the media type of a response's body. It returns "" if the body is empty.
func Sniff(p document.Parser, x *wire.Exchange) string {
	if len(x.Body) == 0 {
		return ""
	}
	return p.Sniff(x.Header.Get("Content-Type"), Prefix(x.Body))
}

// Limits holds the largest lengths of payloads, in bytes.
type Limits struct {
	MaxBody    int64 // limit for every document; default 5 MiB
	MaxSitemap int64 // limit for a sitemap if that is more than MaxBody; default 50 MiB
}

// Longest returns the larger of the two limits.
func (l Limits) Longest() int64 { return max(l.MaxBody, l.MaxSitemap) }

// Allowance returns the limit for a document in bytes, or 0 if MaxBody applies. prefix is the
// beginning of the document, and detected its media type.
func (l Limits) Allowance(p document.Parser, x *wire.Exchange, detected string, prefix []byte) int64 {
	if HasDocument(x) && p.IsSitemap(detected, prefix) {
		return l.MaxSitemap
	}
	return 0
}

// Replay returns the limits for reading a stored response. The limits are the same as when the
// response was fetched.
func (l Limits) Replay(p document.Parser) wire.Limits {
	return wire.Limits{MaxBody: l.MaxBody, Allow: func(x *wire.Exchange, prefix []byte) int64 {
		if len(prefix) == 0 {
			return 0
		}
		return l.Allowance(p, x, p.Sniff(x.Header.Get("Content-Type"), prefix), prefix)
	}}
}

// smallBody is the largest unwanted body that is still read, in bytes. After a body was read to its
// end, the connection can serve another request.
const smallBody = 4 << 10

// RefusedByName reports whether to skip the body of a 2xx response. A body is skipped if the parser
// refuses the Content-Type for all bodies, unless Content-Length says that the body has at most
// smallBody bytes.
func RefusedByName(p document.Parser, x *wire.Exchange) bool {
	if x.Status < 200 || x.Status > 299 || !p.Refuses(x.Header.Get("Content-Type")) {
		return false
	}
	n, err := strconv.ParseInt(x.Header.Get("Content-Length"), 10, 64)
	return err != nil || n > smallBody
}
