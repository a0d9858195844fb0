package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A machine may lack a family. What its addresses say must not hide what happened to the others.
func TestTheErrorIsOfAnAddressThatCouldAnswer(t *testing.T) {
	v4, v6 := netip.MustParseAddrPort("192.0.2.1:80"), netip.MustParseAddrPort("[2001:db8::1]:80")
	none, refused := os.NewSyscallError("connect", syscall.ENETUNREACH), os.NewSyscallError("connect", syscall.ECONNREFUSED)
	silent := errors.New("silent")
	for name, tt := range map[string]struct {
		first, second netip.AddrPort
		errs          map[netip.AddrPort]error
		want          netip.AddrPort
		is            error
	}{
		"IPv4 refuses, IPv6 lacks":           {v4, v6, map[netip.AddrPort]error{v4: refused, v6: none}, v4, syscall.ECONNREFUSED},
		"IPv6 lacks, IPv4 refuses":           {v6, v4, map[netip.AddrPort]error{v4: refused, v6: none}, v4, syscall.ECONNREFUSED},
		"IPv4 is silent, IPv6 lacks":         {v4, v6, map[netip.AddrPort]error{v4: silent, v6: none}, v4, context.DeadlineExceeded},
		"IPv6 lacks, IPv4 is silent":         {v6, v4, map[netip.AddrPort]error{v4: silent, v6: none}, v4, context.DeadlineExceeded},
		"both lack: the resolver's first":    {v4, v6, map[netip.AddrPort]error{v4: none, v6: none}, v4, syscall.ENETUNREACH},
		"both are silent: the first of them": {v6, v4, map[netip.AddrPort]error{v4: silent, v6: silent}, v6, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				d := &Dialer{Config: Config{Now: time.Now, Dial: func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
					if err := tt.errs[addr]; err != silent {
						return nil, err
					}
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}}}
				_, addr, err := d.race(ctx, Location{dial: []netip.AddrPort{tt.first, tt.second}})
				if addr != tt.want || !errors.Is(err, tt.is) {
					t.Errorf("%v: %v", addr, err)
				}
			})
		})
	}
}

// A name may have many addresses of dead servers. The last that is alive is reached, and only a few are dialled
// at the same time.
func TestAnAddressAfterManyDeadOnesIsReached(t *testing.T) {
	for name, dead := range map[string]error{"silent": nil, "refused": syscall.ECONNREFUSED} {
		for _, n := range []int{1, 5, 6, 7, 12, maxAttempts - 1} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					var pending, most atomic.Int32
					alive := netip.MustParseAddrPort("192.0.2.250:80")
					d := &Dialer{Config: Config{Now: time.Now, Dial: func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
						if addr == alive {
							c, _ := net.Pipe()
							return c, nil
						}
						if dead != nil {
							return nil, dead
						}
						now := pending.Add(1)
						defer pending.Add(-1)
						most.Store(max(most.Load(), now))
						<-ctx.Done()
						return nil, ctx.Err()
					}}}
					var l Location
					for i := range n {
						l.dial = append(l.dial, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), 80))
					}
					l.dial = append(l.dial, alive)
					nc, addr, err := d.race(ctx, l)
					if err != nil || addr != alive {
						t.Fatalf("%v: %v", addr, err)
					}
					nc.Close()
					if most.Load() > maxPending {
						t.Errorf("%d addresses were dialled at the same time", most.Load())
					}
				})
			})
		}
	}
}
