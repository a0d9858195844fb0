package wire

import (
	"net/netip"
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

	// OnWrite, if not nil, is called right before the first byte of the request
	// is written, once per write: a second time only if a kept connection died
	// unanswered and the request goes out on a new one (Write.Retry). It
	// should not wait: Write.At is Exchange.Start, and a server that has been
	// connected to may lose its patience. An error ends the exchange with ErrAborted wrapping it and nothing
	// is written.
	OnWrite func(Write) error
	// OnHead, if not nil, is called when the final head has been read, before
	// the body is. If it returns false the body is not read: Filtered.
	OnHead func(x *Exchange) bool
	// OnPrefix, if not nil, is called once with the first bytes of the body,
	// decoded as far as that is possible (up to 1,445 bytes, what WHATWG's MIME
	// sniffing looks at). If it returns false no more is read: Filtered. The
	// slice is valid during the call.
	OnPrefix func(x *Exchange, prefix []byte) bool
}

// Write describes a request that is about to be written.
type Write struct {
	At     time.Time      // by Config.Now
	Addr   netip.AddrPort // the peer
	Route  Route
	Reused bool // on a kept connection
	Retry  bool // the kept connection before died unanswered
}
