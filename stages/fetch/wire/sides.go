package wire

import (
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"syscall"

	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

// Side says on whose side the cause of a failed exchange lies.
type Side uint8

// The sides. What is in no table is Unknown.
const (
	// Unknown means that the host may have failed, or the network between it and this machine: refused, reset,
	// closed, timed out, SERVFAIL, a network that cannot be reached, no answer of a name server.
	Unknown Side = iota
	// Ours means that this machine or its proxy failed before anything reached the host.
	Ours
	// TheHosts means that the host or its name server answered, or that the URL cannot be requested.
	TheHosts
)

const noPort = "this machine has no free port for another connection: widen net.ipv4.ip_local_port_range, or lower fetch.slots"

// ourErrnos lists the system's errors that no host can cause. What is not listed may come from the network,
// or from a firewall for this host only.
var ourErrnos = []struct {
	errno syscall.Errno
	todo  string
}{
	{syscall.EMFILE, "this process has too many open files: raise its limit (ulimit -n), or lower fetch.slots"},
	{syscall.ENFILE, "this machine has too many open files: raise fs.file-max, or lower fetch.slots"},
	{syscall.ENOMEM, "this machine has no memory for another connection: give it more, or lower fetch.slots"},
	{syscall.ENOBUFS, "this machine has no buffer for another connection: raise net.core.wmem_max and net.ipv4.tcp_mem, or lower fetch.slots"},
	{syscall.EADDRNOTAVAIL, noPort},
	{syscall.EAGAIN, noPort}, // of a connect: what UDP says in place of EADDRNOTAVAIL
}

// ProxyCredentials says what to do if the proxy answers 407.
const ProxyCredentials = "the proxy refuses its user name and password: correct them in fetch.proxy"

// SideOf returns the side of an error of Do. todo says in words what is wrong and what to do if the side is
// Ours.
func SideOf(err error) (side Side, todo string) {
	var e *Error
	if !errors.As(err, &e) {
		return Unknown, ""
	}
	var roots x509.SystemRootsError
	switch {
	case e.Phase == PhaseConnect && dial.IsNoNetwork(e.Addr, e.Err): // also EADDRNOTAVAIL without IPv6
		return Unknown, ""
	case e.Phase == PhaseDNS && errors.Is(e.Err, syscall.EADDRNOTAVAIL): // perhaps of a name server with an IPv6 address
		return Unknown, ""
	case e.Phase == PhaseReachProxy:
		return Ours, "the proxy cannot be reached: start it, or correct fetch.proxy"
	case dial.RefusedWith(e.Err) == http.StatusProxyAuthRequired:
		return Ours, ProxyCredentials
	case errors.As(e.Err, &roots):
		return Ours, "this machine has no root certificates: install them (package ca-certificates), or set SSL_CERT_FILE"
	}
	for _, ours := range ourErrnos {
		if errors.Is(e.Err, ours.errno) {
			return Ours, ours.todo
		}
	}
	switch e.Kind {
	case ErrNXDomain, ErrProtocol, ErrAddressBlocked, ErrInvalid:
		return TheHosts, ""
	case ErrTLS:
		return tlsSide(e.Err), ""
	}
	return Unknown, ""
}

// tlsSide returns TheHosts if the host sent the reason, such as a certificate or an alert. A handshake that
// breaks off has no reason.
func tlsSide(err error) Side {
	if p := tlsPhrase(err); p == tlsFailed || strings.HasSuffix(p, inHandshake) {
		return Unknown
	}
	return TheHosts
}

// NoNetwork reports whether the failure says nothing about the host: this machine has no network of the
// address's family, or no name server sent anything.
func (e *Error) NoNetwork() bool {
	if e.Phase == PhaseDNS {
		return errors.Is(e.Err, dns.ErrSilent) || e.Kind == ErrTimeout
	}
	return e.Phase == PhaseConnect && dial.IsNoNetwork(e.Addr, e.Err)
}
