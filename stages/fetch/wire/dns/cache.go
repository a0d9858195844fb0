// Package dns looks up the addresses of hosts and caches the answers.
//
// In: a fully qualified host name. Out: an Answer or an error. The name servers are the
// system's or given ones. IsNotFound distinguishes a name that does not exist from a
// failure. The Cache keeps answers for their TTL, within bounds, and makes one look-up for
// concurrent callers.
//
// It imports the standard library and golang.org/x/net/dns/dnsmessage.
package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Answer is the result of a look-up.
type Answer struct {
	Addrs []netip.Addr  // in the order to try; IPv4 addresses are not mapped to IPv6
	TTL   time.Duration // how long the answer holds; a negative answer has one too; 0 if unknown
}

// Resolver looks up the addresses of a fully qualified host name, which it gets without
// the final dot. IsNotFound recognises the error for a name that certainly has no address.
// Any other error counts as temporary. Many goroutines may call Lookup concurrently.
type Resolver interface {
	Lookup(ctx context.Context, host string) (Answer, error)
}

// IsNotFound reports whether err says that a name certainly has no address.
func IsNotFound(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}

// These constants say how long the Cache keeps answers, and how many.
const (
	minTTL      = 30 * time.Second // lower bound of an answer's own TTL
	maxTTL      = time.Hour        // upper bound of an answer's own TTL
	unknownTTL  = 5 * time.Minute  // for answers without a TTL
	negativeTTL = 5 * time.Minute  // bounds the TTL of names that do not exist
	failureTTL  = 5 * time.Second  // for look-ups that failed otherwise
	maxEntries  = 1 << 16
)

// lookupTimeout bounds one look-up, even if callers would wait longer.
const lookupTimeout = 20 * time.Second

// Cache asks a Resolver once for all concurrent callers with the same name. It remembers
// the answers, including negative ones. Many goroutines may use it.
type Cache struct {
	resolver Resolver
	now      func() time.Time
	capacity int // entries

	mu      sync.Mutex
	entries map[string]*entry
}

type entry struct {
	done    chan struct{} // closed when the fields below are set
	answer  Answer
	err     error
	expires time.Time
}

// NewCache returns an empty cache of r's answers. TTLs count by the clock now.
func NewCache(r Resolver, now func() time.Time) *Cache {
	return &Cache{resolver: r, now: now, capacity: maxEntries, entries: make(map[string]*entry)}
}

// Lookup returns the addresses of host, a lower-case name. The caller must not change
// them. The error is the Resolver's, or the cause of ctx's end.
func (c *Cache) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	host = strings.TrimSuffix(host, ".")
	e := c.entry(ctx, host)
	select {
	case <-e.done:
		if e.err != nil {
			return nil, e.err
		}
		return e.answer.Addrs, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// entry returns the entry of host. It starts a look-up if there is no valid one.
func (c *Cache) entry(ctx context.Context, host string) *entry {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[host]; ok && (!e.finished() || now.Before(e.expires)) {
		return e
	}
	if len(c.entries) >= c.capacity {
		c.evict(now)
	}
	e := &entry{done: make(chan struct{})}
	c.entries[strings.Clone(host)] = e // a copy, because host shares memory with its URL's row
	// The look-up outlives the caller that started it, because others may wait for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	go func() {
		defer cancel()
		e.answer, e.err = c.resolver.Lookup(ctx, host)
		if e.err == nil && len(e.answer.Addrs) == 0 {
			e.err = &net.DNSError{Err: "no addresses", IsNotFound: true}
		}
		e.expires = c.now().Add(ttl(e.answer.TTL, e.err))
		close(e.done)
	}()
	return e
}

func (e *entry) finished() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// ttl returns how long to keep an answer. own is the answer's own TTL, or 0 if unknown.
func ttl(own time.Duration, err error) time.Duration {
	switch known := min(max(own, minTTL), maxTTL); {
	case err == nil && own <= 0:
		return unknownTTL
	case err == nil:
		return known
	case !IsNotFound(err):
		return failureTTL
	case own <= 0:
		return negativeTTL
	default:
		return min(known, negativeTTL)
	}
}

// evict makes room for an entry. It removes expired entries. If they are too few, it also
// removes others whose look-up has finished. The caller holds mu.
func (c *Cache) evict(now time.Time) {
	for host, e := range c.entries {
		if e.finished() && !now.Before(e.expires) {
			delete(c.entries, host)
		}
	}
	for host, e := range c.entries {
		if len(c.entries) < c.capacity {
			return
		}
		if e.finished() {
			delete(c.entries, host)
		}
	}
}
