package wire

import (
	"strings"
	"unicode/utf8"
)

// Field is one header line.
type Field struct {
	Name  string // as written by the peer, without surrounding white space
	Value string // likewise; the octets as received, so not always valid UTF-8 (see Text)
}

// Header is a list of header fields in their order on the wire, repeated names
// and the peer's spelling of them kept.
type Header []Field

// Get returns the first value of name, whatever its case, or "".
func (h Header) Get(name string) string {
	v, _ := h.Lookup(name)
	return v
}

// Lookup is Get that tells an empty value from an absent field.
func (h Header) Lookup(name string) (string, bool) {
	for i := range h {
		if len(h[i].Name) == len(name) && strings.EqualFold(h[i].Name, name) {
			return h[i].Value, true
		}
	}
	return "", false
}

// Values calls yield with every value of name in order.
func (h Header) Values(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range h {
			if len(h[i].Name) == len(name) && strings.EqualFold(h[i].Name, name) && !yield(h[i].Value) {
				return
			}
		}
	}
}

// tokens calls yield with every element, trimmed, of the comma-separated lists
// that name's fields hold together (RFC 9110, 5.6.1); empty elements are skipped.
func (h Header) tokens(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for v := range h.Values(name) {
			for t := range strings.SplitSeq(v, ",") {
				if t = strings.Trim(t, " \t"); t != "" && !yield(t) {
					return
				}
			}
		}
	}
}

// Text makes a header value valid UTF-8: as it is if it is valid, else read as
// Latin-1, as RFC 9110, 5.5 says of old.
func Text(v string) string {
	if utf8.ValidString(v) {
		return v
	}
	r := make([]rune, 0, len(v))
	for i := range len(v) {
		r = append(r, rune(v[i]))
	}
	return string(r)
}
