package robots

// Class says what the response to a robots.txt request means for its host.
type Class uint8

const (
	// Rules means that the body holds the rules.
	Rules Class = iota
	// NoFile means that there is no robots.txt. Every URL may be requested.
	NoFile
	// Unreachable means that the rules are unknown. No URL may be requested until a retry succeeds.
	Unreachable
)

// MaxRedirects limits the redirects that are followed for a robots.txt, even across hosts (RFC
// 9309, section 2.3.1.2).
const MaxRedirects = 5

// CutOffFails reports whether a response with the given status counts as an error for FetchClass if its
// body is incomplete, because the missing part may hold rules. That is so for a 2xx status. A 4xx says
// that there is no file, whatever its body.
func CutOffFails(status int) bool {
	return status >= 200 && status < 300
}

// AskAgain reports whether a 4xx status is about the exchange and not about the URL, so that the same request may bring
// another answer: 408 (the server did not wait for the request; it also ends idle connections with it), 421 (the wrong server
// got the request) and 425 (too early). See RFC 9110, 15.5.9 and 15.5.20, and RFC 8470, 5.2.
func AskAgain(status int) bool { return status == 408 || status == 421 || status == 425 }

// Limits reports whether a 4xx status says that the client asks too much: 429 (RFC 6585, 4), 420 and 430, which some
// services send in its place.
func Limits(status int) bool { return status == 429 || status == 420 || status == 430 }

// FetchClass classifies the last response to a robots.txt request, after redirects (RFC 9309,
// section 2.3.1). A 2xx status means Rules. A 4xx status means NoFile, except those of AskAgain and Limits, which
// say nothing about the rules. A redirect beyond the limit or without a usable target also means
// NoFile. Any other status, or an error without a response, means Unreachable.
func FetchClass(status int, err error) Class {
	switch {
	case err != nil:
		return Unreachable
	case status >= 200 && status < 300:
		return Rules
	case Limits(status), AskAgain(status):
		return Unreachable
	case status >= 300 && status < 500:
		return NoFile
	}
	return Unreachable
}
