package dns

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

	"golang.org/x/net/dns/dnsmessage"
)

type resolverFunc func(context.Context, string) (Answer, error)

func (f resolverFunc) Lookup(ctx context.Context, host string) (Answer, error) { return f(ctx, host) }

// fakeResolver knows only the given names.
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
		absent bool // expected result of IsNotFound
		fails  bool
		hold   time.Duration
	}{
		{"its own TTL", Answer{Addrs: []netip.Addr{someAddr}, TTL: 2 * time.Minute}, nil, false, false, 2 * time.Minute},
		{"TTL too short", Answer{Addrs: []netip.Addr{someAddr}, TTL: time.Second}, nil, false, false, 30 * time.Second},
		{"TTL too long", Answer{Addrs: []netip.Addr{someAddr}, TTL: 100 * time.Hour}, nil, false, false, time.Hour},
		{"TTL unknown", Answer{Addrs: []netip.Addr{someAddr}}, nil, false, false, 5 * time.Minute},
		{"no such name", Answer{}, &net.DNSError{IsNotFound: true}, true, true, 5 * time.Minute},
		{"no such name, own TTL", Answer{TTL: time.Minute}, &net.DNSError{IsNotFound: true}, true, true, time.Minute},
		{"no addresses", Answer{}, nil, true, true, 5 * time.Minute},
		{"server failure", Answer{}, &net.DNSError{Err: "server misbehaving", IsTemporary: true}, false, true, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, answered := 0, 0
				c := NewCache(resolverFunc(func(context.Context, string) (Answer, error) {
					asked++
					return tt.answer, tt.err
				}), time.Now, func(hit bool) {
					if hit {
						answered++
					}
				})
				look := func(want int) {
					t.Helper()
					addrs, err := c.Lookup(t.Context(), "host.test.")
					if (err != nil) != tt.fails || IsNotFound(err) != tt.absent {
						t.Errorf("error %v, want one %t, for an absent name %t", err, tt.fails, tt.absent)
					}
					if tt.fails == (len(addrs) == 1) || len(addrs) > 1 {
						t.Errorf("addresses %v", addrs)
					}
					if asked != want {
						t.Errorf("%d look-ups, want %d", asked, want)
					}
				}
				look(1)
				time.Sleep(tt.hold - time.Nanosecond)
				look(1)
				time.Sleep(time.Nanosecond)
				look(2)
				if answered != 1 {
					t.Errorf("the cache says that it answered %d of 3 look-ups", answered)
				}
			})
		})
	}
}

func TestOneLookUpServesAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		c := NewCache(resolverFunc(func(ctx context.Context, _ string) (Answer, error) {
			asked.Add(1)
			select {
			case <-time.After(time.Second):
				return Answer{Addrs: []netip.Addr{someAddr}}, nil
			case <-ctx.Done():
				return Answer{}, ctx.Err()
			}
		}), time.Now, nil)
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Lookup(first, "host.test"); !errors.Is(err, context.Canceled) {
				t.Errorf("the caller that left got %v", err)
			}
		})
		synctest.Wait()
		for range 10 {
			wg.Go(func() {
				if _, err := c.Lookup(t.Context(), "host.test"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel() // the look-up that this caller started continues for the others
		wg.Wait()
		if asked.Load() != 1 {
			t.Errorf("%d look-ups", asked.Load())
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	c := NewCache(fakeResolver{}, time.Now, nil)
	c.capacity = 10
	for i := range 100 {
		if _, err := c.Lookup(t.Context(), fmt.Sprintf("host%d.test", i)); !IsNotFound(err) {
			t.Fatal(err)
		}
		if len(c.entries) > 10 {
			t.Fatalf("%d entries", len(c.entries))
		}
	}
}

// dnsServer answers queries on loopback over UDP. If truncate is set, the answer over UDP is
// truncated, and the server sends the whole answer over TCP.
func dnsServer(t *testing.T, truncate bool, answer func(q dnsmessage.Question, b *dnsmessage.Builder)) string {
	t.Helper()
	var pc net.PacketConn
	var ln net.Listener
	for range 50 { // finds a port that is free for both UDP and TCP
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
		if positive, negative := r.ttls(); positive < 0 || negative < 0 {
			t.Error("negative TTL")
		}
	})
}
