package store

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Reserved is the name of the folder in which a directory store keeps temporary files and locks. No
// key begins with this element.
const Reserved = ".tmp"

const (
	maxKey     = 900 // longest key, in bytes; S3 allows 1,024 with the prefix of the store
	maxElement = 255 // longest element of a key, in bytes: the longest file name on most file systems
)

// CheckKey returns ErrKey unless key may name an object in every kind of store. A key is UTF-8
// without control characters. Slashes separate its elements, and no element is empty, "." or "..".
// The first element is not Reserved. A key has at most 900 bytes, and an element at most 255.
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

// CheckPrefix returns ErrKey unless prefix may be listed. The text before the last slash of a prefix
// must be a valid key. The text after it may be empty or the beginning of any element.
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
