package request

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/nat64"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/witness"
)

// A server that is reached over IPv4 and through NAT64 is one, for the delay per address.
func TestPacedAddress(t *testing.T) {
	const v4 = "93.184.216.34"
	r := &Sender{NAT64: nat64.Prefixes{netip.MustParsePrefix("2001:db8:122::/48")}}
	for _, tt := range []struct {
		addr  string
		route dial.Route
		want  string
		path  witness.Path
	}{
		{v4, dial.RouteDirect, v4, witness.IPv4},
		{"64:ff9b::93.184.216.34", dial.RouteDirect, v4, witness.NAT64},
		{"2001:db8:122:5db8:d8:2200::", dial.RouteDirect, v4, witness.NAT64},
		{"2606:2800:220:1::1", dial.RouteDirect, "2606:2800:220:1::1", witness.IPv6},
		{"64:ff9b::93.184.216.34", dial.RouteConnectTo, "", witness.NAT64},
		{"64:ff9b::93.184.216.34", dial.RouteProxy, "", witness.Proxy},
	} {
		addr := netip.AddrPortFrom(netip.MustParseAddr(tt.addr), 80)
		if got, want := r.pacedAddress(wire.Write{Addr: addr, Route: tt.route}), tt.want; want == "" && got.IsValid() || want != "" && got.String() != want {
			t.Errorf("%s, %s: %s, want %s", tt.addr, tt.route, got, want)
		}
		s := &Sent{Exchange: &wire.Exchange{}}
		s.Exchange.Addr, s.Exchange.Route = addr, tt.route
		if p := r.peerOf(s); p.Path != tt.path {
			t.Errorf("%s, %s: the path is %s, want %s", tt.addr, tt.route, p.Path, tt.path)
		}
	}
}

// A proxy that forwards plain http may answer in place of the server.
func TestWhoAnswered(t *testing.T) {
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	ended := start.Add(time.Minute)
	for name, tt := range map[string]struct {
		url    string
		route  dial.Route
		status int
		cut    http1.Truncation
		err    error
		side   wire.Side
		at     time.Time
	}{
		"a server":                       {"http://a.test/", dial.RouteDirect, 200, "", nil, wire.TheHosts, start.Add(time.Second)},
		"a server that answers 502":      {"http://a.test/", dial.RouteDirect, 502, "", nil, wire.TheHosts, start.Add(time.Second)},
		"a body that broke off":          {"http://a.test/", dial.RouteDirect, 200, http1.TruncDisconnect, nil, wire.Unknown, start.Add(time.Second)},
		"a body that took too long":      {"http://a.test/", dial.RouteDirect, 200, http1.TruncTime, nil, wire.Unknown, start.Add(time.Second)},
		"a body that is too long":        {"http://a.test/", dial.RouteDirect, 200, http1.TruncLength, nil, wire.TheHosts, start.Add(time.Second)},
		"the proxy wants a password":     {"http://a.test/", dial.RouteProxy, 407, "", nil, wire.Ours, start.Add(time.Second)},
		"a server says 407 in a tunnel":  {"https://a.test/", dial.RouteProxy, 407, "", nil, wire.TheHosts, start.Add(time.Second)},
		"the proxy reached no server":    {"http://a.test/", dial.RouteProxy, 504, "", nil, wire.TheHosts, time.Time{}},
		"a server says 504 in a tunnel":  {"https://a.test/", dial.RouteProxy, 504, "", nil, wire.TheHosts, start.Add(time.Second)},
		"a certificate that has expired": {"https://a.test/", dial.RouteDirect, 0, "", &wire.Error{Kind: wire.ErrTLS, Phase: wire.PhaseTLS, Err: errors.New("remote error: tls: bad certificate")}, wire.TheHosts, ended},
	} {
		s := &Sent{Exchange: &wire.Exchange{Start: start}, Err: tt.err}
		s.Row.URL = tt.url
		s.Exchange.Status, s.Exchange.Route, s.Exchange.BodyTruncated = tt.status, tt.route, tt.cut
		if tt.err == nil {
			s.Exchange.Timing.FirstByte = time.Second
		}
		side, todo := sideOf(s)
		if at := answeredAt(s, ended); side != tt.side || (todo != "") != (side == wire.Ours) || !at.Equal(tt.at) {
			t.Errorf("%s: side %d (%q), answered at %v", name, side, todo, at)
		}
	}
}
