package wire

import (
	"bytes"
	"io"
)

// maxChunkLine bounds a chunk-size line with its extensions, in bytes.
const maxChunkLine = 4 << 10

// readChunks reads a chunked body (RFC 9112, 7.1), leniently: lines may end in a
// bare LF and sizes have spaces around them, and the line break after data may
// lack. If the body does not begin with a chunk size it is not chunked, whatever
// the header says; length is the Content-Length then, or -1.
func (m *message) readChunks(length int64) (bodyEnd, error) {
	x := m.x
	x.Payload = getBuffer(int(min(firstBody, m.maxBody)))
	for first := true; ; first = false {
		size, err := m.readChunkSize()
		switch {
		case err == errChunkSize && first:
			x.warn(WarnNotChunked)
			return m.readUnchunked(length)
		case err == errChunkSize:
			x.warnf(WarnChunkInvalid, "after %d bytes", len(x.Payload))
			return endBroken, nil
		case err == errFraming:
			x.warn(WarnChunkOverhead)
			return endLimit, nil
		case err != nil && first && len(x.framing.bytes) > 0 && err == io.EOF:
			x.warn(WarnNotChunked) // a short body without a line feed
			return m.readUnchunked(length)
		case err != nil:
			return endBroken, err
		}
		if size == 0 {
			return m.readTrailer()
		}
		end, err := m.readData(size)
		x.framing.mark(len(x.Payload))
		if end != endFramed {
			return end, err
		}
		if err := m.readChunkEnd(); err != nil {
			return endBroken, err
		}
	}
}

type chunkError string

func (e chunkError) Error() string { return string(e) }

const (
	errChunkSize = chunkError("not a chunk size")
	errFraming   = chunkError("too much chunk framing")
)

// readChunkSize reads a chunk-size line into the framing.
func (m *message) readChunkSize() (int64, error) {
	f := &m.x.framing
	start := len(f.bytes)
	var err error
	f.bytes, err = m.source.appendLine(f.bytes, min(maxChunkLine, maxFraming-start))
	if err == nil && cap(f.bytes) > m.framed {
		m.framed = cap(f.bytes)
		err = m.room(int64(cap(m.x.Payload)))
	}
	switch {
	case err == errLong && len(f.bytes) >= maxFraming:
		return 0, errFraming
	case err == errLong:
		return 0, errChunkSize
	case err != nil:
		return 0, err
	}
	size, odd, ok := parseChunkSize(f.bytes[start:])
	if !ok {
		return 0, errChunkSize
	}
	if odd {
		m.x.warn(WarnChunkLine)
	}
	return size, nil
}

// parseChunkSize reads "1f;ext=1\r\n". odd tells that it was not quite so.
func parseChunkSize(line []byte) (size int64, odd, ok bool) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	n := len(line)
	line = bytes.TrimRight(line, "\r")
	odd = len(line) == n
	if i := bytes.IndexByte(line, ';'); i >= 0 {
		line = line[:i]
	}
	trimmed := bytes.Trim(line, " \t")
	odd = odd || len(trimmed) != len(line)
	trimmed = bytes.TrimLeft(trimmed, "0")
	if len(trimmed) == 0 {
		return 0, odd, bytes.IndexByte(line, '0') >= 0
	}
	if len(trimmed) > 15 { // 60 bits; no body is that long
		return 0, odd, false
	}
	for _, c := range trimmed {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, odd, false
		}
		size = size<<4 | int64(c)
	}
	return size, odd, true
}

// readChunkEnd takes the line break after a chunk's data into the framing, if
// it is there.
func (m *message) readChunkEnd() error {
	f, s := &m.x.framing, m.source
	b, err := s.peek(1)
	if err != nil {
		return err
	}
	n := 0
	switch b[0] {
	case '\n':
		n = 1
	case '\r':
		if b, err = s.peek(2); err != nil {
			return err
		}
		if n = 1; b[1] == '\n' {
			n = 2
		}
	}
	if n != 2 {
		m.x.warn(WarnChunkEnd)
	}
	f.bytes = append(f.bytes, b[:n]...)
	s.discard(n)
	return nil
}

// readTrailer reads what follows the last chunk up to an empty line. The body
// is whole by then, whatever becomes of its trailer section.
func (m *message) readTrailer() (bodyEnd, error) {
	f := &m.x.framing
	if m.source.buffered() == 0 {
		m.limit(settle)
		defer m.limit(0)
	}
	for {
		start := len(f.bytes)
		var err error
		f.bytes, err = m.source.appendLine(f.bytes, min(maxChunkLine, maxFraming-start))
		if err != nil {
			m.x.warn(WarnTrailer)
			return endSettled, nil
		}
		if len(bytes.TrimRight(f.bytes[start:], "\r\n")) == 0 {
			return endFramed, nil
		}
	}
}

// readUnchunked makes the framing that has been read so far, which is none, the
// beginning of the payload and reads the rest.
func (m *message) readUnchunked(length int64) (bodyEnd, error) {
	x := m.x
	taken := x.framing.bytes
	if length >= 0 && int64(len(taken)) > length {
		taken = taken[:length]
	}
	x.Payload = append(x.Payload, taken...)
	putBuffer(x.framing.bytes)
	x.framing = framing{}
	var end bodyEnd
	var err error
	switch {
	case int64(len(x.Payload)) > m.maxBody:
		x.Payload = x.Payload[:m.maxBody]
		end = endLimit
	case length >= 0:
		end, err = m.readData(length - int64(len(x.Payload)))
	default:
		end, err = m.readData(-1)
	}
	if end == endFramed || end == endBroken && err == io.EOF && length < 0 {
		return endClosed, nil // no exchange after this one
	}
	return end, err
}
