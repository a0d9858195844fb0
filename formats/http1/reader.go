package http1

import (
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// PrefixLen is how many bytes of a body MIME sniffing examines (WHATWG MIME Sniffing, 5.2
	// "resource header").
	PrefixLen = 1445
	// OwnMemory is the memory that a response may take for payload and framing without a call of
	// Reader.Grow, in bytes.
	OwnMemory = 256 << 10
)

// Framing says what ends a body.
type Framing int

const (
	ByHead    Framing = iota // the header fields (RFC 9112, 6.3)
	ByEnd                    // the end of the input or the last chunk; Content-Length only shows whether bytes are missing
	Unchunked                // the end of the input, even if the head says that the body is chunked
)

// Reader reads one response. The caller sets the exported fields before the first read.
type Reader struct {
	Method    string    // method of the request; a response to HEAD has no body
	HTTPS     bool      // whether a head that breaks off is an error, because an attacker may have cut it
	Replayed  bool      // whether the bytes come from an archive
	Framing   Framing   // which header fields may end the body
	Request   bool      // whether the message is a request; its first line is not read, and the end of the input ends its body
	MaxHeader int       // limit of a head in bytes, with the interim heads before it
	MaxBody   int64     // limit of a payload in bytes; OnPrefix may raise it
	Deadline  time.Time // deadline of the exchange

	// OnPrefix, if not nil, is called once, when PrefixLen bytes or the whole payload have been
	// read. It tells whether to read the rest.
	OnPrefix func() bool
	// Grow, if not nil, is called before payload and framing together exceed OwnMemory. Its
	// argument is the memory that they will take. If it returns an error, the body ends.
	Grow func(bytes int64) error
	// Sink, if not nil, takes the payload piece by piece, and Response.Payload stays empty. A piece is
	// valid only during the call.
	Sink func(piece []byte)
	// Wait, if not nil, is called before reads. It sets their deadline: d from now, or the
	// exchange's deadline if that is sooner or d is 0.
	Wait func(d time.Duration)

	source
	r              *Response
	minor          int           // minor version of HTTP/1
	headEnded      bool          // whether the head is complete; otherwise there is no body
	documentMark   int           // length of the tag that begins a document inside the head, or 0
	quiet          time.Duration // longest silence allowed in the body; 0 means no limit
	maxFraming     int           // limit of the framing in bytes; a line break after it may exceed it by 2
	grantedFraming int           // capacity of the framing at the last Grow
	prefixTested   bool
	sunk           int64 // bytes that Sink has taken
	definite       bool  // whether the framing determined where the body ended
}

// NewReader returns a reader that reads the response to a GET from in, and fills r.
func NewReader(in io.Reader, r *Response) *Reader {
	return &Reader{Method: http.MethodGet, source: source{in: in}, r: r, maxFraming: maxFraming}
}

// Await waits for the first byte of the response.
func (m *Reader) Await() error {
	_, err := m.peek(1)
	return err
}

// Consumed returns how many bytes of the connection belong to what was read so far: after ReadHead, the
// body begins there.
func (m *Reader) Consumed() int64 { return m.n - int64(m.buffered()) }

// BytesRead returns the number of bytes read from the connection.
func (m *Reader) BytesRead() int64 { return m.n }

// Unread reports whether bytes after the end of the response have been read.
func (m *Reader) Unread() bool { return m.buffered() > 0 }

// Definite reports whether the framing determined where the body ended. Otherwise the end of the
// connection, a limit or silence ended it.
func (m *Reader) Definite() bool { return m.definite }

// Release returns the read buffer to its pool. The Response keeps its buffers.
func (m *Reader) Release() { m.release() }

// Persistent reports whether the connection may serve another exchange (RFC 9112, 9.3): the framing
// ended the body, no bytes follow, and the server keeps the connection open.
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

// SkipBody ends a response whose body the caller does not want to read.
func (m *Reader) SkipBody() {
	m.r.Filtered, m.definite = true, m.headEnded && m.bodyless()
	if m.headEnded && !m.definite {
		m.r.Truncated = TruncFiltered
	}
}

// wait calls Wait unless it is nil.
func (m *Reader) wait(d time.Duration) {
	if m.Wait != nil {
		m.Wait(d)
	}
}
