package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
)

// A body that waits for memory is not read meanwhile. This time must not make its peer count as
// slow.
func TestWhoWaitsForRoomIsNotCutAsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMemory(512 << 10)
		gate, waits := &share{memory: r}, &share{memory: r}
		until := time.Now().Add(time.Minute)
		if r.grow(t.Context(), waits, 384<<10, until) != nil || r.grow(t.Context(), gate, 4<<20, until) != nil {
			t.Fatal("there was room")
		}
		waits.setCut(func() { t.Error("the body that waited was cut off") })
		given := make(chan error)
		go func() { given <- r.grow(t.Context(), waits, 768<<10, until) }()
		time.Sleep(30 * time.Second)
		gate.release()
		if err := <-given; err != nil {
			t.Error(err)
		}
		if _, waited := waits.state(); waited != 30*time.Second {
			t.Errorf("the share waited %v", waited)
		}
	})
}

// If a body has waited for memory, its speed is measured over all its bytes, not just over the
// first bytes.
func TestWhoIsThroughTheGateIsNotCutAsSlow(t *testing.T) {
	const blocks, block = 64, 64 << 10
	text := wiretest.Noise(block)
	synctest.Test(t, func(t *testing.T) {
		c := memoryClient(t, 1, func(c net.Conn, path string) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			for range blocks {
				if _, err := io.WriteString(c, text); err != nil {
					return
				}
				time.Sleep(150 * time.Millisecond) // the body arrives at about 430 KiB per second
			}
		})
		done := make(chan error, 2)
		for range cap(done) {
			go func() {
				x, err := c.Do(t.Context(), &Request{URL: "http://h.test/"})
				defer x.Release()
				if err == nil && (x.Truncated != http1.Complete || len(x.Payload) != blocks*block) {
					t.Errorf("%d of %d bytes, truncated %q", len(x.Payload), blocks*block, x.Truncated)
				}
				done <- err
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
	})
}

// The client stops reading only as many slow bodies as necessary. It does not stop one for each
// body that waits.
func TestOneBodyIsCutAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMemory(10 << 20)
		until := time.Now().Add(time.Minute)
		cuts := 0
		for range 20 {
			h := &share{memory: r}
			if err := r.grow(t.Context(), h, 512<<10, until); err != nil {
				t.Fatal(err)
			}
			h.setCut(func() {
				cuts++
				time.AfterFunc(time.Millisecond, h.release)
			})
		}
		gate := &share{memory: r}
		if err := r.grow(t.Context(), gate, 4<<20, until); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		given := make(chan error, 20)
		for range cap(given) {
			go func() { given <- r.grow(context.Background(), &share{memory: r}, 256<<10, until.Add(time.Hour)) }()
		}
		for range cap(given) {
			if err := <-given; err != nil {
				t.Error(err)
			}
		}
		if cuts != 10 {
			t.Errorf("%d bodies of 512 KiB were cut for 20 of 256 KiB", cuts)
		}
	})
}

// A body that the client has stopped reading is incomplete, whatever its framing says.
func TestABodyThatWasCutIsNotWhole(t *testing.T) {
	text := wiretest.Noise(300 << 10)
	synctest.Test(t, func(t *testing.T) {
		c := memoryClient(t, 512<<10, func(c net.Conn, path string) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: some\r\n\r\n"+text)
			for range 25 {
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		gate := &share{memory: c.memory}
		if err := c.memory.grow(t.Context(), gate, 4<<20, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(25*time.Second, gate.release)
		go func() { // another body needs this memory after 12 s
			time.Sleep(12 * time.Second)
			_ = c.memory.grow(t.Context(), &share{memory: c.memory}, 512<<10, time.Now().Add(10*time.Second))
		}()
		x, err := c.Do(t.Context(), &Request{URL: "http://h.test/"})
		defer x.Release()
		if err != nil || x.Truncated != http1.TruncTime {
			t.Errorf("%d bytes, truncated %q, %v", len(x.Payload), x.Truncated, err)
		}
		time.Sleep(time.Minute)
	})
}

// The time for which a body waits for memory does not count against its host.
func TestRunningOutOfTimeInLineIsNoFaultOfTheHost(t *testing.T) {
	text := wiretest.Noise(64 << 10)
	synctest.Test(t, func(t *testing.T) {
		c := memoryClient(t, 1, func(c net.Conn, path string) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2097152\r\n\r\n")
			for range 32 {
				if _, err := io.WriteString(c, text); err != nil {
					return
				}
				time.Sleep(500 * time.Millisecond)
			}
		})
		gate := &share{memory: c.memory}
		if err := c.memory.grow(t.Context(), gate, 4<<20, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(25*time.Second, gate.release)
		x, err := c.Do(t.Context(), &Request{URL: "http://h.test/"})
		defer x.Release()
		if !errors.Is(err, ErrNoRoom) || !errors.Is(err, ErrAborted) {
			t.Errorf("%d bytes, truncated %q, %v; want no room", len(x.Payload), x.Truncated, err)
		}
		time.Sleep(time.Minute)
	})
}
