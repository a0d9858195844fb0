package response

import (
	"errors"
	"net/http"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// RetryClass is a class of failures with its own limit of retries.
type RetryClass uint8

// The retry classes and, at the end, their number.
const (
	Never RetryClass = iota
	AfterTimeout
	AfterServerError
	AfterLimit
	AfterDNS
	ForRobots // for a robots.txt whose other retries have failed; the next retry comes much later
	RetryClasses
)

// Verdict classifies the end of a request. Outcome is the URL's outcome if the URL is not retried.
// Retry selects the limit of retries. Health tells the scheduler what the result means for the
// host. NoAnswer tells that the host sent nothing, so that perhaps it never saw the request.
type Verdict struct {
	Outcome  schema.Outcome
	Retry    RetryClass
	Health   polite.Class
	NoAnswer bool
}

// ofErrors maps errors to verdicts. The first match decides.
var ofErrors = []struct {
	is error
	Verdict
}{
	{wire.ErrNXDomain, verdict(schema.DNSError, Never, polite.Unanswered)},
	{wire.ErrDNS, verdict(schema.DNSError, AfterDNS, polite.Unanswered)},
	{wire.ErrAddressBlocked, verdict(schema.AddressBlocked, Never, polite.Unsent)},
	{wire.ErrTimeout, verdict(schema.Timeout, AfterTimeout, polite.Unanswered)},
	{wire.ErrTLS, verdict(schema.TLSError, Never, polite.Failure)},
	{wire.ErrConnect, verdict(schema.ConnectError, Never, polite.Unanswered)},
	{wire.ErrDisconnect, verdict(schema.ConnectError, Never, polite.Failure)},
	{wire.ErrProtocol, verdict(schema.ProtocolError, Never, polite.Failure)},
}

func verdict(o schema.Outcome, r RetryClass, h polite.Class) Verdict {
	return Verdict{Outcome: o, Retry: r, Health: h}
}

// OfError classifies a request without a response.
func OfError(err error) Verdict {
	for _, v := range ofErrors {
		if !errors.Is(err, v.is) {
			continue
		}
		out := v.Verdict
		if side, _ := wire.SideOf(err); side == wire.Unknown {
			out.NoAnswer = true
			if out.Retry == Never { // a server that restarts, or one of several behind a balancer
				out.Retry = AfterTimeout
			}
		}
		return out
	}
	return verdict(schema.InternalError, Never, polite.Unsent)
}

// OfStatus classifies a response by its status, unless it is a redirect.
func OfStatus(status int, retryAfter bool) Verdict {
	switch {
	case status == http.StatusTooManyRequests:
		return verdict(schema.RateLimited, AfterLimit, polite.RateLimited)
	case status == http.StatusServiceUnavailable && retryAfter:
		return verdict(schema.RateLimited, AfterLimit, polite.RateLimited)
	case status == http.StatusServiceUnavailable:
		return verdict(schema.HTTP5xx, AfterLimit, polite.RateLimited)
	case status >= 500 && status < 600:
		return verdict(schema.HTTP5xx, AfterServerError, polite.Failure)
	case status >= 400 && status < 500:
		return verdict(schema.HTTP4xx, Never, polite.ClientError)
	case status >= 200 && status < 300:
		return verdict(schema.OK, Never, polite.Success)
	case status >= 300 && status < 400:
		return verdict(schema.ProtocolError, Never, polite.Success) // not a redirect that can be followed, such as 300 without Location, 305, or 304 without a condition
	}
	return verdict(schema.ProtocolError, Never, polite.Failure)
}
