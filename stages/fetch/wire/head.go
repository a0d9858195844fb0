package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	// maxSlop is how many stray bytes before a status line are skipped, as
	// browsers do for servers that sent a longer body than they said.
	maxSlop = 4
	// maxInterim bounds the 1xx responses before a final one.
	maxInterim = 8
)

// protocolError is a reason why nothing can be made of a response.
type protocolError struct{ phrase, detail string }

func (e protocolError) Error() string {
	if e.detail == "" {
		return e.phrase
	}
	return e.phrase + ": " + e.detail
}

// message reads one response from a source into an exchange.
type message struct {
	source    *source
	x         *Exchange
	method    string
	https     bool
	maxHeader int // bytes
	maxBody   int64
	maxRatio  int64 // of a decoded body to its payload; of Replay
	wait      waiter
	deadline  time.Time     // of the exchange
	quiet     time.Duration // if not 0, the longest silence within the body
	onPrefix  func() bool
	grow      func(bytes int64) error // asked before payload and framing grow to so many bytes; nil: they may
	framed    int                     // room in the framing that was asked for

	minor        int  // of the protocol version HTTP/1.minor, for keep-alive
	kept         bool // what is read was read before: Replay
	headEnded    bool // the head had its end; otherwise there is no body
	mark         int  // length of what begins the document that stands in the place of the head's end; 0: there is an end
	definite     bool // the end of the body was found by its framing
	prefixTested bool
}

// readHead reads up to and with the final response's head. Errors are those of
// the source, or a protocolError.
func (m *message) readHead() error {
	budget := m.maxHeader
	for range maxInterim {
		before := m.source.n - int64(m.source.buffered())
		if err := m.readOneHead(budget); err != nil {
			return err
		}
		switch s := m.x.Status; {
		case s == 101:
			return protocolError{"protocol switch that was not asked for", "101 Switching Protocols"}
		case s > 199:
			return nil
		case !m.headEnded:
			return io.ErrUnexpectedEOF
		}
		budget -= int(m.source.n - int64(m.source.buffered()) - before)
		if budget <= 0 {
			return errHeadTooLong(m.maxHeader)
		}
		m.x.RawHead = m.x.RawHead[:0]
	}
	return protocolError{"too many interim responses", fmt.Sprintf("more than %d", maxInterim)}
}

func errHeadTooLong(n int) error {
	return protocolError{"response head too long", fmt.Sprintf("longer than %d bytes", n)}
}

// readOneHead reads one head, interim or final, of at most budget bytes.
func (m *message) readOneHead(budget int) error {
	x, s := m.x, m.source
	x.Protocol, x.Status, x.StatusText, x.Header = "", 0, "", nil
	m.minor, m.headEnded, m.mark = 1, true, 0
	kind, err := m.recogniseHead()
	if err != nil {
		return err
	}
	if kind == noHead {
		x.warn(WarnNoStatusLine)
		x.Protocol, x.Status, m.minor = "HTTP/0.9", 200, 0
		return nil
	}
	for first := true; ; first = false {
		if !first {
			if m.mark = m.documentBegins(); m.mark > 0 {
				x.warn(WarnHeadEndMissing)
				break
			}
		}
		start := len(x.RawHead)
		x.RawHead, err = s.appendLine(x.RawHead, budget-start)
		switch {
		case err == errLong:
			return errHeadTooLong(m.maxHeader)
		case err == io.EOF && (!m.https || m.kept && start > 0 && len(x.RawHead) == start):
			// Browsers accept this of http; over TLS it may be an attack. What was kept
			// ends after a whole line where a document began of which nothing was read.
			x.warn(WarnHeadTruncated)
			m.headEnded = false
			x.Truncated = TruncDisconnect
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		line := bytes.TrimRight(x.RawHead[start:], "\r\n")
		if !m.headEnded || len(line) == 0 {
			break
		}
		if n := len(x.RawHead); n-start == len(line)+1 {
			x.warn(WarnBareLF)
		}
	}
	return m.parseHead(string(x.RawHead), kind)
}

// headKind is how a response begins.
type headKind int

const (
	statusLine headKind = iota
	headerLine          // header fields without a status line before them
	noHead              // a body at once: HTTP/0.9
)

// recogniseHead skips what may be skipped before a response and says how it
// begins, or that it is no HTTP at all.
func (m *message) recogniseHead() (headKind, error) {
	s := m.source
	for skipped := 0; ; {
		b, err := s.peek(1)
		if err != nil {
			return 0, err
		}
		if b[0] != '\r' && b[0] != '\n' {
			break
		}
		if skipped++; skipped > 64 {
			return 0, protocolError{"nothing but empty lines", ""}
		}
		s.discard(1)
		m.x.warn(WarnLeadingBytes)
	}
	// A refused TLS record or a banner may be shorter than what is asked for
	// here; its end or its time-out decides then.
	b, err := s.peek(maxSlop + len("HTTP/"))
	if err != nil && err != io.EOF {
		return 0, err
	}
	for i := 0; i+len("HTTP/") <= len(b); i++ {
		// Case is folded in place: upper-casing bytes that are no UTF-8 moves them.
		if strings.EqualFold(string(b[i:i+len("HTTP/")]), "HTTP/") {
			if i > 0 {
				m.x.warn(WarnLeadingBytes)
				s.discard(i)
			}
			return statusLine, nil
		}
	}
	if len(b) >= 4 && strings.EqualFold(string(b[:4]), "ICY ") {
		m.x.warn(WarnICY)
		return statusLine, nil
	}
	if reason := foreign(b); reason != "" {
		return 0, protocolError{reason, ""}
	}
	if b, err = s.peekLine(512); err != nil && err != io.EOF {
		return 0, err
	}
	if name, _, ok := bytes.Cut(b, []byte(":")); ok && knownField(string(name)) {
		return headerLine, nil
	}
	if isText(b) {
		return noHead, nil
	}
	return 0, protocolError{"no HTTP response", fmt.Sprintf("begins with %.20q", b)}
}

// peekLine returns what there is up to a line feed, or n bytes, or the end.
func (s *source) peekLine(n int) ([]byte, error) {
	for {
		b := s.buf[s.start:s.end]
		b = b[:min(len(b), n)] // however much has come
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return b[:i], nil
		}
		if len(b) == n {
			return b, nil
		}
		if err := s.fill(); err != nil {
			return s.buf[s.start:s.end], err
		}
	}
}

// foreign names the other protocol that b begins, or is empty.
func foreign(b []byte) string {
	switch {
	case len(b) >= 3 && b[0] >= 0x14 && b[0] <= 0x17 && b[1] == 3:
		return "a TLS record where a plain response was expected"
	case bytes.HasPrefix(b, []byte("SSH-")):
		return "an SSH server"
	case bytes.HasPrefix(b, []byte("220 ")), bytes.HasPrefix(b, []byte("220-")), bytes.HasPrefix(b, []byte("421 ")), bytes.HasPrefix(b, []byte("554 ")):
		return "an FTP or mail server"
	case bytes.HasPrefix(b, []byte("+OK")), bytes.HasPrefix(b, []byte("* OK")):
		return "a mail server"
	case bytes.HasPrefix(b, []byte("RTSP/")):
		return "an RTSP server"
	case len(b) >= 9 && b[0] == 0 && b[3] == 4 && b[4] <= 1:
		return "HTTP/2 frames where HTTP/1.1 was expected"
	}
	return ""
}

// knownField tells header lines from text that happens to have a colon.
func knownField(name string) bool {
	switch name = strings.ToLower(strings.TrimSpace(name)); name {
	case "status", "server", "date", "location", "content-type", "content-length", "content-encoding",
		"transfer-encoding", "connection", "set-cookie", "cache-control", "pragma", "expires", "etag",
		"last-modified", "vary", "accept-ranges", "keep-alive":
		return true
	}
	return strings.HasPrefix(name, "x-") && !strings.ContainsAny(name, " \t")
}

// isText reports whether b may be the beginning of a text document: at least
// one byte, no controls but those of text.
func isText(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b || c == 0x7f {
			return false
		}
	}
	return len(b) > 0
}

// documentBegins tells whether an HTML document stands where the next header line
// should, by the length of what it is known by; 0: none does.
func (m *message) documentBegins() int {
	b, err := m.source.peek(1)
	if err != nil || b[0] != '<' {
		return 0
	}
	b, _ = m.source.peekLine(len("<!doctype"))
	for _, mark := range [...]string{"<!doctype", "<html"} {
		if hasPrefixFold(b, mark) {
			return len(mark)
		}
	}
	return 0
}

func hasPrefixFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && strings.EqualFold(string(b[:len(prefix)]), prefix)
}

var errStatusCut = errors.New("connection closed inside the status line")
