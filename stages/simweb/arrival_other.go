//go:build !linux

package simweb

import "net"

// stampArrivals returns ln unchanged. Only the Linux version can get arrival times from the kernel.
func stampArrivals(ln net.Listener) net.Listener { return ln }
