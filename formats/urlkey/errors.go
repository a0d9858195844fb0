package urlkey

import (
	"errors"
	"fmt"
)

// Every error of this package wraps one of these.
var (
	// ErrNotURL: the URL Standard's parser fails, or a relative reference has no base.
	ErrNotURL = errors.New("not a URL")
	// ErrScheme: the URL has a scheme other than http and https, such as mailto.
	ErrScheme = errors.New("scheme is not http or https")
	// ErrHost: the host is neither an IP address nor a name that DNS could hold, or the port is 0,
	// on which nothing listens. A name has labels of 1 to 63 letters, digits, hyphens and
	// underscores, with at most 253 octets in total (RFC 1035, 2.3.4; underscores are common in
	// practice).
	ErrHost = errors.New("host cannot be looked up and connected to")
	// ErrTooLong: the canonical form has more than MaxLength octets.
	ErrTooLong = errors.New("URL is too long")
	// ErrPattern: a pattern passed to New is not a pattern of parameter names.
	ErrPattern = errors.New("bad pattern of a parameter name")
)

// MaxLength is the length of the longest canonical URL, in octets. RFC 9110, 4.1 asks for support
// of 8,000. Servers rarely accept more.
const MaxLength = 8192

// maxRaw bounds the input that is parsed, in octets. Longer input gives ErrTooLong, even if
// stripping could shorten it.
const maxRaw = 64 << 10

// quoted quotes input for errors. The result is bounded and has no control characters or
// credentials.
func quoted(s string) string {
	const limit = 120
	s = WithoutCredentials(s)
	if len(s) > limit {
		return fmt.Sprintf("%.*q… (%d octets)", limit, s[:limit], len(s))
	}
	return fmt.Sprintf("%q", s)
}
