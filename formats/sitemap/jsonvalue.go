package sitemap

import (
	"bufio"
	"errors"
	"io"
)

// maxValue bounds a value of a JSON Feed in memory, in bytes. The value is an item or a member of
// the feed itself. Longer values are skipped.
const maxValue = 1 << 20

// errJSON is a syntax error.
var errJSON = errors.New("malformed JSON")

// jsonStream splits JSON into values and holds one value at a time, of at most maxValue bytes. It
// finds where values end; encoding/json checks what they contain.
type jsonStream struct {
	r   *bufio.Reader
	buf []byte
}

// next skips white space and returns the byte after it, which stays unread.
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

// delim reads the delimiter want. Anything else is an error.
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

// more reads the comma before another member or element and returns true. After the last one it
// reads the closing delimiter and returns false.
func (s *jsonStream) more(end byte) (bool, error) {
	c, err := s.next()
	switch {
	case err != nil:
		return false, err
	case c == end:
		return false, s.delim(end)
	case c == ',':
		if err = s.delim(','); err == nil {
			if c, err = s.next(); err == nil && c == end { // a superfluous comma
				return false, s.delim(end)
			}
		}
	}
	return err == nil, err
}

// value reads a value, which is valid until the next call. It returns nil if the value is too long.
func (s *jsonStream) value() ([]byte, error) {
	s.buf = s.buf[:0]
	long := false
	var in nesting
	if _, err := s.next(); err != nil {
		return nil, err
	}
	for {
		c, err := s.r.ReadByte()
		if err == io.EOF && in == (nesting{}) && len(s.buf) > 0 {
			return s.buf, nil // a number at the end of the file
		}
		if err != nil {
			return nil, err
		}
		if in == (nesting{}) {
			switch c {
			case ',', ':', ']', '}', ' ', '\t', '\r', '\n': // the end of a number or a literal
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

// nesting is the position of a byte in JSON: the depth of objects and lists, whether it is in a
// string, and whether it follows a backslash. The zero value is outside everything.
type nesting struct {
	depth           int
	quoted, escaped bool
}

// add reads a byte and reports whether it ends the outermost string, object or list.
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
