package http1

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"crawlbatch.io/crawlbatch/formats/http1/buffers"
)

// maxChunkLine is the longest chunk-size line with its extensions, in bytes.
const maxChunkLine = 4 << 10

// readChunks reads a chunked body (RFC 9112, 7.1). It accepts lines that end in a bare LF, spaces
// around sizes, and chunks without a line break after their data. If the body does not begin with a
// chunk size, it is read as plain data of the given length. A length of -1 means up to the end of
// the connection.
func (m *Reader) readChunks(length int64) (bodyEnd, error) {
	r := m.r
	r.Payload = buffers.Get(int(min(firstBody, m.MaxBody)))
	for first := true; ; first = false {
		size, err := m.readChunkSize()
		switch {
		case err == errChunkSize && first:
			r.Warn(WarnNotChunked)
			return m.readUnchunked(length)
		case err == errChunkSize:
			r.Warnf(WarnChunkInvalid, "after %d bytes", m.got())
			return endBroken, nil
		case err == errFraming:
			r.Warn(WarnChunkOverhead)
			return endLimit, nil
		case err != nil && first && len(r.framing.bytes) > 0 && err == io.EOF:
			r.Warn(WarnNotChunked) // a short body without a line feed cannot be chunked
			return m.readUnchunked(length)
		case err != nil:
			return endBroken, err
		}
		if size == 0 {
			return m.readTrailer()
		}
		end, err := m.readData(size)
		r.endSpan()
		if end != endFramed {
			return end, err
		}
		if err := m.readChunkEnd(); err != nil {
			return endBroken, err
		}
	}
}

var (
	errChunkSize = errors.New("not a chunk size")
	errFraming   = errors.New("too much chunk framing")
)

// lineRoom returns how long the next line of the framing may be, in bytes. The line break after a chunk
// may have exceeded maxFraming by a byte or two, so that no room is left.
func (m *Reader) lineRoom() int {
	return max(0, min(maxChunkLine, m.maxFraming-len(m.r.framing.bytes)))
}

// readChunkSize reads a chunk-size line into the framing.
func (m *Reader) readChunkSize() (int64, error) {
	f := &m.r.framing
	start := len(f.bytes)
	var err error
	f.bytes, err = m.appendLine(f.bytes, m.lineRoom())
	if err == nil && cap(f.bytes) > m.grantedFraming {
		m.grantedFraming = cap(f.bytes)
		err = m.reserve(int64(cap(m.r.Payload)))
	}
	switch {
	case err == errLong && len(f.bytes) >= m.maxFraming:
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
		m.r.Warn(WarnChunkLine)
	}
	return size, nil
}

// parseChunkSize parses "1f;ext=1\r\n". odd tells whether the size has spaces around it or the line
// has no CR.
func parseChunkSize(line []byte) (size int64, odd, ok bool) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	odd = !bytes.HasSuffix(line, []byte("\r"))
	line = bytes.TrimRight(line, "\r")
	if i := bytes.IndexByte(line, ';'); i >= 0 {
		line = line[:i]
	}
	trimmed := bytes.Trim(line, " \t")
	odd = odd || len(trimmed) != len(line)
	trimmed = bytes.TrimLeft(trimmed, "0")
	if len(trimmed) == 0 {
		return 0, odd, bytes.IndexByte(line, '0') >= 0
	}
	n, err := strconv.ParseUint(string(trimmed), 16, 60) // 60 bits are enough for the length of any body
	return int64(n), odd, err == nil
}

// readChunkEnd reads the line break after a chunk's data into the framing. The line break may be
// missing.
func (m *Reader) readChunkEnd() error {
	f := &m.r.framing
	b, err := m.peek(1)
	if err != nil {
		return err
	}
	n := 0
	switch b[0] {
	case '\n':
		n = 1
	case '\r':
		if b, err = m.peek(2); err != nil {
			return err
		}
		if n = 1; b[1] == '\n' {
			n = 2
		}
	}
	if n != 2 {
		m.r.Warn(WarnChunkEnd)
	}
	f.bytes = append(f.bytes, b[:n]...)
	m.discard(n)
	return nil
}

// readTrailer reads the lines after the last chunk up to an empty line. If they break off, the body
// is complete all the same.
func (m *Reader) readTrailer() (bodyEnd, error) {
	f := &m.r.framing
	if m.buffered() == 0 {
		m.wait(settleTime)
		defer m.wait(0)
	}
	for {
		start := len(f.bytes)
		var err error
		f.bytes, err = m.appendLine(f.bytes, m.lineRoom())
		if err != nil {
			m.r.Warn(WarnTrailer)
			return endSettled, nil
		}
		if len(bytes.TrimRight(f.bytes[start:], "\r\n")) == 0 {
			return endFramed, nil
		}
	}
}

// readUnchunked moves the bytes that were read as framing to the payload, and reads the rest as
// plain data.
func (m *Reader) readUnchunked(length int64) (bodyEnd, error) {
	r := m.r
	taken := r.framing.bytes
	if length >= 0 && int64(len(taken)) > length {
		taken = taken[:length]
	}
	r.Payload = append(r.Payload, taken...)
	buffers.Put(r.framing.bytes)
	r.framing = framing{}
	m.pour()
	var end bodyEnd
	var err error
	switch {
	case m.got() > m.MaxBody:
		r.Payload = r.Payload[:max(0, m.MaxBody-m.sunk)]
		end = endLimit
	case length >= 0:
		end, err = m.readData(length - m.got())
	default:
		end, err = m.readData(-1)
	}
	if end == endFramed || end == endBroken && err == io.EOF && length < 0 {
		return endClosed, nil // the connection is not reused
	}
	return end, err
}
