package http1

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1/buffers"
)

const (
	// A silence of settleTime ends a body that may be complete: after the shorter of two
	// Content-Lengths, or after a last chunk without a trailer section.
	settleTime = time.Second
	// quietBody is the silence that ends a body with an invalid Content-Length. Otherwise such a
	// body would end only with the connection, which the server may keep open.
	quietBody = 5 * time.Second
	// firstBody is the initial capacity in bytes of a payload of unknown length.
	firstBody = 64 << 10
	// maxAnnounced is the most memory that is reserved just because of a Content-Length, in bytes.
	maxAnnounced = 256 << 10
)

// bodyEnd says what ended a body.
type bodyEnd int

const (
	endFramed   bodyEnd = iota // the framing; the connection may be used again
	endClosed                  // the end of the connection, as the framing allows or requires
	endLimit                   // MaxBody was reached
	endFiltered                // OnPrefix refused the rest of the body
	endBroken                  // a failure, which the error describes
	endSettled                 // silence after a possible end of the body
)

// ReadBody reads the body that the head announces (RFC 9112, 6.3). Its error comes from the
// connection or from Grow. Payload then holds the bytes before the error.
func (m *Reader) ReadBody() error {
	r := m.r
	if !m.headEnded || m.bodyless() {
		m.definite = m.headEnded
		return nil
	}
	length, atLeast, invalid := m.ContentLength()
	var end bodyEnd
	var err error
	if m.Framing != ByHead {
		length = -1
	}
	switch {
	case m.Chunked() && m.Framing != Unchunked:
		if length >= 0 {
			r.Warn(WarnLengthIgnored)
		}
		end, err = m.readChunks(length)
		if length >= 0 && end == endFramed {
			// A response with two framings allows smuggling, so the connection is not
			// reused.
			end = endClosed
		}
	case length >= 0:
		end, err = m.readLength(length, atLeast)
	default:
		end, err = m.readAll(invalid)
		if end == endClosed && m.got() < atLeast {
			end, err = endBroken, io.EOF // as in readLength; only if Framing ignores the length
		}
	}
	m.TestPrefix()
	m.definite = end == endFramed
	switch end {
	case endLimit:
		r.Truncated = TruncLength
	case endFiltered:
		r.Filtered, r.Truncated = true, TruncFiltered
	case endBroken:
		r.Truncated = TruncDisconnect
		if IsTimeout(err) {
			r.Truncated = TruncTime
		} else if err != io.EOF && err != nil {
			r.Warn(WarnConnection)
		}
	}
	return err
}

// bodyless reports whether this response has no body, whatever its header fields say.
func (m *Reader) bodyless() bool {
	s := m.r.Status
	return m.Method == http.MethodHead || !m.Request && (s < 200 || s == http.StatusNoContent || s == http.StatusNotModified)
}

// Chunked reports whether the body is chunked. It ignores all other transfer codings; package
// coding undoes them.
func (m *Reader) Chunked() bool {
	chunked, others := false, false
	for t := range m.r.Header.Tokens("Transfer-Encoding") {
		if strings.EqualFold(t, "chunked") {
			chunked = true
		} else {
			others = true
		}
	}
	if others {
		m.r.Warnf(WarnTransferEncoding, "%.60q", m.r.Header.Get("Transfer-Encoding"))
	}
	return chunked
}

// ContentLength returns the largest and the smallest Content-Length. Both are -1 if there is none.
// invalid tells whether invalid fields were ignored. If a document's first tag ended the head, a
// length shorter than that tag (documentMark) is invalid too: when the body is replayed, the
// shortened tag would look like an incomplete head.
func (m *Reader) ContentLength() (most, least int64, invalid bool) {
	most, least = -1, -1
	for t := range m.r.Header.Tokens("Content-Length") {
		n, err := strconv.ParseInt(t, 10, 64)
		if err != nil || t[0] == '+' || t[0] == '-' || n < int64(m.documentMark) {
			m.r.Warnf(WarnLengthInvalid, "%.40q", t)
			invalid = true
			continue
		}
		if most >= 0 && n != most {
			m.r.Warnf(WarnLengthConflict, "%d and %d", most, n)
		}
		if most < 0 || n < least {
			least = n
		}
		most = max(most, n)
	}
	return most, least, invalid
}

// readLength reads a body of n bytes, the largest length that the fields state. least is the
// smallest stated length. If it is less than n, the fields contradict each other: the body may end
// after least bytes, after n bytes, or when the server closes the connection.
func (m *Reader) readLength(n, least int64) (bodyEnd, error) {
	m.r.Payload = buffers.Get(int(min(n, maxAnnounced, m.MaxBody)))
	if least == n {
		return m.readData(n)
	}
	if end, err := m.readData(least); end != endFramed {
		return end, err
	}
	m.wait(settleTime)
	end, err := m.readData(n - least)
	m.wait(0)
	switch {
	case end == endBroken && err == io.EOF:
		return endClosed, nil
	case end == endBroken && IsTimeout(err) && m.got() == least:
		return endSettled, nil
	case end == endFramed:
		return endClosed, nil // the connection is not reused
	}
	return end, err
}

// readAll reads to the end of the connection. If silence is true, it also stops when no byte
// arrives for quietBody.
func (m *Reader) readAll(silence bool) (bodyEnd, error) {
	m.r.Payload = buffers.Get(int(min(firstBody, m.MaxBody)))
	if silence {
		m.quiet = quietBody
	}
	end, err := m.readData(-1)
	switch {
	case end == endBroken && err == io.EOF:
		return endClosed, nil
	case end == endBroken && silence && IsTimeout(err) && time.Now().Before(m.Deadline):
		return endSettled, nil
	}
	return end, err
}

// readData appends n bytes to the payload, or all bytes if n is -1. It returns endFramed after n
// bytes, and endLimit if the payload reaches MaxBody before that.
func (m *Reader) readData(n int64) (bodyEnd, error) {
	r := m.r
	for n != 0 {
		room := m.MaxBody - m.got()
		if room == 0 {
			if n < 0 {
				// One more byte would show that the body is longer than MaxBody.
				if _, err := m.peek(1); err != nil {
					return endBroken, err
				}
			}
			return endLimit, nil
		}
		if n > 0 {
			room = min(room, n)
		}
		if len(r.Payload) == cap(r.Payload) {
			size := min(m.MaxBody, max(2*int64(cap(r.Payload)), firstBody))
			if err := m.reserve(size); err != nil {
				return endBroken, err
			}
			r.Payload = buffers.Grow(r.Payload, int(size))
		}
		if m.quiet > 0 {
			m.wait(m.quiet)
		}
		free := r.Payload[len(r.Payload):cap(r.Payload)]
		got, err := m.readInto(free[:min(int64(len(free)), room)])
		r.Payload = r.Payload[:len(r.Payload)+got]
		m.pour()
		if n > 0 {
			n -= int64(got)
		}
		if got > 0 && len(r.Payload) >= PrefixLen && !m.TestPrefix() {
			return endFiltered, nil
		}
		if err != nil {
			return endBroken, err
		}
	}
	return endFramed, nil
}

// got returns the length of the payload so far, in bytes.
func (m *Reader) got() int64 { return m.sunk + int64(len(m.r.Payload)) }

// pour gives the payload to Sink.
func (m *Reader) pour() {
	if m.Sink != nil {
		m.Sink(m.r.Payload)
		m.sunk += int64(len(m.r.Payload))
		m.r.Payload = m.r.Payload[:0]
	}
}

// reserve calls Grow for the memory of payload and framing together, if they exceed OwnMemory.
func (m *Reader) reserve(payload int64) error {
	total := int64(buffers.Size(int(payload)) + cap(m.r.framing.bytes))
	if total > OwnMemory && m.Grow != nil {
		return m.Grow(total)
	}
	return nil
}

// TestPrefix calls OnPrefix unless OnPrefix has been called before. It reports whether to read the
// rest of the body.
func (m *Reader) TestPrefix() bool {
	if m.prefixTested || m.OnPrefix == nil {
		return true
	}
	m.prefixTested = true
	m.r.Filtered = !m.OnPrefix()
	return !m.r.Filtered
}

// IsTimeout reports whether a connection's deadline caused err.
func IsTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}
