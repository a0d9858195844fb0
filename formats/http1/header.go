package http1

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// Field is one header line.
type Field struct {
	Name  string // as the peer wrote it, without surrounding white space
	Value string // as the peer wrote it, trimmed; may be invalid UTF-8 (see Text)
}

// Header lists header fields in the order in which they were received or are sent. Names may repeat
// and keep the peer's spelling.
type Header []Field

// Get returns the first value of name, ignoring case, or "".
func (h Header) Get(name string) string {
	v, _ := h.Lookup(name)
	return v
}

// Lookup is like Get, and also reports whether the field exists.
func (h Header) Lookup(name string) (string, bool) {
	for v := range h.Values(name) {
		return v, true
	}
	return "", false
}

// Values iterates over the values of name, in the order of the fields.
func (h Header) Values(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range h {
			if len(h[i].Name) == len(name) && strings.EqualFold(h[i].Name, name) && !yield(h[i].Value) {
				return
			}
		}
	}
}

// Tokens iterates over the elements of the comma-separated lists in all fields called name (RFC
// 9110, 5.6.1). Elements are trimmed, and empty ones skipped.
func (h Header) Tokens(name string) iter.Seq[string] {
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

// Text makes a header value valid UTF-8. It reads an invalid value as Latin-1, the historical
// encoding (RFC 9110, 5.5).
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

// IsToken reports whether s is a token (RFC 9110, 5.6.2), as field names must be.
func IsToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}
