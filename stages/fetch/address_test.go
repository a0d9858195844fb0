package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

// A private address is refused in every notation, even in notations that make the URL invalid.
func TestEveryFormOfAPrivateAddressIsRefused(t *testing.T) {
	canon, err := urlkey.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := wire.New(wire.Config{
		Resolver: lookup(func(host string) netip.Addr { t.Errorf("%s was looked up", host); return netip.Addr{} }),
		Dial: func(_ context.Context, a netip.AddrPort) (net.Conn, error) {
			t.Errorf("%s was dialled", a)
			return nil, errors.New("never")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, host := range []string{
		"127.0.0.1", "127.1", "127.0.1", "0x7f.1", "0x7f000001", "0X7F.0.0.0x1", "017700000001", "0177.0.0.1", "2130706433", "127.0.0.1.", "0x7f.1.",
		"%31%32%37.0.0.1", "\uff11\uff12\uff17.0.0.1", "127\u3002\u30020.1", "127\u30020\u30020\u30021", "\u2460\u2461\u2466.0.0.1",
		"0", "0.0.0.0", "0x0", "00", "10.1", "192.168.257", "172.1048577", "169.254.169.254", "0xa9fea9fe", "2852039166", "100.64.0.1", "100.100.100.200",
		"224.0.0.1", "255.255.255.255", "4294967295", "192.0.2.1", "198.18.0.1", "203.0.113.7", "168.63.129.16",
		"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:FFFF:7F00:0001]", "[::127.0.0.1]", "[::ffff:0:7f00:1]",
		"[64:ff9b::7f00:1]", "[64:ff9b::169.254.169.254]", "[64:ff9b:1::a00:1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2001::1]", "[2001:db8::1]",
		"[fc00::1]", "[fd00:ec2::254]", "[fe80::1]", "[fe80::1%25eth0]", "[fec0::1]", "[ff02::1]", "[3fff::1]",
	} {
		for _, raw := range []string{"http://" + host + "/", "https://user:secret@" + host + ":8443/latest/meta-data/"} {
			k, err := canon.Canonical(raw, "")
			if err != nil {
				continue // not a valid URL
			}
			if addrs, _, _, err := c.Locate(t.Context(), k.URL); !errors.Is(err, wire.ErrAddressBlocked) || len(addrs) > 0 {
				t.Errorf("%s (%s): %v, %v", raw, k.URL, addrs, err)
			}
			x, err := c.Do(t.Context(), &wire.Request{URL: raw})
			if !errors.Is(err, wire.ErrAddressBlocked) && !errors.Is(err, wire.ErrInvalid) || x.BytesOut > 0 {
				t.Errorf("%s, not made canonical: %v", raw, err)
			}
			x.Release()
		}
	}
}

type lookup func(host string) netip.Addr

func (f lookup) Lookup(_ context.Context, host string) (dns.Answer, error) {
	return dns.Answer{Addrs: []netip.Addr{f(host)}}, nil
}

// The address of every hop of a redirect chain is checked, even of the redirects of a robots.txt.
func TestRedirectsIntoPrivateNetworksAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Host == "inner.a.com" || r.Host == "inner.b.org":
				t.Errorf("%s got a request", r.Host)
			case r.URL.Path == "/robots.txt" && r.Host == "b.org":
				http.Redirect(w, r, "http://inner.b.org/robots.txt", http.StatusFound)
			case r.URL.Path == "/robots.txt":
				fmt.Fprint(w, "User-agent: *\nDisallow:\n")
			case r.URL.Path == "/in":
				http.Redirect(w, r, "http://inner.a.com/secret", http.StatusFound)
			default:
				http.Redirect(w, r, "http://169.254.169.254/latest/", http.StatusFound)
			}
		}, "http://a.com/in", "http://a.com/out", "http://b.org/x")
		l.web.addrs = map[string]netip.Addr{"inner.a.com": netip.MustParseAddr("10.0.0.7"), "inner.b.org": netip.MustParseAddr("127.0.0.1")}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		fetches := l.outcomes(r)
		for u, want := range map[string]schema.Outcome{
			"http://a.com/in":  schema.AddressBlocked,
			"http://a.com/out": schema.Redirected, // the target is in another domain, so this task does not request it
			"http://b.org/x":   schema.AddressBlocked,
		} {
			if f := fetches[u]; f.Outcome != want {
				t.Errorf("%s: %s (%s), want %s", u, f.Outcome, f.Error, want)
			}
		}
		for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
			if a, err := netip.ParseAddrPort(q.Address); err != nil || !a.Addr().IsGlobalUnicast() || a.Addr().IsPrivate() {
				t.Errorf("a request to %s for %s", q.Address, q.URL)
			}
		}
	})
}

// DNS64 gives a host that has only IPv4 an address of NAT64. The IPv4 address in it is what counts.
func TestHostsBehindNAT64(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), "http://a.com/", "http://b.com/", "http://c.com/", "http://loopback.org/", "http://private.org/")
		l.cfg.NAT64Prefixes, l.cfg.Politeness.PerAddressDelay = []string{"2a00:1450:64::/96"}, 5*time.Second
		l.web.addrs = map[string]netip.Addr{
			"a.com":        netip.MustParseAddr("93.184.216.34"),
			"b.com":        netip.MustParseAddr("64:ff9b::93.184.216.34"),
			"c.com":        netip.MustParseAddr("2a00:1450:64::93.184.216.34"),
			"loopback.org": netip.MustParseAddr("64:ff9b::7f00:1"),
			"private.org":  netip.MustParseAddr("2a00:1450:64::10.0.0.1"),
		}
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range l.outcomes(r) {
			want := schema.OK
			if f.Domain == "loopback.org" || f.Domain == "private.org" {
				want = schema.AddressBlocked
			}
			if f.Outcome != want {
				t.Errorf("%s: %s (%s), want %s", f.URL, f.Outcome, f.Error, want)
			}
		}
		hits := l.web.hits()
		if len(hits) != 6 { // robots.txt and a page of three hosts
			t.Fatalf("%d requests", len(hits))
		}
		slices.SortFunc(hits, func(a, b hit) int { return a.at.Compare(b.at) })
		for i := 1; i < len(hits); i++ {
			if gap := hits[i].at.Sub(hits[i-1].at); gap < 5*time.Second {
				t.Errorf("the address of %s gets its next request, for %s, after %v", hits[i-1].host, hits[i].host, gap)
			}
		}
		l = newLab(t, noRobots(page), "http://a.com/")
		l.cfg.NAT64Prefixes = []string{"2a00:1450:64::/97"}
		if _, err := l.run(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "fetch.nat64_prefixes: ") {
			t.Errorf("a prefix of a wrong length: %v", err)
		}
	})
}
