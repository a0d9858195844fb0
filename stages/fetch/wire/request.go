package wire

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Request is one request without a body.
type Request struct {
	Method string // "GET" if empty; GET and HEAD only, since these may be sent twice
	// URL is absolute, http or https, in WHATWG serialisation. Its credentials
	// and fragment are never sent nor stored; what may not stand in a request
	// line is percent-encoded.
	URL string
	// Header fields are sent in this order after Host, User-Agent, Accept and
	// Accept-Encoding, which each are left out if given here. Line breaks and
	// NULs in values become spaces.
	Header Header
	// Timeout bounds the whole, where it is shorter than Config.Timeouts.Total; 0: that does.
	Timeout time.Duration
	// MaxBody bounds payload and decoded body, in bytes, where it is less than
	// Config.MaxBody; 0: that does.
	MaxBody int64

	// OnWrite, if not nil, is called right before the first byte of the request
	// is written, once per write: a second time only if a kept connection died
	// unanswered and the request goes out on a new one (Write.Retry). It
	// should not wait: Write.At is Exchange.Start, and a server that has been
	// connected to may lose its patience. An error ends the exchange with ErrAborted wrapping it and nothing
	// is written.
	OnWrite func(Write) error

	// OnWritten, if not nil, is called when the request's last byte was handed to
	// the operating system, with that time: on a busy machine it may be well after
	// OnWrite's.
	OnWritten func(time.Time)
	// OnHead, if not nil, is called when the final head has been read, before
	// the body is. If it returns false the body is not read: Filtered.
	OnHead func(x *Exchange) bool
	// OnPrefix, if not nil, is called once with the first bytes of the body,
	// decoded as far as that is possible (up to 1,445 bytes, what WHATWG's MIME
	// sniffing looks at). If it returns false no more is read: Filtered. The
	// slice is valid during the call.
	OnPrefix func(x *Exchange, prefix []byte) bool
	// Allow, if not nil, is called after OnPrefix, if that returns true, with the same
	// bytes, and may allow payload and decoded body of this response to be longer than
	// MaxBody: so many bytes. Less changes nothing.
	Allow Allowance
}

// Allowance says how long payload and decoded body of a response may be, bytes, from the
// beginning of its decoded body. It is Config.MaxBody where that is more.
type Allowance func(x *Exchange, prefix []byte) int64

// Write describes a request that is about to be written.
type Write struct {
	At     time.Time      // by Config.Now
	Addr   netip.AddrPort // the peer
	Route  Route
	Reused bool // on a kept connection
	Retry  bool // the kept connection before died unanswered
}

// method is the request's, GET if none is given.
func (r *Request) method() string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
}

// within gives the bounds of the request on a client.
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

// validate refuses what cannot be written as a request.
func (r *Request) validate() error {
	if m := r.method(); m != http.MethodGet && m != http.MethodHead {
		return fmt.Errorf("method %.20q, want GET or HEAD", m)
	}
	for _, f := range r.Header {
		if !isToken(f.Name) {
			return fmt.Errorf("header field name %.40q", f.Name)
		}
	}
	return nil
}

// isToken is RFC 9110, 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// defaultFields follow Host and User-Agent unless the request has them.
var defaultFields = Header{
	{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"},
	{"Accept-Encoding", "gzip, deflate, br, zstd"},
}

// appendTo appends the request as it is written; absolute is for a proxy.
func (r *Request) appendTo(b []byte, t target, userAgent string, absolute bool) []byte {
	b = append(b, r.method()...)
	b = append(b, ' ')
	if absolute {
		b = append(b, t.scheme()...)
		b = append(b, "://"...)
		b = append(b, t.authority()...)
	}
	b = append(b, t.path...)
	b = append(b, " HTTP/1.1\r\n"...)
	field := func(name, value string) {
		b = append(b, name...)
		b = append(b, ": "...)
		for i := range len(value) {
			c := value[i]
			if c < ' ' && c != '\t' || c == 0x7f {
				c = ' '
			}
			b = append(b, c)
		}
		b = append(b, "\r\n"...)
	}
	if _, given := r.Header.Lookup("Host"); !given {
		field("Host", t.authority())
	}
	if _, given := r.Header.Lookup("User-Agent"); !given && userAgent != "" {
		field("User-Agent", userAgent)
	}
	for _, f := range defaultFields {
		if _, given := r.Header.Lookup(f.Name); !given {
			field(f.Name, f.Value)
		}
	}
	for _, f := range r.Header {
		field(f.Name, f.Value)
	}
	return append(b, "\r\n"...)
}
