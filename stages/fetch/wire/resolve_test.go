package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
)

type resolverFunc func(context.Context, string) (Answer, error)

func (f resolverFunc) Lookup(ctx context.Context, host string) (Answer, error) { return f(ctx, host) }

// fakeResolver knows the names it has and no others.
type fakeResolver map[string]Answer

func (r fakeResolver) Lookup(_ context.Context, host string) (Answer, error) {
	if a, ok := r[host]; ok {
		return a, nil
	}
	return Answer{}, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

var someAddr = netip.MustParseAddr("93.184.216.34")

func TestAnswersAreBelievedAsLongAsTheyHold(t *testing.T) {
	tests := []struct {
		name   string
		answer Answer
		err    error
		kind   error
		hold   time.Duration
	}{
		{"its own TTL", Answer{Addrs: []netip.Addr{someAddr}, TTL: 2 * time.Minute}, nil, nil, 2 * time.Minute},
		{"TTL too short", Answer{Addrs: []netip.Addr{someAddr}, TTL: time.Second}, nil, nil, 30 * time.Second},
		{"TTL too long", Answer{Addrs: []netip.Addr{someAddr}, TTL: 100 * time.Hour}, nil, nil, time.Hour},
		{"TTL unknown", Answer{Addrs: []netip.Addr{someAddr}}, nil, nil, 5 * time.Minute},
		{"no such name", Answer{}, &net.DNSError{IsNotFound: true}, ErrNXDomain, 5 * time.Minute},
		{"no such name, own TTL", Answer{TTL: time.Minute}, &net.DNSError{IsNotFound: true}, ErrNXDomain, time.Minute},
		{"no addresses", Answer{}, nil, ErrNXDomain, 5 * time.Minute},
		{"server failure", Answer{}, &net.DNSError{Err: "server misbehaving", IsTemporary: true}, ErrDNS, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				c := newDNSCache(resolverFunc(func(context.Context, string) (Answer, error) {
					asked++
					return tt.answer, tt.err
				}), DNSCache{}.withDefaults(), time.Now)
				look := func(want int) {
					t.Helper()
					addrs, err := c.lookup(t.Context(), "host.test.")
					if !errors.Is(err, tt.kind) || tt.kind == ErrDNS && errors.Is(err, ErrNXDomain) {
						t.Errorf("error %v, want %v", err, tt.kind)
					}
					if tt.kind == nil && len(addrs) != 1 || tt.kind != nil && len(addrs) != 0 {
						t.Errorf("addresses %v", addrs)
					}
					if asked != want {
						t.Errorf("asked %d times, want %d", asked, want)
					}
				}
				look(1)
				time.Sleep(tt.hold - time.Nanosecond)
				look(1)
				time.Sleep(time.Nanosecond)
				look(2)
			})
		})
	}
}

func TestOneLookUpServesAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		c := newDNSCache(resolverFunc(func(ctx context.Context, _ string) (Answer, error) {
			asked.Add(1)
			select {
			case <-time.After(time.Second):
				return Answer{Addrs: []netip.Addr{someAddr}}, nil
			case <-ctx.Done():
				return Answer{}, ctx.Err()
			}
		}), DNSCache{}.withDefaults(), time.Now)
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.lookup(first, "host.test"); !errors.Is(err, context.Canceled) {
				t.Errorf("the caller who left got %v", err)
			}
		})
		synctest.Wait()
		for range 10 {
			wg.Go(func() {
				if _, err := c.lookup(t.Context(), "host.test"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel() // whose look-up the others wait for
		wg.Wait()
		if asked.Load() != 1 {
			t.Errorf("asked %d times", asked.Load())
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	c := newDNSCache(fakeResolver{}, DNSCache{Entries: 10}.withDefaults(), time.Now)
	for i := range 100 {
		if _, err := c.lookup(t.Context(), fmt.Sprintf("host%d.test", i)); !errors.Is(err, ErrNXDomain) {
			t.Fatal(err)
		}
		if len(c.entries) > 10 {
			t.Fatalf("%d entries", len(c.entries))
		}
	}
}

func TestAddressFamiliesAlternate(t *testing.T) {
	a := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	c, err := New(Config{Resolver: fakeResolver{"both.test": {Addrs: []netip.Addr{a("2606::1"), a("2606::2"), a("2606::3"), a("93.0.0.1")}}}})
	if err != nil {
		t.Fatal(err)
	}
	got, route, _, err := c.Locate(t.Context(), "http://both.test/")
	if err != nil || route != RouteDirect {
		t.Fatal(route, err)
	}
	if d := cmp.Diff("[[2606::1]:80 93.0.0.1:80 [2606::2]:80 [2606::3]:80]", fmt.Sprint(got)); d != "" {
		t.Error(d)
	}
	if _, _, _, err := c.Locate(t.Context(), "http://nowhere.test/"); !errors.Is(err, ErrNXDomain) || !errors.Is(err, ErrDNS) {
		t.Errorf("a name that does not exist: %v", err)
	}
}

// A host that does not answer on its first address costs a quarter of a second,
// one that refuses costs nothing.
func TestNextAddressIsTriedBeforeTheFirstGivesUp(t *testing.T) {
	for name, tt := range map[string]struct {
		silent bool
		want   time.Duration
	}{"silent": {true, attemptDelay}, "refused": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad, good := netip.MustParseAddr("2606::1"), netip.MustParseAddr("93.0.0.1")
				c, err := New(Config{
					Resolver: fakeResolver{"both.test": {Addrs: []netip.Addr{bad, good}}},
					Dial: func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
						switch {
						case a.Addr() == good:
							return pipeServer(okHead + page), nil
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

// dnsServer answers queries on loopback over UDP, and over TCP what it
// truncated there.
func dnsServer(t *testing.T, truncate bool, answer func(q dnsmessage.Question, b *dnsmessage.Builder)) string {
	t.Helper()
	var pc net.PacketConn
	var ln net.Listener
	for range 50 { // until a port is free for both
		var err error
		if pc, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if ln, err = net.Listen("tcp", pc.LocalAddr().String()); err == nil {
			break
		}
		pc.Close()
	}
	if ln == nil {
		t.Fatal("no port is free for both UDP and TCP")
	}
	reply := func(query []byte, cut bool) []byte {
		var p dnsmessage.Parser
		h, err := p.Start(query)
		if err != nil {
			return nil
		}
		q, err := p.Question()
		if err != nil {
			return nil
		}
		head := dnsmessage.Header{ID: h.ID, Response: true, RecursionAvailable: true, Truncated: cut}
		if q.Name.String() != "host.test." && !cut {
			head.RCode = dnsmessage.RCodeNameError
		}
		b := dnsmessage.NewBuilder(nil, head)
		b.StartQuestions()
		b.Question(q)
		if !cut {
			answer(q, &b)
		}
		msg, _ := b.Finish()
		return msg
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			pc.WriteTo(reply(buf[:n], truncate), from)
		}
	})
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 1500)
			if n, err := c.Read(buf); err == nil && n > 2 {
				msg := reply(buf[2:n], false)
				c.Write(append([]byte{byte(len(msg) >> 8), byte(len(msg))}, msg...))
			}
			c.Close()
		}
	})
	t.Cleanup(func() { pc.Close(); ln.Close(); wg.Wait() })
	return pc.LocalAddr().String()
}

func TestSystemResolverTellsTTLs(t *testing.T) {
	answer := func(q dnsmessage.Question, b *dnsmessage.Builder) {
		if q.Type == dnsmessage.TypeA && q.Name.String() == "host.test." {
			b.StartAnswers()
			b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 300}, dnsmessage.AResource{A: [4]byte{93, 184, 216, 34}})
			b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 77}, dnsmessage.AResource{A: [4]byte{93, 184, 216, 35}})
			return
		}
		b.StartAuthorities()
		b.SOAResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 900}, dnsmessage.SOAResource{
			NS: q.Name, MBox: q.Name, MinTTL: 42,
		})
	}
	for _, truncate := range []bool{false, true} {
		t.Run(fmt.Sprintf("over TCP %v", truncate), func(t *testing.T) {
			r := newSystemResolver(dnsServer(t, truncate, answer))
			a, err := r.Lookup(t.Context(), "host.test")
			if err != nil || len(a.Addrs) != 2 || a.TTL != 77*time.Second || !a.Addrs[0].Is4() {
				t.Errorf("host.test: %+v, %v; want two IPv4 addresses for 77s", a, err)
			}
			a, err = r.Lookup(t.Context(), "nowhere.test")
			var dns *net.DNSError
			if !errors.As(err, &dns) || !dns.IsNotFound || a.TTL != 42*time.Second {
				t.Errorf("nowhere.test: %+v, %v; want not found for 42s", a, err)
			}
		})
	}
}

func FuzzTTLRecorder(f *testing.F) {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{Response: true})
	b.StartQuestions()
	name := dnsmessage.MustNewName("host.test.")
	b.Question(dnsmessage.Question{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET})
	b.StartAnswers()
	b.AResource(dnsmessage.ResourceHeader{Name: name, TTL: 60}, dnsmessage.AResource{})
	msg, err := b.Finish()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(msg)
	f.Fuzz(func(t *testing.T, msg []byte) {
		var r ttlRecorder
		r.note(msg)
		if r.positive() < 0 || r.negative() < 0 {
			t.Error("negative TTL")
		}
	})
}
