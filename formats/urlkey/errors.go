package urlkey

import (
	"errors"
	"fmt"
)

// Every error of this package wraps one of these.
var (
	// ErrNotURL: the URL Standard's parser fails, or the reference is relative and there is
	// no base.
	ErrNotURL = errors.New("not a URL")
	// ErrScheme: a URL of another scheme than http and https, such as mailto.
	ErrScheme = errors.New("scheme is not http or https")
	// ErrHost: the host is neither an IP address nor a name that DNS could hold:
	// labels of 1 to 63 letters, digits, hyphens and underscores, at most 253
	// octets together (RFC 1035, 2.3.4; underscores are common in practice). Or the port
	// is 0, which nothing listens on.
	ErrHost = errors.New("host cannot be looked up and connected to")
	// ErrTooLong: the canonical form has more than MaxLength octets.
	ErrTooLong = errors.New("URL is too long")
	// ErrPattern: a pattern given to New is not one of parameter names.
	ErrPattern = errors.New("bad pattern of a parameter name")
)

// MaxLength is the length of the longest canonical URL, in octets. RFC 9110, 4.1
// asks that 8,000 be supported; servers rarely accept more.
const MaxLength = 8192

// maxRaw bounds the input that is parsed, in octets: longer input is ErrTooLong, even if
// stripping could make it shorter.
const maxRaw = 64 << 10

// quoted quotes input for errors: bounded, without control characters and credentials.
func quoted(s string) string {
	const limit = 120
	s = WithoutCredentials(s)
	if len(s) > limit {
		return fmt.Sprintf("%.*q… (%d octets)", limit, s[:limit], len(s))
	}
	return fmt.Sprintf("%q", s)
}
