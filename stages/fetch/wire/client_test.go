package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
	"crawlbatch.io/crawlbatch/stages/fetch/guard"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

const okHead = "HTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n"

func TestExchangeTellsWhatHappened(t *testing.T) {
	var seen atomic.Value
	addr := rawServer(t, func(c net.Conn, r *bufio.Reader, _ int) {
		seen.Store(readRequest(r))
		c.Write([]byte("HTTP/1.1 200 Fine\r\nX-A: 1\r\nx-a: 2\r\nTransfer-Encoding: chunked\r\n\r\n" + wiretest.Chunks(wiretest.Page, 9)))
	})
	c := clientTo(t, addr, nil)
	var write Write
	x, err := c.Do(context.Background(), &Request{
		URL:     "http://user:secret@Host.Test:8080/a b?q=ü#frag",
		Header:  http1.Header{{Name: "If-None-Match", Value: "\"x\"\r\nX-Evil: 1"}, {Name: "Accept", Value: "text/html"}},
		OnWrite: func(w Write) error { write = w; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	want := "GET /a%20b?q=%C3%BC HTTP/1.1\r\nHost: host.test:8080\r\nUser-Agent: testbot/1.0 (+https://example.org/bot)\r\n" +
		"Accept-Encoding: gzip, deflate, br, zstd\r\nIf-None-Match: \"x\"  X-Evil: 1\r\nAccept: text/html\r\n\r\n"
	if d := cmp.Diff(want, seen.Load()); d != "" {
		t.Errorf("request (-want +got)\n%s", d)
	}
	if d := cmp.Diff(want, string(x.RawRequest)); d != "" {
		t.Errorf("RawRequest (-want +got)\n%s", d)
	}
	if d := cmp.Diff(http1.Header{{Name: "X-A", Value: "1"}, {Name: "x-a", Value: "2"}, {Name: "Transfer-Encoding", Value: "chunked"}}, x.Header); d != "" {
		t.Errorf("Header (-want +got)\n%s", d)
	}
	if x.Protocol != "HTTP/1.1" || x.Status != 200 || x.StatusText != "Fine" || string(x.Body) != wiretest.Page || string(x.Payload) != wiretest.Page {
		t.Errorf("got %s %d %q, body %q", x.Protocol, x.Status, x.StatusText, x.Body)
	}
	// The digest equals that of: printf … | openssl sha1 -binary | base32
	if want := digest([]byte(wiretest.Page)); x.PayloadDigest != want || !strings.HasPrefix(want, "sha1:") || len(want) != 37 {
		t.Errorf("digest %q, want %q", x.PayloadDigest, want)
	}
	if x.BytesIn != int64(len(raw(t, x))) || x.BytesOut != int64(len(want)) {
		t.Errorf("bytes in %d, out %d; want %d and %d", x.BytesIn, x.BytesOut, int64(len(raw(t, x))), len(want))
	}
	if write.Addr != addr || x.Addr != addr || write.Route != dial.RouteConnectTo || !write.At.Equal(x.Start) || write.Retry || write.Reused {
		t.Errorf("write %+v, exchange at %v from %v", write, x.Addr, x.Start)
	}
	if x.Timing.Total <= 0 || x.Timing.FirstByte <= 0 || x.Timing.Total < x.Timing.FirstByte || x.Timing.TLS != 0 {
		t.Errorf("timing %+v", x.Timing)
	}
	x.Release()
	if x.Payload != nil || x.Body != nil || x.RawHead != nil || x.Status != 200 {
		t.Error("Release left byte slices, or took more")
	}
}

func TestEmptyDigest(t *testing.T) {
	if got := digest(nil); got != "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ" {
		t.Errorf("digest of nothing is %s", got)
	}
}

func TestConnectionIsKeptWhenBothAgree(t *testing.T) {
	tests := []struct {
		name, raw string
		method    string
		kept      bool
	}{
		{"length", okHead + wiretest.Page, "GET", true},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + wiretest.Chunks(wiretest.Page, 8), "GET", true},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", "GET", true},
		{"not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 37\r\n\r\n", "GET", true},
		{"HEAD", okHead, "HEAD", true},
		{"HTTP/1.0 keep-alive", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, "GET", true},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, "GET", false},
		{"close", "HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, "GET", false},
		{"one second", "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1, max=5\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, "GET", false},
		{"more than was said", okHead + wiretest.Page + "HTTP/1.1 200 Smuggled\r\n\r\n", "GET", false},
		{"both framings", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + wiretest.Chunks(wiretest.Page, 8), "GET", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var conns atomic.Int32
			addr := rawServer(t, func(c net.Conn, r *bufio.Reader, _ int) {
				conns.Add(1)
				for readRequest(r) != "" {
					c.Write([]byte(tt.raw))
				}
			})
			c := clientTo(t, addr, nil)
			for i := range 3 {
				x, err := c.Do(context.Background(), &Request{Method: tt.method, URL: "http://host.test/"})
				if err != nil {
					t.Fatal(err)
				}
				if x.Reused != (tt.kept && i > 0) {
					t.Errorf("exchange %d: reused %v", i, x.Reused)
				}
				x.Release()
			}
			if want := map[bool]int32{true: 1, false: 3}[tt.kept]; conns.Load() != want {
				t.Errorf("%d connections, want %d", conns.Load(), want)
			}
		})
	}
}

// If a kept connection ends before a response, the request is sent on a new one.
func TestDeadKeptConnectionIsReplacedOnce(t *testing.T) {
	for _, how := range []string{"close", "reset", "speak"} {
		t.Run(how, func(t *testing.T) {
			gone := make(chan struct{})
			addr := rawServer(t, func(c net.Conn, r *bufio.Reader, nth int) {
				readRequest(r)
				c.Write([]byte(okHead + wiretest.Page))
				if nth > 0 {
					readRequest(r)
					return
				}
				// The server reads the next request but does not answer it.
				if readRequest(r); how == "reset" {
					reset(c)
				}
				close(gone)
			})
			c := clientTo(t, addr, nil)
			if x, err := get(t, c, "http://host.test/"); err != nil || !x.KeptAlive {
				t.Fatal(err, x.KeptAlive)
			}
			var writes []Write
			x, err := c.Do(context.Background(), &Request{URL: "http://host.test/", OnWrite: func(w Write) error {
				writes = append(writes, w)
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer x.Release()
			<-gone
			if len(writes) != 2 || !writes[0].Reused || writes[0].Retry || writes[1].Reused || !writes[1].Retry {
				t.Errorf("writes %+v", writes)
			}
			if x.Reused || string(x.Body) != wiretest.Page {
				t.Errorf("reused %v, body %q", x.Reused, x.Body)
			}
		})
	}
}

// Before the client writes to an idle connection, it checks whether the server has closed it.
func TestIdleConnectionIsCheckedBeforeUse(t *testing.T) {
	closed := make(chan struct{})
	addr := rawServer(t, func(c net.Conn, r *bufio.Reader, nth int) {
		readRequest(r)
		c.Write([]byte(okHead + wiretest.Page))
		if nth == 0 {
			c.Close()
			close(closed)
			return
		}
		readRequest(r)
	})
	c := clientTo(t, addr, nil)
	if x, err := get(t, c, "http://host.test/"); err != nil || !x.KeptAlive {
		t.Fatal(err, x.KeptAlive)
	}
	<-closed
	// The FIN takes a moment to arrive over loopback. Until then, the connection looks alive.
	for k := c.idle.Take("http://host.test:80"); k != nil; k = c.idle.Take("http://host.test:80") {
		c.idle.Put(k, time.Minute)
	}
	writes := 0
	x, err := c.Do(context.Background(), &Request{URL: "http://host.test/", OnWrite: func(Write) error { writes++; return nil }})
	if err != nil || writes != 1 {
		t.Errorf("error %v after %d writes", err, writes)
	}
	x.Release()
}

func TestErrorsSayWhatWasWrong(t *testing.T) {
	refused := func() netip.AddrPort {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		return netip.MustParseAddrPort(ln.Addr().String())
	}()
	reading := func(end func(net.Conn)) netip.AddrPort {
		return rawServer(t, func(c net.Conn, r *bufio.Reader, _ int) { readRequest(r); end(c) })
	}
	tests := []struct {
		name string
		to   netip.AddrPort
		url  string
		want error
		text string

		phrase string
	}{
		{"refused", refused, "http://host.test/", ErrConnect, "refused", "connection refused"},
		{"closed at accept", rawServer(t, func(net.Conn, *bufio.Reader, int) {}), "http://host.test/", ErrDisconnect, "first_byte http://host.test:80", ""}, // or a reset, as the operating system decides
		{"closed after the request", reading(func(net.Conn) {}), "http://host.test/", ErrDisconnect, "", "connection closed before a response"},
		{"reset after the request", reading(reset), "http://host.test/", ErrDisconnect, "reset", "connection reset before a response"},
		{"reset in the head", reading(func(c net.Conn) {
			c.Write([]byte("HTTP/1.1 200 OK\r\nX-A"))
			reset(c)
		}), "http://host.test/", ErrDisconnect, "", "connection reset before a response"},
		{"TLS asked of plain HTTP", rawServer(t, func(c net.Conn, _ *bufio.Reader, _ int) { c.Write([]byte(okHead)) }), "https://host.test/", ErrTLS, "tls https://host.test:443", "no TLS server"},
		{"no http URL", refused, "ftp://host.test/", ErrInvalid, "ftp", "invalid request"},
		{"no host", refused, "http:///x", ErrInvalid, "host", "invalid request"},
		{"port out of range", refused, "http://host.test:65536/", ErrInvalid, "port", "invalid request"},
		{"number that is no address", refused, "http://1.2.3.4.5/", ErrInvalid, "IPv4", "invalid request"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, err := get(t, clientTo(t, tt.to, nil), tt.url)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v, want %v with %q", err, tt.want, tt.text)
			}
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T is not an *Error", err)
			}
			phrase, detail := e.Words()
			if tt.phrase != "" && phrase != tt.phrase || strings.Contains(detail, phrase) || tt.want != ErrInvalid && !strings.Contains(detail, "host.test") {
				t.Errorf("in words %q and %q, want %q", phrase, detail, tt.phrase)
			}
			if x.Timing.Total <= 0 || x.Status != 0 || x.PayloadDigest != "" || len(x.Body) != 0 {
				t.Errorf("exchange %+v", x)
			}
		})
	}
	// The operating system decides whether the connect succeeds before the RST comes.
	c := clientTo(t, rawServer(t, func(c net.Conn, _ *bufio.Reader, _ int) { reset(c) }), nil)
	if _, err := get(t, c, "http://host.test/"); !errors.Is(err, ErrDisconnect) && !errors.Is(err, ErrConnect) {
		t.Errorf("reset at accept: %v", err)
	}
	c = clientTo(t, refused, nil)
	for _, r := range []*Request{{URL: "http://h/", Method: "POST"}, {URL: "http://h/", Header: http1.Header{{Name: "A b"}}}} {
		if _, err := c.Do(context.Background(), r); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestGuardRefusesWhatConnectToDoesNotName(t *testing.T) {
	addr := rawServer(t, answer(okHead+wiretest.Page))
	here := fmt.Sprintf("http://%s/", addr)
	resolver := fakeResolver{
		"rebound.test":    {Addrs: []netip.Addr{addr.Addr()}},
		"translated.test": {Addrs: []netip.Addr{netip.MustParseAddr("64:ff9b::7f00:1"), netip.MustParseAddr("64:ff9b::a9fe:a9fe")}},
		"both.test":       {Addrs: []netip.Addr{netip.MustParseAddr("64:ff9b::7f00:1"), netip.MustParseAddr("64:ff9b::5db8:d822")}},
	}

	strict, err := New(Config{Resolver: resolver})
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close()
	number := fmt.Sprintf("http://0x7f.1:%d/", addr.Port())
	named := fmt.Sprintf("http://rebound.test:%d/", addr.Port())
	for _, url := range []string{here, number, named, fmt.Sprintf("http://translated.test:%d/", addr.Port()), fmt.Sprintf("http://[::ffff:127.0.0.1]:%d/", addr.Port()), "http://169.254.169.254/latest/meta-data/"} {
		x, err := get(t, strict, url)
		if !errors.Is(err, ErrAddressBlocked) || !strings.Contains(err.Error(), guard.Setting) {
			t.Errorf("%s: %v, want ErrAddressBlocked naming %s", url, err, guard.Setting)
		}
		if !x.Start.IsZero() {
			t.Errorf("%s: something was written", url)
		}
	}
	if _, err := get(t, strict, "http://rebound.test:25/"); !errors.Is(err, ErrAddressBlocked) || !strings.Contains(err.Error(), "25 is one of WHATWG's bad ports") {
		t.Errorf("port 25: %v", err)
	}

	if addrs, _, _, err := strict.Locate(t.Context(), "http://both.test/"); err != nil || fmt.Sprint(addrs) != "[[64:ff9b::5db8:d822]:80]" {
		t.Errorf("NAT64 of a private and of a public address: %v, %v", addrs, err)
	}

	open, err := New(Config{Resolver: resolver, Guard: guard.New(true)})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	for _, url := range []string{here, number, named} {
		if x, err := get(t, open, url); err != nil || string(x.Body) != wiretest.Page {
			t.Errorf("%s with private networks allowed: %v", url, err)
		}
	}

	if x, err := get(t, clientTo(t, addr, nil), "http://anything.test:25/"); err != nil || x.Route != dial.RouteConnectTo {
		t.Errorf("by connect-to: %v", err)
	}
	// This rule changes only the port and names no address.
	portOnly, err := New(Config{Resolver: resolver, ConnectTo: []dial.ConnectTo{{Host: "rebound.test", ToPort: addr.Port()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer portOnly.Close()
	if _, err := get(t, portOnly, "http://rebound.test/"); !errors.Is(err, ErrAddressBlocked) {
		t.Errorf("by a rule without an address: %v", err)
	}
}

// The resolver's first answer is a public address; later answers are a private one. The client must
// dial the address that it checked.
func TestRebindingGainsNothing(t *testing.T) {
	calls := 0
	resolver := resolverFunc(func(context.Context, string) (dns.Answer, error) {
		if calls++; calls == 1 {
			return dns.Answer{Addrs: []netip.Addr{netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("127.0.0.1")}}, nil
		}
		return dns.Answer{Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}, nil
	})
	var dialled []netip.AddrPort
	c, err := New(Config{Resolver: resolver, Dial: func(_ context.Context, a netip.AddrPort) (net.Conn, error) {
		dialled = append(dialled, a)
		return nil, errors.New("not today")
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, c, "http://rebind.test/"); !errors.Is(err, ErrConnect) {
		t.Error(err)
	}
	if d := cmp.Diff([]netip.AddrPort{netip.MustParseAddrPort("93.184.216.34:80")}, dialled, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
		t.Errorf("dialled (-want +got)\n%s", d)
	}
}

func TestOnWriteErrorStopsTheRequest(t *testing.T) {
	got := make(chan string, 1)
	addr := rawServer(t, func(_ net.Conn, r *bufio.Reader, _ int) { got <- readRequest(r) })
	lapsed := errors.New("right lapsed")
	x, err := clientTo(t, addr, nil).Do(context.Background(), &Request{URL: "http://host.test/", OnWrite: func(Write) error { return lapsed }})
	if !errors.Is(err, ErrAborted) || !errors.Is(err, lapsed) {
		t.Errorf("error %v", err)
	}
	if sent := <-got; sent != "" || x.BytesOut != 0 || !x.Start.IsZero() {
		t.Errorf("%q was sent", sent)
	}
}

func TestFiltersStopTheBody(t *testing.T) {
	body := wiretest.Noise(100_000)
	addr := rawServer(t, answer("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: "+fmt.Sprint(len(wiretest.Encode("gzip", body)))+"\r\n\r\n"+wiretest.Encode("gzip", body)))
	c := clientTo(t, addr, nil)
	x, err := c.Do(context.Background(), &Request{URL: "http://host.test/", OnHead: func(x *Exchange) bool { return x.Header.Get("content-encoding") != "gzip" }})
	if err != nil || !x.Filtered || len(x.Payload) != 0 || x.Truncated != http1.TruncFiltered || x.KeptAlive {
		t.Errorf("by head: %v, filtered %v, truncated %q, %d bytes", err, x.Filtered, x.Truncated, len(x.Payload))
	}
	x.Release()
	var prefix string
	x, err = c.Do(context.Background(), &Request{URL: "http://host.test/", OnPrefix: func(x *Exchange, b []byte) bool {
		prefix = string(b)
		return false
	}})
	if err != nil || !x.Filtered || x.Body != nil || x.Truncated != http1.TruncFiltered || len(x.Payload) >= len(body)/2 {
		t.Errorf("by prefix: %v, filtered %v, truncated %q, %d bytes", err, x.Filtered, x.Truncated, len(x.Payload))
	}
	if prefix != body[:http1.PrefixLen] {
		t.Errorf("prefix of %d bytes: %.50q", len(prefix), prefix)
	}
	x.Release()
	calls := 0
	x, err = c.Do(context.Background(), &Request{URL: "http://host.test/", OnPrefix: func(*Exchange, []byte) bool { calls++; return true }})
	if err != nil || x.Filtered || calls != 1 || string(x.Body) != body {
		t.Errorf("accepted: %v, %d calls, %d bytes", err, calls, len(x.Body))
	}
	x.Release()
}

func TestTheBeginningMayAllowALongerBody(t *testing.T) {
	body := "<urlset>" + wiretest.Noise(300_000)
	chunks := ""
	for rest := body; rest != ""; {
		n := min(len(rest), 7_000)
		chunks += fmt.Sprintf("%x\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	for name, raw := range map[string]string{
		"length": "HTTP/1.1 200 OK\r\nContent-Length: " + fmt.Sprint(len(body)) + "\r\n\r\n" + body,
		"chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + "0\r\n\r\n",
		"end":    "HTTP/1.1 200 OK\r\n\r\n" + body,
		"gzip":   "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + wiretest.Encode("gzip", body),
	} {
		for _, allowed := range []int64{0, 50_000, 200_000, 1 << 20} {
			c := clientTo(t, rawServer(t, answer(raw)), func(c *Config) { c.MaxBody = 100_000 })
			x, err := c.Do(context.Background(), &Request{URL: "http://host.test/",
				OnPrefix: func(*Exchange, []byte) bool { return true },
				Allow: func(_ *Exchange, b []byte) int64 {
					if !strings.HasPrefix(string(b), "<urlset>") {
						t.Errorf("%s: began with %.20q", name, b)
					}
					return allowed
				}})
			want := min(len(body), int(max(allowed, 100_000)))
			if err != nil || string(x.Body) != body[:want] || (x.BodyTruncated == http1.TruncLength) != (want < len(body)) {
				t.Errorf("%s, %d allowed: %d bytes, want %d, truncated %q, %v", name, allowed, len(x.Body), want, x.BodyTruncated, err)
			}
			x.Release()
		}
	}
}

func TestBodyIsCutAtTheLimit(t *testing.T) {
	const limit = 100_000
	exact, over := strings.Repeat("x", limit), strings.Repeat("x", limit+1)
	tests := []struct {
		name, raw string
		cut       bool
	}{
		{"length, exact", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + exact, false},
		{"length, one more", "HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n" + over, true},
		{"to the end, exact", "HTTP/1.1 200 OK\r\n\r\n" + exact, false},
		{"to the end, one more", "HTTP/1.1 200 OK\r\n\r\n" + over, true},
		{"chunks, exact", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + wiretest.Chunks(exact, 30000), false},
		{"chunks, one more", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + wiretest.Chunks(over, 30000), true},
		{"one chunk, one more", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + wiretest.Chunks(over, 200000), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := clientTo(t, rawServer(t, answer(tt.raw)), func(c *Config) { c.MaxBody = limit })
			x, err := get(t, c, "http://host.test/")
			if err != nil {
				t.Fatal(err)
			}
			want := http1.Complete
			if tt.cut {
				want = http1.TruncLength
			}
			if string(x.Payload) != exact || x.Truncated != want || x.BodyTruncated != want || tt.cut && x.KeptAlive {
				t.Errorf("%d bytes, truncated %q, kept %v", len(x.Payload), x.Truncated, x.KeptAlive)
			}
			if got := raw(t, x); !strings.HasPrefix(tt.raw, got) {
				t.Error("raw is not what was sent")
			}
		})
	}
}

// Whatever the size of its pieces, an endless body takes no more memory than the limit.
func TestEndlessBodies(t *testing.T) {
	for name, piece := range map[string]string{"to the end": "xxxxxxxx", "chunked": "8\r\nxxxxxxxx\r\n", "in chunks of one byte": "1\r\nx\r\n"} {
		t.Run(name, func(t *testing.T) {
			head := "HTTP/1.1 200 OK\r\n\r\n"
			if name != "to the end" {
				head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
			}
			addr := rawServer(t, func(c net.Conn, r *bufio.Reader, _ int) {
				readRequest(r)
				c.Write([]byte(head))
				b := bytes.Repeat([]byte(piece), 4096)
				for {
					if _, err := c.Write(b); err != nil {
						return
					}
				}
			})
			x, err := get(t, clientTo(t, addr, func(c *Config) { c.MaxBody = 4 << 20 }), "http://host.test/")
			framing := len(raw(t, x)) - len(x.RawHead) - len(x.Payload)
			if err != nil || x.Truncated != http1.TruncLength || len(x.Payload) > 4<<20 || framing > 1<<20 {
				t.Errorf("%v, truncated %q, %d bytes and %d of framing", err, x.Truncated, len(x.Payload), framing)
			}
			if x.BytesIn > 8<<20 {
				t.Errorf("%d bytes were read", x.BytesIn)
			}
		})
	}
}

func TestResetInTheBodyKeepsWhatCame(t *testing.T) {
	sent := make(chan struct{})
	addr := rawServer(t, func(c net.Conn, r *bufio.Reader, _ int) {
		readRequest(r)
		c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + wiretest.Page))
		<-sent
		reset(c)
	})
	x, err := clientTo(t, addr, nil).Do(context.Background(), &Request{URL: "http://host.test/", OnHead: func(*Exchange) bool {
		close(sent)
		return true
	}})
	defer x.Release()
	if err != nil || x.Truncated != http1.TruncDisconnect || x.KeptAlive || !strings.HasPrefix(wiretest.Page, string(x.Body)) {
		t.Errorf("%v, truncated %q, body %q", err, x.Truncated, x.Body)
	}
}

func TestPrefixIsDecoded(t *testing.T) {
	text := wiretest.Noise(50_000)
	addr := rawServer(t, answer("HTTP/1.1 200 OK\r\nContent-Encoding: br, gzip\r\n\r\n"+wiretest.Encode("gzip", wiretest.Encode("br", text))))
	var got string
	x, err := clientTo(t, addr, nil).Do(context.Background(), &Request{URL: "http://host.test/", OnPrefix: func(_ *Exchange, b []byte) bool {
		got = string(b)
		return true
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	if len(got) == 0 || !strings.HasPrefix(text, got) {
		t.Errorf("prefix %.40q of %d bytes", got, len(got))
	}
	if string(x.Body) != text {
		t.Errorf("body of %d bytes", len(x.Body))
	}
}
