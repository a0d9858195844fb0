package wire

import (
	"bytes"
	"errors"
	"io"
)

// sourceSize is the size of a connection's read buffer in bytes: a usual head
// and the beginning of a body.
const sourceSize = 16 << 10

// errLong: a line did not end within the bytes allowed for it.
var errLong = errors.New("line too long")

// source is a buffered reader that hands out its buffer, counts what it read,
// and remembers how the stream ended.
type source struct {
	r          io.Reader
	buf        []byte
	start, end int   // buf[start:end] is unread
	n          int64 // bytes read from r
	err        error // the end of the stream, once met
}

func newSource(r io.Reader) *source { return &source{r: r} }

func (s *source) buffered() int { return s.end - s.start }

// rest gives the buffer back at the end of an exchange. What is left in it is
// lost; a connection with anything left must not be used again.
func (s *source) rest() {
	putBuffer(s.buf)
	s.buf, s.start, s.end = nil, 0, 0
}

// fill reads at least one byte more into the buffer. The buffer must not be full.
func (s *source) fill() error {
	if s.err != nil {
		return s.err
	}
	if s.buf == nil {
		s.buf = getBuffer(sourceSize)
		s.buf = s.buf[:cap(s.buf)]
	}
	if s.start > 0 {
		copy(s.buf, s.buf[s.start:s.end])
		s.start, s.end = 0, s.end-s.start
	}
	n, err := s.read(s.buf[s.end:])
	s.end += n
	if n > 0 {
		return nil
	}
	return err
}

// read reads from the stream at least one byte or returns an error; bytes that
// come with an error are returned without it, and it is kept for the next call.
func (s *source) read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	for range 100 {
		n, err := s.r.Read(p)
		s.n += int64(n)
		s.err = err
		if n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
	s.err = io.ErrNoProgress
	return 0, s.err
}

// peek returns up to n bytes (at most sourceSize) without consuming them: fewer
// only with the error that ended the stream.
func (s *source) peek(n int) ([]byte, error) {
	for s.buffered() < n {
		if err := s.fill(); err != nil {
			return s.buf[s.start:s.end], err
		}
	}
	return s.buf[s.start : s.start+n], nil
}

func (s *source) discard(n int) { s.start += n }

// appendLine appends bytes to dst up to and with a line feed, at most limit of
// them. On errLong dst has limit bytes more, on another error those before it.
func (s *source) appendLine(dst []byte, limit int) ([]byte, error) {
	for {
		b := s.buf[s.start:s.end]
		i := bytes.IndexByte(b, '\n')
		n := i + 1
		if i < 0 {
			n = len(b)
		}
		if n > limit {
			n, i = limit, -1
		}
		if len(dst)+n > cap(dst) {
			dst = growBuffer(dst, max(len(dst)+n, 2*len(dst)))
		}
		dst = append(dst, b[:n]...)
		s.start += n
		limit -= n
		switch {
		case i >= 0:
			return dst, nil
		case limit == 0:
			return dst, errLong
		}
		if err := s.fill(); err != nil {
			return dst, err
		}
	}
}

// readInto reads what is there into p: from the buffer first, else from the
// stream directly.
func (s *source) readInto(p []byte) (int, error) {
	if s.buffered() > 0 {
		n := copy(p, s.buf[s.start:s.end])
		s.start += n
		return n, nil
	}
	return s.read(p)
}
