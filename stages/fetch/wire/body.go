package wire

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// settle is how long a body whose end is in doubt may be silent before it is
	// taken as ended: after the shorter of two Content-Lengths, and after a last
	// chunk whose trailer section does not come.
	settle = time.Second
	// quietBody is how long a body without any end but the connection's may be
	// silent if its Content-Length could not be read: such servers may well keep
	// the connection open.
	quietBody = 5 * time.Second
	// firstBody is the first size of a payload's buffer in bytes, and the most
	// that is set aside on the word of a Content-Length.
	firstBody = 64 << 10
	// maxAnnounced is the most that is set aside on the word of a Content-Length.
	maxAnnounced = 256 << 10
	// prefixLen is how much of a body WHATWG's MIME sniffing looks at (MIME
	// Sniffing, 5.2 "resource header").
	prefixLen = 1445
)

// waiter limits how long the source's next reads may wait: d, or what is left
// of the exchange if that is less or d is 0.
type waiter func(d time.Duration)

// bodyEnd is how reading a body came to its end.
type bodyEnd int

const (
	endFramed   bodyEnd = iota // by its framing: the connection may go on
	endClosed                  // by the connection's end, as it should or may
	endLimit                   // more than maxBody
	endFiltered                // not wanted
	endBroken                  // cut off: see the error
	endSettled                 // silent for long after what may be the end
)

// readBody reads the body that the head announces (RFC 9112, 6.3). An error of
// the source is returned beside what has been read.
func (m *message) readBody() error {
	x := m.x
	if !m.headEnded || m.bodyless() {
		m.definite = m.headEnded
		return nil
	}
	length, atLeast, unread := m.contentLength()
	var end bodyEnd
	var err error
	switch {
	case m.chunked():
		if length >= 0 {
			x.warn(WarnLengthIgnored)
		}
		end, err = m.readChunks(length)
		if length >= 0 && end == endFramed {
			// Two framings are how responses are smuggled: believe neither
			// for what comes after.
			end = endClosed
		}
	case length >= 0:
		end, err = m.readLength(length, atLeast)
	default:
		end, err = m.readAll(unread)
	}
	m.testPrefix(true)
	m.definite = end == endFramed
	switch end {
	case endLimit:
		x.Truncated = TruncLength
	case endFiltered:
		x.Filtered, x.Truncated = true, TruncFiltered
	case endBroken:
		x.Truncated = TruncDisconnect
		if isTimeout(err) {
			x.Truncated = TruncTime
		} else if err != io.EOF && err != nil {
			x.warn(WarnConnection)
		}
	}
	return err
}

// bodyless reports whether this response has no body whatever its header says.
func (m *message) bodyless() bool {
	s := m.x.Status
	return m.method == http.MethodHead || s < 200 || s == http.StatusNoContent || s == http.StatusNotModified
}

// chunked reports whether the body is chunked. Other transfer codings are left
// to the decoder.
func (m *message) chunked() bool {
	chunked, others := false, false
	for t := range m.x.Header.tokens("Transfer-Encoding") {
		if strings.EqualFold(t, "chunked") {
			chunked = true
		} else {
			others = true
		}
	}
	if others {
		m.x.warnf(WarnTransferEncoding, "%.60q", m.x.Header.Get("Transfer-Encoding"))
	}
	return chunked
}

// contentLength returns the largest and the smallest length that is given, -1
// if there is none, and whether any was ignored: it is no number, or the document
// that was seen already is longer. A body that ended within that beginning could not
// be told from a head that breaks off.
func (m *message) contentLength() (most, least int64, unread bool) {
	most, least = -1, -1
	for t := range m.x.Header.tokens("Content-Length") {
		n, err := strconv.ParseInt(t, 10, 64)
		if err != nil || t[0] == '+' || t[0] == '-' || n < int64(m.mark) {
			m.x.warnf(WarnLengthInvalid, "%.40q", t)
			unread = true
			continue
		}
		if most >= 0 && n != most {
			m.x.warnf(WarnLengthConflict, "%d and %d", most, n)
		}
		if most < 0 || n < least {
			least = n
		}
		most = max(most, n)
	}
	return most, least, unread
}

// readLength reads a body of n bytes. If least is less, the headers contradict
// one another and the body may also end there or with the connection.
func (m *message) readLength(n, least int64) (bodyEnd, error) {
	m.x.Payload = getBuffer(int(min(n, maxAnnounced, m.maxBody)))
	if least == n {
		return m.readData(n)
	}
	if end, err := m.readData(least); end != endFramed {
		return end, err
	}
	m.limit(settle)
	end, err := m.readData(n - least)
	m.limit(0)
	switch {
	case end == endBroken && err == io.EOF:
		return endClosed, nil
	case end == endBroken && isTimeout(err) && int64(len(m.x.Payload)) == least:
		return endSettled, nil
	case end == endFramed:
		return endClosed, nil // not to be trusted with another exchange
	}
	return end, err
}

// readAll reads to the connection's end or, if the head meant to say another
// end, to a long silence.
func (m *message) readAll(silence bool) (bodyEnd, error) {
	m.x.Payload = getBuffer(int(min(firstBody, m.maxBody)))
	if silence {
		m.quiet = quietBody
	}
	end, err := m.readData(-1)
	switch {
	case end == endBroken && err == io.EOF:
		return endClosed, nil
	case end == endBroken && silence && isTimeout(err) && time.Now().Before(m.deadline):
		return endSettled, nil
	}
	return end, err
}

// readData appends n bytes to the payload, or all there are if n is -1.
// endFramed means that they were read; endLimit that the payload is full and
// there are more.
func (m *message) readData(n int64) (bodyEnd, error) {
	x := m.x
	for n != 0 {
		room := m.maxBody - int64(len(x.Payload))
		if room == 0 {
			if n < 0 {
				// One byte tells a body of exactly maxBody from a longer one.
				if _, err := m.source.peek(1); err != nil {
					return endBroken, err
				}
			}
			return endLimit, nil
		}
		if n > 0 {
			room = min(room, n)
		}
		if len(x.Payload) == cap(x.Payload) {
			size := min(m.maxBody, max(2*int64(cap(x.Payload)), firstBody))
			if err := m.room(size); err != nil {
				return endBroken, err
			}
			x.Payload = growBuffer(x.Payload, int(size))
		}
		if m.quiet > 0 {
			m.limit(m.quiet)
		}
		free := x.Payload[len(x.Payload):cap(x.Payload)]
		got, err := m.source.readInto(free[:min(int64(len(free)), room)])
		x.Payload = x.Payload[:len(x.Payload)+got]
		if n > 0 {
			n -= int64(got)
		}
		if got > 0 && !m.testPrefix(false) {
			return endFiltered, nil
		}
		if err != nil {
			return endBroken, err
		}
	}
	return endFramed, nil
}

// room asks for the memory of a payload of so many bytes and of the framing.
func (m *message) room(payload int64) error {
	size, _ := bufferSize(int(payload))
	if all := int64(size + cap(m.x.framing.bytes)); all > ownBytes && m.grow != nil {
		return m.grow(all)
	}
	return nil
}

// testPrefix shows the body's beginning to onPrefix, once: as soon as there is
// enough of it, or at its end. It reports whether to go on.
func (m *message) testPrefix(end bool) bool {
	if m.prefixTested || m.onPrefix == nil || !end && len(m.x.Payload) < prefixLen {
		return true
	}
	m.prefixTested = true
	if m.onPrefix() {
		return true
	}
	m.x.Filtered = true
	return false
}

// limit calls wait, which tests may leave out.
func (m *message) limit(d time.Duration) {
	if m.wait != nil {
		m.wait(d)
	}
}
