package wire

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

// rawServer starts a server that calls handle for each request on each connection, and then closes
// the connection.
func rawServer(t testing.TB, handle func(c net.Conn, r *bufio.Reader, nth int)) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for nth := 0; ; nth++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				handle(c, bufio.NewReader(c), nth)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return netip.MustParseAddrPort(ln.Addr().String())
}

// readRequest reads one request head and returns it, or "" at the end of the connection.
func readRequest(r *bufio.Reader) string {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return ""
		}
		b.WriteString(line)
		if line == "\r\n" {
			return b.String()
		}
	}
}

// answer returns a handler that sends raw as the response to the first request, and closes the
// connection.
func answer(raw string) func(net.Conn, *bufio.Reader, int) {
	return func(c net.Conn, r *bufio.Reader, _ int) {
		if readRequest(r) != "" {
			c.Write([]byte(raw))
		}
	}
}

// reset makes c send an RST when it is closed.
func reset(c net.Conn) {
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// clientTo returns a client that sends all requests to addr.
func clientTo(t testing.TB, addr netip.AddrPort, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{
		UserAgent: "testbot/1.0 (+https://example.org/bot)",
		ConnectTo: []dial.ConnectTo{{Addr: addr.Addr().String(), ToPort: addr.Port()}},
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

// get makes a GET request for url.
func get(t testing.TB, c *Client, url string) (*Exchange, error) {
	t.Helper()
	x, err := c.Do(context.Background(), &Request{Method: http.MethodGet, URL: url})
	if x == nil {
		t.Fatal("Do returned no exchange")
	}
	t.Cleanup(x.Release)
	return x, err
}

// raw returns the response as received.
func raw(t testing.TB, x *Exchange) string {
	t.Helper()
	var b strings.Builder
	for part := range x.RawParts {
		b.Write(part)
	}
	return b.String()
}

type resolverFunc func(context.Context, string) (dns.Answer, error)

func (f resolverFunc) Lookup(ctx context.Context, host string) (dns.Answer, error) {
	return f(ctx, host)
}

// fakeResolver knows only the given names.
type fakeResolver map[string]dns.Answer

func (r fakeResolver) Lookup(_ context.Context, host string) (dns.Answer, error) {
	if a, ok := r[host]; ok {
		return a, nil
	}
	return dns.Answer{}, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

var someAddr = netip.MustParseAddr("93.184.216.34")
