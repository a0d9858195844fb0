package fetch

import (
	"errors"

	"crawlbatch.io/crawlbatch/formats/directives"
	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/fetch/request"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// archive writes a response and its request as WARC records, and returns their row of the dataset
// captures. It returns false if there is no row: WARC cannot represent the response, or the sink
// failed. A failed sink ends the fetcher.
func (f *fetcher) archive(s *request.Sent, key urlkey.Key, subset string, parsed *document.Parsed) (segments.Capture, bool) {
	cp, err := f.describeCapture(s, key, subset, parsed)
	if err == nil {
		err = f.archiver.Archive(&segments.Response{Exchange: s.Exchange, At: s.At, Known: s.Known, NotModified: s.NotModified()}, &cp)
	}
	switch {
	case err == nil:
		return cp, true
	case errors.Is(err, segments.ErrUnarchivable), errors.Is(err, urlkey.ErrNotURL):
		f.log.Error("a response cannot be archived", "url", key.URL, "error", err)
	default:
		f.fail(err)
	}
	return cp, false
}

// describeCapture returns the row of captures for a response, without the place of its WARC record.
func (f *fetcher) describeCapture(s *request.Sent, key urlkey.Key, subset string, parsed *document.Parsed) (segments.Capture, error) {
	columns, err := document.URLColumns(key)
	if err != nil {
		return segments.Capture{}, err
	}
	x := s.Exchange
	cp := segments.Capture{Subset: subset, Capture: schema.Capture{URLColumns: columns, CaptureColumns: schema.CaptureColumns{
		FetchTime: schema.TimeOf(s.At), FetchStatus: int16(x.Status), FetchRedirect: s.Redirect,
		ContentDigest: response.DigestValue(x.PayloadDigest), MimeType: mediatype.Essence(x.Header.Get("Content-Type")),
		MimeDetected: response.Sniff(f.parser, x), Truncated: response.Truncation(x), Sent: s.Row.Sent, WARCSegment: f.segment,
	}}}
	if parsed != nil {
		parsed.Cut = parsed.Cut || cp.Truncated != "" // a document that is also withheld has only one reason in its row
		cp.Charset, cp.Languages = parsed.Page.Charset, parsed.Page.Languages
	}
	if f.withheld(x, subset, parsed) {
		cp.Truncated = schema.TruncatedUnspecified
	}
	return cp, nil
}

// withheld reports whether a response forbids a stored copy (noarchive), in a header field or in a
// meta element of the document. A robots.txt is always kept, because it proves which requests were
// allowed.
func (f *fetcher) withheld(x *wire.Exchange, subset string, parsed *document.Parsed) bool {
	switch {
	case f.cfg.KeepNoArchive || subset == schema.SubsetRobots || len(x.Payload) == 0:
		return false
	case parsed != nil && parsed.Text.NoArchive:
		return true
	}
	var d directives.Robots
	for v := range x.Header.Values("X-Robots-Tag") {
		d.Field(v, f.token)
	}
	return d.NoArchive
}
