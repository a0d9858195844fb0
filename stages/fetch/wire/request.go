package wire

import (
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/http1"
)

// Request is one request without a body.
type Request struct {
	Method string // GET or HEAD, because other methods must not be sent twice; "" means GET
	// URL is an absolute http or https URL in WHATWG serialisation. Its credentials and fragment
	// are neither sent nor stored. Bytes that a request line cannot have are percent-encoded.
	URL string
	// The fields in Header follow Host, User-Agent, Accept and Accept-Encoding, in this order. A
	// field in Header replaces the default of the same name. Control characters in values become
	// spaces.
	Header http1.Header
	// Timeout bounds the whole exchange if it is shorter than Config.Timeouts.Total. 0 means that
	// only the client's limit applies.
	Timeout time.Duration
	// MaxBody bounds payload and decoded body, in bytes, if it is less than Config.MaxBody. 0 means
	// that only the client's limit applies.
	MaxBody int64

	// OnWrite, if not nil, is called right before the first byte of the request is written. OnWrite
	// is called a second time only if a kept connection ended without a response. The request then
	// goes out on a new connection (Write.Retry). OnWrite should return without delay, because
	// Write.At becomes Exchange.Start and the connected server may time out. If OnWrite returns an
	// error, the request is not written, and Do returns an ErrAborted that wraps this error.
	OnWrite func(Write) error

	// OnWritten, if not nil, is called after the operating system has taken the request's last
	// byte. The parameter is the time of this event. On a busy machine this time may be long after
	// Write.At.
	OnWritten func(time.Time)
	// OnHead, if not nil, is called after the final head and before the body. If OnHead returns
	// false, the body is not read and Filtered is set.
	OnHead func(x *Exchange) bool
	// OnPrefix, if not nil, is called once with up to http1.PrefixLen bytes of the body's
	// beginning, decoded as far as possible. If OnPrefix returns false, the rest of the body is not
	// read and Filtered is set. The slice prefix is valid during the call.
	OnPrefix func(x *Exchange, prefix []byte) bool
	// Allow, if not nil, is called with the body's prefix after OnPrefix returned true. Allow may
	// raise MaxBody for this response.
	Allow Allowance
}

// Allowance returns how many bytes payload and decoded body of a response may have. The parameter
// prefix is the beginning of the decoded body. Allowance cannot lower MaxBody.
type Allowance func(x *Exchange, prefix []byte) int64

// Write describes a request that is about to be written.
type Write struct {
	At     time.Time      // time by Config.Now
	Addr   netip.AddrPort // address of the server, or of the proxy
	Route  dial.Route
	Reused bool // whether the connection was kept from an earlier exchange
	Retry  bool // whether this is the second write, because a kept connection ended without a response
}

// method returns the request's method; the default is GET.
func (r *Request) method() string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
}

// within returns the limits that apply. Each limit is the lower of the request's limit and the
// client's limit.
func (r *Request) within(c *Config) (timeout time.Duration, maxBody int64) {
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
	for _, f := range r.Header {
		if !http1.IsToken(f.Name) {
			return fmt.Errorf("header field name %.40q", f.Name)
		}
	}
	return nil
}
