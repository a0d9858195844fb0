// Package nat64 finds the IPv4 addresses in the IPv6 addresses of NAT64 (RFC 6052, 6146 and 6147).
//
// On a network without IPv4, DNS64 answers for a host that has only IPv4 addresses: with a prefix of the network, followed
// by an IPv4 address of the host. A connection to such an IPv6 address goes to a translator, NAT64, and from there to
// the IPv4 address. The package imports no other package of this project.
package nat64

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// WellKnown is the prefix of translators that have no prefix of their own (RFC 6052, 2.1).
var WellKnown = netip.MustParsePrefix("64:ff9b::/96")

// ErrPrefix means that a text is not a prefix under which a network may translate.
var ErrPrefix = errors.New("not a NAT64 prefix")

// lengths are the lengths that a prefix may have, in bits (RFC 6052, 2.2).
var lengths = []int{32, 40, 48, 56, 64, 96}

// spaces hold every prefix but WellKnown: global unicast addresses, unique local ones (RFC 4193), and those that
// RFC 8215 reserves for translators.
var spaces = []netip.Prefix{netip.MustParsePrefix("2000::/3"), netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("64:ff9b:1::/48")}

// Prefixes lists the prefixes under which a network translates, in addition to WellKnown.
type Prefixes []netip.Prefix

// Parse reads prefixes such as 2001:db8:64::/96. No two of them may overlap. The error wraps ErrPrefix.
func Parse(texts []string) (Prefixes, error) {
	var all Prefixes
	for _, text := range texts {
		p, err := parse(text)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(all, p.Overlaps); i >= 0 {
			return nil, fmt.Errorf("%q: %w: it overlaps with %s", text, ErrPrefix, all[i])
		}
		all = append(all, p)
	}
	return all, nil
}

func parse(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	why := ""
	switch {
	case err != nil || !p.Addr().Is6():
		why = "write an IPv6 prefix such as 2001:db8:64::/96"
	case !slices.Contains(lengths, p.Bits()):
		why = "its length must be 32, 40, 48, 56, 64 or 96 (RFC 6052, 2.2)"
	case p != p.Masked():
		why = fmt.Sprintf("bits after the first %d are set: write %s", p.Bits(), p.Masked())
	case p.Addr().As16()[8] != 0:
		why = "bits 64 to 71 must be zero (RFC 6052, 2.2)"
	case p != WellKnown && !slices.ContainsFunc(spaces, func(s netip.Prefix) bool { return s.Bits() <= p.Bits() && s.Overlaps(p) }):
		why = "it must be 64:ff9b::/96, or lie in 2000::/3, fc00::/7 or 64:ff9b:1::/48"
	default:
		return p, nil
	}
	return p, fmt.Errorf("%q: %w: %s", text, ErrPrefix, why)
}

// Embedded returns the IPv4 address that a connection to a reaches through NAT64. ok is false if a is not under
// WellKnown or one of the prefixes.
func (ps Prefixes) Embedded(a netip.Addr) (v4 netip.Addr, ok bool) {
	in := func(p netip.Prefix) bool { return p.Contains(a) }
	bits := WellKnown.Bits()
	if !in(WellKnown) {
		i := slices.IndexFunc(ps, in)
		if i < 0 {
			return netip.Addr{}, false
		}
		bits = ps[i].Bits()
	}
	b := a.As16()
	if bits < 96 {
		// Bits 64 to 71 should be zero, and so should those after the IPv4 address. But a translator extracts
		// the IPv4 address whatever they are (RFC 6052, 2.3), so they change nothing here either.
		copy(b[8:], b[9:])
	}
	return netip.AddrFrom4([4]byte(b[bits/8:])), true
}
