package http1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// maxSlop is how many stray bytes before a status line are skipped, as in browsers. Some
	// servers send a longer body than they announce.
	maxSlop = 4
	// maxEmptyLines limits the line breaks before a response, in bytes.
	maxEmptyLines = 64
)

// ProtocolError says why bytes cannot be read as a response.
type ProtocolError struct {
	Phrase string // one of a few texts, for grouping errors
	Detail string // detail of this response; may be ""
}

func (e ProtocolError) Error() string {
	if e.Detail == "" {
		return e.Phrase
	}
	return e.Phrase + ": " + e.Detail
}

// ErrStatusCut means that the connection ended within the status line.
var ErrStatusCut = errors.New("connection closed inside the status line")

func errHeadTooLong(n int) error {
	return ProtocolError{"response head too long", fmt.Sprintf("longer than %d bytes", n)}
}

// ReadHead reads to the end of the final response's head. Its error comes from the connection, or
// is a ProtocolError or ErrStatusCut.
func (m *Reader) ReadHead() error {
	budget := m.MaxHeader
	for {
		before := m.n - int64(m.buffered())
		if err := m.readOneHead(budget); err != nil {
			return err
		}
		switch s := m.r.Status; {
		case s == 101:
			return ProtocolError{"protocol switch that was not asked for", "101 Switching Protocols"}
		case s > 199:
			return nil
		case !m.headEnded:
			return io.ErrUnexpectedEOF
		}
		budget -= int(m.n - int64(m.buffered()) - before)
		if budget <= 0 {
			return errHeadTooLong(m.MaxHeader)
		}
		m.r.RawHead = m.r.RawHead[:0]
	}
}

// readOneHead reads one head, interim or final, of at most budget bytes.
func (m *Reader) readOneHead(budget int) error {
	r := m.r
	r.Protocol, r.Status, r.StatusText, r.Header = "", 0, "", nil
	m.minor, m.headEnded, m.documentMark = 1, true, 0
	kind, err := m.recogniseHead()
	if err != nil {
		return err
	}
	if kind == noHead {
		m.assumeHTTP09()
		return nil
	}
	for first := true; ; first = false {
		if !first {
			if m.documentMark = m.documentBegins(); m.documentMark > 0 {
				r.Warn(WarnHeadEndMissing)
				break
			}
		}
		if last, err := m.readHeadLine(budget); err != nil {
			return err
		} else if last {
			break
		}
	}
	return m.parseHead(string(r.RawHead), kind)
}

// readHeadLine appends one line to the raw head. It reports whether this was the last: an empty
// line, or one in which the connection ended.
func (m *Reader) readHeadLine(budget int) (last bool, err error) {
	r := m.r
	start := len(r.RawHead)
	r.RawHead, err = m.appendLine(r.RawHead, budget-start)
	switch {
	case err == errLong:
		return false, errHeadTooLong(m.MaxHeader)
	case err == io.EOF && (!m.HTTPS || m.Replayed && start > 0 && len(r.RawHead) == start):
		// Over http, browsers accept an incomplete head. Over TLS, an attacker may have removed its
		// end. A stored head may end after a whole line, if a document began there.
		r.Warn(WarnHeadTruncated)
		m.headEnded = false
		r.Truncated = TruncDisconnect
		return true, nil
	case err == io.EOF:
		return false, io.ErrUnexpectedEOF
	case err != nil:
		return false, err
	}
	line := bytes.TrimRight(r.RawHead[start:], "\r\n")
	if len(line) > 0 && len(r.RawHead)-start == len(line)+1 {
		r.Warn(WarnBareLF)
	}
	return len(line) == 0, nil
}

// assumeHTTP09 fills in the status of a response without a status line.
func (m *Reader) assumeHTTP09() {
	m.r.Warn(WarnNoStatusLine)
	m.r.Protocol, m.r.Status, m.minor = "HTTP/0.9", 200, 0
}

// headKind tells how a response begins.
type headKind int

const (
	statusLine  headKind = iota
	headerLine           // header fields without a status line
	noHead               // a body without a head, as in HTTP/0.9
	requestLine          // a request
)

// recogniseHead skips stray bytes and classifies the beginning of a response. If it is not HTTP,
// recogniseHead returns an error.
func (m *Reader) recogniseHead() (headKind, error) {
	if err := m.skipEmptyLines(); err != nil {
		return 0, err
	}
	if m.Request {
		return requestLine, nil
	}
	// A TLS alert or a banner may be shorter than the bytes that peek wants. Then peek waits for
	// the end of the connection or the time limit.
	b, err := m.peek(maxSlop + len("HTTP/"))
	if err != nil && err != io.EOF {
		return 0, err
	}
	for i := range len(b) {
		if hasPrefixFold(b[i:], "HTTP/") {
			if i > 0 {
				m.r.Warn(WarnLeadingBytes)
				m.discard(i)
			}
			return statusLine, nil
		}
	}
	if hasPrefixFold(b, "ICY ") {
		m.r.Warn(WarnICY)
		return statusLine, nil
	}
	if other := otherProtocol(b); other != "" {
		return 0, ProtocolError{other, ""}
	}
	if b, err = m.peekLine(512); err != nil && err != io.EOF {
		return 0, err
	}
	if name, _, ok := bytes.Cut(b, []byte(":")); ok && knownField(string(name)) {
		return headerLine, nil
	}
	if IsText(b) {
		return noHead, nil
	}
	return 0, ProtocolError{"no HTTP response", fmt.Sprintf("begins with %.20q", b)}
}

// skipEmptyLines skips line breaks before a response.
func (m *Reader) skipEmptyLines() error {
	for range maxEmptyLines + 1 {
		b, err := m.peek(1)
		if err != nil {
			return err
		}
		if b[0] != '\r' && b[0] != '\n' {
			return nil
		}
		m.discard(1)
		m.r.Warn(WarnLeadingBytes)
	}
	return ProtocolError{"nothing but empty lines", ""}
}

// otherProtocol recognises protocols other than HTTP/1 by the first bytes of a response. It returns
// words for the protocol, or "" if it recognises none.
func otherProtocol(b []byte) string {
	if len(b) >= 3 && b[0] >= 0x14 && b[0] <= 0x17 && b[1] == 3 {
		return "a TLS record where a plain response was expected"
	}
	if len(b) >= 9 && b[0] == 0 && b[3] == 4 && b[4] <= 1 {
		return "HTTP/2 frames where HTTP/1.1 was expected"
	}
	for _, p := range [...]struct{ prefix, name string }{
		{"SSH-", "an SSH server"},
		{"220 ", "an FTP or mail server"}, {"220-", "an FTP or mail server"}, {"421 ", "an FTP or mail server"}, {"554 ", "an FTP or mail server"},
		{"+OK", "a mail server"}, {"* OK", "a mail server"},
		{"RTSP/", "an RTSP server"},
	} {
		if bytes.HasPrefix(b, []byte(p.prefix)) {
			return p.name
		}
	}
	return ""
}

// knownField reports whether name is a known header field. Text that contains a colon by chance
// does not begin with a known name.
func knownField(name string) bool {
	switch name = strings.ToLower(strings.TrimSpace(name)); name {
	case "status", "server", "date", "location", "content-type", "content-length", "content-encoding",
		"transfer-encoding", "connection", "set-cookie", "cache-control", "pragma", "expires", "etag",
		"last-modified", "vary", "accept-ranges", "keep-alive":
		return true
	}
	return strings.HasPrefix(name, "x-") && !strings.ContainsAny(name, " \t")
}

// IsText reports whether b may be the beginning of a text document: it is not empty, and has no
// control characters except those usual in text.
func IsText(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b || c == 0x7f {
			return false
		}
	}
	return len(b) > 0
}

// documentBegins checks whether an HTML document begins in place of the next header line. It
// returns the length of the document's first tag, or 0.
func (m *Reader) documentBegins() int {
	b, err := m.peek(1)
	if err != nil || b[0] != '<' {
		return 0
	}
	b, _ = m.peekLine(len("<!doctype"))
	for _, tag := range [...]string{"<!doctype", "<html"} {
		if hasPrefixFold(b, tag) {
			return len(tag)
		}
	}
	return 0
}

// hasPrefixFold reports whether b begins with prefix, ignoring ASCII case. Upper-casing b instead
// would change the length of invalid UTF-8.
func hasPrefixFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && strings.EqualFold(string(b[:len(prefix)]), prefix)
}
