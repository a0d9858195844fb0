package urlkey

import (
	"errors"
	"fmt"
)

// Every error of package urlkey wraps one of these errors, ErrRule or ErrRewrite.
var (
	// ErrNotURL means that the URL Standard's parser refuses the input, such as a relative reference
	// without a base.
	ErrNotURL = errors.New("not a URL")
	// ErrScheme means that the URL has a scheme other than http and https, such as mailto.
	ErrScheme = errors.New("scheme is not http or https")
	// ErrHost means that the host is neither an IP address nor a valid DNS name, or that the port
	// is 0. A valid name has at most 253 octets, in labels of 1 to 63 letters, digits, hyphens and
	// underscores (RFC 1035, 2.3.4; underscores are common in practice).
	ErrHost = errors.New("host cannot be looked up and connected to")
	// ErrTooLong means that the canonical form has more than MaxLength octets, or the input more
	// than 64 KiB.
	ErrTooLong = errors.New("URL is too long")
	// ErrPattern means that a pattern passed to New is not a valid pattern of parameter names.
	ErrPattern = errors.New("bad pattern of a parameter name")
)

// MaxLength is the length of the longest canonical URL, in octets. RFC 9110, 4.1 asks for support
// of 8,000 octets, and few servers accept longer URLs.
const MaxLength = 8192

// maxRaw is the length of the longest input that is parsed, in octets. For longer input the error is
// ErrTooLong, although the canonical form might be short enough.
const maxRaw = 64 << 10

// quoted quotes input for an error, without credentials and control characters, and cut to a bounded
// length.
func quoted(s string) string {
	const limit = 120
	s = WithoutCredentials(s)
	if len(s) > limit {
		return fmt.Sprintf("%.*q… (%d octets)", limit, s[:limit], len(s))
	}
	return fmt.Sprintf("%q", s)
}
