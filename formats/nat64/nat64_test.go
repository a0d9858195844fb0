package nat64_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/nat64"
)

func TestEmbedded(t *testing.T) {
	for _, tt := range []struct{ prefix, addr, want string }{
		// RFC 6052, 2.4
		{"2001:db8::/32", "2001:db8:c000:221::", "192.0.2.33"},
		{"2001:db8:100::/40", "2001:db8:1c0:2:21::", "192.0.2.33"},
		{"2001:db8:122::/48", "2001:db8:122:c000:2:2100::", "192.0.2.33"},
		{"2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::", "192.0.2.33"},
		{"2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::", "192.0.2.33"},
		{"2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33", "192.0.2.33"},
		{"64:ff9b::/96", "64:ff9b::192.0.2.33", "192.0.2.33"},

		{"2001:db8:122::/48", "64:ff9b::192.0.2.33", "192.0.2.33"}, // the well-known prefix always counts
		{"64:ff9b:1::/48", "64:ff9b:1:c000:2:2100::", "192.0.2.33"},
		{"fd00:64::/96", "fd00:64::192.0.2.33", "192.0.2.33"},
		// A translator ignores bits 64 to 71, and those after the IPv4 address.
		{"2001:db8:122::/48", "2001:db8:122:c000:ff02:21ff:ffff:ffff", "192.0.2.33"},
		{"2001:db8::/32", "2001:db8:c000:221:1234::1", "192.0.2.33"},

		{"2001:db8:122:344::/96", "2001:db8:122:344:0:1:c000:221", ""},
		{"2001:db8:122::/48", "2001:db8:123:c000:2:2100::", ""},
		{"64:ff9b::/96", "64:ff9b:0:0:0:1:c000:221", ""},
		{"64:ff9b::/96", "64:ff9b::192.0.2.33%eth0", ""},
		{"64:ff9b::/96", "192.0.2.33", ""},
		{"64:ff9b::/96", "::ffff:192.0.2.33", ""},
	} {
		ps, err := nat64.Parse([]string{tt.prefix})
		if err != nil {
			t.Error(err)
		}
		v4, ok := ps.Embedded(netip.MustParseAddr(tt.addr))
		if want, _ := netip.ParseAddr(tt.want); v4 != want || ok != want.IsValid() {
			t.Errorf("%s in %s: %v, %t, want %s", tt.prefix, tt.addr, v4, ok, tt.want)
		}
	}
	if v4, ok := nat64.Prefixes(nil).Embedded(netip.Addr{}); ok {
		t.Errorf("no address embeds %s", v4)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ texts, why string }{
		{"2001:db8:64::", "write an IPv6 prefix such as"},
		{"192.0.2.0/24", "write an IPv6 prefix such as"},
		{"2001:db8:64::%eth0/96", "write an IPv6 prefix such as"},
		{"2001:db8::/33", "must be 32, 40, 48, 56, 64 or 96"},
		{"2001:db8::/72", "must be 32, 40, 48, 56, 64 or 96"},
		{"2001:db8::/128", "must be 32, 40, 48, 56, 64 or 96"},
		{"2001:db8:64::a00:0/96", "write 2001:db8:64::/96"},
		{"2001:db8:64:0:100::/96", "bits 64 to 71 must be zero"},
		{"::/96", "must be 64:ff9b::/96, or lie in"},
		{"::ffff:0:0/96", "must be 64:ff9b::/96, or lie in"},
		{"64:ff9b::/64", "must be 64:ff9b::/96, or lie in"},
		{"64:ff9b::/40", "must be 64:ff9b::/96, or lie in"},
		{"fe80::/64", "must be 64:ff9b::/96, or lie in"},
		{"ff00::/32", "must be 64:ff9b::/96, or lie in"},
		{"2001:db8:64::/96 2001:db8:64::/96", "overlaps with 2001:db8:64::/96"},
		{"2001:db8:64::/96 64:ff9b::/96 2001:db8::/32", "overlaps with 2001:db8:64::/96"},
	} {
		if _, err := nat64.Parse(strings.Fields(tt.texts)); !errors.Is(err, nat64.ErrPrefix) || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %v, want %q", tt.texts, err, tt.why)
		}
	}
}
