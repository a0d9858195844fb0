package fetch

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/formats/directives"
	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
)

// maxPooled bounds the buffers that are kept for the next record, in bytes.
const maxPooled = 1 << 20

var memberBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// errUnarchivable: a response that WARC has no form for.
var errUnarchivable = errors.New("it cannot be written as WARC")

// archive writes request and response as WARC records and gives the row of
// captures. It reports false when the row is not to be recorded: the response
// cannot be written as WARC, or the sink failed, which ends the crawl.
func (c *crawl) archive(s *sent, key urlkey.Key, subset string, parsed *document.Parsed) (capture, bool) {
	buf := memberBuffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer func() {
		if buf.Cap() <= maxPooled {
			memberBuffers.Put(buf)
		}
	}()
	cp, err := c.describeCapture(s, key, subset, parsed)
	if err == nil {
		kind, earlier := c.revisits(s, &cp)
		if earlier != nil {
			cp.refersTo(kind, earlier)
		}
		err = c.compress(buf, s, &cp, earlier)
	}
	if errors.Is(err, errUnarchivable) || errors.Is(err, urlkey.ErrNotURL) {
		c.log.Error("a response cannot be archived", "url", key.URL, "error", err)
		return cp, false
	}
	if err != nil {
		c.fail(err)
		return cp, false
	}
	return cp, true
}

// describeCapture fills the columns of a capture but for where it lies.
func (c *crawl) describeCapture(s *sent, key urlkey.Key, subset string, parsed *document.Parsed) (capture, error) {
	columns, err := document.URLColumns(key)
	if err != nil {
		return capture{}, err
	}
	x := s.x
	cp := capture{subset: subset, Capture: schema.Capture{URLColumns: columns, CaptureColumns: schema.CaptureColumns{
		FetchTime: s.at.UnixMilli(), FetchStatus: int16(x.Status), FetchRedirect: s.redirect,
		ContentDigest: response.DigestValue(x.PayloadDigest), MimeType: mediatype.Essence(x.Header.Get("Content-Type")),
		MimeDetected: response.Sniff(c.parser, x), Truncated: response.Truncation(x), WARCSegment: c.segment,
	}}}
	if c.withheld(x, subset, parsed) {
		cp.Truncated = schema.TruncatedUnspecified
	}
	if parsed != nil {
		cp.Charset, cp.Languages = parsed.Page.Charset, parsed.Page.Languages
	}
	return cp, nil
}

// withheld reports whether a response asks that no copy of it be kept (noarchive):
// of a document its elements count too. A robots.txt is kept whatever it asks, as
// the evidence of what was allowed.
func (c *crawl) withheld(x *wire.Exchange, subset string, parsed *document.Parsed) bool {
	switch {
	case subset == schema.SubsetRobots || len(x.Payload) == 0:
		return false
	case parsed != nil && parsed.NoArchive:
		return true
	}
	var d directives.Robots
	for v := range x.Header.Values("X-Robots-Tag") {
		d.Field(v, c.token)
	}
	return d.NoArchive
}

// compress makes the records of an exchange, the request first, has the sink
// append them to its file, and completes the capture with where the response lies,
// or the revisit of an earlier payload, if there is one.
func (c *crawl) compress(buf *bytes.Buffer, s *sent, cp *capture, earlier *payload) error {
	w, err := warc.NewWriter(buf, warc.Options{})
	if err != nil {
		return err
	}
	x := s.x
	response := &warc.Record{
		Type: warc.Response, ID: w.NewID(), Date: s.at, TargetURI: cp.URL, PayloadDigest: warc.Digest(x.PayloadDigest),
		IPAddress: x.Addr.Addr(), Truncated: warc.Truncation(x.Truncated), IdentifiedType: cp.MimeDetected,
		Protocols: protocols(x), CipherSuite: cipherSuite(x),
	}
	if x.Route == dial.RouteProxy {
		response.IPAddress = netip.Addr{} // the proxy's is not the server's
	}
	if cp.Truncated == schema.TruncatedUnspecified {
		// Readers take a record for damaged whose digest is not that of its bytes; the row
		// and the index have the digest.
		response.Truncated, response.Block, response.PayloadDigest = warc.TruncatedUnspecified, [][]byte{x.RawHead}, ""
	} else {
		for part := range x.RawParts {
			response.Block = append(response.Block, part)
		}
	}
	request := &warc.Record{
		Type: warc.Request, ID: w.NewID(), Date: s.at, TargetURI: cp.URL, IPAddress: response.IPAddress,
		ConcurrentTo: []string{response.ID}, Block: [][]byte{x.RawRequest}, Protocols: response.Protocols,
	}
	response.ConcurrentTo = []string{request.ID}
	if earlier != nil {
		refer(response, cp.Revisit, earlier, x)
	}
	if _, err := w.Write(request); err != nil {
		return fmt.Errorf("%w: %w", errUnarchivable, err) // to memory: it can be nothing else
	}
	at, err := w.Write(response)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnarchivable, err)
	}
	entry := &warc.Capture{
		SURT: cp.SURT, Date: s.at, URL: cp.URL, MIME: cp.MimeType, Detected: cp.MimeDetected, Status: x.Status,
		Digest: cmp.Or(response.PayloadDigest, warc.Digest(x.PayloadDigest)), Revisit: earlier != nil, Extent: at, Charset: cp.Charset, Languages: cp.Languages,
		Redirect: cp.FetchRedirect, Truncated: warc.Truncation(cp.Truncated),
	}
	if err := c.sink.archive(buf.Bytes(), 2, entry); err != nil {
		return err
	}
	cp.WARCFilename = entry.Filename
	cp.WARCRecordOffset, cp.WARCRecordLength = int32(entry.Extent.Offset), int32(entry.Extent.Length)
	if earlier == nil && entry.Filename != "" && len(x.Payload) >= minPayload && len(cp.URL) <= maxPayloadURL && referable(x, cp) {
		c.payloads.add(payload{
			digest: cp.ContentDigest, url: cp.URL, at: cp.FetchTime, id: response.ID,
			file: entry.Filename, offset: cp.WARCRecordOffset, length: cp.WARCRecordLength,
		})
	}
	return nil
}

// protocols names the layers of an exchange as WARC-Protocol does.
func protocols(x *wire.Exchange) []string {
	var p []string
	switch x.Protocol {
	case "HTTP/0.9", "HTTP/1.0", "HTTP/1.1":
		p = append(p, strings.ToLower(x.Protocol))
	}
	if v, ok := strings.CutPrefix(x.TLSVersion, "TLS "); ok {
		p = append(p, "tls/"+v)
	}
	return p
}

// cipherSuite is the suite's name if it is one of IANA's.
func cipherSuite(x *wire.Exchange) string {
	for _, s := range tls.CipherSuites() {
		if s.Name == x.TLSCipher {
			return s.Name
		}
	}
	return ""
}

// warcinfo is the first record of a WARC file.
func warcinfo(key, software, userAgent, task string, at time.Time) *warc.Record {
	return &warc.Record{
		Type: warc.Warcinfo, Date: at, Filename: path.Base(key),
		Block: [][]byte{warc.Fields(
			warc.Field{Name: "software", Value: fmt.Sprintf("crawlbatch/%s", software)},
			warc.Field{Name: "format", Value: "WARC File Format 1.1"},
			warc.Field{Name: "conformsTo", Value: "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"},
			warc.Field{Name: "isPartOf", Value: task},
			warc.Field{Name: "robots", Value: "RFC 9309"},
			warc.Field{Name: "http-header-user-agent", Value: userAgent},
		)},
	}
}
