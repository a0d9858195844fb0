// Package guard decides whether the fetcher may open a connection to an address.
//
// A Guard checks the address and port that the fetcher is about to dial, after each DNS lookup and
// each redirect. It returns nil, or ErrAddressBlocked with the reason and the setting that would
// allow the connection.
//
// Unless the config allows private networks, only globally routable unicast addresses pass,
// whatever their notation or name. Loopback, private, link-local, carrier-grade NAT, multicast,
// documentation, 6to4, IPv4-mapped and cloud metadata addresses do not pass. WHATWG's bad
// ports never pass. The guard checks the address that is dialled. A name that resolves differently
// after the check (DNS rebinding) therefore does not help an attacker.
//
// An address of NAT64 passes if the IPv4 address in it does, because that is where the connection goes. The
// guard knows 64:ff9b::/96 and the prefixes that New gets. Of addresses under any other prefix in the global
// unicast space nobody can tell whether they are translated.
//
// Package guard imports formats/nat64 and code.dny.dev/ssrf, which follows IANA's special-purpose
// registries.
package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"

	"crawlbatch.io/crawlbatch/formats/nat64"
)

// ErrAddressBlocked is wrapped by every error of the guard.
var ErrAddressBlocked = errors.New("address blocked")

// Setting is the config key that allows private networks.
const Setting = "fetch.allow_private_networks"

// Metadata lists the addresses at which clouds serve metadata and credentials to machines and pods. No guard without private
// networks lets them pass, and no NetworkPolicy of package k8s, except where an overlay opens one for the store's
// credentials. IANA's registries do not list Azure's wire server, and the private ones may be allowed for other reasons.
var Metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"),    // Alibaba
	netip.MustParseAddr("168.63.129.16"),      // Azure's wire server
	netip.MustParseAddr("169.254.0.23"),       // Tencent
	netip.MustParseAddr("169.254.42.42"),      // Scaleway
	netip.MustParseAddr("169.254.169.254"),    // Amazon, Google, Azure, Oracle, OpenStack and others
	netip.MustParseAddr("169.254.170.2"),      // credentials of Amazon's ECS tasks
	netip.MustParseAddr("169.254.170.23"),     // credentials of Amazon's EKS pods
	netip.MustParseAddr("192.0.0.192"),        // Oracle
	netip.MustParseAddr("fd00:42::42"),        // Scaleway
	netip.MustParseAddr("fd00:a9fe:a9fe::1"),  // Linode
	netip.MustParseAddr("fd00:c1::a9fe:a9fe"), // Oracle
	netip.MustParseAddr("fd00:ec2::23"),       // credentials of Amazon's EKS pods
	netip.MustParseAddr("fd00:ec2::254"),      // Amazon
	netip.MustParseAddr("fd20:ce::254"),       // Google
	netip.MustParseAddr("fe80::a9fe:a9fe"),    // OpenStack
}

// Guard holds the rules for addresses. It is immutable and safe for concurrent use.
type Guard struct {
	addresses *ssrf.Guardian // nil if every address may be dialled
	nat64     nat64.Prefixes
}

// New returns a guard. If allowPrivate is true, the guard allows every address. It refuses bad
// ports in any case. translated are the prefixes of the network's NAT64, besides 64:ff9b::/96.
func New(allowPrivate bool, translated ...netip.Prefix) *Guard {
	if allowPrivate {
		return &Guard{}
	}
	var v4, v6 []netip.Prefix
	for _, a := range Metadata {
		if p := netip.PrefixFrom(a, a.BitLen()); a.Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return &Guard{nat64: translated, addresses: ssrf.New(
		ssrf.WithAnyPort(), // the library can only list allowed ports, so CheckPort checks ports instead
		ssrf.WithDeniedV4Prefixes(v4...), ssrf.WithDeniedV6Prefixes(v6...),
	)}
}

// AllowsPrivate reports whether every address passes.
func (g *Guard) AllowsPrivate() bool { return g.addresses == nil }

// Check returns nil if addr may be dialled, otherwise an error that wraps
// ErrAddressBlocked.
func (g *Guard) Check(addr netip.AddrPort) error {
	if err := CheckPort(addr.Port()); err != nil {
		return err
	}
	return g.CheckAddr(addr.Addr())
}

// CheckAddr is Check for an address without a port.
func (g *Guard) CheckAddr(addr netip.Addr) error {
	if g.addresses == nil {
		return nil
	}
	if !addr.IsValid() {
		return fmt.Errorf("%w: no valid address", ErrAddressBlocked)
	}
	if addr.Zone() != "" {
		// Only link-local addresses have a zone.
		return fmt.Errorf("%w: %s has a zone; set %s to allow it", ErrAddressBlocked, addr, Setting)
	}
	reached, what := addr, addr.String()
	if v4, ok := g.nat64.Embedded(addr); ok {
		reached, what = v4, fmt.Sprintf("%s (NAT64 of %s)", addr, v4)
	}
	if err := g.addresses.SafeAddr(reached); err != nil {
		return fmt.Errorf("%w: %s is not a public address; set %s to allow it", ErrAddressBlocked, what, Setting)
	}
	return nil
}

// Control is the Control function of a net.Dialer. It checks an address right before each connect.
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
