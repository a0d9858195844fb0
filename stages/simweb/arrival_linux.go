package simweb

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stampArrivals makes the kernel record when data arrives on each connection of a TCP listener
// (SO_TIMESTAMPNS, socket(7)). Connections inherit the option, so that data before Accept is
// covered too. When the first process of the machine sets the option, the kernel takes a moment to
// begin recording.
func stampArrivals(ln net.Listener) net.Listener {
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return ln
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return ln
	}
	var refused error
	err = raw.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1)
	})
	if err != nil || refused != nil {
		return ln // an old kernel lacks the option; the log then has the times of reading instead
	}
	return stampedListener{tcp}
}

type stampedListener struct{ *net.TCPListener }

// Accept implements net.Listener.
func (l stampedListener) Accept() (net.Conn, error) {
	tcp, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return tcp, nil
	}
	return &stampedConn{TCPConn: tcp, raw: raw}, nil
}

// stampedConn is a TCP connection that knows when its last bytes arrived.
type stampedConn struct {
	*net.TCPConn
	raw     syscall.RawConn
	arrived atomic.Int64 // Unix time of the last arrival in nanoseconds; 0 if the kernel did not record the arrival
}

// Arrived implements arrivals.
func (c *stampedConn) Arrived() time.Time {
	if ns := c.arrived.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}

// timespec64 is the size of a struct __kernel_timespec in bytes: two int64 values on every
// platform.
const timespec64 = 16

// Read implements net.Conn.
func (c *stampedConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	var (
		control [64]byte
		n, cn   int
		failure error
	)
	err := c.raw.Read(func(fd uintptr) bool {
		for {
			n, cn, _, _, failure = unix.Recvmsg(int(fd), p, control[:], unix.MSG_DONTWAIT)
			if failure != unix.EINTR {
				return failure != unix.EAGAIN
			}
		}
	})
	switch {
	case err != nil: // the connection is closed, or its deadline has passed
		return 0, err
	case failure != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: failure}
	case n == 0:
		return 0, io.EOF
	}
	c.arrived.Store(arrivalIn(control[:cn]))
	return n, nil
}

// arrivalIn returns the arrival time in the control data, in nanoseconds, or 0 if there is none.
func arrivalIn(control []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS_NEW && len(m.Data) >= timespec64 {
			seconds, nanos := binary.NativeEndian.Uint64(m.Data), binary.NativeEndian.Uint64(m.Data[8:])
			return int64(seconds)*int64(time.Second) + int64(nanos)
		}
	}
	return 0
}

// WriteTo implements io.WriterTo. TCPConn's own WriteTo would bypass Read.
func (c *stampedConn) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{c})
}
