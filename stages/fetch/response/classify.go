package response

import (
	"errors"
	"net/http"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// RetryClass selects the limit of Retries that applies to a failure.
type RetryClass uint8

// The classes. RetryClasses is their number.
const (
	Never RetryClass = iota
	AfterTimeout
	AfterServerError
	AfterLimit
	AfterDNS
	ForRobots // a robots.txt that still failed after the retries of the other classes
	RetryClasses
)

// Verdict is what the end of a request means for its URL (Outcome, if it is not retried),
// for its retry and for its host.
type Verdict struct {
	Outcome schema.Outcome
	Retry   RetryClass
	Health  polite.Class
}

// OfError classifies a request without a response.
func OfError(err error) Verdict {
	switch {
	case errors.Is(err, wire.ErrNXDomain):
		return Verdict{schema.DNSError, Never, polite.Unanswered}
	case errors.Is(err, wire.ErrDNS):
		return Verdict{schema.DNSError, AfterDNS, polite.Unanswered}
	case errors.Is(err, wire.ErrAddressBlocked):
		return Verdict{schema.AddressBlocked, Never, polite.Unsent}
	case errors.Is(err, wire.ErrTimeout):
		return Verdict{schema.Timeout, AfterTimeout, polite.Unanswered}
	case errors.Is(err, wire.ErrTLS):
		return Verdict{schema.TLSError, Never, polite.Failure}
	case errors.Is(err, wire.ErrConnect):
		return Verdict{schema.ConnectError, Never, polite.Unanswered}
	case errors.Is(err, wire.ErrDisconnect):
		return Verdict{schema.ConnectError, Never, polite.Failure}
	case errors.Is(err, wire.ErrProtocol):
		return Verdict{schema.ProtocolError, Never, polite.Failure}
	}
	return Verdict{schema.InternalError, Never, polite.Unsent}
}

// OfStatus classifies a response by its status, unless it is a redirect.
func OfStatus(status int, retryAfter bool) Verdict {
	switch {
	case status == http.StatusTooManyRequests:
		return Verdict{schema.RateLimited, AfterLimit, polite.RateLimited}
	case status == http.StatusServiceUnavailable && retryAfter:
		return Verdict{schema.RateLimited, AfterLimit, polite.RateLimited}
	case status == http.StatusServiceUnavailable:
		return Verdict{schema.HTTP5xx, AfterLimit, polite.RateLimited}
	case status >= 500 && status < 600:
		return Verdict{schema.HTTP5xx, AfterServerError, polite.Failure}
	case status >= 400 && status < 500:
		return Verdict{schema.HTTP4xx, Never, polite.ClientError}
	case status >= 200 && status < 300:
		return Verdict{schema.OK, Never, polite.Success}
	case status >= 300 && status < 400:
		return Verdict{schema.ProtocolError, Never, polite.Success} // a redirect without a target
	}
	return Verdict{schema.ProtocolError, Never, polite.Failure}
}
