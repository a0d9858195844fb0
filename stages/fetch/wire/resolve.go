package wire

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Answer is what a name resolves to.
type Answer struct {
	Addrs []netip.Addr  // in the order to try, IPv4 ones not mapped
	TTL   time.Duration // how long the answer holds, a negative one too; 0 if unknown
}

// Resolver looks up the addresses of a fully qualified host name given without
// its final dot. A name that certainly has none gives an error for which
// net.DNSError.IsNotFound is true; any other error is taken as temporary. Many
// goroutines call it at a time.
type Resolver interface {
	Lookup(ctx context.Context, host string) (Answer, error)
}

// DNSCache bounds how long answers are believed. Zero means the default beside it.
type DNSCache struct {
	Min, Max time.Duration // bounds on an answer's own TTL: 30s, 1h
	Unknown  time.Duration // for answers that do not tell: 5m
	Negative time.Duration // the most for names that do not exist: 5m
	Failure  time.Duration // for look-ups that failed otherwise: 5s
	Entries  int           // names remembered at a time: 65,536
}

func (d DNSCache) withDefaults() DNSCache {
	setDefault(&d.Min, 30*time.Second)
	setDefault(&d.Max, time.Hour)
	setDefault(&d.Unknown, 5*time.Minute)
	setDefault(&d.Negative, 5*time.Minute)
	setDefault(&d.Failure, 5*time.Second)
	setDefault(&d.Entries, 1<<16)
	return d
}

// lookupTimeout bounds one look-up, whoever still waits for it.
const lookupTimeout = 20 * time.Second

// dnsCache asks a Resolver once for callers that want the same name at the same
// time, and remembers the answer, negative ones too.
type dnsCache struct {
	resolver Resolver
	cfg      DNSCache
	now      func() time.Time

	mu      sync.Mutex
	entries map[string]*dnsEntry
}

type dnsEntry struct {
	done    chan struct{} // closed when the rest is set
	answer  Answer
	err     error
	expires time.Time
}

func newDNSCache(r Resolver, cfg DNSCache, now func() time.Time) *dnsCache {
	return &dnsCache{resolver: r, cfg: cfg, now: now, entries: make(map[string]*dnsEntry)}
}

// lookup returns the addresses of host, a lower-case name. The caller must not
// change them. Errors wrap ErrNXDomain, ErrDNS or the end of ctx.
func (c *dnsCache) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	host = strings.TrimSuffix(host, ".")
	e := c.entry(ctx, host)
	select {
	case <-e.done:
		return e.answer.Addrs, e.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// entry returns the one entry of host, having begun a look-up if there is none
// that still holds.
func (c *dnsCache) entry(ctx context.Context, host string) *dnsEntry {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[host]; ok && (!e.finished() || now.Before(e.expires)) {
		return e
	}
	if len(c.entries) >= c.cfg.Entries {
		c.evict(now)
	}
	e := &dnsEntry{done: make(chan struct{})}
	c.entries[host] = e
	// The look-up outlives the caller that began it: others may wait for it too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	go func() {
		defer cancel()
		e.answer, e.err = c.resolver.Lookup(ctx, host)
		ttl := c.ttl(&e.answer, &e.err)
		e.expires = c.now().Add(ttl)
		close(e.done)
	}()
	return e
}

func (e *dnsEntry) finished() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// ttl gives the error its kind and says how long the answer is kept.
func (c *dnsCache) ttl(a *Answer, err *error) time.Duration {
	if *err == nil && len(a.Addrs) == 0 {
		*err = &net.DNSError{Err: "no addresses", IsNotFound: true}
	}
	if *err == nil {
		if a.TTL <= 0 {
			return c.cfg.Unknown
		}
		return min(max(a.TTL, c.cfg.Min), c.cfg.Max)
	}
	a.Addrs = nil
	var dns *net.DNSError
	if errors.As(*err, &dns) && dns.IsNotFound {
		*err = &dnsError{ErrNXDomain, *err}
		if a.TTL <= 0 {
			return c.cfg.Negative
		}
		return min(max(a.TTL, c.cfg.Min), c.cfg.Negative)
	}
	*err = &dnsError{ErrDNS, *err}
	return c.cfg.Failure
}

// dnsError joins a kind and its cause.
type dnsError struct{ kind, err error }

func (e *dnsError) Error() string   { return e.kind.Error() + ": " + e.err.Error() }
func (e *dnsError) Unwrap() []error { return []error{e.kind, e.err} }

// evict makes room: what has expired goes, or else any one finished entry. The
// caller holds mu.
func (c *dnsCache) evict(now time.Time) {
	for host, e := range c.entries {
		if e.finished() && !now.Before(e.expires) {
			delete(c.entries, host)
		}
	}
	for host, e := range c.entries {
		if len(c.entries) < c.cfg.Entries {
			return
		}
		if e.finished() {
			delete(c.entries, host)
		}
	}
}
