package segments

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

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
)

// maxPooled bounds the buffers that are kept for the next record, in bytes.
const maxPooled = 1 << 20

var memberBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// ErrUnarchivable: WARC has no form for the response.
var ErrUnarchivable = errors.New("it cannot be written as WARC")

// Response is a response to archive.
type Response struct {
	Exchange    *wire.Exchange
	At          time.Time // when its request was written
	Known       *Payload  // that its URL is known to have had; nil: none
	NotModified bool      // the server says that the URL still has Known
}

// Archiver writes exchanges to a Sink as WARC records, a payload that it knows already
// as a revisit. Any number of goroutines may use it.
type Archiver struct {
	sink     Sink
	payloads payloads
}

// NewArchiver makes an archiver that knows no payloads.
func NewArchiver(sink Sink) *Archiver { return &Archiver{sink: sink} }

// Archive writes a response and its request, and completes the columns of cp that say
// where they lie. The error wraps ErrUnarchivable, or is the sink's.
func (a *Archiver) Archive(r *Response, cp *Capture) error {
	buf := memberBuffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer func() {
		if buf.Cap() <= maxPooled {
			memberBuffers.Put(buf)
		}
	}()
	kind, earlier := a.revisits(r, cp)
	if earlier != nil {
		cp.Revisit, cp.ContentDigest = kind, earlier.digest
		cp.PayloadFilename, cp.PayloadRecordOff, cp.PayloadRecordLen = earlier.file, earlier.offset, earlier.length
	}
	id, entry, err := compress(buf, r, cp, earlier)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnarchivable, err)
	}
	if err := a.sink.Archive(buf.Bytes(), 2, entry); err != nil {
		return err
	}
	cp.WARCFilename = entry.Filename
	cp.WARCRecordOffset, cp.WARCRecordLength = int32(entry.Extent.Offset), int32(entry.Extent.Length)
	x := r.Exchange
	if earlier == nil && entry.Filename != "" && len(x.Payload) >= minPayload && len(cp.URL) <= maxPayloadURL && referable(x, cp) {
		a.payloads.add(Payload{
			digest: cp.ContentDigest, url: cp.URL, at: cp.FetchTime, id: id,
			file: entry.Filename, offset: cp.WARCRecordOffset, length: cp.WARCRecordLength,
		})
	}
	return nil
}

// compress writes the records of an exchange to buf, the request first; a response with
// an earlier payload becomes a revisit. It returns the ID of the response's record and
// its entry for the index.
func compress(buf *bytes.Buffer, r *Response, cp *Capture, earlier *Payload) (id string, _ *warc.Capture, _ error) {
	w := warc.NewWriter(buf)
	x := r.Exchange
	response := &warc.Record{
		Type: warc.Response, ID: warc.NewID(), Date: r.At, TargetURI: cp.URL, PayloadDigest: warc.Digest(x.PayloadDigest),
		IPAddress: x.Addr.Addr(), Truncated: warc.Truncation(x.Truncated), IdentifiedType: cp.MimeDetected,
		Protocols: protocols(x), CipherSuite: cipherSuite(x),
	}
	if x.Route == dial.RouteProxy {
		response.IPAddress = netip.Addr{} // the proxy's is not the server's
	}
	if cp.Truncated == schema.TruncatedUnspecified {
		// Readers treat a record as damaged if its digest is not that of its bytes, so the
		// digest is in the row and the index only.
		response.Truncated, response.Block, response.PayloadDigest = warc.TruncatedUnspecified, [][]byte{x.RawHead}, ""
	} else {
		for part := range x.RawParts {
			response.Block = append(response.Block, part)
		}
	}
	request := &warc.Record{
		Type: warc.Request, ID: warc.NewID(), Date: r.At, TargetURI: cp.URL, IPAddress: response.IPAddress,
		ConcurrentTo: []string{response.ID}, Block: [][]byte{x.RawRequest}, Protocols: response.Protocols,
	}
	response.ConcurrentTo = []string{request.ID}
	if earlier != nil {
		refer(response, cp.Revisit, earlier, x)
	}
	if _, err := w.Write(request); err != nil {
		return "", nil, err
	}
	at, err := w.Write(response)
	if err != nil {
		return "", nil, err
	}
	return response.ID, &warc.Capture{
		SURT: cp.SURT, Date: r.At, URL: cp.URL, MIME: cp.MimeType, Detected: cp.MimeDetected, Status: x.Status,
		Digest: cmp.Or(response.PayloadDigest, warc.Digest(x.PayloadDigest)), Revisit: earlier != nil, Extent: at, Charset: cp.Charset, Languages: cp.Languages,
		Redirect: cp.FetchRedirect, Truncated: warc.Truncation(cp.Truncated),
	}, nil
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
