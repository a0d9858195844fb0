package wire

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"runtime"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/stages/fetch/guard"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

// Timeouts limits every wait of an exchange.
type Timeouts struct {
	Connect   time.Duration // limit for DNS, TCP, proxy and TLS together
	FirstByte time.Duration // limit from the write of the request's first byte to the first byte of the response
	Total     time.Duration // limit from the call of Do to the end of the body
}

const (
	// defaultMaxBody is the default of Config.MaxBody and Limits.MaxBody in bytes.
	defaultMaxBody = 5 << 20
	// maxHeader is the largest response head in bytes, with the interim heads before it.
	maxHeader = 256 << 10
	// idleTimeout is how long an idle connection is kept.
	idleTimeout = 30 * time.Second
)

// Config configures a Client. For each field, the zero value means the default in its comment.
type Config struct {
	UserAgent string   // value of the field User-Agent; "" omits the field
	Timeouts  Timeouts // time limits of an exchange; default 10s, 15s, 30s

	MaxBody int64 // limit of a payload and of a decoded body, in bytes; default 5 MiB

	Guard     *guard.Guard     // default guard.New(false)
	ConnectTo []dial.ConnectTo // the first matching rule applies; the guard does not check its target
	// Proxy is "http://[user:password@]host:port", or "" for no proxy. The client looks up the
	// host, checks its address and sends that address in CONNECT, even for http. If private
	// networks are allowed, the proxy looks up hosts instead. The guard does not check the proxy's
	// own address.
	Proxy string
	// ProxyFilters declares that the proxy refuses private addresses by itself. The client then
	// sends plain http in absolute form, and the proxy looks up the host again.
	ProxyFilters bool

	TLS *tls.Config // the client uses a copy; nil means TLS 1.2 or later and the system's roots
	// Tolerant takes servers with TLS 1.0 and with certificates that are not valid. Exchange.Certificate says what
	// is wrong. Such a server does not get Request.Private.
	Tolerant bool
	Resolver dns.Resolver // default dns.SystemResolver(); the client caches its answers
	// Dial opens a TCP connection to an address that passed the guard or is exempt from it. The
	// default is a net.Dialer whose Control checks the guard again.
	Dial func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)

	MaxIdle        int // largest number of idle connections in total; zero means 256
	MaxIdlePerHost int // largest number of idle connections per scheme, host and port; zero means 1

	// Memory limits the memory for the payloads and bodies of all unreleased exchanges, in bytes.
	// Default 64 MiB. The first 256 KiB of each exchange do not count, and one exchange at a time
	// may exceed the limit. An exchange that gets no memory stops reading and waits; if its time
	// limit passes meanwhile, it ends with ErrAborted. While other exchanges wait, the client stops
	// reading bodies slower than 32 KiB/s (TruncTime).
	Memory int64
	Now    func() time.Time // default time.Now
	// NameLooked is called for each look-up of a name, and says whether the cache answered it; may be
	// nil.
	NameLooked func(hit bool)
}

func (c Config) withDefaults() Config {
	setDefault(&c.Timeouts.Connect, 10*time.Second)
	setDefault(&c.Timeouts.FirstByte, 15*time.Second)
	setDefault(&c.Timeouts.Total, 30*time.Second)
	setDefault(&c.MaxBody, defaultMaxBody)
	setDefault(&c.MaxIdle, 256)
	setDefault(&c.MaxIdlePerHost, 1)
	setDefault(&c.Memory, 64<<20)
	if c.Guard == nil {
		c.Guard = guard.New(false)
	}
	if c.Resolver == nil {
		c.Resolver = dns.SystemResolver()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Client makes requests. It is safe for concurrent use. Its owner must close it once.
type Client struct {
	cfg    Config
	dialer *dial.Dialer
	idle   *dial.Pool
	decode chan struct{} // holds one token for each body that is being decoded
	memory *memory       // limits the memory of payloads and bodies
}

// New checks the configuration and returns a client. It opens no connection.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	dialer, err := dial.New(dial.Config{
		Guard: cfg.Guard, ConnectTo: cfg.ConnectTo, Proxy: cfg.Proxy, ProxyFilters: cfg.ProxyFilters, TLS: cfg.TLS, Tolerant: cfg.Tolerant,
		Names: dns.NewCache(cfg.Resolver, cfg.Now, cfg.NameLooked), Dial: cfg.Dial, Now: cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	return &Client{
		cfg:    cfg,
		dialer: dialer,
		idle:   dial.NewPool(cfg.MaxIdle, cfg.MaxIdlePerHost, cfg.Now),
		decode: make(chan struct{}, runtime.GOMAXPROCS(0)),
		memory: newMemory(cfg.Memory),
	}, nil
}

// Close closes the idle connections. Exchanges in progress finish, and then their connections are
// closed too.
func (c *Client) Close() { c.idle.Close() }

// Reach opens and closes a connection to the host of rawURL without sending a request: to addr, or
// through the proxy if there is one. The error is an *Error.
func (c *Client) Reach(ctx context.Context, rawURL string, addr netip.AddrPort) error {
	t, err := http1.ParseTarget(rawURL)
	if err != nil {
		return &Error{Kind: ErrInvalid, Phase: PhaseRequest, Err: err}
	}
	if err := c.dialer.Reach(ctx, t, addr); err != nil {
		return connectError(ctx, t, err)
	}
	return nil
}

// HearsNameServers looks up a name without the cache. It returns nil if the name exists, or if it certainly
// does not. The error is an *Error.
func (c *Client) HearsNameServers(ctx context.Context, host string) error {
	switch err := c.dialer.Names.Ask(ctx, host); {
	case err == nil, dns.IsNotFound(err):
		return nil
	case ctx.Err() != nil:
		return &Error{Kind: ErrTimeout, Phase: PhaseDNS, Host: host, Err: err}
	default:
		return &Error{Kind: ErrDNS, Phase: PhaseDNS, Host: host, Err: err}
	}
}

// Locate returns the addresses of rawURL's host, in the order to try, and the route of a request to
// it. It sends no request. It returns only addresses that the guard permits, and none if a proxy
// resolves the name. dns is the value for Timing.DNS.
func (c *Client) Locate(ctx context.Context, rawURL string) (addrs []netip.AddrPort, route dial.Route, dns time.Duration, err error) {
	t, err := http1.ParseTarget(rawURL)
	if err != nil {
		return nil, "", 0, &Error{Kind: ErrInvalid, Phase: PhaseRequest, Err: err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeouts.Connect, errTimedOut)
	defer cancel()
	l, err := c.dialer.Locate(ctx, t)
	if err != nil {
		err = connectError(ctx, t, err)
	}
	return l.Addrs, l.Route, l.DNS, err
}
