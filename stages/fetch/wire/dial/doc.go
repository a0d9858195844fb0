// Package dial makes TCP and TLS connections to web servers and keeps idle connections.
//
// The Dialer takes an http1.Target and returns a Conn, or an *Error that names the failed Step. It
// applies connect-to rules, then DNS, the guard and the proxy. Every address that it dials, or
// sends to the proxy in CONNECT, has passed the guard after DNS. The proxy and the addresses that
// connect-to rules name are exempt. With ProxyFilters, the proxy looks up the hosts of plain http
// again. The Pool keeps connections that may serve another exchange.
//
// Package dial imports the standard library and packages guard, dns, http1 and buffers.
package dial
