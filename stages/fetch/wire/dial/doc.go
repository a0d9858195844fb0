// Package dial makes TCP and TLS connections to web servers and keeps idle ones.
//
// In: an http1.Target. Out: a Conn, after connect-to rules, DNS, the address guard
// and the proxy have been applied in this order, or an *Error that names the failed
// Step. Every address that is dialled has passed the guard after DNS, except
// addresses named by a connect-to rule and the proxy. The Pool keeps connections
// that may serve another exchange.
//
// It imports the standard library and packages guard, dns, http1 and buffers.
package dial
