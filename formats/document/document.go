// Package document is the contract between the parser and the stages that capture documents. It
// holds the types of captured and parsed documents, and completes the rows of pages.
//
// Package document imports other formats packages only.
package document

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"crawlbatch.io/crawlbatch/formats/directives"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// SniffLen is the number of bytes that are read to detect a document's media type (WHATWG MIME
// Sniffing, 5.2).
const SniffLen = 1445

// Document is a captured document.
type Document struct {
	URL         string // canonical URL of the response
	Sent        string // URL that was sent, to which links are relative; "" for the canonical URL
	ContentType string // value of the Content-Type field, "" if there was none
	// Header returns the values of a response header field as text, in order. It may be nil.
	Header func(name string) []string
	// Body is the decoded body, without transfer and content codings. It is read-only and valid
	// only during the call of Parse.
	Body    []byte
	Depth   int32     // number of links from the nearest source URL
	Fetched time.Time // time when the request was written
}

// Parsed holds the rows of a document. It shares no memory with the document's body.
type Parsed struct {
	// Page holds the columns that come from the document itself. Complete adds the columns that
	// come from the capture.
	Page  schema.Page
	Terms schema.WorkingColumns // terms of the main content; Complete adds the sketch of the links
	Text  schema.Text
	Links []schema.Link
	// Refused says that the document is a page by which the site refuses the visitor, and nothing else.
	Refused bool
	Cut     bool // whether the body, the text or a sitemap is incomplete
}

// Parser reads documents. Several goroutines may use a Parser at the same time. A Parser must not keep
// a Document or its body.
type Parser interface {
	// Sniff returns the media type of a document, without parameters. It needs the Content-Type
	// field, or "" if there is none, and the first bytes of the document, up to SniffLen.
	Sniff(contentType string, prefix []byte) string
	// Wants reports whether to store a document that begins with prefix. mediaType is the result
	// of Sniff. If prefix is nil, Wants reports whether any document of this type is stored.
	Wants(mediaType string, prefix []byte) bool
	// Refuses reports whether no document with this Content-Type is stored, whatever its bytes.
	Refuses(contentType string) bool
	// IsSitemap reports whether a document that begins with prefix is a sitemap. mediaType is the
	// result of Sniff. Sitemaps may be longer than other documents.
	IsSitemap(mediaType string, prefix []byte) bool
	// Parse reads a document. It returns an error if the parser fails, but not if the document is
	// malformed.
	Parse(*Document) (*Parsed, error)
}

// Parse calls the parser and turns a panic into an error. A panic thus loses only one document and not
// the task.
func Parse(parser Parser, d *Document) (p *Parsed, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the parser panicked: %v: %.300s", fault, debug.Stack())
		}
	}()
	p, err = parser.Parse(d)
	if err == nil && p == nil {
		err = errors.New("the parser gave nothing")
	}
	return p, err
}

// Capture holds the columns of a page that come from its capture.
type Capture struct {
	schema.URLColumns
	schema.CaptureColumns // Complete ignores Charset and Languages, which come from the document
	PlannedURL            string
	Certificate           string // what is wrong with the server's certificate (schema.Page.Certificate)
	ETag, LastModified    string
	Changed               *bool              // nil if the URL was not fetched before
	Signals               directives.Signals // signals of robots.txt; a "no" of it or of the document prevails
}

// Complete fills the columns of p that come from the capture o.
func (p *Parsed) Complete(o *Capture) {
	page := &p.Page
	charset, languages := page.Charset, page.Languages
	page.URLColumns, page.CaptureColumns = o.URLColumns, o.CaptureColumns
	page.Charset, page.Languages = charset, languages
	page.PlannedURL, page.ETag, page.LastModified, page.Changed = o.PlannedURL, o.ETag, o.LastModified, o.Changed
	signals := o.Signals
	signals.Add(page.ContentSignal)
	page.ContentSignal = signals.String()
	p.Text.SURT, p.Text.URL = o.SURT, o.URL
	if page.Certificate = o.Certificate; schema.OfOtherName(o.Certificate) {
		p.Text.Main, p.Text.Full, page.TextDigest, page.SimHash, page.WordCount = "", "", "", 0, 0
	}
	whole := page.Truncated == "" || page.Truncated == schema.TruncatedUnspecified // unspecified says only that the document is not stored
	if whole && !p.Cut && int(page.Outlinks) == len(p.Links) {
		p.Terms.LinkSketch = schema.SketchLinks(func(yield func(string) bool) {
			for i := range p.Links {
				if !yield(p.Links[i].Target) {
					return
				}
			}
		})
	}
}

// Withhold removes the words of a document that says noarchive, except its title. What is left of them are
// counts, digests and the fingerprint. The columns of cards then hold only URLs, types and names of
// sites and accounts.
func Withhold(page *schema.Page, terms *schema.WorkingColumns, text *schema.Text, links []schema.Link) {
	page.Description, page.Keywords, page.Author, page.JSONLD, page.Topics = "", "", "", "", nil
	page.OGTitle, page.OGDescription, page.TwitterTitle, page.TwitterDescription = "", "", "", ""
	terms.Terms, terms.Counts = nil, nil
	text.Main, text.Full = "", ""
	for i := range links {
		links[i].Anchor = ""
	}
}

// URLColumns returns the columns that derive from a URL. If the URL does not parse, URLColumns
// returns an error and fills only SURT and URL.
func URLColumns(key urlkey.Key) (schema.URLColumns, error) {
	c := schema.URLColumns{SURT: key.SURT, URL: key.URL}
	p, err := urlkey.Split(key.URL)
	if err != nil {
		return c, err
	}
	c.HostName, c.HostTLD = p.HostName, p.TLD
	c.Host2ndLastPart, c.Host3rdLastPart, c.Host4thLastPart, c.Host5thLastPart = p.SecondLast, p.ThirdLast, p.FourthLast, p.FifthLast
	c.HostRegistrySuffix, c.HostRegisteredDomain = p.RegistrySuffix, p.RegisteredDomain
	c.HostPrivateSuffix, c.HostPrivateDomain = p.PrivateSuffix, p.PrivateDomain
	c.HostNameReversed, c.Protocol, c.Port, c.Path, c.Query = p.NameReversed, p.Protocol, p.Port, p.Path, p.Query
	return c, nil
}
