package wire

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/stages/fetch/guard"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

// These errors are the kinds of failure, for errors.Is. An *Error holds the details and the cause.
var (
	// ErrDNS means that the look-up failed: the name has no address, or no name server answered.
	ErrDNS = errors.New("dns error")
	// ErrNXDomain means that the name certainly has no address. Any other ErrDNS may be temporary.
	ErrNXDomain = fmt.Errorf("%w: no such name", ErrDNS)
	// ErrConnect means that no TCP connection was made (refused, reset, unreachable, or refused by
	// the proxy).
	ErrConnect = errors.New("connect error")
	// ErrTLS means that the TLS handshake failed. For example, the certificate has expired, is for
	// another name or is not trusted.
	ErrTLS = errors.New("tls error")
	// ErrTimeout means that a limit of Timeouts passed before the response head was complete.
	// Error.Phase tells where.
	ErrTimeout = errors.New("timeout")
	// ErrProtocol means that the bytes that arrived are not an HTTP response.
	ErrProtocol = errors.New("protocol error")
	// ErrDisconnect means that the connection ended before the response head was complete.
	ErrDisconnect = errors.New("disconnected before a response")
	// ErrAddressBlocked means that the guard refused the address or port.
	ErrAddressBlocked = guard.ErrAddressBlocked
	// ErrAborted means that the context ended, that OnWrite returned an error, or that there was no
	// memory for the body. The server is not the cause. If OnWrite returned an error, the *Error
	// wraps this error too.
	ErrAborted = errors.New("request aborted")
	// ErrInvalid means that the request cannot be written (no http URL, a bad method).
	ErrInvalid = errors.New("invalid request")
)

// Phase is a part of an exchange. Errors name the phase in which they happened.
type Phase string

// The phases, in the order in which they happen.
const (
	PhaseRequest    Phase = "request" // before the look-up and before any byte was sent
	PhaseReachProxy Phase = Phase(dial.StepReachProxy)
	PhaseDNS        Phase = Phase(dial.StepDNS)
	PhaseConnect    Phase = Phase(dial.StepConnect)
	PhaseProxy      Phase = Phase(dial.StepProxy) // CONNECT to the proxy
	PhaseTLS        Phase = Phase(dial.StepTLS)
	PhaseWrite      Phase = "write"
	PhaseFirstByte  Phase = "first_byte"
	PhaseHead       Phase = "head"
	PhaseBody       Phase = "body"
)

// Error is the error of Do: "connect http://host:port: connect error: cause".
type Error struct {
	Kind  error          // one of the errors above, such as ErrConnect
	Phase Phase          // phase in which the error happened
	Host  string         // scheme://host:port of the URL, without credentials
	Addr  netip.AddrPort // address that failed, if any
	Err   error          // cause; may be nil
}

// Error returns the phase, the host, the kind and the cause.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.Phase, e.Host)
	if e.Addr.IsValid() {
		fmt.Fprintf(&b, " (%s)", e.Addr)
	}
	switch {
	case e.Err == nil:
		fmt.Fprintf(&b, ": %v", e.Kind)
	case errors.Is(e.Err, e.Kind): // the cause already names the kind
		fmt.Fprintf(&b, ": %v", e.Err)
	default:
		fmt.Fprintf(&b, ": %v: %v", e.Kind, e.Err)
	}
	return b.String()
}

// Unwrap lets errors.Is and errors.As see both the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// errTimedOut is the cause of a context that ended because a limit of Timeouts passed.
var errTimedOut = errors.New("time limit passed")

// connectError classifies an error of package dial. ctx is the context of the call.
func connectError(ctx context.Context, t http1.Target, failed error) error {
	var e Error
	if at, ok := errors.AsType[*dial.Error](failed); ok {
		e = Error{Phase: Phase(at.Step), Addr: at.Addr, Err: at.Err}
	}
	e.Host = t.Origin()
	switch {
	case errors.Is(e.Err, ErrAddressBlocked):
		e.Kind = ErrAddressBlocked
	case ctx.Err() != nil:
		e.Kind, e.Err = ErrAborted, context.Cause(ctx)
		if e.Err == errTimedOut {
			e.Kind = ErrTimeout
		}
	case e.Phase == PhaseDNS && dns.IsNotFound(e.Err):
		e.Kind = ErrNXDomain
	case e.Phase == PhaseDNS:
		e.Kind = ErrDNS
	case http1.IsTimeout(e.Err): // the system's own time limit for a connect
		e.Kind = ErrTimeout
	case e.Phase == PhaseTLS:
		e.Kind = ErrTLS
	default:
		e.Kind = ErrConnect
	}
	return &e
}
