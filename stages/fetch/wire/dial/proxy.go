package dial

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"crawlbatch.io/crawlbatch/stages/fetch/wire/http1"
)

// proxy is an HTTP proxy through which all connections go.
type proxy struct {
	host          string
	port          uint16
	authorization string // value of Proxy-Authorization, or ""; never stored or printed
}

// appendCredentials appends the Proxy-Authorization line if the proxy has credentials.
func (p *proxy) appendCredentials(b []byte) []byte {
	if p.authorization == "" {
		return b
	}
	return append(b, "Proxy-Authorization: "+p.authorization+"\r\n"...)
}

// parseProxy parses "http://[user:password@]host:port".
func parseProxy(s string) (*proxy, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		// The error does not quote s, which may contain a password.
		return nil, errors.New("want http://[user:password@]host:port (http is the only scheme for proxies)")
	}
	t, err := http1.ParseTarget("http://" + u.Host)
	if err != nil {
		return nil, err
	}
	if t.Port == 0 {
		return nil, errors.New("port 0 cannot be used")
	}
	p := &proxy{host: t.Host, port: t.Port}
	if u.User != nil {
		password, _ := u.User.Password()
		p.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	return p, nil
}

// ProxyFilters is the config key that sends plain http to the proxy in absolute form.
const ProxyFilters = "fetch.proxy_filters"

// ErrNoTunnel means that the proxy refuses CONNECT for plain http.
var ErrNoTunnel = errors.New("for plain http, the proxy must allow CONNECT to the server's port: allow it, or set " + ProxyFilters +
	": true if the proxy itself refuses private addresses")

// refusal is a proxy's response to CONNECT with a status other than 2xx.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// isUnreachable reports whether the proxy tried to reach the address and failed.
func isUnreachable(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status >= 502 && r.status <= 504
}

// RefusedWith returns the status with which a proxy refused CONNECT, or 0 if err is no such refusal.
func RefusedWith(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status
	}
	return 0
}

// needsTunnel adds ErrNoTunnel if the proxy refuses the tunnel. It returns other errors unchanged,
// such as a target that does not answer, wrong credentials, or a time-out.
func needsTunnel(err error) error {
	if r, ok := errors.AsType[*refusal](err); isUnreachable(err) || ok && r.status == http.StatusProxyAuthRequired || http1.IsTimeout(err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, ErrNoTunnel)
}

// maxConnectHead bounds a proxy's response to CONNECT in bytes.
const maxConnectHead = 64 << 10

// tunnel asks the proxy behind nc for a connection to authority (RFC 9110, 9.3.6), until ctx ends.
func (p *proxy) tunnel(ctx context.Context, nc net.Conn, authority string) error {
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(pastTime) })
	defer stop()
	b := []byte("CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n")
	if _, err := nc.Write(append(p.appendCredentials(b), "\r\n"...)); err != nil {
		return err
	}
	var resp http1.Response
	defer resp.Release()
	r := http1.NewReader(nc, &resp)
	defer r.Release()
	r.Method, r.MaxHeader = "CONNECT", maxConnectHead
	if err := r.ReadHead(); err != nil {
		return fmt.Errorf("answer to CONNECT: %w", err)
	}
	if resp.Status < 200 || resp.Status > 299 {
		status := strconv.Itoa(resp.Status)
		if resp.StatusText != "" {
			status += fmt.Sprintf(" %.60q", resp.StatusText)
		}
		return &refusal{resp.Status, "proxy answered CONNECT with " + status}
	}
	if r.Unread() {
		return errors.New("proxy sent data after its answer to CONNECT")
	}
	return nil
}
