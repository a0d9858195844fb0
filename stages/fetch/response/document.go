package response

import (
	"strconv"
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/http1"
)

// Document is the document that a response holds.
func Document(url string, x *wire.Exchange, depth int32, fetched time.Time) *document.Document {
	return &document.Document{
		URL: url, ContentType: x.Header.Get("Content-Type"), Body: x.Body, Depth: depth, Fetched: fetched,
		Header: func(name string) (values []string) {
			for value := range x.Header.Values(name) {
				values = append(values, http1.Text(value))
			}
			return values
		},
	}
}

// Prefix is the part of a body that decides on its media type.
func Prefix(body []byte) []byte { return body[:min(len(body), document.SniffLen)] }

// Sniff detects the media type of a response's body; "" if the body is empty.
func Sniff(p document.Parser, x *wire.Exchange) string {
	if len(x.Body) == 0 {
		return ""
	}
	return p.Sniff(x.Header.Get("Content-Type"), Prefix(x.Body))
}

// Limits bound the payloads of responses, in bytes.
type Limits struct {
	MaxBody    int64 // of any document; default 5 MiB
	MaxSitemap int64 // of a sitemap, if that is more; default 50 MiB
}

// Longest is the longest payload that any response may have, in bytes.
func (l Limits) Longest() int64 { return max(l.MaxBody, l.MaxSitemap) }

// Allowance is the limit in bytes for a document that begins with prefix and is of the
// detected media type; 0 stands for MaxBody.
func (l Limits) Allowance(p document.Parser, x *wire.Exchange, detected string, prefix []byte) int64 {
	if x.Status >= 200 && x.Status <= 299 && p.IsSitemap(detected, prefix) {
		return l.MaxSitemap
	}
	return 0
}

// Replay gives the limits within which a stored response is read again: those within
// which it was fetched.
func (l Limits) Replay(p document.Parser) wire.Limits {
	return wire.Limits{MaxBody: l.MaxBody, Allow: func(x *wire.Exchange, prefix []byte) int64 {
		if len(prefix) == 0 {
			return 0
		}
		return l.Allowance(p, x, p.Sniff(x.Header.Get("Content-Type"), prefix), prefix)
	}}
}

// smallBody is the length in bytes up to which a body is read though it is not
// wanted, so that its connection can be used again.
const smallBody = 4 << 10

// RefusedByName reports whether the body of a 2xx response is not worth reading: the
// parser refuses its Content-Type whatever the bytes are, and the body is not so small
// that reading it saves the connection.
func RefusedByName(p document.Parser, x *wire.Exchange) bool {
	if x.Status < 200 || x.Status > 299 || !p.Refuses(x.Header.Get("Content-Type")) {
		return false
	}
	n, err := strconv.ParseInt(x.Header.Get("Content-Length"), 10, 64)
	return err != nil || n > smallBody
}
