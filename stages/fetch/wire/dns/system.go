package dns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// SystemResolver uses the system's name servers and hosts file. It does not try search domains: a
// crawler's names are absolute and must not resolve to services of the cluster. The TTL comes from
// the answer's records. Without records, it comes from the zone's SOA (RFC 2308, 5).
func SystemResolver() Resolver { return newSystemResolver("") }

// newSystemResolver returns a resolver that sends every query to server, or to the system's servers
// if server is empty.
func newSystemResolver(server string) *systemResolver {
	r := &systemResolver{server: server}
	r.net = net.Resolver{PreferGo: true, Dial: r.dial}
	return r
}

type systemResolver struct {
	server string
	net    net.Resolver
}

// Lookup implements Resolver.
func (r *systemResolver) Lookup(ctx context.Context, host string) (Answer, error) {
	var ttl ttlRecorder
	addrs, err := r.net.LookupNetIP(context.WithValue(ctx, ttlKey{}, &ttl), "ip", host+".")
	positive, negative := ttl.ttls()
	if err != nil {
		err = r.named(err)
		if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound && !ttl.noAddress() {
			// Go sends two queries and returns the error of the last answer. Here, there was no
			// answer to the other query.
			err = &net.DNSError{Err: "a query for A or AAAA records was not answered", Name: host, Server: dns.Server, IsTemporary: true}
		}
		return Answer{TTL: negative, Local: !ttl.hasHeard()}, ttl.explain(err)
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return Answer{Addrs: addrs, TTL: positive, Local: !ttl.hasHeard()}, nil
}

// named replaces the name server in the error of a look-up by the one that was asked. Go's resolver names the
// system's.
func (r *systemResolver) named(err error) error {
	e, ok := errors.AsType[*net.DNSError](err)
	if !ok || r.server == "" || e.Server == "" {
		return err
	}
	asked := *e
	asked.Server = r.server
	return &asked
}

// dial opens the connections of Go's resolver. It records the TTLs in the DNS messages, because
// Go's resolver does not return them.
func (r *systemResolver) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if r.server != "" {
		address = r.server
	}
	var d net.Dialer
	ttl, ok := ctx.Value(ttlKey{}).(*ttlRecorder)
	c, err := d.DialContext(ctx, network, address)
	if ok && err != nil {
		ttl.noteUndialled(err)
	}
	if err != nil || !ok {
		return c, err
	}
	if udp, ok := c.(*net.UDPConn); ok {
		// Go's resolver uses UDP only on a connection that implements net.PacketConn.
		return &udpTap{UDPConn: udp, ttl: ttl}, nil
	}
	return &tcpTap{Conn: c, ttl: ttl}, nil
}

type udpTap struct {
	*net.UDPConn
	ttl *ttlRecorder
}

func (t *udpTap) Read(p []byte) (int, error) {
	n, err := t.UDPConn.Read(p)
	if n > 0 {
		t.ttl.note(p[:n])
	}
	return n, err
}

// tcpTap records DNS messages from a stream. In front of each message, two bytes hold its length.
type tcpTap struct {
	net.Conn
	ttl  *ttlRecorder
	seen []byte // what has arrived of the current message
}

func (t *tcpTap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.seen = append(t.seen, p[:n]...)
	for len(t.seen) >= 2 {
		size := 2 + int(binary.BigEndian.Uint16(t.seen))
		if len(t.seen) < size {
			break
		}
		t.ttl.note(t.seen[2:size])
		t.seen = append(t.seen[:0], t.seen[size:]...)
	}
	return n, err
}

type ttlKey struct{}

// ttlRecorder collects the lowest TTLs in the messages of one look-up. It is safe for concurrent
// use, because A and AAAA records are queried concurrently.
type ttlRecorder struct {
	mu               sync.Mutex
	answers, nothing uint32 // lowest TTLs of positive and negative answers, in seconds; 0 if there was no such answer

	heard       bool // whether there was a message
	noName      bool // whether the name does not exist
	noA, noAAAA bool // whether the name exists but has no A or no AAAA records

	undialled error // why no socket was opened for a query; nil if all were
}

// noteUndialled notes why no socket was opened for a query, because Go's resolver keeps only the text.
func (r *ttlRecorder) noteUndialled(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.undialled = err
}

// explain adds to the error of a look-up what Go's resolver does not tell: that no name server answered at
// all, and which error of the system was the cause.
func (r *ttlRecorder) explain(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if IsNotFound(err) {
		return err
	}
	cause := r.undialled // perhaps of one of the two queries only
	if !r.heard {
		err = fmt.Errorf("%w: %w", ErrSilent, err)
	}
	if cause == nil {
		return err
	}
	return explained{err, cause}
}

// hasHeard reports whether a name server sent anything.
func (r *ttlRecorder) hasHeard() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}

// explained is an error with the cause that its text has already.
type explained struct {
	error
	cause error
}

func (e explained) Unwrap() []error { return []error{e.error, e.cause} }

// noAddress reports whether the messages prove that a name has no address at all. Without messages
// it also returns true: the resolver used the hosts file, so Go's error decides.
func (r *ttlRecorder) noAddress() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.heard || r.noName || r.noA && r.noAAAA
}

// ttls returns the lowest TTLs of positive and of negative answers, or 0 if unknown.
func (r *ttlRecorder) ttls() (positive, negative time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Duration(r.answers) * time.Second, time.Duration(r.nothing) * time.Second
}

// note reads one DNS message. It skips malformed messages, because Go's resolver reports them.
func (r *ttlRecorder) note(msg []byte) {
	var p dnsmessage.Parser
	head, err := p.Start(msg)
	if err != nil || !head.Response {
		return
	}
	asked, err := p.Question()
	if err != nil || p.SkipAllQuestions() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = true
	answered, found := false, false
	for {
		h, err := p.AnswerHeader()
		if err != nil {
			break
		}
		answered = true
		found = found || h.Type == asked.Type
		lowerTTL(&r.answers, h.TTL)
		if p.SkipAnswer() != nil {
			return
		}
	}
	switch {
	case head.RCode == dnsmessage.RCodeNameError:
		r.noName = true
	case head.RCode != dnsmessage.RCodeSuccess || found:
	case asked.Type == dnsmessage.TypeA:
		r.noA = true
	case asked.Type == dnsmessage.TypeAAAA:
		r.noAAAA = true
	}
	for !answered {
		h, err := p.AuthorityHeader()
		if err != nil {
			return
		}
		if h.Type != dnsmessage.TypeSOA {
			if p.SkipAuthority() != nil {
				return
			}
			continue
		}
		soa, err := p.SOAResource()
		if err != nil {
			return
		}
		lowerTTL(&r.nothing, min(h.TTL, soa.MinTTL))
	}
}

// lowerTTL lowers *v to ttl. A ttl of 0 counts as one second, because 0 means unknown in *v.
func lowerTTL(v *uint32, ttl uint32) {
	ttl = max(ttl, 1)
	if *v == 0 || ttl < *v {
		*v = ttl
	}
}
