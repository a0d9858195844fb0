package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// lookups is a resolver that gives its answers one after the other.
type lookups struct {
	answers []func(ctx context.Context) (Answer, error)
	asked   int
}

func (l *lookups) Lookup(ctx context.Context, _ string) (Answer, error) {
	f := l.answers[min(l.asked, len(l.answers)-1)]
	l.asked++
	return f(ctx)
}

func gives(a Answer, err error) func(context.Context) (Answer, error) {
	return func(context.Context) (Answer, error) { return a, err }
}

func silent(ctx context.Context) (Answer, error) {
	<-ctx.Done()
	return Answer{}, context.Cause(ctx)
}

func TestAnotherNameServerIsAskedWhenOneFails(t *testing.T) {
	good := gives(Answer{Addrs: []netip.Addr{someAddr}}, nil)
	broken := gives(Answer{}, &net.DNSError{Err: "server misbehaving", IsTemporary: true})
	none := gives(Answer{TTL: time.Minute}, &net.DNSError{Err: "no such host", IsNotFound: true})
	for name, tt := range map[string]struct {
		servers []func(context.Context) (Answer, error)
		asked   int
		after   time.Duration
		err     string
	}{
		"the first answers":          {[]func(context.Context) (Answer, error){good, broken}, 1, 0, ""},
		"the first fails":            {[]func(context.Context) (Answer, error){broken, good}, 2, 0, ""},
		"the first is silent":        {[]func(context.Context) (Answer, error){silent, good}, 2, serverPatience, ""},
		"two are silent":             {[]func(context.Context) (Answer, error){silent, silent, good}, 3, 2 * serverPatience, ""},
		"a name that does not exist": {[]func(context.Context) (Answer, error){none, good}, 1, 0, "no such host"},
		"all fail":                   {[]func(context.Context) (Answer, error){broken, silent}, 2, 10 * time.Second, "misbehaving"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var all sequence
				var each []*lookups
				for _, s := range tt.servers {
					l := &lookups{answers: []func(context.Context) (Answer, error){s}}
					each, all = append(each, l), append(all, l)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				begin := time.Now()
				a, err := all.Lookup(ctx, "host.test")
				if tt.err == "" && (err != nil || len(a.Addrs) != 1) || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
					t.Errorf("%+v, %v; want error %q", a, err, tt.err)
				}
				asked := 0
				for _, l := range each {
					asked += l.asked
				}
				if asked != tt.asked || time.Since(begin) != tt.after {
					t.Errorf("%d servers were queried in %v; want %d in %v", asked, time.Since(begin), tt.asked, tt.after)
				}
			})
		})
	}
}

// A name appears and disappears. Each answer about it is valid for its own TTL.
func TestFlappingNamesAreAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := gives(Answer{Addrs: []netip.Addr{someAddr}, TTL: time.Minute}, nil)
		gone := gives(Answer{TTL: time.Minute}, &net.DNSError{Err: "no such host", IsNotFound: true})
		broken := gives(Answer{}, &net.DNSError{Err: "server misbehaving", IsTemporary: true})
		l := &lookups{answers: []func(context.Context) (Answer, error){good, gone, broken, good}}
		c := NewCache(l, time.Now, nil)
		for i, want := range []struct {
			fails, absent bool
			holds         time.Duration
		}{{false, false, time.Minute}, {true, true, time.Minute}, {true, false, 5 * time.Second}, {false, false, time.Minute}} {
			for range 3 {
				if _, err := c.Lookup(t.Context(), "host.test"); (err != nil) != want.fails || IsNotFound(err) != want.absent {
					t.Errorf("answer %d: %v, want %+v", i, err, want)
				}
			}
			if l.asked != i+1 {
				t.Errorf("answer %d: %d look-ups", i, l.asked)
			}
			time.Sleep(want.holds)
		}
	})
}

func TestNameServersAreAddresses(t *testing.T) {
	for s, ok := range map[string]bool{
		"192.0.2.1": true, "192.0.2.1:5353": true, "2001:db8::1": true, "[2001:db8::1]:53": true,
		"": false, "dns.example": false, "dns.example:53": false, "192.0.2.1:x": false, "192.0.2.1:": false,
	} {
		if _, err := NameServers(s); (err == nil) != ok {
			t.Errorf("%q: %v", s, err)
		}
	}
	if _, err := NameServers(); err == nil {
		t.Error("NameServers accepts an empty list")
	}
}

// The TTL of an answer is the lowest TTL in its chain of aliases. A cycle of aliases has no
// address.
func TestAliasesAreFollowedAndCirclesAreNot(t *testing.T) {
	cname := func(b *dnsmessage.Builder, from, to string, ttl uint32) {
		b.CNAMEResource(dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(from), Class: dnsmessage.ClassINET, TTL: ttl},
			dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(to)})
	}
	for name, tt := range map[string]struct {
		answer func(q dnsmessage.Question, b *dnsmessage.Builder)
		addrs  int
		ttl    time.Duration
	}{
		"chain": {func(q dnsmessage.Question, b *dnsmessage.Builder) {
			b.StartAnswers()
			cname(b, "host.test.", "alias.test.", 40)
			cname(b, "alias.test.", "far.test.", 200)
			if q.Type == dnsmessage.TypeA {
				b.AResource(dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("far.test."), Class: q.Class, TTL: 300}, dnsmessage.AResource{A: [4]byte{93, 184, 216, 34}})
			}
		}, 1, 40 * time.Second},
		"circle": {func(q dnsmessage.Question, b *dnsmessage.Builder) {
			b.StartAnswers()
			cname(b, "host.test.", "alias.test.", 40)
			cname(b, "alias.test.", "host.test.", 40)
		}, 0, 0},
		"itself": {func(q dnsmessage.Question, b *dnsmessage.Builder) {
			b.StartAnswers()
			cname(b, "host.test.", "host.test.", 40)
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := NameServers(dnsServer(t, false, tt.answer))
			if err != nil {
				t.Fatal(err)
			}
			a, err := r.Lookup(t.Context(), "host.test")
			if len(a.Addrs) != tt.addrs || (err == nil) != (tt.addrs > 0) || tt.addrs > 0 && a.TTL != tt.ttl {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

// A server answers that a name has no IPv6 address, but does not answer the query for IPv4. The
// name may still have an IPv4 address, so the resolver asks the next server.
func TestAFailureAtOneQuestionIsNoAbsentName(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil {
				continue
			}
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			if m.Questions[0].Type == dnsmessage.TypeA {
				m.RCode = dnsmessage.RCodeServerFailure
			}
			if reply, err := m.Pack(); err == nil {
				pc.WriteTo(reply, from)
			}
		}
	}()
	healthy := dnsServer(t, false, func(q dnsmessage.Question, b *dnsmessage.Builder) {
		if q.Type == dnsmessage.TypeA {
			b.StartAnswers()
			b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60}, dnsmessage.AResource{A: [4]byte{93, 184, 216, 34}})
		}
	})
	r, err := NameServers(pc.LocalAddr().String(), healthy)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := r.Lookup(t.Context(), "host.test"); err != nil || len(a.Addrs) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	if r, err = NameServers(pc.LocalAddr().String()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lookup(t.Context(), "host.test"); err == nil || IsNotFound(err) {
		t.Errorf("%v: no server said that the name does not exist", err)
	} else if e, ok := errors.AsType[*net.DNSError](err); !ok || e.Server != pc.LocalAddr().String() {
		t.Errorf("%v does not name the server that was asked", err)
	}
}

// An error of this machine stays known, also if only one of the two queries met it.
func TestWhatThisMachineLackedStaysKnown(t *testing.T) {
	for _, heard := range []bool{false, true} {
		r := ttlRecorder{heard: heard}
		r.noteUndialled(os.NewSyscallError("socket", syscall.EMFILE))
		err := r.explain(&net.DNSError{Err: "server misbehaving", IsTemporary: true})
		if !errors.Is(err, syscall.EMFILE) || errors.Is(err, ErrSilent) == heard || IsNotFound(err) {
			t.Errorf("a name server was heard: %v: %v", heard, err)
		}
	}
}
