//go:build unix

package dial

import (
	"net"
	"syscall"
)

// isQuiet reports whether c is still open and has no unread bytes. It returns true for connections
// that are not sockets.
func isQuiet(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true // return immediately, without waiting for bytes
	})
	return err == nil && quiet
}
