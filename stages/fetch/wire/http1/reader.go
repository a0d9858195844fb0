package http1

import (
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// PrefixLen is the number of body bytes that WHATWG's MIME sniffing examines
	// (MIME Sniffing, 5.2 "resource header").
	PrefixLen = 1445
	// OwnMemory is the number of payload and framing bytes that a response may hold without a call
	// of Reader.Grow.
	OwnMemory = 256 << 10
)

// Reader reads one response. The caller sets the fields of the Reader before the first read.
type Reader struct {
	Method    string    // method of the request; a response to HEAD has no body
	HTTPS     bool      // whether a head that breaks off is an error; over TLS it may be an attack
	Replayed  bool      // whether the bytes come from an archive
	MaxHeader int       // limit of a head in bytes, including the interim heads before it
	MaxBody   int64     // limit of a payload in bytes; OnPrefix may raise it
	Deadline  time.Time // deadline of the exchange

	// OnPrefix, if not nil, is called once, as soon as PrefixLen bytes of the payload or the whole
	// payload have been read. Its result tells whether to read the rest of the payload.
	OnPrefix func() bool
	// If Grow is not nil, it is called before payload and framing together exceed OwnMemory. The
	// parameter bytes is the memory that payload and framing will take. An error of Grow ends the
	// body.
	Grow func(bytes int64) error
	// Wait, if not nil, is called before reads and limits how long they may wait. The limit is d,
	// or the remaining time of the exchange if this time is shorter or d is 0.
	Wait func(d time.Duration)

	source
	r              *Response
	minor          int           // minor version of HTTP/1
	headEnded      bool          // whether the head is complete; a response with an incomplete head has no body
	documentMark   int           // length of the tag that begins a document inside the head, or 0
	quiet          time.Duration // longest silence allowed in the body; 0 for no limit
	grantedFraming int           // capacity of the framing in the last call of Grow
	prefixTested   bool
	definite       bool // whether the framing determined the end of the body
}

// NewReader returns a reader of the response to a GET. The reader takes the bytes from the stream
// in and fills the Response r.
func NewReader(in io.Reader, r *Response) *Reader {
	return &Reader{Method: http.MethodGet, source: source{in: in}, r: r}
}

// Await waits for the first byte of the response.
func (m *Reader) Await() error {
	_, err := m.peek(1)
	return err
}

// BytesRead returns the number of bytes read from the connection.
func (m *Reader) BytesRead() int64 { return m.n }

// Unread reports whether bytes after the end of the response have been read.
func (m *Reader) Unread() bool { return m.buffered() > 0 }

// Definite reports whether the framing determined the end of the body. If Definite returns false,
// the connection's end, a limit or silence ended the body.
func (m *Reader) Definite() bool { return m.definite }

// Release returns the read buffer to its pool. The Response keeps its buffers.
func (m *Reader) Release() { m.release() }

// Persistent reports whether the connection may serve another exchange (RFC 9112, 9.3). A
// connection is persistent if both peers know where the exchange ended and neither sent "close".
func (m *Reader) Persistent() bool {
	if !m.definite || m.Unread() || m.err != nil {
		return false
	}
	keep := m.minor == 1
	for _, name := range []string{"Connection", "Proxy-Connection"} {
		for t := range m.r.Header.Tokens(name) {
			switch {
			case strings.EqualFold(t, "close"):
				return false
			case strings.EqualFold(t, "keep-alive"):
				keep = true
			}
		}
	}
	return keep && m.r.Protocol != "HTTP/0.9" && m.r.Protocol != "ICY"
}

// SkipBody ends a response without reading its body, because the caller does not want it.
func (m *Reader) SkipBody() {
	m.r.Filtered, m.definite = true, m.headEnded && m.bodyless()
	if m.headEnded && !m.definite {
		m.r.Truncated = TruncFiltered
	}
}

// wait calls the hook Wait, unless the hook is nil.
func (m *Reader) wait(d time.Duration) {
	if m.Wait != nil {
		m.Wait(d)
	}
}
