package http1

import (
	"bytes"
	"errors"
	"io"

	"crawlbatch.io/crawlbatch/formats/http1/buffers"
)

// sourceSize is the size of the read buffer in bytes, enough for a usual head and the beginning of
// a body.
const sourceSize = 16 << 10

// errLong means that a line is longer than allowed.
var errLong = errors.New("line too long")

// source is a buffered reader that lets its users see the buffer. It counts the bytes read and
// remembers the error that ended the stream.
type source struct {
	in         io.Reader
	buf        []byte
	start, end int   // the bytes buf[start:end] are not consumed yet
	n          int64 // bytes read from the stream so far
	err        error // error that ended the stream; nil before the end
}

func (s *source) buffered() int { return s.end - s.start }

// release returns the buffer to the pool. Unread bytes are lost.
func (s *source) release() {
	buffers.Put(s.buf)
	s.buf, s.start, s.end = nil, 0, 0
}

// fill reads at least one more byte into the buffer. The buffer must not be full.
func (s *source) fill() error {
	if s.err != nil {
		return s.err
	}
	if s.buf == nil {
		s.buf = buffers.Get(sourceSize)
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

// read reads at least one byte from the stream or returns an error. If the stream returns both,
// read keeps the error for the next call.
func (s *source) read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	for range 100 {
		n, err := s.in.Read(p)
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

// peek returns n bytes (at most sourceSize) without consuming them. If fewer bytes are left, it
// returns them and the error that ended the stream.
func (s *source) peek(n int) ([]byte, error) {
	for s.buffered() < n {
		if err := s.fill(); err != nil {
			return s.buf[s.start:s.end], err
		}
	}
	return s.buf[s.start : s.start+n], nil
}

// peekLine returns up to n bytes before the next line feed without consuming them. At the end of
// the stream there may be fewer.
func (s *source) peekLine(n int) ([]byte, error) {
	for {
		b := s.buf[s.start:s.end]
		b = b[:min(len(b), n)] // the result must not depend on how much has arrived
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

func (s *source) discard(n int) { s.start += n }

// appendLine appends to dst the bytes up to and including a line feed, but at most limit bytes. If
// it returns errLong, it has appended limit bytes. If it returns another error, it has appended all
// bytes before that error.
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
			dst = buffers.Grow(dst, max(len(dst)+n, 2*len(dst)))
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

// readInto reads available bytes into p: from the buffer, or from the stream if the buffer is
// empty.
func (s *source) readInto(p []byte) (int, error) {
	if s.buffered() > 0 {
		n := copy(p, s.buf[s.start:s.end])
		s.start += n
		return n, nil
	}
	return s.read(p)
}
