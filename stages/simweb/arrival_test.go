//go:build linux

package simweb

import (
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// A server without CPU time reads requests late, but the log must state when the requests arrived.
func TestTheLogSaysWhenARequestArrivedNotWhenItWasRead(t *testing.T) {
	web, log := newWeb(t, nil), NewLog(nil)
	server := NewServer(web, log)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	late := lateListener{stampArrivals(ln), make(chan struct{})}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- server.Serve(ctx, late) }()

	// The kernel begins to record times a moment after the option is set, so the first tries may
	// have no recorded time.
	const tries = 100
	for i := range tries {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nConnection: close\r\nHost: "+web.Host(0)+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		written := time.Now()
		late.accept <- struct{}{}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		if log.Entries()[0].Time.Before(written) {
			break
		}
		if i == tries-1 {
			t.Errorf("%d requests were written before the server read them, but the log has no arrival time before the reading", tries)
		}
	}
	cancel()
	close(late.accept)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// lateListener delays Accept until accept is closed.
type lateListener struct {
	net.Listener
	accept chan struct{}
}

func (l lateListener) Accept() (net.Conn, error) {
	<-l.accept
	return l.Listener.Accept()
}
