package fetch

import (
	"time"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// documentOf is the document that a response holds.
func documentOf(url string, x *wire.Exchange, depth int32, fetched time.Time) *document.Document {
	return &document.Document{
		URL: url, ContentType: x.Header.Get("Content-Type"), Body: x.Body, Depth: depth, Fetched: fetched,
		Header: func(name string) (values []string) {
			for value := range x.Header.Values(name) {
				values = append(values, wire.Text(value))
			}
			return values
		},
	}
}

// Limits bound a response: a sitemap may be longer than other documents. What was
// stored within them is read again within them.
func Limits(cfg *Config, parser document.Parser) wire.Limits {
	return wire.Limits{MaxBody: cfg.MaxBody, Allow: func(x *wire.Exchange, prefix []byte) int64 {
		if len(prefix) == 0 {
			return 0
		}
		return cfg.allowance(parser, x, parser.Sniff(x.Header.Get("Content-Type"), prefix), prefix)
	}}
}

// allowance is how long the document may be that begins with prefix and is detected as
// of a media type.
func (c *Config) allowance(p document.Parser, x *wire.Exchange, detected string, prefix []byte) int64 {
	if x.Status >= 200 && x.Status <= 299 && p.IsSitemap(detected, prefix) {
		return c.MaxSitemap
	}
	return 0
}

// Longest is the most that a response may have of payload, bytes.
func (c *Config) Longest() int64 { return max(c.MaxBody, c.MaxSitemap) }
