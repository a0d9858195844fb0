package dial

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/http1"
)

// proxy is an HTTP proxy through which all connections go.
type proxy struct {
	host          string
	port          uint16
	authorization string // value of Proxy-Authorization, or ""; never stored or printed

	encoded []byte // the base64 in authorization, without padding
	pair    []byte // user:password, or nil if one of them is empty
	secret  string // the password; without a password the user
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
		pair := []byte(u.User.Username() + ":" + password)
		p.authorization, p.encoded = "Basic "+base64.StdEncoding.EncodeToString(pair), []byte(base64.RawStdEncoding.EncodeToString(pair))
		p.secret = cmp.Or(password, u.User.Username())
		if u.User.Username() != "" && password != "" {
			p.pair = pair
		}
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
		return fmt.Errorf("answer to CONNECT: %w", p.withoutRepeated(err))
	}
	if resp.Status < 200 || resp.Status > 299 {
		status := strconv.Itoa(resp.Status)
		switch {
		case p.repeatedIn(string(resp.RawHead)):
			status += " " + hidden
		case resp.StatusText != "":
			status += fmt.Sprintf(" %.60q", resp.StatusText)
		}
		return &refusal{resp.Status, "proxy answered CONNECT with " + status}
	}
	if r.Unread() {
		return errors.New("proxy sent data after its answer to CONNECT")
	}
	return nil
}

// hidden stands in an error for what may hold the proxy's credentials.
const hidden = "(left out: it may repeat the proxy's credentials)"

// repeatedIn reports whether a text that the proxy wrote repeats the credentials, or only the password.
func (p *proxy) repeatedIn(text string) bool {
	return p.credentialsIn([]byte(text)) || p.secret != "" && strings.Contains(text, p.secret)
}

// credentialsIn reports whether a response, which may be that of a server, has the credentials as base64 or as user and
// password. A password alone may be an ordinary word of a page.
func (p *proxy) credentialsIn(b []byte) bool {
	return p.authorization != "" && (bytes.Contains(b, p.encoded) || p.pair != nil && bytes.Contains(b, p.pair))
}

// withoutRepeated returns the error of a head that cannot be read, without its detail if that may quote a piece of the
// credentials.
func (p *proxy) withoutRepeated(err error) error {
	e, ok := errors.AsType[http1.ProtocolError](err)
	if !ok || p.authorization == "" {
		return err
	}
	e.Detail = hidden
	return e
}

// Untold keeps a proxy's credentials out of what a server's response becomes. It is for one exchange.
type Untold struct{ proxy *proxy }

// Untold returns an Untold for an exchange with a target. Inside TLS, a proxy cannot write.
func (d *Dialer) Untold(t http1.Target) Untold {
	if d.proxy == nil || d.proxy.authorization == "" || t.HTTPS {
		return Untold{}
	}
	return Untold{d.proxy}
}

// Check returns an error if one of the parts of a response repeats the credentials. Such a response must not be stored.
func (u Untold) Check(parts ...[]byte) error {
	if u.proxy != nil && slices.ContainsFunc(parts, u.proxy.credentialsIn) {
		return http1.ProtocolError{Phrase: "response repeats the proxy's credentials", Detail: "nothing of it is stored"}
	}
	return nil
}

// Error returns an error of a head, without what may quote the credentials.
func (u Untold) Error(err error) error {
	if u.proxy == nil {
		return err
	}
	return u.proxy.withoutRepeated(err)
}
