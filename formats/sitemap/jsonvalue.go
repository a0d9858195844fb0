package sitemap

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxValue bounds a value of a JSON Feed that is held in memory, bytes: an item, or
// what the feed says of itself. A longer one is passed over.
const maxValue = 1 << 20

// errJSON: what stands there cannot stand there in JSON.
var errJSON = errors.New("malformed JSON")

// jsonStream takes JSON apart without holding more than one value of it, and of that
// no more than maxValue. It finds where values end; whether they are well-formed
// within, encoding/json says.
type jsonStream struct {
	r   *bufio.Reader
	buf []byte
}

// next is the next byte that is no white space. It stays unread.
func (s *jsonStream) next() (byte, error) {
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return c, s.r.UnreadByte()
	}
}

// delim takes a delimiter; anything else is an error.
func (s *jsonStream) delim(want byte) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != want {
		return errJSON
	}
	_, err = s.r.Discard(1)
	return err
}

// more takes the comma before another member or element, if there is one, or the
// delimiter that ends them.
func (s *jsonStream) more(end byte) (bool, error) {
	c, err := s.next()
	switch {
	case err != nil:
		return false, err
	case c == end:
		return false, s.delim(end)
	case c == ',':
		if err = s.delim(','); err == nil {
			if c, err = s.next(); err == nil && c == end { // a comma too many
				return false, s.delim(end)
			}
		}
	}
	return err == nil, err
}

// value takes a value, which stays valid up to the next call; nil if it is too long.
func (s *jsonStream) value() ([]byte, error) {
	s.buf = s.buf[:0]
	long := false
	quoted, escaped, depth := false, false, 0
	if _, err := s.next(); err != nil {
		return nil, err
	}
	for {
		c, err := s.r.ReadByte()
		if err == io.EOF && depth == 0 && !quoted && len(s.buf) > 0 {
			return s.buf, nil // a number, which the end of the file ends
		}
		if err != nil {
			return nil, err
		}
		ended := false
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped = c == '\\'
			quoted = c != '"'
			ended = !quoted && depth == 0
		case c == '"':
			if depth == 0 && len(s.buf) > 0 {
				return nil, errJSON
			}
			quoted = true
		case c == '{' || c == '[':
			if depth == 0 && len(s.buf) > 0 {
				return nil, errJSON
			}
			depth++
		case depth > 0:
			if c == '}' || c == ']' {
				depth--
				ended = depth == 0
			}
		case bytes.IndexByte([]byte(",:]} \t\r\n"), c) >= 0: // it ends what stands bare before it
			if len(s.buf) == 0 {
				return nil, errJSON
			}
			if err := s.r.UnreadByte(); err != nil || long {
				return nil, err
			}
			return s.buf, nil
		}
		if len(s.buf) < maxValue {
			s.buf = append(s.buf, c)
		} else {
			long = true
		}
		if ended {
			if long {
				return nil, nil
			}
			return s.buf, nil
		}
	}
}
