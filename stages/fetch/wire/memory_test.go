package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
)

// memoryClient returns a client of a server that calls serve to answer each request.
func memoryClient(t *testing.T, memory int64, serve func(c net.Conn, path string)) *Client {
	t.Helper()
	c, err := New(Config{
		Resolver: fakeResolver{"h.test": {Addrs: []netip.Addr{someAddr}}}, Memory: memory,
		Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
			return pipeHandler(func(c net.Conn, r *bufio.Reader) {
				line, _, _ := strings.Cut(strings.TrimPrefix(readRequest(r), "GET "), " ")
				serve(c, line)
			}), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// All bodies share a limited memory. If no memory is left, an exchange waits until another exchange
// releases some, and gives up at its own time limit.
func TestBodiesShareABoundedMemory(t *testing.T) {
	text := wiretest.Noise(3 << 20)
	for _, coding := range []string{"identity", "gzip"} {
		t.Run(coding, func(t *testing.T) {
			payload := text
			if coding == "gzip" {
				payload = wiretest.Encode(coding, strings.Repeat(wiretest.Noise(20_000), 140))
			}
			synctest.Test(t, func(t *testing.T) {
				c := memoryClient(t, 1, func(c net.Conn, _ string) {
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Encoding: "+coding+"\r\n\r\n"+payload)
				})
				do := func() (*Exchange, error) { return c.Do(t.Context(), &Request{URL: "http://h.test/"}) }
				whole := func() *Exchange {
					t.Helper()
					x, err := do()
					if n := len(x.Body); err != nil || x.BodyTruncated != http1.Complete || n < 2_800_000 {
						t.Errorf("%v, truncated %q after %d bytes", err, x.BodyTruncated, n)
					}
					return x
				}
				first := whole() // the body takes memory beyond OwnMemory
				second, err := do()
				if !errors.Is(err, ErrAborted) || second.Timing.Total != 30*time.Second {
					t.Errorf("without memory: %v after %v, want ErrAborted after 30s", err, second.Timing.Total)
				}
				second.Release()
				first.Release()
				third := whole()
				time.AfterFunc(time.Second, third.Release)
				fourth := whole()
				if fourth.Timing.Total != time.Second {
					t.Errorf("waited %v for a release after 1s", fourth.Timing.Total)
				}
				fourth.Release()
				fourth.Release()
				if r := c.memory; r.free != 1 || r.overdrawn != nil || len(r.shares)+len(r.queue) != 0 {
					t.Errorf("after all were released: %+v", r)
				}
			})
		})
	}
}

// Many bodies have begun and together need more memory than there is. The client completes the
// bodies one by one.
func TestBodiesThatAllWantMoreDoNotLock(t *testing.T) {
	text := wiretest.Noise(3 << 20)
	synctest.Test(t, func(t *testing.T) {
		c := memoryClient(t, 6<<20, func(c net.Conn, _ string) { io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n"+text) })
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				x, err := c.Do(t.Context(), &Request{URL: "http://h.test/"})
				if err != nil || len(x.Body) != len(text) {
					t.Errorf("%v after %d bytes", err, len(x.Body))
				}
				time.Sleep(100 * time.Millisecond) // a parser also takes some time
				x.Release()
			})
		}
		wg.Wait()
		if c.memory.free != 6<<20 || c.memory.overdrawn != nil {
			t.Errorf("after all were released: %+v", c.memory)
		}
	})
}

// If slow bodies hold all the memory, the client stops reading these bodies, so that other bodies
// get memory.
func TestSlowBodiesMakeWay(t *testing.T) {
	text := wiretest.Noise(3 << 20)
	synctest.Test(t, func(t *testing.T) {
		c := memoryClient(t, 4<<20, func(c net.Conn, path string) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			if path == "/good" {
				io.WriteString(c, text)
				return
			}
			io.WriteString(c, text[:600<<10])
			for {
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		var wg sync.WaitGroup
		cut := 0
		var mu sync.Mutex
		for range 20 {
			wg.Go(func() {
				x, err := c.Do(t.Context(), &Request{URL: "http://h.test/slow"})
				defer x.Release()
				mu.Lock()
				defer mu.Unlock()
				if err == nil && x.Truncated == http1.TruncTime {
					cut++
				} else if !errors.Is(err, ErrAborted) {
					t.Errorf("slow: %v, truncated %q", err, x.Truncated)
				}
			})
		}
		time.Sleep(20 * time.Second)
		wg.Go(func() {
			x, err := c.Do(t.Context(), &Request{URL: "http://h.test/good"})
			defer x.Release()
			if err != nil || len(x.Body) != len(text) {
				t.Errorf("good: %v after %d bytes", err, len(x.Body))
			}
		})
		wg.Wait()
		time.Sleep(2 * time.Second) // time for the servers to see that their connections are closed
		if cut == 0 {
			t.Error("no slow body was cut")
		}
	})
}
