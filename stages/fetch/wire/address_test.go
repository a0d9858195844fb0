package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

func TestAddressFamiliesAlternate(t *testing.T) {
	a := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	c, err := New(Config{Resolver: fakeResolver{"both.test": {Addrs: []netip.Addr{a("2606::1"), a("2606::2"), a("2606::3"), a("93.0.0.1")}}}})
	if err != nil {
		t.Fatal(err)
	}
	got, route, _, err := c.Locate(t.Context(), "http://both.test/")
	if err != nil || route != dial.RouteDirect {
		t.Fatal(route, err)
	}
	if d := cmp.Diff("[[2606::1]:80 93.0.0.1:80 [2606::2]:80 [2606::3]:80]", fmt.Sprint(got)); d != "" {
		t.Error(d)
	}
	if _, _, _, err := c.Locate(t.Context(), "http://nowhere.test/"); !errors.Is(err, ErrNXDomain) || !errors.Is(err, ErrDNS) {
		t.Errorf("a name that does not exist: %v", err)
	}
	c, err = New(Config{Resolver: resolverFunc(func(context.Context, string) (dns.Answer, error) {
		return dns.Answer{}, &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	})})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := c.Locate(t.Context(), "http://fails.test/"); errors.Is(err, ErrNXDomain) || !errors.Is(err, ErrDNS) {
		t.Errorf("a name server that fails: %v", err)
	}
}

// If a host's first address does not answer, the client also tries the next one after a quarter of
// a second. If the first address refuses the connection, it tries the next one immediately.
func TestNextAddressIsTriedBeforeTheFirstGivesUp(t *testing.T) {
	for name, tt := range map[string]struct {
		silent bool
		want   time.Duration
	}{"silent": {true, 250 * time.Millisecond}, "refused": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad, good := netip.MustParseAddr("2606::1"), netip.MustParseAddr("93.0.0.1")
				c, err := New(Config{
					Resolver: fakeResolver{"both.test": {Addrs: []netip.Addr{bad, good}}},
					Dial: func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
						switch {
						case a.Addr() == good:
							return pipeServer(okHead + wiretest.Page), nil
						case tt.silent:
							<-ctx.Done()
							return nil, ctx.Err()
						}
						return nil, errors.New("connection refused")
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				x, err := get(t, c, "http://both.test/")
				if err != nil || x.Addr.Addr() != good || x.Timing.Connect != tt.want {
					t.Errorf("%v from %v after %v, want %v", err, x.Addr, x.Timing.Connect, tt.want)
				}
			})
		})
	}
}
