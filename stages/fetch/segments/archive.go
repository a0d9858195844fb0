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

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
)

// maxPooled is the largest buffer that is reused for the next record, in bytes. It holds a document of the default
// fetch.max_body, and only as many buffers are in use as documents are parsed at the same time.
const maxPooled = 8 << 20

var memberBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// ErrUnarchivable means that a response cannot be represented as WARC.
var ErrUnarchivable = errors.New("it cannot be written as WARC")

// Response is a response to archive.
type Response struct {
	Exchange    *wire.Exchange
	At          time.Time // when the request was written
	Known       *Payload  // last known payload of the URL; nil if there is none
	NotModified bool      // whether the server answered that the payload Known is still current
}

// Archiver writes exchanges to a Sink as WARC records. If the payload of a response is already
// stored, the record is a revisit. Archiver is safe for concurrent use.
type Archiver struct {
	sink     Sink
	payloads payloads
}

// NewArchiver makes an archiver that remembers no payloads yet.
func NewArchiver(sink Sink) *Archiver { return &Archiver{sink: sink} }

// Archive writes a response and its request, and fills the columns of cp that locate them. The
// error wraps ErrUnarchivable or comes from the sink.
func (a *Archiver) Archive(r *Response, cp *Capture) error {
	buf := memberBuffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer func() {
		if buf.Cap() <= maxPooled {
			memberBuffers.Put(buf)
		}
	}()
	kind, earlier := a.revisitOf(r, cp)
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
			digest: cp.ContentDigest, url: strings.Clone(cp.URL), at: cp.FetchTime, id: id,
			file: entry.Filename, offset: cp.WARCRecordOffset, length: cp.WARCRecordLength,
		})
	}
	return nil
}

// compress writes the records of an exchange to buf. The request comes first. If earlier is not
// nil, the response becomes a revisit of this earlier payload. compress returns the ID and the
// index entry of the response's record.
func compress(buf *bytes.Buffer, r *Response, cp *Capture, earlier *Payload) (id string, _ *warc.Capture, _ error) {
	w := warc.NewWriter(buf)
	x := r.Exchange
	response := &warc.Record{
		Type: warc.Response, ID: warc.NewID(), Date: r.At, TargetURI: cp.Asked(), PayloadDigest: warc.Digest(x.PayloadDigest),
		IPAddress: x.Addr.Addr(), Truncated: warc.Truncation(x.Truncated), IdentifiedType: cp.MimeDetected,
		Protocols: protocols(x), CipherSuite: cipherSuite(x),
	}
	if x.Route == dial.RouteProxy {
		response.IPAddress = netip.Addr{} // the address in x is that of the proxy
	}
	if cp.Truncated == schema.TruncatedUnspecified {
		// The record holds only the head. If it named the digest of the missing payload, WARC tools
		// would report it as damaged. Only the row and the index have the digest.
		response.Truncated, response.Block, response.PayloadDigest = warc.TruncatedUnspecified, [][]byte{x.RawHead}, ""
	} else {
		for part := range x.RawParts {
			response.Block = append(response.Block, part)
		}
	}
	request := &warc.Record{
		Type: warc.Request, ID: warc.NewID(), Date: r.At, TargetURI: cp.Asked(), IPAddress: response.IPAddress,
		ConcurrentTo: []string{response.ID}, Block: [][]byte{x.RawRequest}, Protocols: response.Protocols,
	}
	response.ConcurrentTo = []string{request.ID}
	if earlier != nil {
		makeRevisit(response, cp.Revisit, earlier, x)
	}
	if _, err := w.Write(request); err != nil {
		return "", nil, err
	}
	at, err := w.Write(response)
	if err != nil {
		return "", nil, err
	}
	return response.ID, &warc.Capture{
		SURT: cp.SURT, Date: r.At, URL: cp.Asked(), MIME: cp.MimeType, Detected: cp.MimeDetected, Status: x.Status,
		Digest: cmp.Or(response.PayloadDigest, warc.Digest(x.PayloadDigest)), Revisit: earlier != nil, Extent: at, Charset: cp.Charset, Languages: cp.Languages,
		Redirect: cp.FetchRedirect, Truncated: warc.Truncation(cp.Truncated),
	}, nil
}

// protocols returns the values of WARC-Protocol for an exchange.
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

// cipherSuite returns the IANA name of a cipher suite, or "" if the suite has no such name.
func cipherSuite(x *wire.Exchange) string {
	for _, s := range tls.CipherSuites() {
		if s.Name == x.TLSCipher {
			return s.Name
		}
	}
	return ""
}

// warcinfo returns the first record of a WARC file.
func warcinfo(key, software, userAgent, task string, follows manifest.Position, at time.Time) *warc.Record {
	return &warc.Record{
		Type: warc.Warcinfo, Date: at, Filename: path.Base(key),
		Block: [][]byte{warc.Fields(
			warc.Field{Name: "software", Value: fmt.Sprintf("crawlbatch/%s", software)},
			warc.Field{Name: "format", Value: "WARC File Format 1.1"},
			warc.Field{Name: "conformsTo", Value: "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"},
			warc.Field{Name: "isPartOf", Value: task},
			warc.Field{Name: "robots", Value: "RFC 9309"},
			warc.Field{Name: "http-header-user-agent", Value: userAgent},
			warc.Field{Name: followsKey, Value: follows.String()},
		)},
	}
}
