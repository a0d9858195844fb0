package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/stages/fetch/guard"
	names "crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

// Words describes the failure by two texts. The phrase is one of a few texts without host, port,
// address or number, by which people can group failures. The detail distinguishes failures with the
// same phrase; it may be "".
func (e *Error) Words() (phrase, detail string) {
	phrase = e.phrase()
	parts := []string{e.Host}
	if e.Addr.IsValid() && !strings.Contains(e.Host, e.Addr.String()) {
		parts = []string{strings.TrimSpace(e.Host + " (" + e.Addr.String() + ")")}
	}
	if cause := e.causeText(); cause != "" && !strings.HasSuffix(cause, phrase) {
		parts = append(parts, cause)
	}
	return phrase, strings.Join(parts, ": ")
}

// causeText returns the text of the cause, without the part that the text of the kind repeats.
func (e *Error) causeText() string {
	if e.Err == nil || e.Err == errTimedOut {
		return "" // the phrase says everything
	}
	if p, ok := errors.AsType[http1.ProtocolError](e.Err); ok {
		return p.Detail
	}
	return strings.TrimPrefix(e.Err.Error(), e.Kind.Error()+": ")
}

func (e *Error) phrase() string {
	switch {
	case errors.Is(e.Kind, ErrNXDomain):
		return "no such host"
	case errors.Is(e.Kind, ErrDNS):
		return dnsPhrase(e.Err)
	case e.Kind == ErrTimeout:
		return timeoutPhrases[e.Phase]
	case e.Kind == ErrTLS:
		return tlsPhrase(e.Err)
	case e.Kind == ErrConnect && e.Phase == PhaseReachProxy:
		return "proxy could not be reached"
	case e.Kind == ErrConnect && e.Phase == PhaseProxy:
		return "proxy did not connect"
	case e.Kind == ErrConnect:
		return socketPhrase(e.Err, "no connection")
	case e.Kind == ErrDisconnect:
		return socketPhrase(e.Err, "connection closed") + " before a response"
	case e.Kind == ErrProtocol:
		if p, ok := errors.AsType[http1.ProtocolError](e.Err); ok {
			return p.Phrase
		}
	case errors.Is(e.Err, guard.ErrPort):
		return "port of another protocol"
	case e.Kind == ErrAddressBlocked:
		return "address is not public"
	}
	return e.Kind.Error()
}

var timeoutPhrases = map[Phase]string{
	PhaseRequest:    "timed out before the request",
	PhaseReachProxy: "connecting to the proxy timed out",
	PhaseDNS:        "name lookup timed out",
	PhaseConnect:    "connecting timed out",
	PhaseProxy:      "proxy timed out",
	PhaseTLS:        "TLS handshake timed out",
	PhaseWrite:      "sending the request timed out",
	PhaseFirstByte:  "no response in time",
	PhaseHead:       "response head timed out",
	PhaseBody:       "response body timed out",
}

func dnsPhrase(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsTimeout:
		return "name lookup timed out"
	case errors.Is(err, names.ErrSilent):
		return names.ErrSilent.Error()
	case dns != nil && dns.Err == "server misbehaving":
		return "name server failure"
	}
	return "name lookup failed"
}

func tlsPhrase(err error) string {
	var (
		alert     tls.AlertError
		record    tls.RecordHeaderError
		host      x509.HostnameError
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
	)
	_, remote, isAlert := strings.Cut(err.Error(), "remote error: tls: ")
	switch {
	case errors.As(err, &host):
		return "certificate is for another name"
	case errors.As(err, &authority):
		return "certificate signed by unknown authority"
	case errors.As(err, &invalid):
		return certificatePhrase(&invalid)
	case errors.As(err, &record):
		return "no TLS server"
	case errors.As(err, &alert):
		return "TLS alert: " + strings.TrimPrefix(alert.Error(), "tls: ")
	case isAlert:
		return "TLS alert: " + remote
	case strings.Contains(err.Error(), "protocol version"):
		return "no TLS version in common"
	}
	if p := socketPhrase(err, ""); p != "" {
		return p + inHandshake
	}
	return tlsFailed
}

// These phrases are for a TLS handshake that broke off without a reason.
const (
	tlsFailed   = "TLS handshake failed"
	inHandshake = " in the TLS handshake"
)

func certificatePhrase(err *x509.CertificateInvalidError) string {
	switch {
	case err.Reason == x509.Expired && strings.Contains(err.Detail, "is before"):
		return "certificate is not yet valid"
	case err.Reason == x509.Expired:
		return "certificate has expired"
	}
	return "certificate is not valid"
}

// socketPhrase returns the phrase for a connection's system error, or other if err holds no such
// error.
func socketPhrase(err error, other string) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE), errors.Is(err, http1.ErrStatusCut):
		return "connection closed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.As(err, &errno):
		return errno.Error() // such as "no route to host" or "network is unreachable"
	}
	return other
}
