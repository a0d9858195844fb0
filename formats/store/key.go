package store

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Reserved must not be the first element of a key. A directory store keeps temporary files and
// locks in the folder Reserved.
const Reserved = ".tmp"

// These constants bound keys, in bytes. A whole key leaves room for a prefix within the 1,024 bytes
// that S3 allows. An element of a key is short enough to be a file name.
const (
	maxKey     = 900
	maxElement = 255
)

// CheckKey checks that key may name an object in every kind of store. A key is UTF-8 without
// control characters. Slashes separate its elements, and no element is empty, "." or "..". The
// first element is not Reserved. A key has at most 900 bytes, and an element at most 255. CheckKey
// returns ErrKey.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty", ErrKey)
	case len(key) > maxKey:
		return fmt.Errorf("%w %.40q…: %d bytes, at most %d are allowed", ErrKey, key, len(key), maxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w %q: it is not UTF-8", ErrKey, key)
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("%w %q: it has a control character", ErrKey, key)
	}
	first := true
	for element := range strings.SplitSeq(key, "/") {
		switch {
		case element == "" || element == "." || element == "..":
			return fmt.Errorf("%w %q: it has the element %q", ErrKey, key, element)
		case len(element) > maxElement:
			return fmt.Errorf("%w %q: an element has more than %d bytes", ErrKey, key, maxElement)
		case first && element == Reserved:
			return fmt.Errorf("%w %q: %q is reserved", ErrKey, key, Reserved)
		}
		first = false
	}
	return nil
}

// CheckPrefix checks that prefix may be listed. The folders of a prefix obey CheckKey. The text
// after the last slash may be empty or the beginning of any name.
func CheckPrefix(prefix string) error {
	folder, name := "", prefix
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		folder, name = prefix[:i], prefix[i+1:]
		if err := CheckKey(folder); err != nil {
			return err
		}
	}
	switch name {
	case "", ".", "..", Reserved:
		return nil
	}
	return CheckKey(name)
}
