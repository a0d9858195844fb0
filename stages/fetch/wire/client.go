package wire

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"crawlbatch.io/crawlbatch/stages/fetch/guard"
)

// Timeouts bound every wait of an exchange.
type Timeouts struct {
	Connect   time.Duration // DNS, TCP, proxy and TLS together
	FirstByte time.Duration // from the request's first byte written to the response's first byte read
	Total     time.Duration // from the call of Do to the end of the body
}

// Config is what a Client is made of. The zero value of a field means the
// default named beside it.
type Config struct {
	UserAgent string   // sent with every request; none if empty
	Timeouts  Timeouts // 10s, 15s, 30s

	MaxBody   int64 // bytes of a payload, and of a decoded body: 5 MiB
	MaxHeader int   // bytes of a response head, interim ones before it included: 256 KiB
	MaxRatio  int64 // decoded ÷ encoded bytes of bodies that decode to more than 1 MiB: 256

	Guard     *guard.Guard // guard.New(false)
	ConnectTo []ConnectTo  // first match wins; its targets are exempt from the guard
	// Proxy is "http://[user:password@]host:port", or "" for none. https goes
	// through CONNECT to an address that was looked up and checked here; http is
	// asked for in absolute form, which leaves the last look-up to the proxy.
	// The proxy's own address is exempt from the guard. If private networks are
	// allowed nothing is looked up here.
	Proxy string

	TLS      *tls.Config // a copy is used; TLS 1.2 or later and the system's roots if nil
	Resolver Resolver    // SystemResolver(); its answers are cached either way
	DNSCache DNSCache    // how long answers are believed
	// Dial opens a TCP connection to an address that the guard let pass (or
	// need not see). Default: a net.Dialer whose Control is the guard again.
	Dial func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)

	MaxIdle        int           // connections kept open in all: 256
	MaxIdlePerHost int           // and for one scheme, host and port: 1
	IdleTimeout    time.Duration // 30s, or less if the server says so

	Decoders int // bodies decoded at the same time: GOMAXPROCS
	// Memory is how many bytes the payloads and bodies of all exchanges that are not
	// released may hold together, beside 256 KiB of each and all of one: 64 MiB.
	// Whose body finds no room waits with reading on, within its time limit, and ends
	// as ErrAborted after it; while others wait, a body that comes at less than
	// 32 KiB/s is cut off (TruncTime).
	Memory int64
	Now    func() time.Time // time.Now
}

func (c Config) withDefaults() Config {
	setDefault(&c.Timeouts.Connect, 10*time.Second)
	setDefault(&c.Timeouts.FirstByte, 15*time.Second)
	setDefault(&c.Timeouts.Total, 30*time.Second)
	c.defaultLimits()
	setDefault(&c.MaxIdle, 256)
	setDefault(&c.MaxIdlePerHost, 1)
	setDefault(&c.IdleTimeout, 30*time.Second)
	setDefault(&c.Decoders, runtime.GOMAXPROCS(0))
	setDefault(&c.Memory, 64<<20)
	c.DNSCache = c.DNSCache.withDefaults()
	if c.Guard == nil {
		c.Guard = guard.New(false)
	}
	if c.Resolver == nil {
		c.Resolver = SystemResolver()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// defaultLimits sets the bounds of what a response may be.
func (c *Config) defaultLimits() {
	setDefault(&c.MaxBody, 5<<20)
	setDefault(&c.MaxHeader, 256<<10)
	setDefault(&c.MaxRatio, 256)
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Client makes requests. Any number of goroutines may use it; Close it once.
type Client struct {
	cfg    Config
	proxy  *proxy // nil: none
	tls    *tls.Config
	dns    *dnsCache
	idle   *idlePool
	decode chan struct{} // holds a token for every decoding that runs
	room   *room         // for bodies
}

// New checks the configuration and returns a client that has opened nothing yet.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	c := &Client{
		cfg:    cfg,
		dns:    newDNSCache(cfg.Resolver, cfg.DNSCache, cfg.Now),
		idle:   newIdlePool(cfg.MaxIdle, cfg.MaxIdlePerHost, cfg.Now),
		decode: make(chan struct{}, cfg.Decoders),
		room:   newRoom(cfg.Memory),
		tls:    clientTLS(cfg.TLS),
	}
	if cfg.Proxy != "" {
		p, err := parseProxy(cfg.Proxy)
		if err != nil {
			return nil, fmt.Errorf("fetch.proxy: %w", err)
		}
		c.proxy = p
	}
	return c, nil
}

// Close closes the connections that are kept; running exchanges finish, and
// theirs are closed after.
func (c *Client) Close() { c.idle.close() }

// Locate says where a request for rawURL would be sent, without sending
// anything: the addresses its host has (from the cache if known; several, in
// the order they would be tried) and the route. Only addresses that the guard
// lets pass are returned; with a proxy that resolves names itself there are
// none. dns is Timing.DNS.
func (c *Client) Locate(ctx context.Context, rawURL string) (addrs []netip.AddrPort, route Route, dns time.Duration, err error) {
	t, err := parseTarget(rawURL)
	if err != nil {
		return nil, "", 0, &Error{Kind: ErrInvalid, Phase: PhaseRequest, Err: err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeouts.Connect, errTimedOut)
	defer cancel()
	l, err := c.locate(ctx, t)
	return l.addrs, l.route, l.dns, err
}
