package sitemap

import (
	"bufio"
	"errors"
	"io"
)

// maxValue is the length of the longest value that is held in memory, in bytes: an item, or a member
// of the feed itself. Longer values are skipped.
const maxValue = 1 << 20

// errJSON is a syntax error in JSON.
var errJSON = errors.New("malformed JSON")

// jsonStream splits JSON into values and holds one value of at most maxValue bytes at a time. It only
// finds the ends of values. Package encoding/json checks their contents.
type jsonStream struct {
	r   *bufio.Reader
	buf []byte
}

// peekByte skips white space and returns the byte that follows. The byte stays in the input.
func (s *jsonStream) peekByte() (byte, error) {
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

// delim reads one byte and returns an error if the byte is not want.
func (s *jsonStream) delim(want byte) error {
	c, err := s.peekByte()
	if err != nil {
		return err
	}
	if c != want {
		return errJSON
	}
	_, err = s.r.Discard(1)
	return err
}

// hasMore reads the comma before the next member or element, if any, and returns true. At the end of
// the object or list it reads the closing delimiter end and returns false.
func (s *jsonStream) hasMore(end byte) (bool, error) {
	c, err := s.peekByte()
	switch {
	case err != nil:
		return false, err
	case c == end:
		return false, s.delim(end)
	case c == ',':
		if err = s.delim(','); err == nil {
			if c, err = s.peekByte(); err == nil && c == end { // some files have a comma before the closing delimiter
				return false, s.delim(end)
			}
		}
	}
	return err == nil, err
}

// value reads a value. The result is valid until the next call. It is nil if the value is longer than
// maxValue.
func (s *jsonStream) value() ([]byte, error) {
	s.buf = s.buf[:0]
	long := false
	var in nesting
	if _, err := s.peekByte(); err != nil {
		return nil, err
	}
	for {
		c, err := s.r.ReadByte()
		if err == io.EOF && in == (nesting{}) && len(s.buf) > 0 {
			return s.buf, nil // a number may end where the file ends
		}
		if err != nil {
			return nil, err
		}
		if in == (nesting{}) {
			switch c {
			case ',', ':', ']', '}', ' ', '\t', '\r', '\n': // a delimiter or white space ends a number or a literal
				if len(s.buf) == 0 {
					return nil, errJSON
				}
				if err := s.r.UnreadByte(); err != nil || long {
					return nil, err
				}
				return s.buf, nil
			case '"', '{', '[':
				if len(s.buf) > 0 {
					return nil, errJSON
				}
			}
		}
		ended := in.add(c)
		if len(s.buf) < maxValue {
			s.buf = append(s.buf, c)
		} else {
			long = true
		}
		switch {
		case ended && long:
			return nil, nil
		case ended:
			return s.buf, nil
		}
	}
}

// nesting describes the position of the next byte in a JSON value: its depth in objects and lists,
// whether it is in a string, and whether a backslash escapes it. The zero value describes the
// beginning of a value.
type nesting struct {
	depth           int
	quoted, escaped bool
}

// add moves the position past the byte c, and reports whether c ends the outermost string, object or
// list.
func (n *nesting) add(c byte) (ended bool) {
	switch {
	case n.escaped:
		n.escaped = false
	case n.quoted:
		n.escaped, n.quoted = c == '\\', c != '"'
		return !n.quoted && n.depth == 0
	case c == '"':
		n.quoted = true
	case c == '{' || c == '[':
		n.depth++
	case c == '}' || c == ']':
		n.depth--
		return n.depth == 0
	}
	return false
}
