package wire

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
)

// Request is one request without a body.
type Request struct {
	Method string // GET or HEAD, because a request may be sent twice; "" means GET
	// URL is an absolute http or https URL in WHATWG serialisation. Its credentials and fragment
	// are neither sent nor stored. Bytes that a request line cannot have are percent-encoded.
	URL string
	// Header follows Host, User-Agent, Accept and Accept-Encoding, in this order. Its fields
	// replace defaults of the same name. Control characters in values become spaces.
	Header http1.Header
	// Private follows Header, unless the server's certificate is not valid (Config.Tolerant).
	Private http1.Header
	// Timeout limits the whole exchange if it is shorter than Config.Timeouts.Total. 0 means no
	// further limit.
	Timeout time.Duration
	// MaxBody limits payload and decoded body, in bytes, if it is less than Config.MaxBody. 0 means
	// no further limit.
	MaxBody int64

	// OnWrite, if not nil, is called right before the first byte of the request is written. If a
	// kept connection ends without a response, it is called a second time, for a new connection
	// (Write.Retry). It should return quickly: Write.At becomes Exchange.Start, and the connected
	// server may time out. If it returns an error, the request is not written, and Do returns an
	// ErrAborted that wraps this error.
	OnWrite func(Write) error

	// OnWritten, if not nil, is called with the time after the write of the request. On a busy
	// machine this may be long after Write.At.
	OnWritten func(time.Time)
	// OnHead, if not nil, is called after the final head and before the body. If it returns false,
	// the body is not read and Filtered is set.
	OnHead func(x *Exchange) bool
	// OnPrefix, if not nil, is called once with up to http1.PrefixLen bytes of the body, decoded as
	// far as possible. If it returns false, the rest of the body is not read and Filtered is set.
	// The prefix is valid during the call.
	OnPrefix func(x *Exchange, prefix []byte) bool
	// Allow, if not nil, is called with the prefix after OnPrefix returned true. It may raise
	// MaxBody for this response.
	Allow Allowance
}

// Allowance returns the limit of a response's payload and decoded body, in bytes, given the
// beginning of the decoded body. It cannot lower MaxBody.
type Allowance func(x *Exchange, prefix []byte) int64

// Write describes a request that is about to be written.
type Write struct {
	At     time.Time      // time by Config.Now
	Addr   netip.AddrPort // address of the server, or of the proxy
	Route  dial.Route
	Reused bool // whether the connection was kept from an earlier exchange
	Retry  bool // whether this is a second write, after a kept connection ended without a response
}

// method returns the request's method; the default is GET.
func (r *Request) method() string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
}

// appliedLimits returns the limits that apply to the request. Each limit is the lower of the
// request's limit and the client's limit.
func (r *Request) appliedLimits(c *Config) (timeout time.Duration, maxBody int64) {
	timeout, maxBody = c.Timeouts.Total, c.MaxBody
	if r.Timeout > 0 {
		timeout = min(timeout, r.Timeout)
	}
	if r.MaxBody > 0 {
		maxBody = min(maxBody, r.MaxBody)
	}
	return timeout, maxBody
}

// validate returns an error if the request cannot be written.
func (r *Request) validate() error {
	if m := r.method(); m != http.MethodGet && m != http.MethodHead {
		return fmt.Errorf("method %.20q, want GET or HEAD", m)
	}
	for _, f := range slices.Concat(r.Header, r.Private) {
		if !http1.IsToken(f.Name) {
			return fmt.Errorf("invalid header field name %.40q", f.Name)
		}
	}
	return nil
}
