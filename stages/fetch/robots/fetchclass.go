package robots

// Class tells what the response to a robots.txt request means for the host.
type Class uint8

const (
	// Rules: the body holds the rules.
	Rules Class = iota
	// NoFile: there is no robots.txt; everything may be requested.
	NoFile
	// Unreachable: the rules are unknown; nothing may be requested until a retry
	// succeeds.
	Unreachable
)

// MaxRedirects bounds the redirects followed for a robots.txt, also across hosts
// (RFC 9309, section 2.3.1.2).
const MaxRedirects = 5

// FetchClass classifies the last response to a robots.txt request, after redirects
// (RFC 9309, section 2.3.1). 2xx means Rules. 4xx, or a redirect beyond the limit or
// without a usable target, means NoFile. Any other status, and an err (no response), mean
// Unreachable. So does 429, because a host that limits the crawler does not allow
// everything.
func FetchClass(status int, err error) Class {
	switch {
	case err != nil:
		return Unreachable
	case status >= 200 && status < 300:
		return Rules
	case status == 429:
		return Unreachable
	case status >= 300 && status < 500:
		return NoFile
	}
	return Unreachable
}
