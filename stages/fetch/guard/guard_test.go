package guard_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"code.dny.dev/ssrf"

	"crawlbatch.io/crawlbatch/formats/nat64"
	"crawlbatch.io/crawlbatch/stages/fetch/guard"
)

func TestCheckRefusesWhatIsNotPublic(t *testing.T) {
	tests := []struct {
		name string
		addr string
		open bool
	}{
		{"public v4", "93.184.216.34:80", true},
		{"public v6", "[2606:2800:220:1:248:1893:25c8:1946]:443", true},
		{"unusual but good port", "93.184.216.34:8443", true},
		{"loopback", "127.0.0.1:80", false},
		{"all of 127/8", "127.255.3.4:80", false},
		{"loopback v6", "[::1]:80", false},
		{"unspecified", "0.0.0.0:80", false},
		{"unspecified v6", "[::]:80", false},
		{"this network", "0.1.2.3:80", false},
		{"private 10/8", "10.0.0.1:80", false},
		{"private 172.16/12", "172.31.255.254:80", false},
		{"beside 172.16/12", "172.32.0.1:80", true},
		{"private 192.168/16", "192.168.1.1:80", false},
		{"carrier-grade NAT", "100.64.0.1:80", false},
		{"Alibaba metadata", "100.100.100.200:80", false},
		{"link-local", "169.254.1.1:80", false},
		{"AWS, GCP, Azure metadata", "169.254.169.254:80", false},
		{"AWS metadata v6", "[fd00:ec2::254]:80", false},
		{"Oracle metadata", "192.0.0.192:80", false},
		{"Azure wire server", "168.63.129.16:80", false},
		{"link-local v6", "[fe80::1]:80", false},
		{"link-local v6 with zone", "[fe80::1%eth0]:80", false},
		{"public v6 with zone", "[2606:2800::1%eth0]:80", false},
		{"unique local v6", "[fc00::1]:80", false},
		{"multicast", "224.0.0.1:80", false},
		{"broadcast", "255.255.255.255:80", false},
		{"multicast v6", "[ff02::1]:80", false},
		{"v4-mapped loopback", "[::ffff:127.0.0.1]:80", false},
		{"v4-mapped public", "[::ffff:93.184.216.34]:80", false},
		{"v4-compatible loopback", "[::127.0.0.1]:80", false},
		{"NAT64 of loopback", "[64:ff9b::7f00:1]:80", false},
		{"local NAT64", "[64:ff9b:1::1]:80", false},
		{"6to4 of loopback", "[2002:7f00:1::]:80", false},
		{"NAT64 of a public address", "[64:ff9b::5db8:d822]:80", true},
		{"NAT64 of a public address at a bad port", "[64:ff9b::5db8:d822]:25", false},
		{"NAT64 of a public address with zone", "[64:ff9b::5db8:d822%eth0]:80", false},
		{"NAT64 of private 10/8", "[64:ff9b::10.0.0.1]:80", false},
		{"NAT64 of metadata", "[64:ff9b::169.254.169.254]:80", false},
		{"NAT64 of Azure's wire server", "[64:ff9b::168.63.129.16]:80", false},
		{"NAT64 of documentation", "[64:ff9b::192.0.2.33]:80", false},
		{"NAT64 of multicast", "[64:ff9b::224.0.0.1]:80", false},
		{"beside NAT64", "[64:ff9b::1:0:0]:80", false},
		{"local NAT64 of metadata", "[64:ff9b:1:fffe::a9fe:a9fe]:80", false},
		{"6to4 of a public address", "[2002:5db8:d822::]:80", false},
		{"Teredo", "[2001::1]:80", false},
		{"Teredo with a client in 127/8", "[2001:0:5db8:d822:0:0:80ff:fffe]:80", false},
		{"IPv4-translated", "[::ffff:0:127.0.0.1]:80", false},
		{"site-local of old", "[fec0::1]:80", false},
		{"discard", "[100::1]:80", false},
		{"segment routing", "[5f00::1]:80", false},
		{"ORCHID", "[2001:20::1]:80", false},
		{"documentation v6 of 2024", "[3fff::1]:80", false},
		{"documentation 2", "198.51.100.1:80", false},
		{"documentation 3", "203.0.113.1:80", false},
		{"reserved", "240.0.0.1:80", false},
		{"6to4 relay", "192.88.99.1:80", false},
		{"Google metadata v6", "[fd20:ce::254]:80", false},
		{"documentation", "192.0.2.1:80", false},
		{"documentation v6", "[2001:db8::1]:80", false},
		{"benchmarking", "198.18.0.1:80", false},
		{"SMTP", "93.184.216.34:25", false},
		{"IRC", "93.184.216.34:6667", false},
		{"port 0", "93.184.216.34:0", false},
	}
	strict, allowing := guard.New(false), guard.New(true)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr := netip.MustParseAddrPort(tt.addr)
			err := strict.Check(addr)
			if tt.open {
				if err != nil {
					t.Fatalf("Check(%s) = %v, want nil", addr, err)
				}
				return
			}
			if !errors.Is(err, guard.ErrAddressBlocked) {
				t.Fatalf("Check(%s) = %v, want ErrAddressBlocked", addr, err)
			}
			badPort := guard.CheckPort(addr.Port()) != nil
			if key := guard.Setting; !badPort && !strings.Contains(err.Error(), key) {
				t.Errorf("error %q does not name %s", err, key)
			}
			if err := allowing.Check(addr); (err != nil) != badPort {
				t.Errorf("with private networks allowed Check(%s) = %v", addr, err)
			}
			if cerr := strict.Control("tcp", tt.addr, nil); !errors.Is(cerr, guard.ErrAddressBlocked) {
				t.Errorf("Control(%s) = %v, want ErrAddressBlocked", addr, cerr)
			}
		})
	}
}

// embed writes an IPv4 address into a prefix, as the table of RFC 6052, 2.2 does.
func embed(t *testing.T, prefix netip.Prefix, v4 netip.Addr) netip.Addr {
	t.Helper()
	places := map[int][4]int{32: {4, 5, 6, 7}, 40: {5, 6, 7, 9}, 48: {6, 7, 9, 10}, 56: {7, 9, 10, 11}, 64: {9, 10, 11, 12}, 96: {12, 13, 14, 15}}
	b, at, ok := prefix.Addr().As16(), places[prefix.Bits()], true
	if at[3] == 0 {
		t.Fatalf("%s has a length that RFC 6052 lacks", prefix)
	}
	for i, octet := range v4.As4() {
		ok = ok && b[at[i]] == 0
		b[at[i]] = octet
	}
	if !ok {
		t.Fatalf("%s is not masked", prefix)
	}
	return netip.AddrFrom16(b)
}

// ownNAT64 are prefixes in the spaces where operators take them from.
var ownNAT64 = []string{
	"2001:db8::/32", "2001:db8:100::/40", "2001:db8:122::/48", "2001:db8:122:300::/56", "2001:db8:122:344::/64", "2001:db8:122:344::/96",
	"2a00:1450:64::/96", "2a00:1450:64::/48", "64:ff9b:1::/48", "64:ff9b:1:fffe::/64", "64:ff9b:1::/96", "fd00:64::/96", "fd00:64::/32",
}

// The addresses of 192.0.2.33 are those of RFC 6052, 2.4.
func TestPrefixesOfTheOperatorTranslate(t *testing.T) {
	for prefix, addr := range map[string]string{
		"2001:db8::/32":         "2001:db8:c000:221::",
		"2001:db8:100::/40":     "2001:db8:1c0:2:21::",
		"2001:db8:122::/48":     "2001:db8:122:c000:2:2100::",
		"2001:db8:122:300::/56": "2001:db8:122:3c0:0:221::",
		"2001:db8:122:344::/64": "2001:db8:122:344:c0:2:2100::",
		"2001:db8:122:344::/96": "2001:db8:122:344::192.0.2.33",
		"64:ff9b::/96":          "64:ff9b::192.0.2.33",
	} {
		p := netip.MustParsePrefix(prefix)
		if got := embed(t, p, netip.MustParseAddr("192.0.2.33")); got != netip.MustParseAddr(addr) {
			t.Errorf("%s: embed returns %s, want %s", prefix, got, addr)
		}
		g := guard.New(false, p)
		if err := g.CheckAddr(netip.MustParseAddr(addr)); !errors.Is(err, guard.ErrAddressBlocked) || !strings.Contains(err.Error(), "(NAT64 of 192.0.2.33) is not a public address") {
			t.Errorf("%s: %v", addr, err)
		}
		public := embed(t, p, netip.MustParseAddr("93.184.216.34"))
		if err := g.CheckAddr(public); err != nil {
			t.Error(err)
		}
		if err := guard.New(false).CheckAddr(public); (err == nil) != (p == nat64.WellKnown) {
			t.Errorf("%s without the prefix: %v", public, err)
		}
	}
	// Nobody but the operator knows that this address is translated.
	const private = "2a00:1450:64::10.0.0.1"
	if err := guard.New(false).CheckAddr(netip.MustParseAddr(private)); err != nil {
		t.Errorf("%s without the prefix: %v", private, err)
	}
	err := guard.New(false, netip.MustParsePrefix("2a00:1450:64::/96")).Control("tcp6", "["+private+"]:80", nil)
	const want = "address blocked: 2a00:1450:64::a00:1 (NAT64 of 10.0.0.1) is not a public address; set fetch.allow_private_networks to allow it"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestNAT64IsJudgedByTheEmbeddedAddress(t *testing.T) {
	var addrs []netip.Addr
	for _, p := range append(ssrf.IPv4DeniedPrefixes, netip.MustParsePrefix("0.0.0.0/0")) {
		addrs = append(addrs, p.Addr(), p.Addr().Prev(), p.Addr().Next())
	}
	addrs = append(addrs, guard.Metadata...)
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		addrs = append(addrs, netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, random.Uint32()))))
	}
	addrs = slices.DeleteFunc(addrs, func(a netip.Addr) bool { return !a.Is4() })
	plain := guard.New(false)
	for _, text := range append(ownNAT64, nat64.WellKnown.String()) {
		prefixes, err := nat64.Parse([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		g := guard.New(false, prefixes...)
		for _, v4 := range addrs {
			a := embed(t, prefixes[0], v4)
			if got, want := g.CheckAddr(a), plain.CheckAddr(v4); (got == nil) != (want == nil) {
				t.Errorf("%s in %s: %v, but %v", v4, a, got, want)
			}
		}
	}
}

// Metadata of a cloud stays closed, even if somebody takes its network for a prefix of NAT64.
func TestNoPrefixOpensMetadata(t *testing.T) {
	for _, a := range guard.Metadata {
		for _, bits := range []int{32, 40, 48, 56, 64, 96} {
			if p, err := a.Prefix(bits); err == nil && a.Is6() && guard.New(false, p).CheckAddr(a) == nil {
				t.Errorf("%s passes with %s", a, p)
			}
		}
	}
}

func TestInvalidAddressIsRefused(t *testing.T) {
	g := guard.New(false)
	if err := g.CheckAddr(netip.Addr{}); !errors.Is(err, guard.ErrAddressBlocked) {
		t.Errorf("CheckAddr(zero) = %v", err)
	}
	for _, c := range [][2]string{{"udp", "93.184.216.34:80"}, {"unix", "/run/docker.sock"}, {"tcp", "example.org:80"}} {
		if err := g.Control(c[0], c[1], nil); !errors.Is(err, guard.ErrAddressBlocked) {
			t.Errorf("Control(%s, %s) = %v", c[0], c[1], err)
		}
	}
}

// The guard checks the address when it is dialled, so the host name does not matter.
func TestControlStopsADial(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost"} {
		d := net.Dialer{Control: guard.New(false).Control}
		c, err := d.Dial("tcp", net.JoinHostPort(host, port))
		if err == nil {
			c.Close()
			t.Fatalf("dialled %s", host)
		}
		if !errors.Is(err, guard.ErrAddressBlocked) {
			t.Errorf("dial %s: %v, want ErrAddressBlocked", host, err)
		}
	}
	for _, addr := range []string{"[64:ff9b::7f00:1]:", "[2a00:1450:64::7f00:1]:"} {
		d := net.Dialer{Control: guard.New(false, netip.MustParsePrefix("2a00:1450:64::/96")).Control}
		_, err := d.Dial("tcp", addr+port)
		if !errors.Is(err, guard.ErrAddressBlocked) && !errors.Is(err, syscall.EAFNOSUPPORT) {
			t.Errorf("dial %s: %v, want ErrAddressBlocked", addr, err)
		}
	}
	d := net.Dialer{Control: guard.New(true).Control}
	c, err := d.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatalf("with private networks allowed: %v", err)
	}
	c.Close()
}

// CheckPort refuses every bad port and allows its neighbours.
func TestBadPorts(t *testing.T) {
	refused := 0
	for p := range 1 << 16 {
		if guard.CheckPort(uint16(p)) != nil {
			refused++
		}
	}
	if refused != 83 {
		t.Errorf("%d ports refused, want the 83 of WHATWG Fetch", refused)
	}
	for _, p := range []uint16{80, 443, 8000, 8080, 8443, 3000, 5000, 9000, 65535} {
		if err := guard.CheckPort(p); err != nil {
			t.Errorf("CheckPort(%d) = %v", p, err)
		}
	}
	if !slices.ContainsFunc([]uint16{22}, func(p uint16) bool { return guard.CheckPort(p) != nil }) {
		t.Error("port 22 passes")
	}
}
