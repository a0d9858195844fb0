package fetch

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// retryClass is which limit of Retries a failure falls under.
type retryClass uint8

const (
	never retryClass = iota
	afterTimeout
	afterServerError
	afterLimit
	afterDNS
	forRobots // a robots.txt that could not be had by the others
	retryClasses
)

// verdictOf is what the end of a request means: for its URL, if that is not tried
// again, for a retry, and for its host.
type verdictOf struct {
	outcome schema.Outcome
	retry   retryClass
	health  polite.Class
}

// classifyError classes a request without an answer.
func classifyError(err error) verdictOf {
	switch {
	case errors.Is(err, wire.ErrNXDomain):
		return verdictOf{schema.DNSError, never, polite.Unanswered}
	case errors.Is(err, wire.ErrDNS):
		return verdictOf{schema.DNSError, afterDNS, polite.Unanswered}
	case errors.Is(err, wire.ErrAddressBlocked):
		return verdictOf{schema.AddressBlocked, never, polite.Unsent}
	case errors.Is(err, wire.ErrTimeout):
		return verdictOf{schema.Timeout, afterTimeout, polite.Unanswered}
	case errors.Is(err, wire.ErrTLS):
		return verdictOf{schema.TLSError, never, polite.Failure}
	case errors.Is(err, wire.ErrConnect):
		return verdictOf{schema.ConnectError, never, polite.Unanswered}
	case errors.Is(err, wire.ErrDisconnect):
		return verdictOf{schema.ConnectError, never, polite.Failure}
	case errors.Is(err, wire.ErrProtocol):
		return verdictOf{schema.ProtocolError, never, polite.Failure}
	}
	return verdictOf{schema.InternalError, never, polite.Unsent}
}

// classifyStatus classes an answer that is neither a document nor a redirect.
func classifyStatus(status int, retryAfter bool) verdictOf {
	switch {
	case status == http.StatusTooManyRequests:
		return verdictOf{schema.RateLimited, afterLimit, polite.RateLimited}
	case status == http.StatusServiceUnavailable && retryAfter:
		return verdictOf{schema.RateLimited, afterLimit, polite.RateLimited}
	case status == http.StatusServiceUnavailable:
		return verdictOf{schema.HTTP5xx, afterLimit, polite.RateLimited}
	case status >= 500 && status < 600:
		return verdictOf{schema.HTTP5xx, afterServerError, polite.Failure}
	case status >= 400 && status < 500:
		return verdictOf{schema.HTTP4xx, never, polite.ClientError}
	case status >= 200 && status < 300:
		return verdictOf{schema.OK, never, polite.Success}
	case status >= 300 && status < 400:
		return verdictOf{schema.ProtocolError, never, polite.Success} // a redirect to nowhere
	}
	return verdictOf{schema.ProtocolError, never, polite.Failure}
}

// redirects reports whether an answer asks for another URL: by its status, or by a
// choice of several with one that it prefers (RFC 9110, 15.4.1).
func redirects(x *wire.Exchange) bool {
	switch x.Status {
	case 301, 302, 303, 307, 308:
		return true
	case http.StatusMultipleChoices:
		return strings.TrimSpace(x.Header.Get("Location")) != ""
	}
	return false
}

// smallBody is the length in bytes up to which a body is read though it is not
// wanted, so that its connection can be used again.
const smallBody = 4 << 10

// unwantedByName reports whether the head of a 2xx answer tells that its body is not
// to be read: the parser refuses what its Content-Type names, whatever the bytes are.
func (c *crawl) unwantedByName(x *wire.Exchange) bool {
	if x.Status < 200 || x.Status > 299 || !c.parser.Refuses(x.Header.Get("Content-Type")) {
		return false
	}
	n, err := strconv.ParseInt(x.Header.Get("Content-Length"), 10, 64)
	return err != nil || n > smallBody
}
