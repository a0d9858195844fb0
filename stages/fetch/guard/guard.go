// Package guard decides whether the fetcher may open a connection to an address.
//
// In: the address and port that are about to be dialled, after DNS and after
// every redirect. Out: nil, or ErrAddressBlocked with the reason and the
// setting that would allow it. It promises that, unless private networks are
// allowed by config, nothing but a globally routable unicast address passes:
// no loopback, private, link-local, carrier-grade NAT, multicast,
// documentation, NAT64, 6to4, IPv4-mapped or cloud metadata address, however it was spelled
// and whatever name led to it. WHATWG's bad ports never pass. Because what is
// checked is what is dialled, a name that changes its answer between the check
// and the dial (DNS rebinding) gains nothing.
//
// It imports the standard library and code.dny.dev/ssrf, which follows IANA's
// special-purpose registries.
package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrAddressBlocked is the sentinel of every refusal.
var ErrAddressBlocked = errors.New("address blocked")

// Setting is the config key that lets private networks be dialled.
const Setting = "fetch.allow_private_networks"

// azureWire is a public address at which Azure serves instance metadata, agent
// configuration and credentials; no registry lists it.
var azureWire = netip.MustParsePrefix("168.63.129.16/32")

// Guard holds the rules. It is immutable; any number of goroutines may use it.
type Guard struct {
	addresses *ssrf.Guardian // nil: every address may be dialled
}

// New returns a guard. With allowPrivate every address passes, but the bad
// ports still do not.
func New(allowPrivate bool) *Guard {
	if allowPrivate {
		return &Guard{}
	}
	return &Guard{addresses: ssrf.New(
		ssrf.WithAnyPort(), // ports are a list of refusals here, not of permissions
		ssrf.WithDeniedV4Prefixes(azureWire),
	)}
}

// AllowsPrivate reports whether addresses are left unchecked.
func (g *Guard) AllowsPrivate() bool { return g.addresses == nil }

// Check tells whether addr may be dialled: nil, or an error that wraps
// ErrAddressBlocked.
func (g *Guard) Check(addr netip.AddrPort) error {
	if err := CheckPort(addr.Port()); err != nil {
		return err
	}
	return g.CheckAddr(addr.Addr())
}

// CheckAddr is Check without the port.
func (g *Guard) CheckAddr(addr netip.Addr) error {
	if g.addresses == nil {
		return nil
	}
	if !addr.IsValid() {
		return fmt.Errorf("%w: no valid address", ErrAddressBlocked)
	}
	if addr.Zone() != "" {
		// A zone only has meaning for link-local addresses.
		return fmt.Errorf("%w: %s has a zone; set %s to allow it", ErrAddressBlocked, addr, Setting)
	}
	if err := g.addresses.SafeAddr(addr); err != nil {
		return fmt.Errorf("%w: %s is not a public address; set %s to allow it", ErrAddressBlocked, addr, Setting)
	}
	return nil
}

// Control has the signature of net.Dialer.Control: it sees each address as the
// operating system is about to connect to it.
func (g *Guard) Control(network, address string, _ syscall.RawConn) error {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return fmt.Errorf("%w: network %q is not TCP", ErrAddressBlocked, network)
	}
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q is not an address and port", ErrAddressBlocked, address)
	}
	return g.Check(addr)
}
