package robots

// Class is what the answer to a robots.txt request means for the host.
type Class uint8

const (
	// Rules: the body holds the rules.
	Rules Class = iota
	// NoFile: there is no robots.txt; everything may be requested.
	NoFile
	// Unreachable: the rules are not known; nothing may be requested until a
	// later try gives an answer.
	Unreachable
)

// MaxRedirects is how many redirects of a robots.txt are followed, across hosts
// too (RFC 9309, section 2.3.1.2).
const MaxRedirects = 5

// FetchClass classifies the last answer to a robots.txt request, after
// redirects (RFC 9309, section 2.3.1): status 2xx gives rules; 4xx, and a
// redirect beyond the limit or without a usable target, mean there is no file;
// 429, 5xx, any other status, and an error (nothing was answered) mean
// unreachable. A host that is slowing the crawler down has not said "allowed".
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
