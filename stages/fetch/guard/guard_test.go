package guard_test

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

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
		{"NAT64 of a public address", "[64:ff9b::5db8:d822]:80", false},
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
