package wire

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
	"crawlbatch.io/crawlbatch/stages/fetch/guard"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

// testProxy is a proxy made with net/http. It supports CONNECT and requests in absolute form, and
// looks up names itself.
type testProxy struct {
	names   map[string]string         // hosts and addresses in the proxy's own DNS
	servers map[string]netip.AddrPort // loopback server for each ADDRESS:PORT
	refuses func(*http.Request) int   // returns the status with which the proxy refuses a request, or 0

	mu    sync.Mutex
	asked []string // requests to the proxy, as "METHOD target"
}

const proxyPassword = "hunter2"

func (p *testProxy) start(t *testing.T) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	forward := &http.Transport{DialContext: func(_ context.Context, _, to string) (net.Conn, error) { return p.dial(to) }, DisableKeepAlives: true, DisableCompression: true}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.RequestURI)
		p.mu.Unlock()
		switch want := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+proxyPassword)); {
		case r.Header.Get("Proxy-Authorization") != want:
			w.WriteHeader(http.StatusProxyAuthRequired)
		case p.refuses != nil && p.refuses(r) != 0:
			w.WriteHeader(p.refuses(r))
		case r.Method == http.MethodConnect:
			p.connect(w, r)
		default:
			r.Header.Del("Proxy-Authorization")
			resp, err := forward.RoundTrip(r)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer resp.Body.Close()
			w.WriteHeader(resp.StatusCode)
			io.Copy(w, resp.Body)
		}
	})}
	go s.Serve(ln)
	t.Cleanup(func() { s.Close() })
	return netip.MustParseAddrPort(ln.Addr().String())
}

func (p *testProxy) connect(w http.ResponseWriter, r *http.Request) {
	up, err := p.dial(r.RequestURI)
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	down, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		up.Close()
		return
	}
	io.WriteString(down, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() {
		io.Copy(up, buffered)
		up.Close()
	}()
	io.Copy(down, up)
	down.Close()
}

// dial connects to a name by the proxy's own DNS.
func (p *testProxy) dial(to string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	if known, ok := p.names[host]; ok {
		host = known
	}
	server, ok := p.servers[net.JoinHostPort(host, port)]
	if !ok {
		return nil, errors.New("no such server")
	}
	return net.Dial("tcp", server.String())
}

func (p *testProxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// recordingServer starts a server that answers each connection with raw. It returns the server's
// address and a function that returns the requests.
func recordingServer(t *testing.T, raw string) (netip.AddrPort, func() []string) {
	var mu sync.Mutex
	var asked []string
	addr := rawServer(t, func(c net.Conn, r *bufio.Reader, _ int) {
		req := readRequest(r)
		mu.Lock()
		asked = append(asked, req)
		mu.Unlock()
		io.WriteString(c, raw)
	})
	return addr, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(asked)
	}
}

// proxied returns a client of a proxy, with its credentials.
func proxied(t *testing.T, addr netip.AddrPort, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{
		UserAgent: "testbot/1.0 (+https://example.org/bot)", Proxy: fmt.Sprintf("http://user:%s@%s", proxyPassword, addr),
		Resolver: fakeResolver{
			"host.test": {Addrs: []netip.Addr{someAddr}}, "inner.test": {Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}},
			"two.test": {Addrs: []netip.Addr{netip.MustParseAddr("93.184.216.99"), someAddr}},
		},
	}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

const closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 37\r\n\r\n" + wiretest.Page

func TestProxy(t *testing.T) {
	cert, pool := certificate(t, "host.test", -time.Hour, time.Hour)
	plain, _ := recordingServer(t, closing)
	secure := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{cert}}, okHead+wiretest.Page, nil)
	private := func(c *Config) { c.Guard = guard.New(true) }
	filters := func(c *Config) { c.ProxyFilters = true }
	rule := func(r dial.ConnectTo) func(*Config) {
		return func(c *Config) { c.ConnectTo, c.ProxyFilters = []dial.ConnectTo{r}, true }
	}
	for _, tt := range []struct {
		name, url string
		change    func(*Config)
		asked     string // expected request to the proxy
		kind      error
	}{
		{name: "http to the address that was checked", url: "http://host.test:81/a?b", asked: "CONNECT 93.184.216.34:81"},
		{name: "http by name if nothing is checked", url: "http://host.test:81/", change: private, asked: "CONNECT host.test:81"},
		{name: "http in absolute form if the proxy filters", url: "http://host.test:81/a?b", change: filters, asked: "GET http://host.test:81/a?b"},
		{name: "http to an address", url: "http://93.184.216.34:81/", asked: "CONNECT 93.184.216.34:81"},
		{name: "http to the next address if the first is away", url: "http://two.test:81/", asked: "CONNECT 93.184.216.99:81, CONNECT 93.184.216.34:81"},
		{name: "https to the address that was checked", url: "https://host.test/", asked: "CONNECT 93.184.216.34:443"},
		{name: "https if the proxy filters", url: "https://host.test/", change: filters, asked: "CONNECT 93.184.216.34:443"},
		{name: "https by name if nothing is checked", url: "https://host.test/", change: private, asked: "CONNECT host.test:443"},
		{name: "connect-to goes through a tunnel", url: "https://host.test/", change: rule(dial.ConnectTo{Host: "host.test", Addr: "other.test", ToPort: 443}), asked: "CONNECT other.test:443"},
		{name: "http of connect-to too", url: "http://host.test/", change: rule(dial.ConnectTo{Host: "host.test", Addr: "other.test", ToPort: 81}), asked: "CONNECT other.test:81"},
		{name: "a server that is away", url: "http://host.test:82/", asked: "CONNECT 93.184.216.34:82", kind: ErrConnect},
		{name: "private name", url: "http://inner.test/", kind: ErrAddressBlocked},
		{name: "private name, and the proxy filters", url: "http://inner.test/", change: filters, kind: ErrAddressBlocked},
		{name: "private address", url: "https://169.254.169.254/", kind: ErrAddressBlocked},
		{name: "private address by http", url: "http://169.254.169.254/", kind: ErrAddressBlocked},
		{name: "bad port", url: "http://host.test:25/", change: private, kind: ErrAddressBlocked},
		{name: "unknown name", url: "http://nowhere.test/", kind: ErrNXDomain},
		{name: "unknown name, and the proxy filters", url: "http://nowhere.test/", change: filters, kind: ErrNXDomain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &testProxy{
				names:   map[string]string{"host.test": someAddr.String(), "other.test": someAddr.String()},
				servers: map[string]netip.AddrPort{"93.184.216.34:81": plain, "93.184.216.34:443": secure},
			}
			addr := p.start(t)
			x, err := get(t, proxied(t, addr, func(c *Config) {
				c.TLS = &tls.Config{RootCAs: pool}
				if tt.change != nil {
					tt.change(c)
				}
			}), tt.url)
			if tt.kind != nil {
				if !errors.Is(err, tt.kind) || errors.Is(err, dial.ErrNoTunnel) {
					t.Errorf("error %v, want %v", err, tt.kind)
				}
			} else if err != nil || string(x.Body) != wiretest.Page || x.Route != dial.RouteProxy || x.Addr != addr {
				t.Errorf("%v, body %q by %s %s", err, x.Body, x.Route, x.Addr)
			}
			if asked := strings.Join(p.requests(), ", "); asked != tt.asked {
				t.Errorf("the proxy got the request %q, want %q", asked, tt.asked)
			}
			if strings.Contains(string(x.RawRequest), "Authorization") || err != nil && strings.Contains(err.Error(), proxyPassword) {
				t.Error("credentials are kept or shown")
			}
		})
	}
}

// If the client looks up the host, it gets a public address. If the proxy looks up the same host,
// it gets a private address.
func TestANameThatTheProxyResolvesOtherwiseReachesNothingPrivate(t *testing.T) {
	public, publicAsked := recordingServer(t, closing)
	inner, innerAsked := recordingServer(t, closing)
	p := &testProxy{
		names:   map[string]string{"host.test": "10.0.0.1"},
		servers: map[string]netip.AddrPort{"93.184.216.34:80": public, "10.0.0.1:80": inner},
	}
	addr := p.start(t)
	x, err := get(t, proxied(t, addr, nil), "http://host.test/a?b")
	if err != nil || string(x.Body) != wiretest.Page || len(innerAsked()) > 0 {
		t.Fatalf("%v, body %q, the private server got %q", err, x.Body, innerAsked())
	}
	// Through the proxy, the server must get the same bytes as without it.
	direct, directAsked := recordingServer(t, closing)
	if _, err := get(t, clientTo(t, direct, nil), "http://host.test/a?b"); err != nil {
		t.Fatal(err)
	}
	if got, want := publicAsked(), directAsked(); !slices.Equal(got, want) || string(x.RawRequest) != want[0] {
		t.Errorf("the server got %q and RawRequest is %q, want %q", got, x.RawRequest, want)
	}
	// This request proves that the private server can be reached. With ProxyFilters, only the proxy
	// could refuse it.
	if _, err := get(t, proxied(t, addr, func(c *Config) { c.ProxyFilters = true }), "http://host.test/"); err != nil || len(innerAsked()) != 1 {
		t.Errorf("%v, the private server got %q", err, innerAsked())
	}
}

func TestANameThatTurnsPrivateIsRefusedBeforeTheProxyIsAsked(t *testing.T) {
	public, _ := recordingServer(t, closing)
	for _, filters := range []bool{false, true} {
		var answers []string
		resolver := resolverFunc(func(context.Context, string) (dns.Answer, error) {
			a := []string{"93.184.216.34", "10.0.0.1"}[min(len(answers), 1)]
			answers = append(answers, a)
			return dns.Answer{Addrs: []netip.Addr{netip.MustParseAddr(a)}}, nil
		})
		var passed time.Duration
		p := &testProxy{names: map[string]string{"host.test": someAddr.String()}, servers: map[string]netip.AddrPort{"93.184.216.34:80": public}}
		c := proxied(t, p.start(t), func(c *Config) {
			c.Resolver, c.ProxyFilters = resolver, filters
			c.Now = func() time.Time { return time.Now().Add(passed) }
		})
		if _, err := get(t, c, "http://host.test/"); err != nil {
			t.Fatal(err)
		}
		passed = 24 * time.Hour // the cached answer has expired
		if _, err := get(t, c, "http://host.test/"); !errors.Is(err, ErrAddressBlocked) {
			t.Errorf("error %v after the answers %v", err, answers)
		}
		if asked := p.requests(); len(asked) != 1 {
			t.Errorf("the proxy got %q", asked)
		}
	}
}

func TestAProxyThatRefusesConnectNamesTheKey(t *testing.T) {
	plain, _ := recordingServer(t, closing)
	for _, tt := range []struct {
		name     string
		password string
		status   int
		named    bool
	}{
		{name: "403", status: 403, named: true},
		{name: "405", status: 405, named: true},
		{name: "400", status: 400, named: true},
		{name: "501", status: 501, named: true},
		{name: "the server is away", status: 503},
		{name: "bad gateway", status: 502},
		{name: "wrong credentials", password: "wrong"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &testProxy{
				names: map[string]string{"host.test": someAddr.String()}, servers: map[string]netip.AddrPort{"93.184.216.34:80": plain},
				refuses: func(r *http.Request) int {
					if r.Method == http.MethodConnect {
						return tt.status
					}
					return 0
				},
			}
			addr := p.start(t)
			wrong := func(c *Config) {
				if tt.password != "" {
					c.Proxy = strings.Replace(c.Proxy, proxyPassword, tt.password, 1)
				}
			}
			_, err := get(t, proxied(t, addr, wrong), "http://host.test/")
			var e *Error
			if !errors.As(err, &e) || e.Kind != ErrConnect || e.Phase != PhaseProxy || errors.Is(err, dial.ErrNoTunnel) != tt.named {
				t.Fatalf("error %v", err)
			}
			phrase, detail := e.Words()
			if phrase != "proxy did not connect" || strings.Contains(detail, "fetch.proxy_filters: true") != tt.named {
				t.Errorf("in words %q and %q", phrase, detail)
			}
			if _, err := get(t, proxied(t, addr, wrong), "https://host.test/"); err == nil || errors.Is(err, dial.ErrNoTunnel) {
				t.Errorf("https: %v", err) // the config key changes nothing for https
			}
			if x, err := get(t, proxied(t, addr, func(c *Config) { wrong(c); c.ProxyFilters = true }), "http://host.test/"); err != nil ||
				(string(x.Body) == wiretest.Page) != (tt.password == "") {
				t.Errorf("with the key: %v, body %q", err, x.Body)
			}
		})
	}
}

func TestHostileProxies(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		reason string
	}{
		"closes":                       {"", "fetch.proxy_filters"},
		"speaks another protocol":      {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "fetch.proxy_filters"},
		"smuggles a response":          {"HTTP/1.1 200 OK\r\n\r\n" + okHead + wiretest.Page, "sent data after its answer"},
		"sends a body":                 {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "sent data after its answer"},
		"sends an endless head":        {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Filler: 0123456789\r\n", 64<<10), "answer to CONNECT"},
		"redirects":                    {"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\n\r\n", "with 302"},
		"puts controls into its words": {"HTTP/1.1 403 \x1b[31mred\r\n\r\n", `"\x1b[31mred"`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, scheme := range []string{"http", "https"} {
				addr := rawServer(t, func(c net.Conn, r *bufio.Reader, _ int) {
					if line := readRequest(r); !strings.HasPrefix(line, "CONNECT 93.184.216.34:") {
						t.Errorf("asked %q", line)
					}
					io.WriteString(c, tt.answer)
				})
				x, err := get(t, proxied(t, addr, nil), scheme+"://host.test/")
				if !errors.Is(err, ErrConnect) || x.Status != 0 || len(x.Body) > 0 || x.BytesOut != 0 {
					t.Errorf("%s: %v, status %d, body %q, %d bytes were sent", scheme, err, x.Status, x.Body, x.BytesOut)
				}
				if err != nil && scheme == "http" && !strings.Contains(err.Error(), tt.reason) {
					t.Errorf("error %v, want one with %q", err, tt.reason)
				}
			}
		})
	}
}

func TestProxyThatIsNone(t *testing.T) {
	for _, s := range []string{"https://proxy.test:3128", "socks5://proxy.test", "proxy.test:3128", "http://", "http://proxy.test/path", "http://u:secret@proxy test", "http://proxy.test:0", "http://proxy.test:99999"} {
		_, err := New(Config{Proxy: s})
		if err == nil || !strings.Contains(err.Error(), "fetch.proxy") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", s, err)
		}
	}
	c, err := New(Config{Proxy: "http://[::1]:3128/", Dial: func(_ context.Context, a netip.AddrPort) (net.Conn, error) {
		return nil, errors.New("dialled " + a.String())
	}, Guard: guard.New(true)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, c, "http://host.test/"); err == nil || !strings.Contains(err.Error(), "dialled [::1]:3128") {
		t.Errorf("proxy by IPv6: %v", err)
	}
}

// TestAProxyThatRepeatsItsCredentials sends them back in every part of an answer to CONNECT, of a response to a
// request in absolute form, and of one through a tunnel.
func TestAProxyThatRepeatsItsCredentials(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte("user:" + proxyPassword))
	zip := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		io.WriteString(w, s)
		w.Close()
		return b.String()
	}
	for form, secret := range map[string]string{"base64": encoded, "raw": "user:" + proxyPassword} {
		chunk := fmt.Sprintf("2\r\n%s\r\n%x\r\n%s\r\n0\r\n", secret[:2], len(secret)-2, secret[2:])
		for name, answer := range map[string]string{
			"reason":          "HTTP/1.1 403 Basic " + secret + "\r\n\r\n",
			"reason, cut":     "HTTP/1.1 403 " + strings.Repeat("x", 50) + secret + "\r\n\r\n",
			"header":          "HTTP/1.1 302 Found\r\nLocation: http://host.test/?" + secret + "\r\nContent-Length: 0\r\n\r\n",
			"body":            "HTTP/1.1 502 Bad\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<p>Proxy-Authorization: " + secret,
			"chunks":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + "\r\n",
			"trailer":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Sent: " + secret + "\r\n\r\n",
			"compressed":      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + zip("<p>"+secret),
			"no HTTP":         secret + "\r\n\r\n",
			"status code":     "HTTP/1.1 9" + secret + "\r\n\r\n",
			"password alone":  "HTTP/1.1 407 wrong password " + proxyPassword + "\r\n\r\n",
			"interim":         "HTTP/1.1 103 Hints\r\nLink: " + secret + "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
			"no head at all":  "<html>" + secret,
			"header, no name": "HTTP/1.1 200 OK\r\n" + secret + "\r\nContent-Length: 0\r\n\r\n",
		} {
			for _, way := range []string{"connect", "absolute", "tunnel"} {
				if name == "password alone" && way != "connect" { // it may be a word of a page
					continue
				}
				addr := rawServer(t, func(c net.Conn, r *bufio.Reader, _ int) {
					readRequest(r)
					if way == "tunnel" {
						io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
						readRequest(r)
					}
					io.WriteString(c, answer)
				})
				x, err := get(t, proxied(t, addr, func(c *Config) { c.ProxyFilters = way == "absolute" }), "http://host.test/")
				kept := fmt.Sprintf("%v %s %v %v %s %s %s", err, x.StatusText, x.Header, x.Warnings, x.RawHead, x.Payload, x.Body)
				for part := range x.RawParts {
					kept += string(part)
				}
				for _, s := range []string{encoded[:8], proxyPassword} {
					if strings.Contains(kept, s) {
						t.Errorf("%s of %s by %s: %s", form, name, way, kept)
					}
				}
			}
		}
	}
}
