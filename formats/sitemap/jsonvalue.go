package sitemap

import (
	"bufio"
	"errors"
	"io"
)

// maxValue bounds a value of a JSON Feed that is held in memory, bytes: an item, or
// what the feed says of itself. A longer one is passed over.
const maxValue = 1 << 20

// errJSON: what stands there cannot stand there in JSON.
var errJSON = errors.New("malformed JSON")

// jsonStream takes JSON apart and holds one value of it at a time, at most maxValue
// bytes. It finds where values end; encoding/json checks what is in them.
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
	var in nesting
	if _, err := s.next(); err != nil {
		return nil, err
	}
	for {
		c, err := s.r.ReadByte()
		if err == io.EOF && in == (nesting{}) && len(s.buf) > 0 {
			return s.buf, nil // a number, which the end of the file ends
		}
		if err != nil {
			return nil, err
		}
		if in == (nesting{}) {
			switch c {
			case ',', ':', ']', '}', ' ', '\t', '\r', '\n': // it ends a number or a literal
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

// nesting is what a byte of JSON stands in: objects and lists, a string, behind a
// backslash. The zero value is none of them.
type nesting struct {
	depth           int
	quoted, escaped bool
}

// add takes a byte and reports whether the outermost string, object or list ends with it.
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
