package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dns"
)

// pipeServer returns the client's end of an in-memory connection. The server's end answers every
// request with raw.
func pipeServer(raw string) net.Conn {
	return pipeHandler(func(c net.Conn, r *bufio.Reader) {
		for readRequest(r) != "" {
			if _, err := io.WriteString(c, raw); err != nil {
				return
			}
		}
	})
}

func pipeHandler(handle func(net.Conn, *bufio.Reader)) net.Conn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		handle(server, bufio.NewReader(server))
	}()
	return client
}

// hold returns a handler that writes raw and then waits until the client closes the connection.
func hold(raw string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		readRequest(r)
		if _, err := io.WriteString(c, raw); err == nil {
			io.Copy(io.Discard, r)
		}
	}
}

// dripEvery is the time between two bytes. No limit is a multiple of it, so no byte arrives exactly
// at a limit.
const dripEvery = 700 * time.Millisecond

// drip returns a handler that writes head and then single bytes, with a pause of dripEvery after each
// byte.
func drip(head string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		readRequest(r)
		for _, s := range append([]string{head}, strings.Split(strings.Repeat("X", 1000), "")...) {
			if _, err := io.WriteString(c, s); err != nil {
				return
			}
			time.Sleep(dripEvery)
		}
	}
}

// Every phase ends exactly at its limit.
func TestEveryWaitIsBounded(t *testing.T) {
	limits := Timeouts{Connect: 10 * time.Second, FirstByte: 15 * time.Second, Total: 30 * time.Second}
	never := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	answering := func(h func(net.Conn, *bufio.Reader)) func(context.Context) (net.Conn, error) {
		return func(context.Context) (net.Conn, error) { return pipeHandler(h), nil }
	}
	tests := []struct {
		name  string
		url   string
		dns   func(context.Context) error
		dial  func(context.Context) (net.Conn, error)
		after time.Duration
		phase Phase            // expected phase of the error; "" for no error
		trunc http1.Truncation // expected truncation of the body, without an error
		body  string
	}{
		{name: "DNS", url: "http://h.test/", dns: never, after: 10 * time.Second, phase: PhaseDNS},
		{name: "connect", url: "http://h.test/", dial: func(ctx context.Context) (net.Conn, error) { return nil, never(ctx) }, after: 10 * time.Second, phase: PhaseConnect},
		{name: "handshake", url: "https://h.test/", dial: answering(func(c net.Conn, _ *bufio.Reader) { io.Copy(io.Discard, c) }), after: 10 * time.Second, phase: PhaseTLS},
		{name: "request not read", url: "http://h.test/", dial: answering(func(net.Conn, *bufio.Reader) { time.Sleep(time.Hour) }), after: 15 * time.Second, phase: PhaseWrite},
		{name: "silence after the request", url: "http://h.test/", dial: answering(hold("")), after: 15 * time.Second, phase: PhaseFirstByte},
		{name: "silence in the head", url: "http://h.test/", dial: answering(hold("HTTP/1.1 200 OK\r\n")), after: 30 * time.Second, phase: PhaseHead},
		{name: "slow drip of a head", url: "http://h.test/", dial: answering(drip("HTTP/1.1 200 OK\r\nX: ")), after: 30 * time.Second, phase: PhaseHead},
		{name: "silence in the body", url: "http://h.test/", dial: answering(hold("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")), after: 30 * time.Second, trunc: http1.TruncTime, body: "abc"},
		{name: "silence in a chunk", url: "http://h.test/", dial: answering(hold("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc")), after: 30 * time.Second, trunc: http1.TruncTime, body: "abc"},
		{name: "slow drip of a body", url: "http://h.test/", dial: answering(drip("HTTP/1.1 200 OK\r\n\r\n")), after: 30 * time.Second, trunc: http1.TruncTime, body: strings.Repeat("X", 42)},
		{name: "silence after the last chunk", url: "http://h.test/", dial: answering(hold("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n")), after: time.Second, body: "abc"},
		{name: "silence after a body whose length is a word", url: "http://h.test/", dial: answering(hold("HTTP/1.1 200 OK\r\nContent-Length: three\r\n\r\nabc")), after: 5 * time.Second, body: "abc"},
		{name: "slow drip of a body whose length is a word", url: "http://h.test/", dial: answering(drip("HTTP/1.1 200 OK\r\nContent-Length: lots\r\n\r\n")), after: 30 * time.Second, trunc: http1.TruncTime, body: strings.Repeat("X", 42)},
		{name: "silence after the shorter of two lengths", url: "http://h.test/", dial: answering(hold("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 9\r\n\r\nabc")), after: time.Second, body: "abc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := New(Config{
					Timeouts: limits,
					Resolver: resolverFunc(func(ctx context.Context, _ string) (dns.Answer, error) {
						if tt.dns != nil {
							return dns.Answer{}, tt.dns(ctx)
						}
						return dns.Answer{Addrs: []netip.Addr{someAddr}}, nil
					}),
					Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) { return tt.dial(ctx) },
				})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				defer time.Sleep(time.Hour) // background work ends by its own time limits
				begin := time.Now()
				x, err := c.Do(t.Context(), &Request{URL: tt.url})
				defer x.Release()
				if took := time.Since(begin); took != tt.after || x.Timing.Total != took {
					t.Errorf("took %v, by its own account %v; want %v", took, x.Timing.Total, tt.after)
				}
				if tt.phase == "" {
					if err != nil || x.Truncated != tt.trunc || string(x.Body) != tt.body {
						t.Errorf("%v, truncated %q, body %q; want %q, %q", err, x.Truncated, x.Body, tt.trunc, tt.body)
					}
					return
				}
				var e *Error
				if !errors.As(err, &e) || e.Kind != ErrTimeout || e.Phase != tt.phase {
					t.Errorf("error %v, want a timeout in phase %s", err, tt.phase)
				}
				if phrase, _ := e.Words(); phrase != timeoutPhrases[tt.phase] || phrase == "" {
					t.Errorf("in words %q", phrase)
				}
			})
		})
	}
}

// The caller's context can end an exchange in any phase. The error then differs from that of a slow
// server.
func TestContextAborts(t *testing.T) {
	for name, handle := range map[string]func(net.Conn, *bufio.Reader){
		"before the first byte": hold(""),
		"in the head":           hold("HTTP/1.1 200 OK\r\n"),
		"in the body":           hold("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
		"as it drips":           drip("HTTP/1.1 200 OK\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := New(Config{
					Resolver: fakeResolver{"h.test": {Addrs: []netip.Addr{someAddr}}},
					Dial:     func(context.Context, netip.AddrPort) (net.Conn, error) { return pipeHandler(handle), nil },
				})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				defer time.Sleep(time.Hour)
				lapsed := errors.New("right lapsed")
				ctx, cancel := context.WithTimeoutCause(t.Context(), 3500*time.Millisecond, lapsed)
				defer cancel()
				begin := time.Now()
				x, err := c.Do(ctx, &Request{URL: "http://h.test/"})
				defer x.Release()
				if !errors.Is(err, ErrAborted) || !errors.Is(err, lapsed) || errors.Is(err, ErrTimeout) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(begin); took != 3500*time.Millisecond {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// countedConn decrements a counter when it is closed.
type countedConn struct {
	net.Conn
	open *atomic.Int32
}

func (c *countedConn) Close() error {
	c.open.Add(-1)
	return c.Conn.Close()
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := fakeResolver{}
		for _, n := range []string{"a.test", "b.test", "c.test"} {
			names[n] = dns.Answer{Addrs: []netip.Addr{someAddr}}
		}
		dials, open := 0, atomic.Int32{}
		c, err := New(Config{
			Resolver: names, MaxIdle: 2,
			Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
				dials++
				open.Add(1)
				return &countedConn{pipeServer(okHead + wiretest.Page), &open}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		step := func(url string, wantDials, wantIdle int) {
			t.Helper()
			if _, err := get(t, c, url); err != nil {
				t.Fatal(err)
			}
			if dials != wantDials || int(open.Load()) != wantIdle {
				t.Errorf("after %s: %d dials, %d idle; want %d, %d", url, dials, open.Load(), wantDials, wantIdle)
			}
		}
		step("http://a.test/", 1, 1)
		step("http://b.test/", 2, 2)
		step("http://c.test/", 3, 2) // now the connection to a is the oldest
		step("http://b.test/", 3, 2)
		step("http://a.test/", 4, 2) // now the connection to c is the oldest
		time.Sleep(time.Minute)
		step("http://b.test/", 5, 1) // all connections have expired
		c.Close()
		if open.Load() != 0 {
			t.Error("connections are kept after Close")
		}
		step("http://b.test/", 6, 0)
	})
}
