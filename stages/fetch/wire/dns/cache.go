// Package dns looks up the addresses of hosts and caches the answers.
//
// A Resolver takes a fully qualified host name and returns an Answer or an error. It asks the name
// servers of the system, or name servers that the caller gives. IsNotFound distinguishes a name
// that does not exist from a failed look-up. The Cache keeps answers for their TTL, within limits.
// Concurrent callers with the same name share one look-up.
//
// Package dns imports the standard library and golang.org/x/net/dns/dnsmessage.
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
	Addrs []netip.Addr  // addresses in the order to try; IPv4 addresses are in 4-byte form
	TTL   time.Duration // how long the answer is valid; 0 if unknown; a negative answer has a TTL too
	Local bool          // whether no name server was asked, for example because the hosts file has the name
}

// Resolver looks up the addresses of a fully qualified host name without its final dot. If the name
// certainly has no address, IsNotFound recognises the error; any other error counts as temporary. A
// Resolver is safe for concurrent use.
type Resolver interface {
	Lookup(ctx context.Context, host string) (Answer, error)
}

// IsNotFound reports whether err says that a name certainly has no address.
func IsNotFound(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}

// ErrSilent is wrapped by the error of a look-up if no name server sent anything: there is none, or none
// can be reached.
var ErrSilent = errors.New("no name server answered")

// These constants determine how long the Cache keeps answers.
const (
	minTTL      = 30 * time.Second // shortest time for an answer with a TTL
	maxTTL      = time.Hour        // longest time for an answer with a TTL
	unknownTTL  = 5 * time.Minute  // time for an answer without a TTL
	negativeTTL = 5 * time.Minute  // longest time for a name that does not exist
	failureTTL  = 5 * time.Second  // time for any other failure
	maxEntries  = 1 << 16          // largest number of answers in the Cache
)

// lookupTimeout limits a look-up even if callers would wait longer.
const lookupTimeout = 20 * time.Second

// Cache asks a Resolver once for all concurrent callers with the same name, and remembers answers
// and failures. It is safe for concurrent use.
type Cache struct {
	resolver Resolver
	now      func() time.Time
	capacity int            // largest number of entries
	looked   func(hit bool) // called for each look-up

	mu      sync.Mutex
	entries map[string]*entry
}

type entry struct {
	done    chan struct{} // closed when the fields below are set
	answer  Answer
	err     error
	expires time.Time
}

// NewCache returns an empty cache of r's answers. The cache reads the time from now. It tells looked
// whether it could answer a look-up without another request; looked may be nil.
func NewCache(r Resolver, now func() time.Time, looked func(hit bool)) *Cache {
	if looked == nil {
		looked = func(bool) {}
	}
	return &Cache{resolver: r, now: now, looked: looked, capacity: maxEntries, entries: make(map[string]*entry)}
}

// Lookup returns the addresses of host, a lower-case name. The caller must not change the slice.
// The error comes from the Resolver or is context.Cause(ctx).
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

// Ask looks a name up without the cache.
func (c *Cache) Ask(ctx context.Context, host string) error {
	_, err := c.resolver.Lookup(ctx, strings.TrimSuffix(host, "."))
	return err
}

// entry returns the entry of host. If there is no valid entry, it starts a look-up.
func (c *Cache) entry(ctx context.Context, host string) *entry {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e, hit := c.entries[host]
	hit = hit && (!e.finished() || now.Before(e.expires))
	if c.looked(hit); hit {
		return e
	}
	if len(c.entries) >= c.capacity {
		c.evict(now)
	}
	e = &entry{done: make(chan struct{})}
	c.entries[strings.Clone(host)] = e // a copy, because host shares memory with a row
	// The look-up continues after the end of the caller that started it, because other callers may
	// wait for the result.
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

// ttl returns how long the Cache keeps an answer. own is the TTL in the answer, or 0.
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

// evict makes room for an entry. It removes expired entries, and if that is not enough, others
// whose look-up has finished. The caller holds c.mu.
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
