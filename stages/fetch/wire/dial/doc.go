// Package dial makes TCP and TLS connections to web servers and keeps idle ones.
//
// In: an http1.Target. Out: a Conn, or an *Error that names the failed Step. The Dialer
// applies connect-to rules, then DNS, the guard and the proxy. Every address that it dials,
// or asks the proxy to dial, has passed the guard after DNS, except the proxy and addresses
// that a connect-to rule names. With ProxyFilters the proxy looks up the hosts of plain
// http again. The Pool keeps connections that may serve another exchange.
//
// It imports the standard library and packages guard, dns, http1 and buffers.
package dial
