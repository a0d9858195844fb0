package wire

import (
	"io"
	"net/netip"
	"time"
)

// Truncation says why something is missing, in the words of WARC-Truncated
// (WARC 1.1, 5.13); empty means nothing is.
type Truncation string

// The reasons.
const (
	Complete        Truncation = ""
	TruncLength     Truncation = "length"      // longer than MaxBody
	TruncTime       Truncation = "time"        // Timeouts.Total passed
	TruncDisconnect Truncation = "disconnect"  // the connection or the framing broke off
	TruncFiltered   Truncation = "unspecified" // OnHead or OnPrefix wanted no more
)

// Route is the way a connection took.
type Route string

// The routes.
const (
	RouteDirect    Route = "direct"
	RouteConnectTo Route = "connect_to" // a rule of Config.ConnectTo named the target
	RouteProxy     Route = "proxy"      // Config.Proxy is the peer
)

// Timing holds how long each phase took: 1 ns or more, and 0 for a phase that did
// not happen, as on a kept connection or for a host that is an address.
type Timing struct {
	DNS       time.Duration // waiting for answers, the cache's included
	Connect   time.Duration // TCP, all attempts until one succeeded, and CONNECT
	TLS       time.Duration
	FirstByte time.Duration // from the request's first byte written to the response's first byte read
	Total     time.Duration // from the call of Do to its return
}

// Exchange is one request and what came back. It must not be used by several
// goroutines at a time. The byte slices are valid until Release; all strings,
// the Header and the Warnings remain.
type Exchange struct {
	// RawRequest is the request as written. Credentials for a proxy are left out.
	RawRequest []byte
	// RawHead is the final response's head as received, its empty line
	// included; interim (1xx) responses before it are not kept. It is empty if
	// the response had no head at all (HTTP/0.9).
	RawHead []byte

	Protocol   string // "HTTP/1.1" as the server put it; "HTTP/0.9" if it had no status line
	Status     int    // 100–999; 0 if there was no response
	StatusText string
	Header     Header

	// Payload is the body without chunk framing, before content decoding, at
	// most MaxBody bytes.
	Payload []byte
	// PayloadDigest is the SHA-1 of Payload as WARC writes it: "sha1:" and 32
	// characters of base32. Empty if there was no response.
	PayloadDigest string
	// Body is Payload with the content codings undone, at most MaxBody bytes. It
	// shares memory with Payload if there were none.
	Body []byte
	// Codings are those that were undone, outermost first: "gzip", "br", …
	Codings []string

	// Truncated says what is missing from Payload.
	Truncated Truncation
	// BodyTruncated says what is missing from Body: the same, or a reason of
	// its own when the payload is complete but its encoding is cut or corrupt
	// (disconnect) or inflates beyond the limits (length).
	BodyTruncated Truncation
	// Filtered: OnHead or OnPrefix wanted no more of the body.
	Filtered bool
	// Warnings tell what was malformed and how it was taken, each "code" or
	// "code: detail", in the order met; see the Warn constants.
	Warnings []string

	Addr       netip.AddrPort // the peer: the server, or the proxy
	Route      Route
	TLSVersion string // "TLS 1.3", or empty
	TLSCipher  string // "TLS_AES_128_GCM_SHA256", or empty
	Reused     bool   // the connection had served an earlier exchange
	KeptAlive  bool   // the connection was kept for a later one

	Start    time.Time // when the first byte of the request was about to be written; zero if none was
	Timing   Timing
	BytesIn  int64 // read from the peer inside TLS, interim responses included
	BytesOut int64 // written to the peer inside TLS

	framing framing  // chunk framing of the raw body
	buffers [][]byte // what Release gives back
	hold    *holding // memory beyond ownBytes; nil before the response
}

// RawBodyLen is the length in bytes of the body as received, framing included.
func (x *Exchange) RawBodyLen() int64 { return int64(len(x.Payload) + len(x.framing.bytes)) }

// RawLen is the length in bytes of what WriteRaw writes.
func (x *Exchange) RawLen() int64 { return int64(len(x.RawHead)) + x.RawBodyLen() }

// WriteRawBody writes the body as received, chunk framing included.
func (x *Exchange) WriteRawBody(w io.Writer) (int64, error) {
	return x.framing.writeRaw(w, x.Payload)
}

// WriteRaw writes the response as received: head and body.
func (x *Exchange) WriteRaw(w io.Writer) (int64, error) {
	n, err := w.Write(x.RawHead)
	if err != nil {
		return int64(n), err
	}
	m, err := x.WriteRawBody(w)
	return int64(n) + m, err
}

// RawParts calls yield with consecutive parts of the response as received, for
// writers that take several slices; parts are valid until Release.
func (x *Exchange) RawParts(yield func([]byte) bool) {
	if len(x.RawHead) > 0 && !yield(x.RawHead) {
		return
	}
	x.framing.parts(x.Payload, yield)
}

// RawReader reads the response as received; valid until Release.
func (x *Exchange) RawReader() io.Reader {
	var rs []io.Reader
	for p := range x.RawParts {
		rs = append(rs, &sliceReader{p})
	}
	return io.MultiReader(rs...)
}

// sliceReader is the least reader of a slice; an exchange of many chunks makes
// many of them.
type sliceReader struct{ b []byte }

func (r *sliceReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}

// Release gives the buffers back; every byte slice of x is nil afterwards. A
// second call does nothing. Release an exchange before the next Do of the same
// flow: what is held may be what that waits for (Config.Memory).
func (x *Exchange) Release() {
	for _, b := range x.buffers {
		putBuffer(b)
	}
	x.buffers = nil
	if x.hold != nil {
		x.hold.release()
	}
	x.RawRequest, x.RawHead, x.Payload, x.Body = nil, nil, nil, nil
	x.framing = framing{}
}
