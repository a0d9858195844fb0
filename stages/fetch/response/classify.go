package response

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
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

// Blocked is the verdict on a response by which a service in front of the site refuses the request.
var Blocked = verdict(schema.Blocked, Never, polite.Refused)

// RefusedBy describes the refusal of a service.
func RefusedBy(service string) Failure {
	return Failure{Phrase: "refused by a service in front of the site", Detail: service}
}

// LimitsRate reports whether a response asks the client to send less, whoever sent it.
func LimitsRate(status int, retryAfter bool) bool {
	return OfStatus(status, retryAfter).Retry == AfterLimit
}

// OfStatus classifies a response by its status, unless it is a redirect. retryAfter tells whether it asks for a
// wait by Retry-After: then the host waits after 403 and any 5xx as after 503.
func OfStatus(status int, retryAfter bool) Verdict {
	switch {
	case robots.Limits(status), (status == http.StatusServiceUnavailable || status == http.StatusForbidden) && retryAfter:
		return verdict(schema.RateLimited, AfterLimit, polite.RateLimited)
	case status == http.StatusServiceUnavailable, status >= 500 && status < 600 && retryAfter:
		return verdict(schema.HTTP5xx, AfterLimit, polite.RateLimited)
	case status >= 500: // an unknown class counts as 5xx (RFC 9110, 15)
		return verdict(schema.HTTP5xx, AfterServerError, polite.Failure)
	case robots.AskAgain(status):
		return verdict(schema.HTTP4xx, AfterTimeout, polite.Failure)
	case status == http.StatusPaymentRequired:
		return verdict(schema.PaymentRequired, Never, polite.Forbidden)
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusUnavailableForLegalReasons:
		return verdict(schema.HTTP4xx, Never, polite.Forbidden)
	case status >= 400 && status < 500:
		return verdict(schema.HTTP4xx, Never, polite.ClientError)
	case status >= 200 && status < 300:
		return verdict(schema.OK, Never, polite.Success)
	case status >= 300 && status < 400:
		return verdict(schema.ProtocolError, Never, polite.Success) // neither a target nor a document, such as 305, or 304 without a condition
	}
	return verdict(schema.ProtocolError, Never, polite.Failure)
}

// OfDocument classifies a response whose body is a document. Its outcome is OK, unless nothing of the document
// arrived: the head or the body broke off, or the codings of the body cannot be undone. A document of which only a
// part arrived is OK.
func OfDocument(x *wire.Exchange) (Verdict, Failure) {
	cut := x.BodyTruncated
	switch {
	case len(x.Body) > 0 || cut == http1.Complete || x.Filtered:
		return verdict(schema.OK, Never, polite.Success), Failure{}
	case cut == http1.TruncTime:
		return verdict(schema.Timeout, AfterTimeout, polite.Failure), Failure{Phrase: "timed out before the body"}
	case slices.Contains(x.Warnings, http1.WarnHeadTruncated):
		return verdict(schema.ProtocolError, AfterTimeout, polite.Failure), Failure{Phrase: "connection closed inside the head"}
	case len(x.Payload) > 0:
		return verdict(schema.ProtocolError, AfterTimeout, polite.Failure), Failed("the body cannot be decoded", "%s", strings.Join(x.Warnings, ", "))
	}
	return verdict(schema.ProtocolError, AfterTimeout, polite.Failure), Failure{Phrase: "connection closed before the body"}
}

// RefusesCondition reports whether a server that answers a conditional request with this status may have done so
// because of the condition: 412 says so, and servers that cannot read the condition answer with a general error.
// Without the condition, the same request may bring a document.
func RefusesCondition(status int) bool {
	switch status {
	case 400, 403, 406, 409, 412, 416, 417, 500, 501, 505:
		return true
	}
	return false
}
