package fetch

import (
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// Parser reads documents. Any number of goroutines may use it at a time; it must
// not keep a Document or its body.
type Parser interface {
	// Sniff gives the media type of a document, without parameters, from its
	// Content-Type ("" if it has none) and its first bytes, up to 1,445.
	Sniff(contentType string, prefix []byte) string
	// Wants reports whether a document of a media type that Sniff gave for these first
	// bytes is to be stored; nil bytes ask whether any of that type may be.
	Wants(mediaType string, prefix []byte) bool
	// Refuses reports whether a Content-Type alone tells that its document is not to be
	// stored, whatever the bytes are.
	Refuses(contentType string) bool
	// IsSitemap reports whether a document of a media type that Sniff gave for these
	// first bytes is a sitemap, which may be longer than others.
	IsSitemap(mediaType string, prefix []byte) bool
	// Parse gives what a document holds. An error means that the parser failed,
	// not that the document is odd: the URL ends as internal_error.
	Parse(doc *Document) (*Parsed, error)
}

// Document is a captured document.
type Document struct {
	URL         string // canonical, that answered
	ContentType string // as sent, "" if it was not
	// Header gives all values of a field of the response, as text.
	Header func(name string) []string
	// Body is decoded from its content codings, not from its charset; it is
	// valid during the call.
	Body []byte
	// Truncated says why the body ends early, "" if it does not.
	Truncated string
	Fetched   time.Time // when it was asked for
}

// Parsed is what a document holds. The columns that fetch knows better (URL and
// capture columns, planned_url, depth, content_bytes, etag, last_modified,
// changed) are filled in by fetch.
type Parsed struct {
	Charset   string // content_charset
	Languages string // content_languages
	NoArchive bool   // no copy of the response is to be kept
	Page      schema.Page
	Terms     schema.TermCounts // kept with the working row of the page
	Text      schema.Text
	Links     []schema.Link
}

// Limits bound a response: a sitemap may be longer than other documents. What was
// stored within them is read again within them.
func Limits(cfg *Config, parser Parser) wire.Limits {
	return wire.Limits{MaxBody: cfg.MaxBody, Allow: func(x *wire.Exchange, prefix []byte) int64 {
		if len(prefix) == 0 {
			return 0
		}
		return cfg.allowance(parser, x, parser.Sniff(x.Header.Get("Content-Type"), prefix), prefix)
	}}
}

// allowance is how long the document may be that begins with prefix and is detected as
// of a media type.
func (c *Config) allowance(p Parser, x *wire.Exchange, detected string, prefix []byte) int64 {
	if x.Status >= 200 && x.Status <= 299 && p.IsSitemap(detected, prefix) {
		return c.MaxSitemap
	}
	return 0
}

// Longest is the most that a response may have of payload, bytes.
func (c *Config) Longest() int64 { return max(c.MaxBody, c.MaxSitemap) }
