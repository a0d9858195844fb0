// Package mediatype reads Content-Type fields, and maps media ranges to values (RFC 9110, 8.3 and
// 12.5.1).
//
// A media range is a pattern for media types: a type such as text/html, a wildcard such as image/* or
// */*, or a wildcard with a structured suffix (RFC 6838, 4.2.8) such as application/*+xml. If several
// ranges match a media type, the most specific one applies. The package imports no other package of
// this project.
package mediatype

import (
	"errors"
	"fmt"
	"strings"
)

// ErrRange means that a text is not a media range.
var ErrRange = errors.New("not a media range: write type/subtype, type/*, type/*+suffix or */*, in lower case, without parameters")

const (
	maxPart  = 127           // longest type or subtype, in bytes (RFC 6838, 4.2)
	maxRange = 2*maxPart + 1 // longest media range, in bytes
)

// Check returns an error that wraps ErrRange unless r is a media range.
func Check(r string) error {
	main, sub, ok := strings.Cut(r, "/")
	suffix, ranged := strings.CutPrefix(sub, "*")
	switch {
	case !ok || len(r) > maxRange || strings.ToLower(r) != r:
	case r == "*/*":
		return nil
	case !token(main):
	case ranged && (suffix == "" || suffix[0] == '+' && token(suffix[1:])):
		return nil
	case !ranged && token(sub):
		return nil
	}
	return fmt.Errorf("%q: %w", r, ErrRange)
}

// token reports whether s is a restricted name (RFC 6838, 4.2), which has no asterisk.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && strings.IndexByte("!#$&-^_.+", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// Essence returns the media type of a Content-Type field in lower case, without parameters, or "" if
// there is none. If the field holds several types, separated by commas, Essence returns the first.
func Essence(contentType string) string {
	if i := strings.IndexAny(contentType, ";,"); i >= 0 {
		contentType = contentType[:i]
	}
	t := strings.ToLower(strings.TrimSpace(contentType))
	main, sub, ok := strings.Cut(t, "/")
	if !ok || !httpToken(main) || !httpToken(sub) {
		return ""
	}
	return t
}

// httpToken reports whether s is a token (RFC 9110, 5.6.2) of at most maxPart bytes.
func httpToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7F || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != "" && len(s) <= maxPart
}

// Charset returns the value of the charset parameter of a Content-Type field, without quotes, or "" if
// there is none. The rest of the field may be malformed.
func Charset(contentType string) string {
	for {
		i := strings.IndexByte(contentType, ';')
		if i < 0 {
			return ""
		}
		contentType = contentType[i+1:]
		key, value, ok := strings.Cut(contentType, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(key), "charset") {
			continue
		}
		value = strings.TrimSpace(value)
		if i := strings.IndexAny(value, ";, \t"); i >= 0 {
			value = value[:i]
		}
		return strings.Trim(value, `"'`)
	}
}

// Ranges maps media ranges to values. The zero value is empty. Several goroutines may call Lookup at
// the same time, but not Set.
type Ranges[T any] struct{ values map[string]T }

// Set sets the value of a media range. If the range is malformed, the error wraps ErrRange.
func (r *Ranges[T]) Set(mediaRange string, v T) error {
	if err := Check(mediaRange); err != nil {
		return err
	}
	if r.values == nil {
		r.values = map[string]T{}
	}
	r.values[mediaRange] = v
	return nil
}

// Lookup returns the value of the most specific range that matches a media type in lower case,
// without parameters. It tries four ranges in turn, such as application/rss+xml, application/*+xml,
// application/* and */*. ok is false if no range matches.
func (r *Ranges[T]) Lookup(mediaType string) (v T, ok bool) {
	if v, ok = r.values[mediaType]; ok {
		return v, true
	}
	if main, sub, found := strings.Cut(mediaType, "/"); found {
		if i := strings.LastIndexByte(sub, '+'); i >= 0 {
			if v, ok = r.values[main+"/*"+sub[i:]]; ok {
				return v, true
			}
		}
		if v, ok = r.values[main+"/*"]; ok {
			return v, true
		}
	}
	v, ok = r.values["*/*"]
	return v, ok
}
