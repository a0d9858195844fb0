package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/stages/fetch/guard"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

func system(call string, errno syscall.Errno) error { return os.NewSyscallError(call, errno) }

func TestEachErrorHasASide(t *testing.T) {
	v4, v6 := netip.MustParseAddrPort("192.0.2.1:80"), netip.MustParseAddrPort("[2001:db8::1]:80")
	verified := func(err error) error { return &tls.CertificateVerificationError{Err: err} }
	for _, tt := range []struct {
		name      string
		err       Error
		side      Side
		noNetwork bool
	}{
		{"descriptors of the process", Error{Kind: ErrConnect, Phase: PhaseConnect, Addr: v4, Err: system("socket", syscall.EMFILE)}, Ours, false},
		{"descriptors for a look-up", Error{Kind: ErrDNS, Phase: PhaseDNS, Err: fmt.Errorf("%w: %w", dns.ErrSilent, system("socket", syscall.EMFILE))}, Ours, true},
		{"descriptors for one of two queries", Error{Kind: ErrDNS, Phase: PhaseDNS, Err: fmt.Errorf("%w: %w", &net.DNSError{Err: "server misbehaving"}, system("socket", syscall.EMFILE))}, Ours, false},
		{"ports for a look-up", Error{Kind: ErrDNS, Phase: PhaseDNS, Err: fmt.Errorf("%w: %w", dns.ErrSilent, system("connect", syscall.EAGAIN))}, Ours, true},
		{"descriptors of the machine", Error{Kind: ErrConnect, Phase: PhaseConnect, Addr: v4, Err: system("socket", syscall.ENFILE)}, Ours, false},
		{"memory", Error{Kind: ErrDisconnect, Phase: PhaseWrite, Addr: v4, Err: system("write", syscall.ENOMEM)}, Ours, false},
		{"buffers", Error{Kind: ErrConnect, Phase: PhaseConnect, Addr: v4, Err: system("connect", syscall.ENOBUFS)}, Ours, false},
		{"ports", Error{Kind: ErrConnect, Phase: PhaseConnect, Addr: v4, Err: system("connect", syscall.EADDRNOTAVAIL)}, Ours, false},
		{"no IPv6 address", Error{Kind: ErrConnect, Phase: PhaseConnect, Addr: v6, Err: system("connect", syscall.EADDRNOTAVAIL)}, Unknown, true},
		{"no IPv6", Error{Kind: ErrConnect, Phase: PhaseConnect, Addr: v6, Err: system("socket", syscall.EAFNOSUPPORT)}, Unknown, true},
		{"no route", Error{Kind: ErrConnect, Phase: PhaseConnect, Addr: v4, Err: system("connect", syscall.ENETUNREACH)}, Unknown, true},
		{"no route to the host", Error{Kind: ErrConnect, Phase: PhaseConnect, Addr: v4, Err: system("connect", syscall.EHOSTUNREACH)}, Unknown, false},
		{"a firewall", Error{Kind: ErrConnect, Phase: PhaseConnect, Addr: v4, Err: system("connect", syscall.EPERM)}, Unknown, false},
		{"refused", Error{Kind: ErrConnect, Phase: PhaseConnect, Addr: v4, Err: system("connect", syscall.ECONNREFUSED)}, Unknown, false},
		{"reset", Error{Kind: ErrDisconnect, Phase: PhaseFirstByte, Addr: v4, Err: system("read", syscall.ECONNRESET)}, Unknown, false},
		{"closed", Error{Kind: ErrDisconnect, Phase: PhaseFirstByte, Addr: v4}, Unknown, false},
		{"timed out", Error{Kind: ErrTimeout, Phase: PhaseConnect, Addr: v4, Err: errTimedOut}, Unknown, false},
		{"no response", Error{Kind: ErrTimeout, Phase: PhaseFirstByte, Addr: v4}, Unknown, false},
		{"proxy refused", Error{Kind: ErrConnect, Phase: PhaseReachProxy, Addr: v4, Err: system("connect", syscall.ECONNREFUSED)}, Ours, false},
		{"proxy timed out", Error{Kind: ErrTimeout, Phase: PhaseReachProxy, Addr: v4, Err: errTimedOut}, Ours, false},
		{"proxy reached no host", Error{Kind: ErrConnect, Phase: PhaseProxy, Addr: v4, Err: errors.New("proxy answered CONNECT with 502")}, Unknown, false},
		{"proxy closed", Error{Kind: ErrConnect, Phase: PhaseProxy, Addr: v4, Err: io.ErrUnexpectedEOF}, Unknown, false},
		{"no such name", Error{Kind: ErrNXDomain, Phase: PhaseDNS, Err: &net.DNSError{IsNotFound: true}}, TheHosts, false},
		{"SERVFAIL", Error{Kind: ErrDNS, Phase: PhaseDNS, Err: &net.DNSError{Err: "server misbehaving"}}, Unknown, false},
		{"no name server", Error{Kind: ErrDNS, Phase: PhaseDNS, Err: fmt.Errorf("%w: %w", dns.ErrSilent, &net.DNSError{Err: "i/o timeout"})}, Unknown, true},
		{"look-up timed out", Error{Kind: ErrTimeout, Phase: PhaseDNS, Err: errTimedOut}, Unknown, true},
		{"no HTTP", Error{Kind: ErrProtocol, Phase: PhaseHead, Addr: v4, Err: http1.ProtocolError{}}, TheHosts, false},
		{"private address", Error{Kind: ErrAddressBlocked, Phase: PhaseConnect, Err: guard.ErrAddressBlocked}, TheHosts, false},
		{"other name", Error{Kind: ErrTLS, Phase: PhaseTLS, Err: verified(x509.HostnameError{Certificate: &x509.Certificate{}})}, TheHosts, false},
		{"expired", Error{Kind: ErrTLS, Phase: PhaseTLS, Err: verified(x509.CertificateInvalidError{Reason: x509.Expired})}, TheHosts, false},
		{"alert", Error{Kind: ErrTLS, Phase: PhaseTLS, Err: &net.OpError{Op: "remote error", Err: tls.AlertError(40)}}, TheHosts, false},
		{"no TLS", Error{Kind: ErrTLS, Phase: PhaseTLS, Err: tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}}, TheHosts, false},
		{"handshake closed", Error{Kind: ErrTLS, Phase: PhaseTLS, Err: io.EOF}, Unknown, false},
		{"handshake reset", Error{Kind: ErrTLS, Phase: PhaseTLS, Err: system("read", syscall.ECONNRESET)}, Unknown, false},
		{"no root certificates", Error{Kind: ErrTLS, Phase: PhaseTLS, Err: verified(x509.SystemRootsError{})}, Ours, false},
	} {
		side, todo := SideOf(&tt.err)
		if side != tt.side || (side == Ours) != (todo != "") || tt.err.NoNetwork() != tt.noNetwork {
			t.Errorf("%s: side %d (%q), no network %t", tt.name, side, todo, tt.err.NoNetwork())
		}
	}
}

// An error that nobody foresaw is never final, and never blamed on this machine.
func FuzzSideOf(f *testing.F) {
	f.Add("boom", uint16(0), uint8(0))
	f.Add("proxy answered CONNECT with 500", uint16(syscall.EPERM), uint8(3))
	kinds := []error{ErrConnect, ErrDisconnect, ErrTimeout, ErrDNS, errors.New("another kind")}
	f.Fuzz(func(t *testing.T, text string, number uint16, kind uint8) {
		cause := fmt.Errorf("%s: %w", text, syscall.Errno(number))
		side, _ := SideOf(&Error{Kind: kinds[int(kind)%len(kinds)], Phase: PhaseConnect, Err: cause})
		want := Unknown
		for _, o := range ourErrnos {
			if o.errno == syscall.Errno(number) {
				want = Ours
			}
		}
		if side != want {
			t.Errorf("%v is of side %d", cause, side)
		}
		if side, _ := SideOf(cause); side != Unknown {
			t.Errorf("the bare error %v is of side %d", cause, side)
		}
	})
}
